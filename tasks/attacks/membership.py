"""Membership inference: from what a system releases, tell whether a target (a user, an interaction) was trained on.

Sources: Yeom et al., "Privacy Risk in Machine Learning" (CSF 2018): the loss threshold; Carlini et al., "Membership
Inference Attacks From First Principles" (S&P 2022): LiRA; Zarifzadeh, Liu and Shokri, "Low-Cost High-Power Membership
Inference Attacks" (ICML 2024): RMIA. Targets are columns, shadow runs are rows: runs of the same system on other draws
of the training data, of which the attacker knows who was in. `tasks.evaluation.detection` measures the scores.

Of a target's signal in a run that released nothing about it, NaN is passed: that run says nothing of the target.

`shadow_attacks` are the attacks of our suites and of `dprec audit`. Whether members score higher or lower, and how many
of them score higher than a false positive rate allows, is learned from shadow runs, each attacked with the help of the
others, and never from the attacked one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from tasks.evaluation.detection import RATES, Scored

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FEWEST_FOR_OWN_VARIANCE = 64
"""Shadow runs of either kind below which a variance is estimated for all targets together (Carlini et al., VI-B)."""
LEAST = 1e-9
"""Of a standard deviation and of a probability, so that no ratio divides by zero."""
FEWEST_SHADOWS = 4
"""Shadow runs, with members and non-members among the targets, that an attack is trained on."""
ONLINE = 0.9
"""Share of targets that shadow runs must have in and out for the online attacks, which leave the other targets out."""
OFFLINE_RMIA = 0.3
"""The a of offline RMIA, which its authors take for most data sets."""


def loss_threshold(losses: NDArray[np.floating]) -> Floats:
    """(n,) the smaller the loss, the more like a member (Yeom et al., adversary 2). No shadow run is needed."""
    return -np.asarray(losses, np.float64)


def lira_online(signals: NDArray[np.floating], shadows: NDArray[np.floating], included: NDArray[np.bool_]) -> Floats:
    """Log-likelihood ratio of "in" to "out" under normal distributions of each target's shadow signals: (n,).

    Carlini et al., Algorithm 1. Means are each target's own. Variances are, too, where every target has
    `FEWEST_FOR_OWN_VARIANCE` shadow runs of either kind; with fewer one of all "in" and one of all "out" signals
    serves.

    Args:
        signals: (n,) of the attacked run; about normal, such as a logit.
        shadows: (n_runs, n) the same signal of the shadow runs, or NaN.
        included: (n_runs, n) whether the target was in that run's training data.

    Returns:
        NaN where a target was never in, never out, or has no signal.

    Raises:
        ValueError: shapes that do not fit, or memberships that are no booleans.
    """
    _check(signals, shadows, included)
    inside = _fit_normal(shadows, included)
    outside = _fit_normal(shadows, ~included)
    return _log_density(signals, *inside) - _log_density(signals, *outside)


def lira_offline(signals: NDArray[np.floating], shadows: NDArray[np.floating], included: NDArray[np.bool_]) -> Floats:
    """Log of the probability that a run without the target has a smaller signal: (n,) (Carlini et al., eq. 4).

    Only shadow runs without a target are used for it; arguments, NaN and errors as in `lira_online`.
    """
    _check(signals, shadows, included)
    mean, deviation = _fit_normal(shadows, ~included)
    return np.asarray(log_ndtr((signals - mean) / deviation), np.float64)


def rmia(
    likelihoods: NDArray[np.floating],
    shadows: NDArray[np.floating],
    included: NDArray[np.bool_],
    is_population: NDArray[np.bool_],
    *,
    gamma: float = 1.0,
    offline: float | None = None,
) -> Floats:
    """Share of population points z over which target x has a likelihood ratio above gamma, equal ones half: (n,).

    Zarifzadeh et al., eq. 4 and Algorithm 1: LR(x, z) = (P(x | θ) / P(x)) / (P(z | θ) / P(z)). P(x) is the mean over
    shadow runs, half of it with the target and half without. Offline (Algorithm 2), with a = `offline`, runs without it
    stand for both: P(x) = ½ ((1 + a) P_out(x) + 1 - a).

    The paper counts equal ones whole. Lists give many, and a target of the population is its own equal: counted half,
    for everyone alike, they leave equal targets with equal scores.

    Args:
        likelihoods: (n,) in (0, 1]: how likely the attacked run makes each target.
        shadows: (n_runs, n) the same of the shadow runs, or NaN.
        included: (n_runs, n) whether the target was in that run's training data.
        is_population: (n,) which targets serve as z.
        offline: a in [0, 1], or None for the online attack.

    Returns:
        NaN where a target lacks the shadow runs that the attack needs, or has no likelihood.

    Raises:
        ValueError: shapes that do not fit, a likelihood outside (0, 1], no population, or gamma or a out of range.
    """
    _check(likelihoods, shadows, included)
    _require_booleans(is_population)
    for values in (np.asarray(likelihoods), np.asarray(shadows)):
        if not ((values[~np.isnan(values)] > 0) & (values[~np.isnan(values)] <= 1)).all():
            raise ValueError("a likelihood lies outside (0, 1]")
    if not gamma > 0 or not (offline is None or 0 <= offline <= 1):
        raise ValueError(f"gamma must be positive and a in [0, 1], not {gamma} and {offline}")
    without = _mean(shadows, ~included)
    prior = (_mean(shadows, included) + without if offline is None else (1 + offline) * without + 1 - offline) / 2
    ratios = likelihoods / np.maximum(prior, LEAST)
    population = np.sort(ratios[is_population & ~np.isnan(ratios)])
    if not len(population):
        raise ValueError("no target of the population has a likelihood ratio")
    below, up_to = (np.searchsorted(population, ratios / gamma, side) for side in ("left", "right"))
    share = (below + up_to) / (2 * len(population))
    return np.where(np.isnan(ratios), np.nan, share)


def as_likelihoods(signals: NDArray[np.floating]) -> Floats:
    """(..., n) signals -> their percentiles among all targets of the same run, in (0, 1]; NaN stays.

    For signals that are no probabilities, such as similarities of lists; equal ones get their mean rank.
    """
    values = np.asarray(signals, np.float64)
    ordered = np.sort(values, axis=-1)  # NaN last
    result = np.full(values.shape, np.nan)
    for run in np.ndindex(values.shape[:-1]):
        n = int((~np.isnan(values[run])).sum())
        low, high = (np.searchsorted(ordered[run][:n], values[run], side) for side in ("left", "right"))
        result[run] = np.where(np.isnan(values[run]), np.nan, (low + high + 1) / (2 * max(n, 1)))
    return np.minimum(result, 1.0)


def _check(signals: NDArray[np.floating], shadows: NDArray[np.floating], included: NDArray[np.bool_]) -> None:
    _require_booleans(included)
    if np.ndim(signals) != 1 or np.shape(shadows) != np.shape(included) or np.shape(shadows)[1:] != np.shape(signals):
        raise ValueError(
            f"shadow signals {np.shape(shadows)} and memberships {np.shape(included)} for {np.shape(signals)} targets"
        )


def _require_booleans(members: NDArray[np.bool_]) -> None:
    if not isinstance(members, np.ndarray) or members.dtype != np.bool_:
        raise ValueError(f"memberships must be an array of booleans, not {getattr(members, 'dtype', type(members))}")


def _mean(values: NDArray[np.floating], chosen: NDArray[np.bool_]) -> Floats:
    """(n,) mean of the chosen values that are there; NaN where none is."""
    used = chosen & ~np.isnan(values)
    count = used.sum(axis=0)
    total = np.where(used, values, 0.0).sum(axis=0, dtype=np.float64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _fit_normal(shadows: NDArray[np.floating], chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(n,) mean and standard deviation of each target's chosen signals."""
    used = chosen & ~np.isnan(shadows)
    mean, count = _mean(shadows, used), used.sum(axis=0)
    squares = (np.where(used, shadows - mean, 0.0) ** 2).sum(axis=0)
    present = count > 0
    if present.any() and count[present].min() >= FEWEST_FOR_OWN_VARIANCE:
        variance = squares / np.maximum(count - 1, 1)
    else:  # each target's mean has cost a degree of freedom
        variance = np.full(len(count), squares.sum() / max(int(count.sum() - present.sum()), 1))
    return mean, np.maximum(np.sqrt(variance), LEAST)


