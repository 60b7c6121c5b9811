"""Made-up users and systems of which it is known what they leak. All data here are synthetic."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.external.run import Asked

K = 15
Rows = list[tuple[str, str, int]]


class World(NamedTuple):
    """trained: (n_users, n_items) bool; public: the same, held back or of users who were not trained on."""

    trained: NDArray[np.bool_]
    public: NDArray[np.bool_]
    gender: NDArray[np.int64]


def world(seed: int, n_trained: int = 300, n_public: int = 100, n_items: int = 200, each: int = 20) -> World:
    """Users whose taste depends on a cluster and a little on gender. A random fifth of what they have is held back."""
    rng = np.random.default_rng(seed)
    n = n_trained + n_public
    gender, cluster = rng.integers(0, 2, n), rng.integers(0, 6, n)
    popularity = 1 / np.arange(1, n_items + 1) ** 0.6
    by_gender = np.where(rng.random((2, n_items)) < 0.3, 1.6, 1.0)
    by_cluster = np.where(rng.random((6, n_items)) < 0.15, 6.0, 1.0)
    weights = popularity * by_gender[gender] * by_cluster[cluster]
    order = np.argsort(np.log(rng.random((n, n_items))) / weights, axis=1)[:, ::-1]
    trained, public = np.zeros((n, n_items), bool), np.zeros((n, n_items), bool)
    chosen = rng.permuted(order[:, :each], axis=1)
    held = each // 5
    np.put_along_axis(trained[:n_trained], chosen[:n_trained, held:], True, axis=1)
    np.put_along_axis(public[:n_trained], chosen[:n_trained, :held], True, axis=1)
    np.put_along_axis(public[n_trained:], chosen[n_trained:, held:], True, axis=1)
    return World(trained, public, gender)


def seen(made: World) -> NDArray[np.bool_]:
    """What a list leaves out: what its user was trained on, or the history of one who is folded in."""
    return np.where(made.trained.any(axis=1)[:, None], made.trained, made.public)


def best(scores: NDArray[np.floating], leave_out: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """(n_users, K) the items with the highest scores."""
    left = scores if leave_out is None else np.where(leave_out, -np.inf, scores)
    return np.argsort(-left, axis=1, kind="stable")[:, :K]


def noisy_popularity(made: World, rng: np.random.Generator, epsilon: float = 1.0) -> NDArray[np.int64]:
    """The most popular items by counts with Laplace noise: ε-DP for all of a user's items, but for what is left out."""
    most = int(made.trained.sum(axis=1).max())
    counts = made.trained.sum(axis=0) + rng.laplace(0, most / epsilon, made.trained.shape[1])
    return best(np.broadcast_to(counts, made.trained.shape), seen(made))


def random_lists(made: World, rng: np.random.Generator) -> NDArray[np.int64]:
    """Nothing of anybody."""
    return best(rng.random(made.trained.shape), seen(made))


def own_items(made: World, rng: np.random.Generator) -> NDArray[np.int64]:
    """Each trained user's own training items."""
    return best(made.trained + 0.1 * rng.random(made.trained.shape))


def by_gender(made: World, gender: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Lists that depend on gender alone: each prefers its own half of the catalogue."""
    preferred = rng.random((2, made.trained.shape[1])) < 0.5
    return best(preferred[gender] + rng.random(made.trained.shape))


def memorised(made: World, rng: np.random.Generator, n_neighbours: int = 2) -> NDArray[np.int64]:
    """Every trained item drags two neighbours of its own into the list: membership of interactions shows."""
    n_items = made.trained.shape[1]
    drags = np.zeros((n_items, n_items))
    known = (made.trained | made.public).astype(float)
    common = known.T @ known / np.sqrt(known.sum(axis=0)[:, None] * known.sum(axis=0) + 1)
    np.fill_diagonal(common, 0)
    nearest = np.argsort(-common, axis=1)[:, :n_neighbours]
    np.put_along_axis(drags, nearest, 1.0, axis=1)
    history = seen(made).astype(float)
    return best(history @ drags + 0.01 * rng.random(history.shape), seen(made))


def asked(
    folder: Path, made: World, lists: NDArray[np.int64], labels: dict[str, NDArray[np.int64]] | None = None
) -> Asked:
    """The files of an audit in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, made.trained.shape)
    for name, matrix in (("train", made.trained), ("public", made.public)):
        users, items = np.nonzero(matrix)
        table = {"user": names("u", users), "item": names("i", items), "rating": ratings[users, items]}
        pl.DataFrame(table).write_csv(folder / f"{name}.csv")
    users = np.repeat(np.arange(len(lists)), lists.shape[1])
    ranks = np.tile(np.arange(1, lists.shape[1] + 1), len(lists))
    rows = {"user": names("u", users), "item": names("i", lists.ravel()), "rank": ranks}
    pl.DataFrame(rows).write_parquet(folder / "lists.parquet")
    people = None
    if labels:
        people = folder / "users.csv"
        texts = {name: [f"class {value}" for value in of] for name, of in labels.items()}
        pl.DataFrame({"user": names("u", np.arange(len(lists)))} | texts).write_csv(people)
    return Asked(folder / "train.csv", folder / "lists.parquet", folder / "public.csv", people)


def names(prefix: str, ids: NDArray[np.int64]) -> list[str]:
    """Text ids."""
    return [f"{prefix}{i}" for i in ids]
