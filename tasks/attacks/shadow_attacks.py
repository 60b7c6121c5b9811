"""Attacks on one signal of membership by the help of shadow runs: of our suites, and of `dprec audit`.

The threshold needs no shadow run. LiRA and RMIA (`tasks.attacks.membership`) are online where shadow runs have nearly
all targets in and out. Whether members score higher or lower, and how many of them score higher than a false positive
rate allows, is learnt from shadow runs, each attacked with the help of the others, and never from the attacked one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tasks.attacks.membership import as_likelihoods, lira_offline, lira_online, rmia
from tasks.evaluation.detection import RATES, Scored

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FEWEST_SHADOWS = 4
"""Shadow runs, with members and non-members among the targets, that an attack is learnt from."""
ONLINE = 0.9
"""Share of targets that shadow runs must have in and out for the online attacks, which leave the other targets out."""
OFFLINE_RMIA = 0.3
"""The a of offline RMIA, which its authors take for most data sets."""


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
        """(n,) the higher, the more like a member; none depends on who is in the attacked run."""
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
    """Name -> attack: the threshold, and LiRA and RMIA where shadow runs can make signals clearer.

    Args:
        signals: (n,) of the attacked run, NaN where a target has none; shadows, included: see `ShadowAttack`.
    """
    attacks = {"loss threshold": ShadowAttack(lambda values, *_: values, np.asarray, shadows, included)}
    if len(shadows) and np.nanstd(signals) > 0:
        online = bool((included.any(axis=0) & ~included.all(axis=0)).mean() >= ONLINE)
        lira = lira_online if online else lira_offline
        attacks[f"LiRA ({'online' if online else 'offline'})"] = ShadowAttack(lira, np.asarray, shadows, included)
        method = partial(_rmia, offline=None if online else OFFLINE_RMIA)
        attacks["RMIA"] = ShadowAttack(method, as_likelihoods, as_likelihoods(shadows), included)
    return attacks


def scored(scores: Floats, is_member: Bools, groups: NDArray[np.int64] | None) -> Scored:
    """Scores of members and of others; groups: (n,) whose each target is, or None where targets are independent."""
    parts = None if groups is None else (groups[is_member], groups[~is_member])
    return Scored(scores[is_member], scores[~is_member], parts)


def _rmia(signals: Floats, shadows: Floats, included: Bools, offline: float | None) -> Floats:
    needed = [~included] if offline is not None else [~included, included]
    usable = ~np.isnan(signals) & np.all([(side & ~np.isnan(shadows)).any(axis=0) for side in needed], axis=0)
    return rmia(signals, shadows, included, usable, offline=offline) if usable.any() else np.full(len(signals), np.nan)
