"""What the replicas of MovieLens, Netflix, Tmall and Yelp have of the published files, and what is found in them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.datasets import yelp
from tasks.datasets.synthetic import movielens, netflix, tmall
from tasks.datasets.synthetic import yelp as replica_yelp
from tests.datasets.replicas import converted, generated

Tables = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("replicas")
    scales = {"ml-100k": 1.0, "ml-1m": 0.1, "netflix": 0.002, "tmall": 0.01, "yelp": 0.01, "yelp-hin": 1.0}
    return {name: generated(root / name, name, scale) for name, scale in scales.items()}


@pytest.fixture(scope="module")
def replicas(folders: dict[str, Path]) -> dict[str, Tables]:
    raw = {name: converted(folder, name) for name, folder in folders.items()}
    return {
        name: {table: tables.scan(table).collect() for table in tables.schema.tables} for name, tables in raw.items()
    }


def sorted_counts(rows: pl.DataFrame, column: str) -> np.ndarray:
    return np.sort(rows.group_by(column).len()["len"].to_numpy())


def head(counts: np.ndarray) -> float:
    """Share of the most frequent tenth."""
    return float(counts[-len(counts) // 10 :].sum() / counts.sum())


def test_movielens_100k_has_the_published_tails_and_files(
    folders: dict[str, Path], replicas: dict[str, Tables]
) -> None:
    tables, folder = replicas["ml-100k"], folders["ml-100k"]
    ratings = tables["interactions"]
    assert (len(ratings), len(tables["users"]), len(tables["items"])) == (100_000, 943, 1_682)
    assert head(sorted_counts(ratings, "item")) == pytest.approx(0.427, abs=0.06)
    activity = sorted_counts(ratings, "user")
    assert np.median(activity) == pytest.approx(65, abs=6)
    assert activity.max() == pytest.approx(737, rel=0.3)
    assert (folder / "u.info").read_text() == "943 users\n1682 items\n100000 ratings\n"
    written = sum(file.stat().st_size for file in folder.iterdir())
    assert written == pytest.approx(movielens.LAYOUTS["ml-100k"].size, rel=0.05)
    assert tables["items"]["unknown"].sum() == tables["items"]["release_date"].null_count() == 1
    for name, known in movielens.LAYOUTS["ml-100k"].attributes.items():
        counts = tables["users"][name].value_counts()["count"]
        assert counts.max() / 943 == pytest.approx(max(known.shares) / sum(known.shares), abs=0.05) or name == "age"


def test_lines_end_as_published(tmp_path: Path) -> None:
    small, large = (generated(tmp_path / name, name, 0.001) for name in ("ml-latest-small", "ml-20m"))
    for name in ("movies.csv", "ratings.csv"):
        lines = (small / name).read_bytes().count(b"\n")
        assert (small / name).read_bytes().count(b"\r\n") == lines > 1
        assert b"\r" not in (large / name).read_bytes()


def test_ratings_have_factors_beyond_the_means_of_users_and_items(replicas: dict[str, Tables]) -> None:
    table = replicas["ml-1m"]["interactions"].select("rating", *(pl.col(c).rank("dense") - 1 for c in ("user", "item")))
    user, item, rating = (table[name].to_numpy().astype(int) for name in ("user", "item", "rating"))
    test = np.random.default_rng(0).random(len(rating)) < 0.2
    rest = rating - rating[~test].mean()
    for index in (user, item):
        sums = np.bincount(index[~test], rest[~test], index.max() + 1)
        rest = rest - (sums / (np.bincount(index[~test], minlength=index.max() + 1) + 5))[index]
    known = np.zeros((user.max() + 1, item.max() + 1))
    known[user[~test], item[~test]] = rest[~test]
    left, size, right = np.linalg.svd(known, full_matrices=False)
    predicted = 2 * (left[:, :6] * size[:6] @ right[:6])[user, item]
    assert np.mean((rest - predicted)[test] ** 2) < 0.97 * np.mean(rest[test] ** 2)


def test_what_comes_next_is_often_of_the_same_kind(folders: dict[str, Path], replicas: dict[str, Tables]) -> None:
    """Films of a genre, categories of goods, kinds of businesses: against the user's rows in another order."""
    genres = replicas["ml-1m"]["items"].select("item", kind=pl.col("genres").str.split("|").list.first())
    assert set(genres["kind"]) <= set(movielens.GENRES)
    business = pl.read_ndjson(folders["yelp"] / "yelp_academic_dataset_business.json")
    kinds = {
        "ml-1m": (genres, 1.5),
        "tmall": (replicas["tmall"]["interactions"].select("item", kind="category").unique(), 2.0),
        "yelp": (business.select(item="business_id", kind="categories"), 1.2),
    }
    for name, (kind, gain) in kinds.items():
        rows = (
            replicas[name]["interactions"]
            .join(kind, on="item")
            .with_columns(tie=pl.int_range(pl.len()).shuffle(seed=0))
        )
        again = pl.col("user") == pl.col("user").shift()

        def same(rows: pl.DataFrame, again: pl.Expr = again) -> float:
            return rows.select(((pl.col("kind") == pl.col("kind").shift()) & again).sum() / again.sum()).item()

        assert same(rows.sort("user", "timestamp", "tie")) > gain * same(rows.sort("user", "tie")), name


