"""How well scores tell members from non-members: AUC, true positive rates at low false positive rates, their intervals.

Sources: Carlini et al., "Membership Inference Attacks From First Principles" (S&P 2022), which asks for the true
positive rate (TPR) at a low false positive rate (FPR) and for ROC curves on logarithmic axes; Clopper & Pearson 1934;
Efron & Tibshirani 1993, ch. 13. The higher its score, the more a target looks like a member.

Resamples draw groups: targets of one user go together. Where there are no groups, members and non-members are drawn
apart. Thresholds are set again on the non-members of every resample, so an interval covers that, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tasks.evaluation.statistics import clopper_pearson

Floats = NDArray[np.float64]
RATES = (0.01, 0.001)
"""False positive rates at which the true positive rate is asked for."""
RESAMPLES = 500
BLOCK = 50
"""Resamples at a time."""
FEWEST = 20
"""Groups (or members, and non-members) below which nothing is decided."""


class Rate(NamedTuple):
    """A share, with its 95 % interval."""

    value: float
    low: float
    high: float


class Scored:
    """Scores of members and of non-members, ready to be measured and resampled."""

    def __init__(
        self,
        members: NDArray[np.floating],
        non_members: NDArray[np.floating],
        groups: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
    ) -> None:
        """Sort the scores.

        Args:
            members: (m,); non_members: (n,).
            groups: (m,) and (n,) the group of each, from 0; None: every target is a group.

        Raises:
            ValueError: no scores, ones that are not finite, or groups of other lengths.
        """
        for scores in (members, non_members):
            if np.ndim(scores) != 1 or not len(scores) or not np.isfinite(scores).all():
                raise ValueError("scores of members and non-members must be one or more finite numbers each")
        order = np.argsort(-np.asarray(members, np.float64), kind="stable")
        other = np.argsort(-np.asarray(non_members, np.float64), kind="stable")
        self.members = np.asarray(members, np.float64)[order]
        self.non_members = np.asarray(non_members, np.float64)[other]
        self._groups: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
        if groups is not None:
            if len(groups[0]) != len(order) or len(groups[1]) != len(other):
                raise ValueError("groups: one for each score is needed")
            self._groups = groups[0][order], groups[1][other]
        self._orders = order, other
        self._resampled: dict[int, Floats] = {}
        # how many non-members have a higher score than each member, and how many one as high
        self._above = np.searchsorted(-self.non_members, -self.members, side="left")
        self._from = np.searchsorted(-self.non_members, -self.members, side="right")

    @property
    def n_groups(self) -> int:
        """Independent units: groups that have both kinds; without groups, scores of the rarer kind."""
        if self._groups is None:
            return min(len(self.members), len(self.non_members))
        return len(np.intersect1d(*self._groups))

    @cached_property
    def auc(self) -> float:
        """Probability that a member has a higher score than a non-member; equal ones count half."""
        return float(self._auc(*self._ones)[0])

    def tpr(self, rate: float) -> float:
        """Share of members above the lowest threshold that at most this share of non-members exceeds.

        Raises ValueError: the rate is not in [0, 1].
        """
        if not 0 <= rate <= 1:
            raise ValueError(f"a false positive rate must be in [0, 1], not {rate}")
        return float(self._tpr(*self._ones, rate)[0])

    def resolves(self, rate: float) -> bool:
        """Whether there are enough non-members for such a false positive rate."""
        return len(self.non_members) * rate >= 1

    def auc_interval(self, seed: int) -> Rate:
        """95 % interval of the AUC (percentiles of resamples)."""
        return Rate(self.auc, *_percentiles(self.resampled_auc(seed)))

    def tpr_interval(self, rate: float, seed: int) -> Rate:
        """95 % interval of `tpr`: the outer ends of that of resamples and that of Clopper and Pearson.

        Resamples cover the choice of the threshold; the exact interval covers rates near 0 and 1, where no resample
        differs. Of grouped targets it takes the number of groups for the number of trials.
        """
        value = self.tpr(rate)
        low, high = _percentiles(np.concatenate([self._tpr(*weights, rate) for weights in self._weights(seed)]))
        n = len(self.members) if self._groups is None else len(np.unique(self._groups[0]))
        exact = clopper_pearson(round(value * n), n)
        return Rate(value, min(low, exact[0], value), max(high, exact[1], value))

    def resampled_auc(self, seed: int) -> Floats:
        """(RESAMPLES,) AUC of each; equal seeds draw the same targets for other scores of the same targets."""
        if seed not in self._resampled:
            self._resampled[seed] = np.concatenate([self._auc(*weights) for weights in self._weights(seed)])
        return self._resampled[seed]

    def roc(self, points: int = 200) -> tuple[Floats, Floats]:
        """FPR and TPR at the vertices of the curve, thinned to about so many that are even on a logarithmic axis."""
        thresholds = np.unique(self.non_members)[::-1]
        false = np.searchsorted(-self.non_members, -thresholds, side="right") / len(self.non_members)
        true = np.searchsorted(-self.members, -thresholds, side="right") / len(self.members)
        false, true = np.concatenate([[0.0], false]), np.concatenate([[self.tpr(0.0)], true])
        wanted = np.geomspace(1 / len(self.non_members), 1, points)
        kept = np.unique(np.concatenate([[0], np.searchsorted(false, wanted, side="right") - 1]))
        return false[kept], true[kept]

    @property
    def _ones(self) -> tuple[Floats, Floats]:
        return np.ones((1, len(self.members))), np.ones((1, len(self.non_members)))

    def _weights(self, seed: int) -> Iterator[tuple[Floats, Floats]]:
        """How often each member and each non-member is drawn, (BLOCK, m) and (BLOCK, n) at a time."""
        rng = np.random.default_rng(seed)
        for _ in range(RESAMPLES // BLOCK):
            if self._groups is None:
                resampled = [_draw_counts(rng, len(order))[:, order] for order in self._orders]
            else:
                group_ids, places = np.unique(np.concatenate(self._groups), return_inverse=True)
                counts = _draw_counts(rng, len(group_ids))
                resampled = [counts[:, part] for part in np.split(places, [len(self.members)])]
            # a resample without members or without non-members measures nothing: as if it were all of them
            yield _nonempty(resampled[0]), _nonempty(resampled[1])

    def _auc(self, members: Floats, non_members: Floats) -> Floats:
        below = np.concatenate([np.zeros((len(non_members), 1)), np.cumsum(non_members, axis=1)], axis=1)
        total = below[:, -1:]
        higher = total - (below[:, self._above] + below[:, self._from]) / 2
        return np.asarray((members * higher).sum(axis=1) / (members.sum(axis=1) * total[:, 0]), np.float64)

    def _tpr(self, members: Floats, non_members: Floats, rate: float) -> Floats:
        cumulated = np.cumsum(non_members, axis=1)
        allowed = rate * cumulated[:, -1]
        # the score of the first non-member too many is the threshold; only higher ones are called members
        first = (cumulated <= (allowed * (1 + 1e-12))[:, None]).sum(axis=1)
        last = len(self.non_members) - 1
        flagged = np.searchsorted(-self.members, -self.non_members[np.minimum(first, last)], side="left")
        flagged = np.where(first > last, len(self.members), flagged)  # a rate of 1 allows all
        reached = np.concatenate([np.zeros((len(members), 1)), np.cumsum(members, axis=1)], axis=1)
        return np.asarray(reached[np.arange(len(members)), flagged] / reached[:, -1], np.float64)


def p_above_chance(scored: Scored, seed: int) -> float:
    """One-sided p-value of "the AUC is no more than 1/2": a t-test with the standard error of resamples.

    By a normal law p-values of 0.001 are 3.5 times as frequent as they say with 20 members and 20 non-members.
    """
    return _p(scored.auc - 0.5, scored.resampled_auc(seed), scored.n_groups)


def p_different(scored: Scored, seed: int) -> float:
    """Two-sided p-value of "the AUC is 1/2", by the same test."""
    return min(1.0, 2 * _p(abs(scored.auc - 0.5), scored.resampled_auc(seed), scored.n_groups))


def p_above(scored: Scored, control: Scored, seed: int) -> float:
    """One-sided p-value of "the AUC is no higher than that of a control on the same targets", in the same order.

    The control may point either way: its AUC is taken as that of the better direction.
    """
    target, other = scored.resampled_auc(seed), control.resampled_auc(seed)
    sign = 1.0 if control.auc >= 0.5 else -1.0
    return _p(scored.auc - 0.5 - sign * (control.auc - 0.5), target - sign * other, scored.n_groups)


def p_at_low_rate(
    members: NDArray[np.floating],
    non_members: NDArray[np.floating],
    rate: float,
    *,
    pairs: bool,
    tpr: float | None = None,
) -> float:
    """One-sided exact p-value of "of the members no larger share is flagged than of the non-members" (`flag`).

    For an attack that is right about a few and knows nothing of the rest, which an AUC hides.

    Args:
        pairs: whether member i and non-member i belong together (one of each per user): then McNemar's test compares
            them, in place of Fisher's.
        tpr: share of members that other runs flag at this rate; None: not known.
    """
    true, false = flag(members, non_members, rate, pairs, tpr)
    if pairs:
        return p_more_often(true, false)
    table = [[int(flagged.sum()), int((~flagged).sum())] for flagged in (true, false)]
    return float(stats.fisher_exact(table, alternative="greater").pvalue)


def p_more_often(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """One-sided exact p-value of "the first is no more often true than the second", on pairs: McNemar's test."""
    more, less = int((first & ~second).sum()), int((second & ~first).sum())
    return float(stats.binom.sf(more - 1, more + less, 0.5))


