"""The orthogonal map that brings known pairs together, and its refinement on pairs found with it.

Source: Schönemann (Psychometrika 1966) for the closed form; MUSE, sections 2.1 and 2.2. Maps are (d, d) and stand on
the right: `source @ mapping` lies in the target's space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError
from tasks.models.alignment.csls import Csls


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
