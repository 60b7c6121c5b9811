"""What an alignment of two networks finds, and what it is worth: how often the own account is among the k nearest.

Source: docs/methods.md §6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from tasks.core.errors import DataError, DivergenceError
from tasks.evaluation.classification import Vectors, check_vectors

PairScorer = Callable[[NDArray[np.int64]], NDArray[np.floating]]
"""(batch,) source users -> (batch, n_targets) scores, higher is nearer."""


Pairs = NDArray[np.int64]
"""(n, 2) source and target users."""


@dataclass(frozen=True)
class Anchors:
    """Who of the first network is whom in the second.

    test: (n_test, 2) source and target; no way is given any of these.
    known: (n_known, 2) the others, in random order.
    true: (n, 2) all there are, those included that are neither tested nor known.
    """

    test: Pairs
    known: Pairs
    true: Pairs

    @classmethod
    def split(cls, true: Pairs, test_share: float, seed: int) -> Self:
        """So large a share of the (n, 2) anchors is tested.

        An anchor of whose users one is in another anchor, too, is left out: one of them is wrong, and no one knows
        which.
        """
        sources, targets = (np.unique(users, return_inverse=True, return_counts=True)[1:] for users in true.T)
        usable = true[(sources[1][sources[0]] == 1) & (targets[1][targets[0]] == 1)]
        order = np.random.default_rng(seed).permutation(len(usable))
        n_test = round(test_share * len(usable))
        return cls(usable[order[:n_test]], usable[order[n_test:]], true)

    @property
    def n_usable(self) -> int:
        """How many are tested or known."""
        return len(self.test) + len(self.known)

    def known_share(self, share: float) -> Pairs:
        """The known anchors of a way that is given so large a share of all that can be used."""
        return self.known[: round(share * self.n_usable)]


@dataclass(frozen=True)
class AlignmentResult:
    """What one way of aligning found.

    score: of every pair of users, higher is nearer.
    pairs: (n, 2) the users who are each other's nearest, none of whose vectors is zero.
    criterion: mean cosine of every source user with the nearest target.
    given: (n_given, 2) the anchors that the way was given.
    history: how it got there.
    """

    score: PairScorer
    pairs: Pairs
    criterion: float
    given: Pairs
    history: dict[str, Any]


@dataclass(frozen=True)
class Precision:
    """Precision at each cut-off against what guessing gives.

    at: cut-off k -> share of the anchors whose target is among the k targets nearest to their source.
    chance: cut-off k -> k / n_targets, what a scorer that cannot tell targets apart gets.
    """

    at: dict[int, float]
    chance: dict[int, float]


def chance(k: int, n_targets: int) -> float:
    """Precision at k of a guess among `n_targets`."""
    if k < 1 or n_targets < 1:
        raise ValueError(f"k and n_targets must be at least 1 (are {k} and {n_targets})")
    return min(k, n_targets) / n_targets


def similarity_scorer(source: Vectors, target: Vectors, *, cosine: bool = True) -> PairScorer:
    """Scorer by cosine, or by dot product, of vectors in one space.

    Of bits, as those of SimHash, give them as -1 and 1 and take the dot product: it counts equal bits, without rounding
    that would tell equally near ones apart.

    Args:
        source: (n_sources, d), already mapped to the space of the targets (`source @ W`).
        target: (n_targets, d).

    Raises:
        DataError: vectors are not finite, or of different length.
    """
    check_vectors(source, "source")
    check_vectors(target, "target")
    if source.shape[1] != target.shape[1]:
        raise DataError(f"source and target vectors have {source.shape[1]} and {target.shape[1]} numbers; map one")
    left, right = (normalize(rows) if cosine else rows for rows in (source, target))

    def score(users: NDArray[np.int64]) -> NDArray[np.floating]:
        scores: NDArray[np.floating] = left[users] @ right.T
        return scores

    return score


def precision(score: PairScorer, anchors: NDArray[np.integer], ks: Sequence[int], *, batch: int = 512) -> Precision:
    """Precision at each cut-off over the anchors, all targets being candidates.

    Ties count what they are worth if broken at random: of m targets that share the score of the true one, with a others
    above, it is among the first k with probability (k - a) / m, within [0, 1]. So a constant scorer gets exactly the
    level of chance, and neither ids nor a seed decide.

    Args:
        anchors: (n_anchors, 2) source and target of a person.
        batch: anchors scored at once.

    Raises:
        DataError: there are no anchors.
        DivergenceError: a score is NaN.
        ValueError: a cut-off is below 1.
    """
    if not len(anchors):
        raise DataError("anchors: none to judge the alignment by")
    ranked_within = dict.fromkeys(ks, 0.0)
    n_targets = 0
    for start in range(0, len(anchors), batch):
        sources, targets = anchors[start : start + batch].T.astype(np.int64)
        scores = score(sources)
        n_targets = scores.shape[1]
        if np.isnan(scores).any():
            worst = sources[np.isnan(scores).any(axis=1)][0]
            raise DivergenceError(f"the scores of source user {worst} are not numbers; the map has diverged")
        true_scores = scores[np.arange(len(sources)), targets][:, None]
        above, equal = (scores > true_scores).sum(axis=1), (scores == true_scores).sum(axis=1)
        for k in ranked_within:
            ranked_within[k] += float(np.clip((k - above) / equal, 0.0, 1.0).sum())
    return Precision(
        at={k: total / len(anchors) for k, total in ranked_within.items()},
        chance={k: chance(k, n_targets) for k in ranked_within},
    )
