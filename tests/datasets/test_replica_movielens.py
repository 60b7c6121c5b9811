from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets import ml_1m, ml_20m, ml_100k
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import movielens as replica_movielens
from tasks.datasets.synthetic.movielens import GENRES, LAYOUTS, ObtainOptions, obtain, sizes
from tasks.raw import read_raw
from tests.datasets.learnable import matrix, recalls

CONVERT: dict[str, Callable[[Path, Path], None]] = {
    "ml-100k": lambda folder, place: ml_100k.convert(folder, place, ml_100k.ReadOptions()),
    "ml-1m": lambda folder, place: ml_1m.convert(folder, place, ml_1m.ReadOptions(time="seconds")),
    "ml-20m": lambda folder, place: ml_20m.convert(folder, place, ml_20m.ReadOptions()),
    "ml-latest-small": lambda folder, place: ml_20m.convert(folder, place, ml_20m.ReadOptions()),
}
FILES = {
    "ml-100k": {"README", "u.data", "u.genre", "u.info", "u.item", "u.occupation", "u.user"},
    "ml-1m": {"README", "movies.dat", "ratings.dat", "users.dat"},
    "ml-20m": {"README.txt", "movies.csv", "ratings.csv"},
    "ml-latest-small": {"README.txt", "movies.csv", "ratings.csv"},
}


def options(layout: str, scale: float, seed: int = 4) -> ObtainOptions:
    return ObtainOptions.model_validate({"layout": layout, "scale": scale, "seed": seed})


def generated(folder: Path, wanted: ObtainOptions) -> Path:
    folder.mkdir()
    obtain(folder, Places(None, folder, folder), wanted)
    return folder


def converted(place: Path, layout: str, scale: float) -> dict[str, pl.DataFrame]:
    folder = generated(place / "raw", options(layout, scale))
    (place / "tables").mkdir()
    CONVERT[layout](folder, place / "tables")
    raw = read_raw(place / "tables")
    return {table: raw.scan(table).collect() for table in raw.schema.tables}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """A tenth of MovieLens 1M's replica."""
    return converted(tmp_path_factory.mktemp("replica"), "ml-1m", 0.1)


