"""Replicas with items: their sizes and formats, that they say what they are, and what is to be found in them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets.synthetic import generator
from tasks.datasets.synthetic import yelp as replica_yelp
from tests.datasets.learnable import matrix, recalls
from tests.datasets.replicas import REPLICAS, converted, described, generated, replica

ITEMS = [name for name in REPLICAS if isinstance(described(name), generator.Description)]
Tables = dict[str, pl.DataFrame]
SCALES = {"ml-1m": 0.1, "ml-20m": 0.005, "netflix": 0.002, "tmall": 0.01, "yelp": 0.01}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("replicas")
    return {name: generated(root / name, name, scale) for name, scale in SCALES.items()}


@pytest.fixture(scope="module")
def replicas(folders: dict[str, Path]) -> dict[str, Tables]:
    raw = {name: converted(folder, name) for name, folder in folders.items()}
    return {
        name: {table: tables.scan(table).collect() for table in tables.schema.tables} for name, tables in raw.items()
    }


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize(("scale", "block"), [(0.00001, generator.BLOCK), (0.003, generator.BLOCK), (0.003, 400)])
def test_the_reader_of_the_real_data_set_finds_the_described_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, scale: float, block: int
) -> None:
    monkeypatch.setattr(generator, "BLOCK", block)
    monkeypatch.setattr(replica_yelp, "BLOCK", block)
    raw = converted(generated(tmp_path / "raw", name, scale), name)
    rows = raw.scan("interactions").collect()
    users, items, number = described(name).sizes(scale)
    assert rows.select(pl.col("user", "item").n_unique()).row(0) == (users, items)
    assert abs(len(rows) - number) <= (round(9_826 * scale) if name.startswith(("ciao", "epinions")) else 0)
    assert rows.group_by("user").len()["len"].min() >= described(name).min_rows
    if raw.schema.scale and block > 400:  # the thresholds are those of the first block
        shares = rows["rating"].value_counts(normalize=True).sort("rating")["proportion"].to_numpy()
        expected = np.array(described(name).levels)
        np.testing.assert_allclose(
            shares[-len(expected) :], expected / expected.sum(), atol=0.05 if scale < 0.001 else 0.01
        )


@pytest.mark.parametrize("name", REPLICAS)
def test_a_seed_gives_the_same_bytes_another_seed_others_and_all_say_that_they_are_synthetic(
    tmp_path: Path, name: str
) -> None:
    folders = [generated(tmp_path / f"{number}", name, 0.0005, seed) for number, seed in enumerate((5, 5, 6))]
    first, again, other = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in folders
    )
    assert first == again
    assert first.keys() == other.keys()
    assert all(first[file] != other[file] for file in first)
    assert first[Path("NOTE")].startswith(b"SYNTHETIC DATA\n")
    assert replica(name).SOURCE.synthetic
    assert "SYNTHETIC" in replica(name).SOURCE.licence


@pytest.mark.parametrize(
    ("name", "n_items", "gain"),
    [("ml-1m", None, 1.15), ("ml-20m", 800, 1.15), ("netflix", 800, 1.15), ("tmall", 500, 1.5), ("yelp", 500, 1.4)],
)
def test_taste_is_personal_so_a_model_of_items_beats_popularity(
    replicas: dict[str, Tables], name: str, n_items: int | None, gain: float
) -> None:
    model, popularity, chance = recalls(matrix(replicas[name]["interactions"], n_items=n_items))
    assert model > gain * popularity > 2 * chance


@pytest.mark.parametrize(
    ("name", "margins"),
    [("ml-1m", {"gender": 0.04, "age": 0.03, "occupation": 0.04}), ("tmall", {"gender": 0.08, "age": 0.04})],
)
def test_what_users_have_gives_attributes_away(
    replicas: dict[str, Tables], name: str, margins: dict[str, float]
) -> None:
    tables = replicas[name]
    kind = "category" if name == "tmall" else "item"
    counts = tables["interactions"].group_by("user", kind=kind).len().with_columns(pl.col("kind").rank("dense") - 1)
    for attribute, margin in margins.items():
        users = tables["users"].filter(pl.col(attribute).is_not_null()).sort("user").with_row_index("row")
        cells = counts.join(users.select("row", "user"), on="user").sort("row", "kind")
        has = np.zeros((len(users), counts["kind"].max() + 1))
        has[cells["row"], cells["kind"]] = np.log1p(cells["len"].to_numpy())
        labels = users[attribute].to_numpy()
        majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
        folds = KFold(4, shuffle=True, random_state=0)
        assert cross_val_score(RidgeClassifier(alpha=100), has, labels, cv=folds).mean() > majority + margin, attribute


def test_ratings_have_factors_beyond_the_means_of_users_and_items(replicas: dict[str, Tables]) -> None:
    table = replicas["ml-1m"]["interactions"].select("rating", *(pl.col(c).rank("dense") - 1 for c in ("user", "item")))
    user, item, rating = (table[name].to_numpy().astype(int) for name in ("user", "item", "rating"))
    test = np.random.default_rng(0).random(len(rating)) < 0.2
    residual = rating - rating[~test].mean()
    for index in (user, item):
        sums = np.bincount(index[~test], residual[~test], index.max() + 1)
        residual = residual - (sums / (np.bincount(index[~test], minlength=index.max() + 1) + 5))[index]
    trained = np.zeros((user.max() + 1, item.max() + 1))
    trained[user[~test], item[~test]] = residual[~test]
    left, size, right = np.linalg.svd(trained, full_matrices=False)
    predicted = 2 * (left[:, :6] * size[:6] @ right[:6])[user, item]
    assert np.mean((residual - predicted)[test] ** 2) < 0.97 * np.mean(residual[test] ** 2)


def test_what_comes_next_is_often_of_the_same_kind(folders: dict[str, Path], replicas: dict[str, Tables]) -> None:
    """Films of a genre, categories of goods, kinds of businesses: against the user's rows in another order."""
    genres = replicas["ml-1m"]["items"].select("item", kind=pl.col("genres").str.split("|").list.first())
    business = pl.read_ndjson(folders["yelp"] / "yelp_academic_dataset_business.json")
    kinds = {
        "ml-1m": (genres, 1.5),
        "tmall": (replicas["tmall"]["interactions"].select("item", kind="category").unique(), 2.0),
        "yelp": (business.select(item="business_id", kind="categories"), 1.2),
    }
    again = pl.col("user") == pl.col("user").shift()
    same = ((pl.col("kind") == pl.col("kind").shift()) & again).sum() / again.sum()
    for name, (kind, gain) in kinds.items():
        rows = replicas[name]["interactions"].join(kind, on="item")
        rows = rows.with_columns(tie=pl.int_range(pl.len()).shuffle(seed=0))
        chance = rows.sort("user", "tie").select(same).item()
        assert rows.sort("user", "timestamp", "tie").select(same).item() > gain * chance, name


def test_yelps_users_stay_in_their_area_and_so_do_their_friends(replicas: dict[str, Tables]) -> None:
    tables = replicas["yelp"]
    rows = tables["interactions"].join(tables["items"], on="item").sort("user", "timestamp")
    again = rows["user"] == rows["user"].shift()
    same = ((rows["city"] == rows["city"].shift()) & again).sum() / again.sum()
    assert same > 0.7 > 3 * (rows["city"] == rows["city"].shuffle(seed=0)).mean()
    homes = rows.group_by("user").agg(pl.col("city").mode().sort().first())
    social = tables["social"].select(pl.col("source", "target").replace_strict(homes["user"], homes["city"]))
    near = (social["source"] == social["target"]).mean()
    assert near > 0.45 > 1.8 * (social["source"] == social["target"].shuffle(seed=0)).mean()
