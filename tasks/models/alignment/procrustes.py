"""How near users of different networks are, and the orthogonal map that brings known pairs together.

Source: MUSE, sections 2.1 to 2.3; Schönemann (Psychometrika 1966) for Procrustes in closed form. With cosines in the
target's space, r(x) the mean cosine of a source user x with its k nearest targets and r(y) that of a target user y with
its k nearest sources, CSLS(x, y) = 2 cos(x, y) - r(x) - r(y). It takes away the advantage of hubs, users who are near
to many. Scores are computed by blocks of rows in float32, so that memory grows with users and not with pairs of users.

Maps are (d, d) and stand on the right: `source @ mapping` lies in the target's space. They are refined on pairs found
with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.evaluation.alignment import PairScorer
from tasks.evaluation.ranking import tie_order

CELLS = 1 << 23
"""Scores held at once, 32 MiB of them."""


@dataclass(frozen=True)
class Matches:
    """Pairs of users taken to be the same person.

    pairs: (n, 2) int64 source and target user; no one occurs twice.
    criterion: mean cosine of every source user with the target that is nearest by CSLS: how good the map is, judged
        without an anchor (MUSE, section 3.5). It can be compared between maps of the same embeddings alone. The mean
        CSLS of the pairs is no such measure: a map under which few are near anyone makes it high.
    """

    pairs: NDArray[np.int64]
    criterion: float


@dataclass(frozen=True)
class Csls:
    """The scores between all users of two networks; see the module.

    source: (n_sources, d) float32, mapped into the target's space, each vector of length 1 (or 0).
    target: (n_targets, d) float32, likewise.
    source_density: (n_sources,) float32 r(x), target_density: (n_targets,) float32 r(y).
    """

    source: NDArray[np.float32]
    target: NDArray[np.float32]
    source_density: NDArray[np.float32]
    target_density: NDArray[np.float32]

    @classmethod
    def from_vectors(cls, source: NDArray[np.floating], target: NDArray[np.floating], neighbours: int) -> Self:
        """Measure densities.

        Args:
            source: (n_sources, d) mapped embeddings, of any length.
            target: (n_targets, d).
            neighbours: k; in a network of fewer users all of them.
        """
        if neighbours < 1:
            raise ValueError(f"neighbours must be at least 1 (is {neighbours})")
        first, second = (normalise(side, ("unit",)).astype(np.float32) for side in (source, target))
        if first.shape[1] != second.shape[1]:
            raise DataError(f"embeddings: widths differ ({first.shape[1]} and {second.shape[1]}); embed both alike")
        return cls(first, second, _density(first, second, neighbours), _density(second, first, neighbours))

    def scores(self, sources: NDArray[np.integer]) -> NDArray[np.float32]:
        """CSLS of some sources with all targets: (len(sources), n_targets) float32."""
        result = 2 * (self.source[sources] @ self.target.T)
        result -= self.source_density[sources, None]
        result -= self.target_density
        return result

    def mutual_neighbours(self, tie_seed: int) -> Matches:
        """Pairs who are each other's nearest, by descending score; see `mutual`.

        There is always a pair, for the highest score of all is one.
        """
        n_sources, n_targets = len(self.source), len(self.target)
        pairs, nearest = mutual(self.scores, n_sources, n_targets, tie_seed)
        order = tie_order(n_sources, tie_seed)
        cosines = (self.source[order] * self.target[nearest[order]]).sum(axis=1, dtype=np.float64)
        return Matches(pairs, float(cosines.mean()))


def mutual(
    score: PairScorer, n_sources: int, n_targets: int, tie_seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users who are each other's nearest, by any score.

    Of users who are equally near comes first who is first in a fixed random order of the network: the order of ids may
    know who is who.

    Returns:
        (n, 2) source and target of each pair, by descending score; (n_sources,) the target that is nearest to each
        source.
    """
    order, target_order = tie_order(n_sources, tie_seed), tie_order(n_targets, tie_seed + 1)
    best_target, best = np.empty(n_sources, np.int64), np.full(n_targets, -np.inf, np.float32)
    best_source = np.zeros(n_targets, np.int64)
    for rows in _blocks(n_sources, n_targets):
        scores = score(order[rows])[:, target_order]
        best_target[rows] = scores.argmax(axis=1)
        highest = scores.argmax(axis=0)
        value = scores[highest, np.arange(n_targets)]
        better = value > best
        best[better], best_source[better] = value[better], highest[better] + rows.start
    matched = np.flatnonzero(best_source[best_target] == np.arange(n_sources))
    targets = best_target[matched]
    pairs = np.stack([order[matched], target_order[targets]], axis=1)
    nearest = np.empty(n_sources, np.int64)
    nearest[order] = target_order[best_target]
    return pairs[np.argsort(-best[targets], kind="stable")], nearest


