"""Audits of published claims that do not hold: they are refuted by the shipped models, and that is a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.audits import Samples, sessions
from tasks.audits.releases import FEATURES
from tasks.audits.worlds import worlds
from tasks.core.contracts import Feature
from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpmf import (
    DPMF,
    DPNE,
    DPMFConfig,
    DPNEConfig,
    ExplicitConfig,
    ExplicitDPMF,
    ImplicitDPMF,
    ListedConfig,
)
from tasks.models.ranking.factors import FactorModel, cells
from tasks.privacy.mechanisms import as_released, edges, piecewise

FIRST, SECOND = (10, 10), (9, 11)
"""Users and items of two blocks."""
KNOWN = 12
"""Friendships that are no secret."""
FOLLOWS = 41
"""Follows, all of them of one user."""


def aggregates(
    seed: int,
    n_samples: int = 4_000,
    epsilon: float = 5.0,
    delta: float = 1e-5,
    clip: float = 1.0,
    epochs: int = 10,
    kind: Literal["published", "released"] = "published",
) -> Samples:
    """DIPSGNN's claim for one aggregation of one matrix, of all of `epochs`."""
    model, (with_visit, without) = sessions.aggregates(kind, seed, n_samples, epsilon, delta, epochs, clip)
    of_visits = {"unit": "visit", "neighbouring": "add-or-remove"}  # what the proof takes for one entry of each matrix
    return Samples(without, with_visit, model.ledger()[kind == "released"].model_copy(update=of_visits))


aggregates_as_released = partial(aggregates, kind="released")
"""What Theorem 4.2 gives at the noise of the authors' code, where `epsilon` is ε2 of the configuration."""


def factorisation(seed: int, n_samples: int = 1_000, epsilon: float = 1.0) -> Samples:
    """DPMF's claim, on two data sets that differ in one interaction; see `_stronger_block`."""
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="published"))
    return _stronger_block(model, [two_blocks(FIRST, SECOND, missing) for missing in (1, 0)], seed, n_samples)


def embedding(seed: int, n_samples: int = 1_000, epsilon: float = 1.0) -> Samples:
    """DPNE's claim, on two graphs that differ in one edge.

    All mutual information is above the cap, so that the matrix is that of `factorisation` times the cap.
    """
    config = DPNEConfig(dimension=1, epsilon=epsilon, ridge=1.0, smoothing=1.0, shift=1.0, cap=0.5)
    return _stronger_block(DPNE(config), [two_blocks(FIRST, SECOND, missing) for missing in (1, 0)], seed, n_samples)


def explicit(seed: int, n_samples: int = 1_000, epsilon: float = 1.0, alternations: int = 0) -> Samples:
    """The claim of `dpmf-explicit`: all ratings are the highest but, in one world, that of one listed cell."""
    config = {"dimension": 1, "epsilon": epsilon, "ridge": 1.0, "alternations": alternations}
    model = ExplicitDPMF(ExplicitConfig.model_validate(config | {"rating_low": 0.0, "rating_high": 1.0}))
    return _stronger_block(model, _rated_blocks(), seed, n_samples)


def implicit(seed: int, n_samples: int = 1_000, epsilon: float = 1.0, alternations: int = 0) -> Samples:
    """The claim of `dpmf-implicit`, which holds the list of cells constant: both worlds are given the same list."""
    config = {"dimension": 1, "epsilon": epsilon, "ridge": 1.0, "alternations": alternations}
    model = ImplicitDPMF(ListedConfig.model_validate(config))
    model.listing = lambda data, *_: cells(data, data.ratings)  # type: ignore[method-assign]
    return _stronger_block(model, _rated_blocks(), seed, n_samples)


def filled(seed: int, n_samples: int = 40_000, epsilon: float = 3.0, count_share: float = 0.1) -> Samples:
    """The claim of the published top-m filter: a friendship that is released with no false one next to it.

    A graph is filled up with so few non-edges that a given one is hardly ever the only one of them, and never where as
    many true ones pass as are wanted. The statistic: 0 where the friendship is not released, 1 where false ones are
    released next to it, 2 where none is.
    """
    cells_epsilon, count = edges.budgets(epsilon, count_share, "published")
    n_nodes = 5 + math.ceil(2.2 * math.exp(0.4 * cells_epsilon))
    pairs = np.stack(np.triu_indices(n_nodes, 1), axis=1)[: KNOWN + 1]
    keys = pairs @ np.array([n_nodes, 1])

    def run(present: bool, rng: np.random.Generator) -> float:
        graph = pairs if present else pairs[:KNOWN]
        released = edges.release(graph, n_nodes, cells_epsilon, count, rng, "published").edges @ np.array([n_nodes, 1])
        return float(keys[KNOWN] in released) * (1.0 + np.isin(released, keys).all())

    return Samples(*worlds(run, seed, n_samples), edges.ledger(cells_epsilon, count, "published", 1))