def test_netflix_customers_have_sparse_ids_tails_and_days(
    folders: dict[str, Path], replicas: dict[str, Tables]
) -> None:
    ratings, titles = replicas["netflix"]["interactions"], replicas["netflix"]["items"]
    customers = ratings["user"].unique(maintain_order=True).to_numpy()
    assert customers.max() == round(0.002 * 2_649_429)
    assert len(customers) < customers.max() / 5
    assert abs(np.corrcoef(customers, np.arange(len(customers)))[0, 1]) < 0.2
    movies, activity = sorted_counts(ratings, "item"), sorted_counts(ratings, "user")
    assert head(movies) > 0.4
    assert np.mean(activity) / np.median(activity) == pytest.approx(209 / 96, rel=0.2)  # the published ones
    own = ratings.group_by("user").agg(days=pl.col("timestamp").n_unique(), number=pl.len())
    assert own["number"].sum() / own["days"].sum() > 5
    assert ratings["timestamp"].is_between(netflix.FIRST_DAY, netflix.LAST_DAY).all()
    years = ratings["timestamp"] // (365 * 86_400)
    assert (years >= 34).mean() > 2 * (years <= 31).mean()  # it grows
    assert titles["title"].str.contains("Synthetic").all()
    assert titles["title"].str.contains(",").any()
    assert 0 < titles["year"].null_count() < 20
    assert {f"combined_data_{number}.txt" for number in range(1, 5)} < {
        file.name for file in folders["netflix"].iterdir()
    }


def test_both_layouts_of_netflix_have_the_same_ratings(tmp_path: Path) -> None:
    single, combined = "netflix, a file per movie", "netflix"
    first = converted(generated(tmp_path / "single", single, 0.0002), single)
    second = converted(generated(tmp_path / "combined", combined, 0.0002), combined)
    assert (tmp_path / "single/training_set/mv_0000077.txt").read_text().startswith("77:\n")
    assert first.scan("interactions").collect().equals(second.scan("interactions").collect())


def test_tmall_has_the_published_shares_and_its_rush(folders: dict[str, Path], replicas: dict[str, Tables]) -> None:
    log = replicas["tmall"]["interactions"]
    actions = np.bincount(log["action"]) / len(log)
    np.testing.assert_allclose(actions, np.array(tmall.ACTIONS) / tmall.TMALL.rows, atol=0.001)
    people = pl.read_csv(folders["tmall"] / "user_info_format1.csv")
    for column, counts in (("age_range", tmall.AGES), ("gender", tmall.GENDERS)):
        actual = [(people[column] == number).sum() / len(people) for number in range(len(counts))]
        np.testing.assert_allclose(actual, np.array(counts) / tmall.TMALL.users, atol=0.025)
        blank = people[column].null_count() / len(people)
        assert blank == pytest.approx(1 - sum(counts) / tmall.TMALL.users, abs=0.005)
        assert blank > 0
    day = log["day"]
    assert (day.min(), day.max(), day.n_unique()) == (511, 1111, 185)
    assert (day == 1111).mean() == pytest.approx(0.19, abs=0.02)
    assert day.is_between(1101, 1107).mean() == pytest.approx(0.1, abs=0.02)


def test_tmalls_items_are_articles_that_users_come_back_to(replicas: dict[str, Tables]) -> None:
    log = replicas["tmall"]["interactions"]
    kinds = log.group_by("item").agg(pl.col("category", "seller", "brand").n_unique())
    assert (kinds.select("category", "seller", "brand").to_numpy() == 1).all()
    assert log["brand"].null_count() < 0.01 * len(log)
    numbers = log.select(pl.col("category", "seller").n_unique()).row(0)
    assert numbers == (round(tmall.CATEGORIES / 10), round(tmall.SELLERS / 10))
    assert 0.5 < log.select("user", "item").n_unique() / len(log) < 0.8
    items, users = sorted_counts(log, "item"), sorted_counts(log, "user")
    assert head(items) > 0.5
    assert users.mean() > 1.7 * np.median(users)
    rows = log.with_columns(tie=pl.int_range(pl.len()).shuffle(seed=0)).sort("user", "timestamp", "tie")
    same = ((rows["category"] == rows["category"].shift()) & (rows["user"] == rows["user"].shift())).mean()
    assert same > 0.3 > 5 * (rows["category"] == rows["category"].shuffle(seed=0)).mean()


