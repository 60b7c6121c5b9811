from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets.fetch import NoOptions, Places
from tasks.datasets.movielens import ML_100K
from tasks.datasets.synthetic import demo
from tests.datasets.learnable import recalls

DIGESTS = {
    "README": "ff85574c07d245c4ae8fd49ffc20d23fbe02c0a7716c3edcaead0bba3c4c0e41",
    "u.data": "ada63b6429f4250628986afb7b33bc2d33cefc1cea19f433f3c5d5b490c56823",
    "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
    "u.info": "1e2cc235f6a80cdbc6747d3bf84b823c2f3a5a26d75e05b0614b7acfafd55651",
    "u.item": "507a593caa1729774f8cf0b63262eee8ceabb35b2698a91143da3b0966e98e87",
    "u.occupation": "cd5fbec9afe345d993a62fc7817df1a4a9079c4feb267b3118763b8fd942137d",
    "u.user": "9c69ec8115762bbe539d3effd0590adf071172d730175ebe8b06100c90846d47",
}
"""SHA-256 of the files that the committed results of the demo are of."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    demo.obtain(folder, Places(None, folder, folder), NoOptions())
    return folder


@pytest.fixture(scope="module")
def tables(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    target = tmp_path_factory.mktemp("tables")
    ML_100K.convert(folder, target, NoOptions())
    return {name: pl.read_parquet(target / f"{name}.parquet") for name in ("interactions", "users", "items")}


@pytest.fixture(scope="module")
def rated(tables: dict[str, pl.DataFrame]) -> NDArray[np.float64]:
    """(n_users, n_items) 0/1"""
    ratings = tables["interactions"]
    matrix = np.zeros((len(tables["users"]), len(tables["items"])))
    matrix[ratings["user"].to_numpy() - 1, ratings["item"].to_numpy() - 1] = 1
    return matrix


def test_its_files_are_those_of_the_committed_results(folder: Path) -> None:
    assert {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()} == DIGESTS


def test_it_has_the_size_and_the_tails_of_a_small_movielens(
    tables: dict[str, pl.DataFrame], rated: NDArray[np.float64]
) -> None:
    assert rated.shape == (300, 500)
    ratings = tables["interactions"]["rating"].cast(pl.Int64)
    assert 15_000 < len(ratings) < 21_000
    activity, popularity = rated.sum(axis=1), rated.sum(axis=0)
    assert activity.min() >= demo.MIN_RATINGS
    assert activity.max() > 4 * np.median(activity)
    assert popularity.min() >= 1
    assert popularity.max() > 4 * np.median(popularity)
    np.testing.assert_allclose(np.bincount(ratings)[1:] / len(ratings), demo.RATING_SHARES, atol=0.001)
    assert tables["items"]["release_date"].null_count() == 1


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        demo.generate(folder, seed=seed)
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    first = content("first", 5)
    assert first == content("again", 5)
    assert first["u.data"] != content("other", 6)["u.data"]


def test_everything_says_that_it_is_synthetic(tables: dict[str, pl.DataFrame]) -> None:
    assert tables["items"]["title"].str.starts_with("Synthetic").all()
    assert demo.SOURCE.synthetic
    assert "SYNTHETIC" in demo.SOURCE.licence


@pytest.mark.parametrize(("attribute", "margin"), [("gender", 0.1), ("age", 0.12), ("occupation", 0.1)])
def test_ratings_give_attributes_away(
    tables: dict[str, pl.DataFrame], rated: NDArray[np.float64], attribute: str, margin: float
) -> None:
    labels = tables["users"][attribute].to_numpy()
    majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
    folds = KFold(4, shuffle=True, random_state=0)
    accuracy = cross_val_score(RidgeClassifier(alpha=30), rated, labels, cv=folds).mean()
    assert accuracy > majority + margin


def test_taste_is_personal_so_a_model_of_items_beats_popularity(rated: NDArray[np.float64]) -> None:
    model, popularity, chance = recalls(rated)
    assert model > 1.5 * popularity > 4 * chance