def released_attributes(
    seed: int, n_samples: int = 40_000, epsilon: float = 5.0, features: Sequence[Feature] = FEATURES
) -> Samples:
    """The claim for attributes as DP-CroSUE's code perturbs them; nothing that passes as it is gets looked at.

    The statistic: how many numbers come out as the largest value that there is.
    """
    rng = np.random.default_rng(seed)
    numeric = np.array([feature.kind == "numeric" for feature in features for _ in feature.columns])
    first = np.concatenate([np.eye(len(feature.columns), dtype=np.float32)[0] for feature in features])
    limit = piecewise.bound(epsilon / as_released.n_perturbed(features)) * (1 - 1e-6)

    def at_the_end(end: float) -> NDArray[np.float64]:
        users = np.tile(np.where(numeric, np.float32(end), first), (n_samples, 1))
        released = as_released.attributes(users, features, epsilon, rng)[:, numeric]
        return (released >= limit).sum(axis=1).astype(np.float64)

    return Samples(at_the_end(-1.0), at_the_end(1.0), as_released.attributes_entry(features, epsilon, 1))


def released_follows(seed: int, n_samples: int = 40_000, epsilon: float = 3.0, count_share: float = 0.2) -> Samples:
    """The claim for follows as DP-CroSUE's code filters them; the statistic: whether the follow is released."""
    count, n_nodes = count_share * epsilon, math.ceil(math.sqrt(2 * FOLLOWS * math.exp(epsilon + 1)))
    pairs = np.stack(np.divmod(np.arange(1, FOLLOWS + 1), n_nodes), axis=1)

    def run(present: bool, rng: np.random.Generator) -> float:
        graph = pairs if present else pairs[1:]
        return float(1 in as_released.follows(graph, n_nodes, epsilon, count, rng) @ np.array([n_nodes, 1]))

    return Samples(*worlds(run, seed, n_samples), as_released.follows_entry(epsilon, count, 1))


def _stronger_block(model: FactorModel, data: Sequence[TrainingData], seed: int, n: int) -> Samples:
    """Whether the first of two blocks of users and items is the stronger.

    Two blocks of users who have all items of their own block, with singular values 10 and √99; with one cell less the
    first has less than 9.92. With a single dimension all user vectors point at the stronger block, so that item vectors
    tell which one it is: the claimed budget holds user vectors constant, and they are not. The statistic: 1 where the
    first block's item vectors have the larger sum, else 0.

    Args:
        data: without the cell, and with it.
    """

    def run(present: bool, rng: np.random.Generator) -> float:
        vectors = model.fit(data[present], rng=rng).items[:, 0]
        return float(vectors[: FIRST[1]].sum() > vectors[FIRST[1] :].sum())

    return Samples(*worlds(run, seed, n), model.ledger()[0])


def _rated_blocks() -> list[TrainingData]:
    """Both blocks with ratings of 1, and in the first world one of 0."""
    data = two_blocks(FIRST, SECOND, 0)
    lower = (np.arange(len(data.users)) != 0).astype(np.float32)
    return [replace(data, ratings=ratings) for ratings in (lower, np.ones_like(lower))]


def two_blocks(first: tuple[int, int], second: tuple[int, int], missing: int) -> TrainingData:
    """Blocks of (users, items), every user with all items of the own block but the first block's last `missing`."""
    users, items = (np.indices(first).reshape(2, -1)[:, : first[0] * first[1] - missing][axis] for axis in (0, 1))
    more_users, more_items = np.indices(second).reshape(2, -1) + np.array([[first[0]], [first[1]]])
    return TrainingData(
        first[0] + second[0],
        first[1] + second[1],
        np.concatenate([users, more_users]).astype(np.int32),
        np.concatenate([items, more_items]).astype(np.int32),
    )