@pytest.fixture(scope="module")
def rated(tables: dict[str, pl.DataFrame]) -> NDArray[np.float64]:
    """(n_users, n_items) 0/1"""
    return matrix(tables["interactions"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_small_replica_is_read_as_the_real_one_is(tmp_path: Path, layout: str) -> None:
    actual = converted(tmp_path, layout, 0.002)
    ratings = actual["interactions"]
    assert {file.name for file in (tmp_path / "raw").iterdir()} == FILES[layout]
    assert (*ratings.select(pl.col("user", "item").n_unique()).row(0), len(ratings)) == sizes(options(layout, 0.002))
    assert ratings.group_by("user").len()["len"].min() >= 20
    first, last = LAYOUTS[layout].times
    assert ratings["timestamp"].is_between(first, last).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_at_scale_one_the_sizes_are_the_published_ones(layout: str) -> None:
    known = LAYOUTS[layout]
    assert sizes(options(layout, 1.0)) == (known.users, known.rated, known.ratings)
    assert f"{known.ratings:,} synthetic" in replica_movielens.source(options(layout, 1.0)).holds


def test_movielens_100k_at_scale_one(tmp_path: Path) -> None:
    actual = converted(tmp_path, "ml-100k", 1.0)
    ratings = actual["interactions"]
    assert (len(ratings), len(actual["users"]), len(actual["items"])) == (100_000, 943, 1_682)
    counts = np.sort(ratings.group_by("item").len()["len"].to_numpy())
    assert counts[-168:].sum() / 100_000 == pytest.approx(0.427, abs=0.06)  # the published share of the top tenth
    activity = ratings.group_by("user").len()["len"]
    assert activity.median() == pytest.approx(65, abs=6)
    assert activity.max() == pytest.approx(737, rel=0.3)
    assert (tmp_path / "raw" / "u.info").read_text() == "943 users\n1682 items\n100000 ratings\n"
    written = sum(file.stat().st_size for file in (tmp_path / "raw").iterdir())
    assert written == pytest.approx(LAYOUTS["ml-100k"].size, rel=0.05)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_levels_have_the_published_shares(tmp_path: Path, layout: str) -> None:
    ratings = converted(tmp_path, layout, 0.01)["interactions"]
    shares = ratings["rating"].value_counts(normalize=True).sort("rating")["proportion"].to_numpy()
    expected = np.array(LAYOUTS[layout].levels)
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.005)


def test_large_replicas_are_made_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_movielens, "BLOCK", 3_000)
    actual = converted(tmp_path, "ml-latest-small", 0.2)["interactions"]
    assert len(actual) == sizes(options("ml-latest-small", 0.2))[2]
    assert actual.equals(actual.sort("user", "item"))


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        folder = generated(tmp_path / name, options("ml-1m", 0.01, seed))
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    first = content("first", 5)
    assert first == content("again", 5)
    assert first["ratings.dat"] != content("other", 6)["ratings.dat"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_everything_says_that_it_is_synthetic(tmp_path: Path, layout: str) -> None:
    titles = converted(tmp_path, layout, 0.002)["items"]["title"]
    assert titles.str.contains("Synthetic").all()
    readme = next((tmp_path / "raw").glob("README*")).read_text()
    assert readme.startswith("SYNTHETIC DATA\n")
    source = replica_movielens.source(options(layout, 0.002))
    assert source.synthetic
    assert "SYNTHETIC" in source.licence


def test_lines_end_as_published(tmp_path: Path) -> None:
    small = generated(tmp_path / "small", options("ml-latest-small", 0.002))
    large = generated(tmp_path / "large", options("ml-20m", 0.0002))
    for name in ("movies.csv", "ratings.csv"):
        lines = (small / name).read_bytes().count(b"\n")
        assert (small / name).read_bytes().count(b"\r\n") == lines > 1
        assert b"\r" not in (large / name).read_bytes()


@pytest.mark.parametrize(("attribute", "margin"), [("gender", 0.04), ("age", 0.03), ("occupation", 0.06)])
def test_ratings_give_attributes_away(
    tables: dict[str, pl.DataFrame], rated: NDArray[np.float64], attribute: str, margin: float
) -> None:
    labels = tables["users"][attribute].to_numpy()
    majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
    folds = KFold(4, shuffle=True, random_state=0)
    assert cross_val_score(RidgeClassifier(alpha=100), rated, labels, cv=folds).mean() > majority + margin


def test_taste_is_personal_so_a_model_of_items_beats_popularity(rated: NDArray[np.float64]) -> None:
    model, popularity, chance = recalls(rated)
    assert model > 1.15 * popularity > 4 * chance


def test_ratings_have_factors_beyond_the_means_of_users_and_items(tables: dict[str, pl.DataFrame]) -> None:
    table = tables["interactions"].select("user", "rating", item=pl.col("item").rank("dense").cast(pl.Int64) - 1)
    user, item, rating = table["user"].to_numpy() - 1, table["item"].to_numpy(), table["rating"].to_numpy()
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


def test_what_is_rated_next_is_often_of_the_same_genre(tables: dict[str, pl.DataFrame]) -> None:
    genres = tables["items"].select("item", genre=pl.col("genres").str.split("|").list.first())
    rows = tables["interactions"].join(genres, on="item").sort("user", "timestamp", "item")
    same = (rows["genre"] == rows["genre"].shift()).mean()
    by_chance = (rows["genre"] == rows["genre"].shuffle(seed=0)).mean()
    assert same > 2 * by_chance
    assert set(genres["genre"]) <= set(GENRES)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), "1"])
def test_a_scale_that_means_nothing_is_refused(scale: object) -> None:
    with pytest.raises(ValueError, match="scale"):
        ObtainOptions.model_validate({"layout": "ml-1m", "scale": scale, "seed": 1})
