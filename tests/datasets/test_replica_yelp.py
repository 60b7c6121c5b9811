import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.datasets import yelp, yelp_hin
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import neighbours
from tasks.datasets.synthetic import yelp as replica_yelp
from tasks.datasets.synthetic.neighbours import both_ways, friendships, some_people
from tasks.datasets.synthetic.yelp import ObtainOptions, obtain, sizes
from tasks.raw import RawSchema, read_raw
from tests.datasets.learnable import matrix, recalls

READ = yelp.ReadOptions(users=True, businesses=True, friends=True, outsiders="refuse")
FILES = {
    "yelp": {"NOTE", *(f"yelp_academic_dataset_{kind}.json" for kind in ("business", "review", "user"))},
    "yelp-hin": {"NOTE", *(Path(file.name).name for file in yelp_hin.FILES)},
}


def options(layout: str, scale: float, seed: int = 4) -> ObtainOptions:
    return ObtainOptions.model_validate({"layout": layout, "scale": scale, "seed": seed})


def generated(folder: Path, wanted: ObtainOptions) -> Path:
    folder.mkdir()
    obtain(folder, Places(None, folder, folder), wanted)
    return folder


def converted(folder: Path, layout: str) -> tuple[RawSchema, dict[str, pl.DataFrame]]:
    place = folder.with_name(f"{folder.name}-tables")
    place.mkdir()
    if layout == "yelp":
        yelp.convert(folder, place, READ)
    else:
        yelp_hin.convert(folder, place, yelp_hin.ReadOptions(time="none"))
    raw = read_raw(place)
    return raw.schema, {table: raw.scan(table).collect() for table in raw.schema.tables}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """A hundredth of the open dataset's replica."""
    folder = generated(tmp_path_factory.mktemp("replica") / "yelp", options("yelp", 0.01))
    return converted(folder, "yelp")[1]


@pytest.fixture(scope="module")
def hin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """The subset's replica at scale 1."""
    folder = generated(tmp_path_factory.mktemp("replica") / "hin", options("yelp-hin", 1.0))
    return converted(folder, "yelp-hin")[1]


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize("scale", [0.00001, 0.002])
def test_a_small_replica_is_read_as_the_real_one_is(tmp_path: Path, layout: str, scale: float) -> None:
    folder = generated(tmp_path / "yelp", options(layout, scale))
    assert {file.name for file in folder.iterdir()} == FILES[layout]
    _, tables = converted(folder, layout)
    rows = tables["interactions"]
    assert (*rows.select(pl.col("user", "item").n_unique()).row(0), len(rows)) == sizes(options(layout, scale))
    assert (len(tables["users"]), len(tables["items"])) == sizes(options(layout, scale))[:2]
    assert len(tables["social"]) > 0


def test_at_scale_one_the_sizes_are_the_published_ones(hin: dict[str, pl.DataFrame]) -> None:
    assert sizes(options("yelp", 1.0)) == (1_987_897, 150_346, 6_990_280)
    assert sizes(options("yelp-hin", 1.0)) == (16_239, 14_284, 198_397)
    assert (len(hin["users"]), len(hin["items"]), len(hin["interactions"])) == (16_239, 14_284, 198_397)
    assert (len(hin["social"]), hin["social"]["source"].n_unique()) == (158_590, 10_580)
    categories = hin["items"]["categories"]
    assert categories.list.len().sum() == 40_009
    assert (categories.list.len() > 0).sum() == 14_180
    assert categories.explode().drop_nulls().n_unique() == 511
    assert hin["items"]["city"].null_count() == 14_284 - 14_267
    assert hin["items"]["city"].drop_nulls().n_unique() == 47
    kinds = [(hin["users"][f"compliment-{number}"] == "yes").sum() for number in range(1, 12)]
    assert sum(kinds) == 76_875
    assert np.corrcoef(kinds, replica_yelp.HIN_COMPLIMENTS)[0, 1] > 0.95
    assert "198,397 synthetic" in replica_yelp.source(options("yelp-hin", 1.0)).holds


@pytest.mark.parametrize(("layout", "levels"), [("yelp", replica_yelp.LEVELS), ("yelp-hin", replica_yelp.HIN_LEVELS)])
def test_stars_have_their_shares(
    layout: str, levels: tuple[float, ...], dataset: dict[str, pl.DataFrame], hin: dict[str, pl.DataFrame]
) -> None:
    rows = (dataset if layout == "yelp" else hin)["interactions"]
    shares = rows["rating"].value_counts(normalize=True).sort("rating")["proportion"]
    np.testing.assert_allclose(shares, levels, atol=0.002)