def _log_density(values: NDArray[np.floating], mean: Floats, deviation: Floats) -> Floats:
    return np.asarray(-0.5 * ((values - mean) / deviation) ** 2 - np.log(deviation), np.float64)


@dataclass(frozen=True)
class ShadowAttack:
    """An attack on one signal.

    shadows, included: (n_shadows, n) the signal in shadow runs, as `prepare` makes it, and who was in these.
    """

    method: Callable[[Floats, Floats, Bools], Floats]
    prepare: Callable[[Floats], Floats]
    shadows: Floats
    included: Bools

    def scores(self, signals: Floats) -> Floats:
        """(n,) of (n,) signals: the higher, the more like a member; none depends on who is in the attacked run."""
        return self.method(self.prepare(signals), self.shadows, self.included)

    def learn(self, counted: Bools) -> tuple[float, float] | None:
        """Direction, 1 or -1, and true positive rate at the first of `RATES`, in shadow runs by the help of the others.

        -1 where their AUC is below 1/2 on average; None where too few runs have both members and non-members.

        Args:
            counted: (n_shadows, n) which are targets of a run.
        """
        kinds = []
        for run, included in enumerate(self.included):
            helpers = np.arange(len(self.included)) != run
            scores = self.method(self.shadows[run], self.shadows[helpers], self.included[helpers])
            usable = counted[run] & ~np.isnan(scores)
            kinds.append((scores[usable & included], scores[usable & ~included]))
        kinds = [both for both in kinds if all(map(len, both))]
        if len(kinds) < FEWEST_SHADOWS:
            return None
        sign = -1.0 if np.mean([Scored(*both).auc for both in kinds]) < 0.5 else 1.0
        return sign, float(np.mean([Scored(sign * first, sign * other).tpr(RATES[0]) for first, other in kinds]))


