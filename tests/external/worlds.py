"""Made-up users and systems of which it is known what they leak. All data here are synthetic."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.external.run import AuditRequest, find_shadows

K = 15


class World(NamedTuple):
    """trained: (n_users, n_items) bool; public: the same, held back or of users who were not trained on."""

    trained: NDArray[np.bool_]
    public: NDArray[np.bool_]
    gender: NDArray[np.int64]
    cluster: NDArray[np.int64] | None = None
    ratings: NDArray[np.int64] | None = None
    """(n_users, n_items), whether trained on or not; None for random ones."""


def world(
    seed: int, n_trained: int = 300, n_public: int = 100, n_items: int = 200, each: int = 20, *, apart: bool = False
) -> World:
    """Users whose taste depends on a cluster and a little on gender. A random fifth of what they have is held back.

    apart: those who were not trained on are of other clusters and genders, mostly.
    """
    rng = np.random.default_rng(seed)
    n = n_trained + n_public
    gender, cluster = rng.integers(0, 2, n), rng.integers(0, 6, n)
    if apart:
        mostly = rng.random(n) < 0.8
        gender = np.where(mostly, np.arange(n) >= n_trained, gender)
        cluster = np.where(mostly, 3 * (np.arange(n) >= n_trained) + cluster % 3, cluster)
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
    return World(trained, public, gender, cluster)


def regions(
    seed: int, n_users: int = 500, *, drift: float = 0.0, shift: float = 0.0
) -> tuple[World, NDArray[np.int64]]:
    """Users of four regions, half of whose items are on their region's public chart, and lists that are that chart.

    A region rates items alike, and those on its chart by a star higher.

    drift: of items on a chart that were held back, the newest, the share that is on the next region's chart.
    shift: by how much more than half of those who were trained on are of two regions that have a chart; of as many who
        were not, so much less. The others have none that they like.
    """
    rng = np.random.default_rng(seed)
    members = np.arange(n_users * 2 if shift else n_users) < n_users
    first = rng.random(len(members)) < np.where(members, 0.5 + shift, 0.5 - shift)
    region = 2 * first + rng.integers(0, 2, len(members))
    trained = np.zeros((len(members), 500), bool)
    public = trained.copy()
    for user, (of, is_member) in enumerate(zip(region, members, strict=True)):
        moved = (of + (rng.random(4) < drift)) % 4
        newest = np.where(rng.random(4) < 0.5, 60 * moved + rng.integers(0, 60, 4), rng.integers(240, 500, 4))
        older = np.concatenate([60 * of + rng.choice(60, 8, replace=False), rng.choice(np.arange(240, 500), 8, False)])
        (trained if is_member else public)[user, older] = True
        public[user, newest] = not is_member or ~np.isin(newest, older)
    lists = 60 * region[:, None] + np.arange(60)
    lists[~first] += 240 * bool(shift)
    taste = rng.normal(size=(4, 500)) + (np.arange(500) // 60 == np.arange(4)[:, None])
    return World(trained, public, rng.integers(0, 2, len(members)), ratings=rated(taste[region], rng)), lists


def rated(taste: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Stars of users with these tastes, and something of their own."""
    return np.clip(np.rint(3 + taste + 0.5 * rng.normal(size=taste.shape)), 1, 5).astype(np.int64)


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


def one_list(made: World) -> NDArray[np.int64]:
    """The same most popular items for all users, nothing left out."""
    return best(np.broadcast_to(made.trained.sum(axis=0), made.trained.shape))


def charts(made: World) -> NDArray[np.int64]:
    """A public chart for each cluster of users: what most of them have, trained on or not; nothing is trained."""
    has = made.trained | made.public
    return best(np.array([has[made.cluster == of].sum(axis=0) for of in range(6)])[made.cluster])


def random_lists(made: World, rng: np.random.Generator) -> NDArray[np.int64]:
    """Nothing of anyone."""
    return best(rng.random(made.trained.shape), seen(made))