def test_most_users_review_once_and_every_business_is_reviewed_five_times(dataset: dict[str, pl.DataFrame]) -> None:
    rows = dataset["interactions"]
    users, items = (np.sort(rows.group_by(name).len()["len"].to_numpy()) for name in ("user", "item"))
    assert np.median(users) == 1
    assert (users >= 10).mean() == pytest.approx(0.05, abs=0.01)
    assert items[0] == 5
    assert items[-len(items) // 10 :].sum() > 0.4 * items.sum()
    assert rows.select("user", "item").is_duplicated().any()


def test_the_subset_has_the_published_tails(hin: dict[str, pl.DataFrame]) -> None:
    users, items = (np.sort(hin["interactions"].group_by(name).len()["len"].to_numpy()) for name in ("user", "item"))
    assert np.median(users) == 3
    assert np.median(items) == pytest.approx(4, abs=1)
    assert items[-1_428:].sum() / 198_397 == pytest.approx(0.59, abs=0.05)
    degrees = hin["social"].group_by("source").len()["len"]
    assert degrees.max() > 20 * degrees.median()  # type: ignore[operator]


def test_what_is_known_of_users_goes_with_how_much_they_review(dataset: dict[str, pl.DataFrame]) -> None:
    number = dataset["interactions"].group_by("user").agg(number=pl.len(), mean=pl.col("rating").mean())
    users = dataset["users"].join(number, on="user")
    for feature in yelp.COUNTS:
        assert np.corrcoef(np.log1p(users[feature]), np.log(users["number"]))[0, 1] > 0.4
    assert (users["review_count"] >= users["number"]).all()
    np.testing.assert_allclose(users["average_stars"], users["mean"], atol=0.006)
    friends = dataset["social"].group_by("source").len().join(users, left_on="source", right_on="user")
    assert np.corrcoef(np.log(friends["len"]), np.log(friends["number"]))[0, 1] > 0.3


def test_users_stay_in_their_area_and_on_a_topic(tmp_path: Path, dataset: dict[str, pl.DataFrame]) -> None:
    rows = dataset["interactions"].join(dataset["items"], on="item").sort("user", "timestamp")
    again = rows["user"] == rows["user"].shift()
    same = ((rows["city"] == rows["city"].shift()) & again).sum() / again.sum()
    by_chance = (rows["city"] == rows["city"].shuffle(seed=0)).mean()
    assert same > 0.7 > 3 * by_chance
    folder = generated(tmp_path / "yelp", options("yelp", 0.01))
    kinds = pl.read_ndjson(folder / "yelp_academic_dataset_business.json").select("business_id", "categories")
    rows = rows.join(kinds, left_on="item", right_on="business_id").sort("user", "timestamp")
    same = ((rows["categories"] == rows["categories"].shift()) & again).sum() / again.sum()
    shuffled = rows.with_columns(tie=pl.int_range(pl.len()).shuffle(seed=0)).sort("user", "tie")["categories"]
    assert same > 1.2 * ((shuffled == shuffled.shift()) & again).sum() / again.sum()


@pytest.mark.parametrize("layout", FILES)
def test_taste_is_personal_so_a_model_of_items_beats_popularity(
    layout: str, dataset: dict[str, pl.DataFrame], hin: dict[str, pl.DataFrame]
) -> None:
    rows = (dataset if layout == "yelp" else hin)["interactions"]
    model, popularity, chance = recalls(matrix(rows, n_items=500))
    assert model > 1.4 * popularity > 2 * chance


def test_friends_live_near_one_another_and_all_members_have_one() -> None:
    people = some_people(np.random.default_rng(1), 5_000)
    first, second = friendships(np.random.default_rng(2), people, 3_000, 20_000)
    assert len(first) == 20_000
    assert (first != second).all()
    assert len(np.unique(np.minimum(first, second) * 5_000 + np.maximum(first, second))) == 20_000
    assert len(np.unique([first, second])) == 3_000
    near = (people.home[first] == people.home[second]).mean()
    by_chance = (np.bincount(people.home) ** 2).sum() / 5_000**2
    assert near > 0.5 > 2 * by_chance
    sources, targets = both_ways((first, second))
    pairs = set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert len(pairs) == 40_000
    assert all((target, source) in pairs for source, target in pairs)
    assert (np.diff(sources) >= 0).all()


def test_records_have_all_published_fields(tmp_path: Path) -> None:
    folder = generated(tmp_path / "yelp", options("yelp", 0.001))

    def records(kind: str) -> list[dict[str, object]]:
        lines = (folder / f"yelp_academic_dataset_{kind}.json").read_text().splitlines()
        return [json.loads(line) for line in lines]

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
    assert None in {record["attributes"] if record["attributes"] is None else "some" for record in records("business")}
    assert all("Synthetic" in str(record["name"]) for record in records("business") + records("user"))
    assert all("SYNTHETIC" in str(record["text"]) for record in records("review"))


@pytest.mark.parametrize("layout", FILES)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path, layout: str) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        folder = generated(tmp_path / name, options(layout, 0.01, seed))
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    first, other = content("first", 5), content("other", 6)
    assert first == content("again", 5)
    assert all(first[name] != other[name] for name in first)


@pytest.mark.parametrize("layout", FILES)
def test_blocks_leave_no_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    monkeypatch.setattr(replica_yelp, "BLOCK", 400)
    monkeypatch.setattr(neighbours, "BLOCK", 300)
    _, tables = converted(generated(tmp_path / "yelp", options(layout, 0.002)), layout)
    rows = tables["interactions"]
    assert (*rows.select(pl.col("user", "item").n_unique()).row(0), len(rows)) == sizes(options(layout, 0.002))


def test_it_says_that_it_is_synthetic(tmp_path: Path) -> None:
    folder = generated(tmp_path / "hin", options("yelp-hin", 0.002))
    assert (folder / "NOTE").read_text().startswith("SYNTHETIC DATA\n")
    assert replica_yelp.SOURCE.synthetic
    assert "SYNTHETIC" in replica_yelp.SOURCE.licence


@pytest.mark.parametrize("scale", [0.0, float("nan"), "1"])
def test_a_scale_that_means_nothing_is_refused(scale: object) -> None:
    with pytest.raises(ValueError, match="scale"):
        ObtainOptions.model_validate({"layout": "yelp", "scale": scale, "seed": 1})