def flag(
    members: NDArray[np.floating], non_members: NDArray[np.floating], rate: float, pairs: bool, tpr: float | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which members and which non-members, of those that are tested, are called members at a false positive rate.

    By rank, where other runs teach how many that are: so many of all targets, and those that score as high. Raw scores
    of different runs are not comparable (lists leave out what each run was trained on). Else every second non-member
    sets the threshold, and the others are tested, of pairs the other half. Neither depends on the tested memberships.
    """
    if tpr is None:
        setting = np.sort(non_members[::2])[::-1]
        threshold = setting[min(int(len(setting) * rate), len(setting) - 1)]
        return (members[1::2] if pairs else members) > threshold, non_members[1::2] > threshold
    flagged = max(1, round(rate * len(non_members) + tpr * len(members)))
    threshold = np.sort(np.concatenate([members, non_members]))[-flagged]
    return members >= threshold, non_members >= threshold


def _p(difference: float, resampled: Floats, n_groups: int) -> float:
    if difference <= 0:
        return 1.0
    error = float(resampled.std(ddof=1))
    return float(stats.t.sf(difference / error, n_groups - 1)) if error > 0 else 0.0


def _draw_counts(rng: np.random.Generator, n: int) -> Floats:
    """(BLOCK, n) how often each of n is drawn in n draws."""
    rows = rng.integers(n, size=(BLOCK, n)) + n * np.arange(BLOCK)[:, None]
    return np.bincount(rows.ravel(), minlength=BLOCK * n).reshape(BLOCK, n).astype(np.float64)


def _nonempty(weights: Floats) -> Floats:
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _percentiles(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