def test_most_users_of_yelp_review_once_and_every_business_is_reviewed_five_times(replicas: dict[str, Tables]) -> None:
    rows = replicas["yelp"]["interactions"]
    users, items = sorted_counts(rows, "user"), sorted_counts(rows, "item")
    assert np.median(users) == 1
    assert (users >= 10).mean() == pytest.approx(0.05, abs=0.01)
    assert items[0] == 5
    assert head(items) > 0.4
    assert rows.select("user", "item").is_duplicated().any()


def test_what_is_known_of_yelps_users_goes_with_how_much_they_review(replicas: dict[str, Tables]) -> None:
    tables = replicas["yelp"]
    number = tables["interactions"].group_by("user").agg(number=pl.len(), mean=pl.col("rating").mean())
    users = tables["users"].join(number, on="user")
    for feature in yelp.COUNTS:
        assert np.corrcoef(np.log1p(users[feature]), np.log(users["number"]))[0, 1] > 0.4
    assert (users["review_count"] >= users["number"]).all()
    np.testing.assert_allclose(users["average_stars"], users["mean"], atol=0.006)
    friends = tables["social"].group_by("source").len().join(users, left_on="source", right_on="user")
    assert np.corrcoef(np.log(friends["len"]), np.log(friends["number"]))[0, 1] > 0.3


def test_yelps_users_stay_in_their_area_and_so_do_their_friends(replicas: dict[str, Tables]) -> None:
    tables = replicas["yelp"]
    rows = tables["interactions"].join(tables["items"], on="item").sort("user", "timestamp")
    again = rows["user"] == rows["user"].shift()
    same = ((rows["city"] == rows["city"].shift()) & again).sum() / again.sum()
    assert same > 0.7 > 3 * (rows["city"] == rows["city"].shuffle(seed=0)).mean()
    homes = rows.group_by("user").agg(pl.col("city").mode().sort().first())
    social = tables["social"]
    city = {
        name: social.select(pl.col(name).replace_strict(homes["user"], homes["city"]))[name]
        for name in ("source", "target")
    }
    near = (city["source"] == city["target"]).mean()
    assert near > 0.45 > 1.8 * (city["source"] == city["target"].shuffle(seed=0)).mean()
    assert social.join(social, left_on=["source", "target"], right_on=["target", "source"]).height == len(
        social.unique()
    )
    assert (social["source"] != social["target"]).all()


def test_the_subset_of_yelp_has_the_published_numbers_and_tails(replicas: dict[str, Tables]) -> None:
    hin = replicas["yelp-hin"]
    assert (len(hin["users"]), len(hin["items"]), len(hin["interactions"])) == (16_239, 14_284, 198_397)
    assert (len(hin["social"]), hin["social"]["source"].n_unique()) == (158_590, 10_580)
    categories, cities = hin["items"]["categories"], hin["items"]["city"]
    assert (categories.list.len().sum(), (categories.list.len() > 0).sum()) == (40_009, 14_180)
    assert categories.explode().drop_nulls().n_unique() == 511
    assert (cities.null_count(), cities.drop_nulls().n_unique()) == (14_284 - 14_267, 47)
    kinds = [(hin["users"][f"compliment-{number}"] == "yes").sum() for number in range(1, 12)]
    assert sum(kinds) == 76_875
    assert np.corrcoef(kinds, replica_yelp.HIN_COMPLIMENTS)[0, 1] > 0.95
    users, items = sorted_counts(hin["interactions"], "user"), sorted_counts(hin["interactions"], "item")
    assert np.median(users) == 3
    assert np.median(items) == pytest.approx(4, abs=1)
    assert head(items) == pytest.approx(0.59, abs=0.05)
    degrees = sorted_counts(hin["social"], "source")
    assert degrees.max() > 20 * np.median(degrees)


def test_records_of_yelp_have_all_published_fields(folders: dict[str, Path]) -> None:
    def records(kind: str) -> list[dict[str, object]]:
        lines = (folders["yelp"] / f"yelp_academic_dataset_{kind}.json").read_text().splitlines()
        return [json.loads(line) for line in lines[:2_000]]

    assert list(records("review")[0]) == [
        "review_id", "user_id", "business_id", "stars", "useful", "funny", "cool", "text", "date",
    ]  # fmt: skip
    assert list(records("business")[0]) == [
        "business_id", "name", "address", "city", "state", "postal_code", "latitude", "longitude", "stars",
        "review_count", "is_open", "attributes", "categories", "hours",
    ]  # fmt: skip
    compliments = ("hot", "more", "profile", "cute", "list", "note", "plain", "cool", "funny", "writer", "photos")
    assert list(records("user")[0]) == [
        "user_id", "name", "review_count", "yelping_since", "useful", "funny", "cool", "elite", "friends", "fans",
        "average_stars", *(f"compliment_{name}" for name in compliments),
    ]  # fmt: skip
    assert {"None"} < {str(record["friends"]) for record in records("user")}
    assert None in [record["attributes"] for record in records("business")]
    assert all("Synthetic" in str(record["name"]) for record in records("business") + records("user"))
    assert all("SYNTHETIC" in str(record["text"]) for record in records("review"))
