from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets.fetch import NoOptions, Places
from tasks.datasets.ml_100k import Published, read
from tasks.datasets.synthetic import demo
from tasks.evaluation.splits import per_user


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("demo")
    demo.obtain(folder, Places(None, folder, folder), NoOptions())
    return read(folder)


@pytest.fixture(scope="module")
def rated(raw: Published) -> NDArray[np.float64]:
    """(n_users, n_items) 0/1"""
    matrix = np.zeros((len(raw.users), len(raw.items)))
    matrix[raw.ratings["user"].to_numpy() - 1, raw.ratings["item"].to_numpy() - 1] = 1
    return matrix


def test_it_has_the_size_and_the_tails_of_a_small_movielens(raw: Published, rated: NDArray[np.float64]) -> None:
    assert rated.shape == (300, 500)
    assert 15_000 < len(raw.ratings) < 21_000
    activity, popularity = rated.sum(axis=1), rated.sum(axis=0)
    assert activity.min() >= demo.MIN_RATINGS
    assert activity.max() > 4 * np.median(activity)
    assert popularity.min() >= 1
    assert popularity.max() > 4 * np.median(popularity)
    shares = np.bincount(raw.ratings["rating"])[1:] / len(raw.ratings)
    np.testing.assert_allclose(shares, demo.RATING_SHARES, atol=0.001)
    assert raw.genres == demo.GENRES
    assert raw.occupations == tuple(demo.OCCUPATIONS)
    assert raw.items["release_date"].null_count() == 1


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        demo.generate(folder, seed=seed)
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    first = content("first", 5)
    assert first == content("again", 5)
    assert first["u.data"] != content("other", 6)["u.data"]


def test_everything_says_that_it_is_synthetic(raw: Published, tmp_path: Path) -> None:
    demo.generate(tmp_path)
    assert "SYNTHETIC" in (tmp_path / "README").read_text()
    assert all(title.startswith("Synthetic") for title in raw.items["title"])
    assert demo.SOURCE.synthetic
    assert "SYNTHETIC" in demo.SOURCE.licence


@pytest.mark.parametrize(("attribute", "margin"), [("gender", 0.1), ("age", 0.12), ("occupation", 0.1)])
def test_ratings_give_attributes_away(
    raw: Published, rated: NDArray[np.float64], attribute: str, margin: float
) -> None:
    labels = raw.users[attribute].to_numpy()
    if attribute == "age":
        labels = np.digitize(labels, [35, 46])
    majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
    folds = KFold(4, shuffle=True, random_state=0)
    accuracy = cross_val_score(RidgeClassifier(alpha=30), rated, labels, cv=folds).mean()
    assert accuracy > majority + margin


def test_taste_is_personal_so_a_model_of_items_beats_popularity(raw: Published) -> None:
    """The model is ridge regression of each item on the others (Steck, 2019): closed form, nothing to tune."""
    users, items = raw.ratings["user"].to_numpy() - 1, raw.ratings["item"].to_numpy() - 1
    rng = np.random.default_rng(0)
    test = per_user(users, items, test_share=0.2, valid_share=0.05, rng=rng) == "test"
    train, held = np.zeros((2, len(raw.users), len(raw.items)))
    train[users[~test], items[~test]] = 1
    held[users[test], items[test]] = 1
    inverse = np.linalg.inv(train.T @ train + 100 * np.eye(len(raw.items)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)

    def recall(scores: NDArray[np.float64]) -> float:
        top = np.argsort(np.where(train > 0, np.inf, -scores), axis=1)[:, :10]
        return float((np.take_along_axis(held, top, axis=1).sum(axis=1) / np.minimum(held.sum(axis=1), 10)).mean())

    popularity = recall(np.broadcast_to(train.sum(axis=0), train.shape))
    assert recall(train @ weights) > 1.5 * popularity > 4 * recall(rng.random(train.shape))