def shadow_attacks(signals: Floats, shadows: Floats, included: Bools) -> dict[str, ShadowAttack]:
    """Id -> attack: the threshold, and LiRA and RMIA where shadow runs can make signals clearer.

    Args:
        signals: (n,) of the attacked run, NaN where a target has none; shadows, included: see `ShadowAttack`.
    """
    attacks = {"loss-threshold": ShadowAttack(lambda values, *_: values, np.asarray, shadows, included)}
    if len(shadows) and np.nanstd(signals) > 0:
        online = bool((included.any(axis=0) & ~included.all(axis=0)).mean() >= ONLINE)
        lira = lira_online if online else lira_offline
        attacks["lira-online" if online else "lira-offline"] = ShadowAttack(lira, np.asarray, shadows, included)
        method = partial(_rmia, offline=None if online else OFFLINE_RMIA)
        attacks["rmia"] = ShadowAttack(method, as_likelihoods, as_likelihoods(shadows), included)
    return attacks


def scored(scores: Floats, is_member: Bools, groups: NDArray[np.int64] | None) -> Scored:
    """Scores of members and of others, without NaN; groups: (n,) whose each is, None where targets are independent."""
    inside, outside = is_member & ~np.isnan(scores), ~is_member & ~np.isnan(scores)
    return Scored(scores[inside], scores[outside], None if groups is None else (groups[inside], groups[outside]))


def _rmia(signals: Floats, shadows: Floats, included: Bools, offline: float | None) -> Floats:
    needed = [~included] if offline is not None else [~included, included]
    usable = ~np.isnan(signals) & np.all([(side & ~np.isnan(shadows)).any(axis=0) for side in needed], axis=0)
    return rmia(signals, shadows, included, usable, offline=offline) if usable.any() else np.full(len(signals), np.nan)