def own_items(made: World, rng: np.random.Generator) -> NDArray[np.int64]:
    return best(made.trained + 0.1 * rng.random(made.trained.shape))


def by_gender(made: World, gender: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Lists that depend on gender alone: each prefers its own half of the catalogue."""
    preferred = rng.random((2, made.trained.shape[1])) < 0.5
    return best(preferred[gender] + rng.random(made.trained.shape))


def sequels(seed: int, n_users: int = 300, n_items: int = 200) -> World:
    """Items 2k and 2k + 1 belong together: a third of those who have one have both. A fifth is held back."""
    rng = np.random.default_rng(seed)
    some = rng.random((n_users, n_items // 2)) < 0.15
    both, second = rng.random(some.shape) < 1 / 3, rng.random(some.shape) < 0.5
    has = np.stack([some & (both | ~second), some & (both | second)], axis=2).reshape(n_users, n_items)
    held_back = rng.random(has.shape) < 0.2
    return World(has & ~held_back, has & held_back, rng.integers(0, 2, n_users))


def recommended_sequels(made: World, rng: np.random.Generator) -> NDArray[np.int64]:
    """The sequel of everything that was trained on, unless it was trained on, too: shows what was."""
    n_items = made.trained.shape[1]
    return best(made.trained[:, np.arange(n_items) ^ 1] + 0.5 * rng.random(made.trained.shape), made.trained)


def asked(
    folder: Path, made: World, lists: NDArray[np.int64], labels: dict[str, NDArray[np.int64]] | None = None
) -> AuditRequest:
    """The files of an audit in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ratings = np.random.default_rng(0).integers(1, 6, made.trained.shape) if made.ratings is None else made.ratings
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
    return AuditRequest(folder / "train.csv", folder / "lists.parquet", folder / "public.csv", people)


def quiet(line: str) -> None:
    """Takes lines of progress and drops them."""


def names(prefix: str, ids: NDArray[np.int64]) -> list[str]:
    return [f"{prefix}{i}" for i in ids]


def random_drags(folder: Path, made: World, every: NDArray[np.bool_], shadow_runs: int) -> AuditRequest:
    """A system in which each item drags three random ones into lists, with shadow runs on other draws of the data."""
    n_items = every.shape[1]
    drags = np.zeros((n_items, n_items))
    np.put_along_axis(drags, np.argsort(np.random.default_rng(9).random((n_items, n_items)), axis=1)[:, :3], 1.0, 1)
    np.fill_diagonal(drags, 0)

    def served(part: World, rng: np.random.Generator) -> NDArray[np.int64]:
        return best(part.trained @ drags + 0.3 * rng.random(every.shape), seen(part))

    return shadowed(folder, made, every, served, shadow_runs)


def shadowed(
    folder: Path,
    made: World,
    every: NDArray[np.bool_],
    served: Callable[[World, np.random.Generator], NDArray[np.int64]],
    shadow_runs: int,
) -> AuditRequest:
    """A system with shadow runs on other draws of the data."""

    def run_of(seed: int) -> tuple[World, NDArray[np.int64]]:
        rng = np.random.default_rng([4, seed])
        kept, is_in = every & (rng.random(every.shape) < 0.8), (rng.random(len(every)) < 0.75)[:, None]
        part = World(kept & is_in, np.where(is_in, every & ~kept, kept), made.gender)
        return part, served(part, rng)

    (folder / "runs").mkdir(parents=True)
    for shadow in range(shadow_runs):
        asked(folder / "run", *run_of(shadow))
        (folder / "run" / "train.csv").rename(folder / "runs" / f"r{shadow}.train.csv")
        (folder / "run" / "lists.parquet").rename(folder / "runs" / f"r{shadow}.parquet")
    return replace(asked(folder / "target", *run_of(99)), shadows=find_shadows(str(folder / "runs" / "*.parquet")))
