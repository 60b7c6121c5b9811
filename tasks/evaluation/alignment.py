"""What an alignment of two networks is worth: how often the own account is among the k nearest (docs/methods.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError

__all__ = ["PairScorer", "Precision", "chance", "precision"]

PairScorer = Callable[[NDArray[np.int64]], NDArray[np.floating]]
"""(batch,) source users -> (batch, n_targets) scores, higher is nearer."""


@dataclass(frozen=True)
class Precision:
    """Precision at each cut-off beside what guessing gives.

    at: cut-off k -> share of the anchors whose target is among the k targets nearest to their source.
    chance: cut-off k -> k / n_targets, what a scorer that cannot tell targets apart gets.
    """

    at: dict[int, float]
    chance: dict[int, float]


def chance(k: int, n_targets: int) -> float:
    """Precision at k of a guess among `n_targets`.

    Raises:
        ValueError: k or n_targets is below 1.
    """
    if k < 1 or n_targets < 1:
        raise ValueError(f"k and n_targets must be at least 1 (are {k} and {n_targets})")
    return min(k, n_targets) / n_targets


def precision(score: PairScorer, anchors: NDArray[np.integer], ks: Sequence[int], *, batch: int = 512) -> Precision:
    """Precision at each cut-off over the anchors, all targets being candidates.

    Ties count what they are worth if broken at random: of m targets that share the score of the true one, with a others
    above, it is among the first k with probability (k - a) / m, within [0, 1]. So a constant scorer gets exactly the
    level of chance, and neither ids nor a seed decide.

    Args:
        anchors: (n_anchors, 2) source and target of a person.
        batch: anchors scored at once.

    Raises:
        DataError: there are no anchors, or a score is NaN.
        ValueError: a cut-off is below 1.
    """
    if not len(anchors):
        raise DataError("anchors: none to judge the alignment by")
    found = dict.fromkeys(ks, 0.0)
    n_targets = 0
    for start in range(0, len(anchors), batch):
        sources, targets = anchors[start : start + batch].T.astype(np.int64)
        scores = score(sources)
        n_targets = scores.shape[1]
        if np.isnan(scores).any():
            worst = sources[np.isnan(scores).any(axis=1)][0]
            raise DataError(f"the scores of source user {worst} are not numbers; the map has diverged")
        own = scores[np.arange(len(sources)), targets][:, None]
        above, equal = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
        for k in found:
            found[k] += float(np.clip((k - above) / equal, 0.0, 1.0).sum())
    return Precision(
        at={k: total / len(anchors) for k, total in found.items()},
        chance={k: chance(k, n_targets) for k in found},
    )