def _density(queries: NDArray[np.float32], keys: NDArray[np.float32], neighbours: int) -> NDArray[np.float32]:
    """(n_queries,) mean cosine with the nearest keys."""
    k = min(neighbours, len(keys))
    result = np.empty(len(queries), np.float32)
    for rows in _blocks(len(queries), len(keys)):
        cosines = queries[rows] @ keys.T
        cosines.partition(len(keys) - k, axis=1)
        result[rows] = cosines[:, len(keys) - k :].mean(axis=1)
    return result


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Rows by blocks of at most `CELLS` cells, one row at least."""
    height = max(1, CELLS // n_columns)
    return (slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height))


Normalisation = Literal["centre", "unit"]
"""`centre`: take off the mean of the network's users; `unit`: scale each user's vector to length 1."""


def normalise(embeddings: NDArray[np.floating], steps: Sequence[Normalisation]) -> NDArray[np.float64]:
    """The steps applied to (n_users, d) embeddings, in their order; a vector of zeros stays one under `unit`.

    Raises:
        DataError: the embeddings are no matrix, have no users or no columns, or hold a value that is not finite.
    """
    result = np.array(embeddings, np.float64)
    if result.ndim != 2 or not result.size:
        raise DataError(f"embeddings: must be users × columns, both 1 or more (shape is {result.shape})")
    if not np.isfinite(result).all():
        users = np.flatnonzero(~np.isfinite(result).all(axis=1))
        raise DataError(
            f"embeddings: vectors of {len(users)} users are not finite (first: user {users[0]}); embed again"
        )
    for step in steps:
        if step == "centre":
            result -= result.mean(axis=0)
        else:
            lengths = np.linalg.norm(result, axis=1, keepdims=True)
            result /= np.where(lengths > 0, lengths, 1.0)
    return result


def procrustes(source: NDArray[np.floating], target: NDArray[np.floating]) -> NDArray[np.float64]:
    """The orthogonal W of least ‖source W - target‖ (Frobenius): U Vᵀ of the SVD U S Vᵀ of sourceᵀ target.

    Fewer than d pairs leave W free outside what they span: what it does there is orthogonal but arbitrary.

    Args:
        source, target: (n_pairs, d) a row each of the two vectors of a person.

    Raises:
        DataError: there are no pairs, or the two differ in shape.
    """
    if source.shape != target.shape or source.ndim != 2:
        raise DataError(f"anchors: vectors of both sides must have one shape ({source.shape} and {target.shape})")
    if not len(source):
        raise DataError("anchors: none are known, so no map follows from them; use the adversarial start")
    left, _, right = np.linalg.svd(source.T.astype(np.float64) @ target.astype(np.float64))
    return np.asarray(left @ right)


def nearest_orthogonal(mapping: NDArray[np.floating]) -> NDArray[np.float64]:
    """The orthogonal map of least distance (Frobenius) to a (d, d) one."""
    return procrustes(np.eye(len(mapping)), mapping)


@dataclass(frozen=True)
class Refined:
    """A refined map.

    mapping: (d, d) float64, that of the iteration with the highest criterion; the start is iteration 0.
    criteria: `Matches.criterion` before the first iteration and after each.
    matched: how many mutual nearest neighbours there were, likewise.
    iteration: the one `mapping` is of.
    """

    mapping: NDArray[np.float64]
    criteria: tuple[float, ...]
    matched: tuple[int, ...]
    iteration: int

    @property
    def criterion(self) -> float:
        """That of `mapping`."""
        return self.criteria[self.iteration]


def refine(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    mapping: NDArray[np.floating],
    *,
    iterations: int,
    neighbours: int,
    tie_seed: int,
    anchors: NDArray[np.integer] | None = None,
) -> Refined:
    """Fit the map to mutual nearest neighbours under it, again and again; keep the best by the criterion.

    Args:
        source, target: (n_sources, d) and (n_targets, d) normalised embeddings.
        mapping: (d, d) the start.
        neighbours: k of CSLS.
        anchors: (n_anchors, 2) pairs known to be right, kept in every fit; found pairs that have one of their users
            with someone else are left out.
    """
    kept = np.empty((0, 2), np.int64) if anchors is None else anchors.astype(np.int64)
    maps = [np.asarray(mapping, np.float64)]
    matches = Csls.from_vectors(source @ maps[0], target, neighbours).mutual_neighbours(tie_seed)
    criteria, matched = [matches.criterion], [len(matches.pairs)]
    for _ in range(iterations):
        taken = np.isin(matches.pairs[:, 0], kept[:, 0]) | np.isin(matches.pairs[:, 1], kept[:, 1])
        pairs = np.concatenate([kept, matches.pairs[~taken]])
        maps.append(procrustes(source[pairs[:, 0]], target[pairs[:, 1]]))
        matches = Csls.from_vectors(source @ maps[-1], target, neighbours).mutual_neighbours(tie_seed)
        criteria.append(matches.criterion)
        matched.append(len(matches.pairs))
    best = int(np.argmax(criteria))
    return Refined(maps[best], tuple(criteria), tuple(matched), best)
