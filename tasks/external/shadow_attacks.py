"""Attacks with shadow runs on signals of lists, and the same attacks on exchanged lists.

Whether members score higher or lower is learnt from shadow runs, each attacked with the help of the others, and never
from the audited one; with too few of them every attack is made both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tasks.attacks.membership import as_likelihoods, lira_offline, lira_online, loss_threshold, rmia
from tasks.evaluation.detection import Scored
from tasks.external.inputs import Inputs, Ints, Shadow
from tasks.external.signals import Floats

Signal = Callable[[Shadow], Floats]
"""A run: what it was trained on, and its lists -> (n,) the signal of every target in it."""
Values = dict[str, tuple[Floats, dict[str, Floats]]]
"""Attack -> (n,) scores of every target, and controls of its own: the same from exchanged lists."""
ShadowAttack = Callable[[Floats, Floats, NDArray[np.bool_]], Floats]
"""Signals of the attacked run, those of shadow runs, and who was in these -> (n,) scores."""
FEWEST_SHADOWS = 4
"""Shadow runs from which the direction of an attack is learnt."""
ALIKE_IN_ACTIVITY = 20
"""Users among whom lists are exchanged: neighbours in the order of activity."""
ONLINE = 0.9
"""Share of targets that shadow runs must have in and out for the online attacks, which leave the other targets out."""
OFFLINE_RMIA = 0.3
"""The a of offline RMIA, which its authors take for most data sets."""


def attack(
    inputs: Inputs,
    of_lists: Mapping[str, Signal],
    included: NDArray[np.bool_],
    counted: NDArray[np.bool_],
    exchanged: Ints,
) -> Values:
    """The threshold, and where there are shadow runs LiRA and RMIA, on every signal.

    Args:
        included, counted: (n_shadows, n) whether a target was in that run, and whether it is one of that run's targets.
        exchanged: (n_users, K) lists of other users, for the control.
    """
    values: Values = {}
    online = (included.any(axis=0) & ~included.all(axis=0)).mean() >= ONLINE if len(included) else False
    for name, signal in of_lists.items():
        own, swapped = (signal(Shadow(inputs.trained_keys, lists)) for lists in (inputs.lists, exchanged))
        runs = np.array([signal(shadow) for shadow in inputs.shadows]).reshape(-1, len(own))
        attacks: dict[str, tuple[ShadowAttack, tuple[Floats, Floats], Floats]] = {
            "loss threshold": (_threshold, (own, swapped), runs)
        }
        if len(runs) and np.nanstd(own) > 0:  # something that shadow runs could make clearer
            lira = lira_online if online else lira_offline
            attacks[f"LiRA ({'online' if online else 'offline'})"] = (lira, (own, swapped), runs)
            likely = partial(_rmia, offline=None if online else OFFLINE_RMIA)
            attacks["RMIA"] = (likely, (as_likelihoods(own), as_likelihoods(swapped)), as_likelihoods(runs))
        for kind, (try_on, attacked, of_runs) in attacks.items():
            scores, control = (try_on(of, of_runs, included) for of in attacked)
            if len(runs) >= FEWEST_SHADOWS:
                sign = _direction(try_on, of_runs, included, counted)
                values[f"{kind} on {name}"] = sign * scores, {"exchanged lists": sign * control}
            else:
                values |= both_ways(f"{kind} on {name}", scores, {"exchanged lists": control})
    return values


def both_ways(name: str, scores: Floats, controls: Mapping[str, Floats]) -> Values:
    """An attack whose direction is not known, and the same with members below others."""
    return {
        name: (scores, dict(controls)),
        f"{name}, reversed": (-scores, {control: -of for control, of in controls.items()}),
    }


def _direction(
    attack: ShadowAttack,
    runs: Floats,
    included: NDArray[np.bool_],
    counted: NDArray[np.bool_],
) -> float:
    """1, or -1 where shadow runs that are attacked with the help of the others have an AUC below 1/2 on average."""
    aucs = []
    for run in range(len(runs)):
        others = np.arange(len(runs)) != run
        scores = attack(runs[run], runs[others], included[others])
        usable = counted[run] & ~np.isnan(scores)
        if 0 < included[run][usable].sum() < usable.sum():
            aucs.append(Scored(scores[usable & included[run]], scores[usable & ~included[run]]).auc)
    return -1.0 if aucs and np.mean(aucs) < 0.5 else 1.0


def _threshold(signals: Floats, shadows: Floats, included: NDArray[np.bool_]) -> Floats:
    del shadows, included
    return loss_threshold(-signals)


def _rmia(signals: Floats, shadows: Floats, included: NDArray[np.bool_], offline: float | None) -> Floats:
    return rmia(signals, shadows, included, np.ones(len(signals), bool), offline=offline)


def exchange(lists: Ints, users: Ints, activity: Ints, rng: np.random.Generator) -> Ints:
    """Lists that are shuffled among these users, (n,), of like activity, (n,); those of other users stay."""
    result = lists.copy()
    order = users[np.lexsort((rng.random(len(users)), activity))]
    result[order] = lists[order[np.lexsort((rng.random(len(users)), np.arange(len(users)) // ALIKE_IN_ACTIVITY))]]
    return result
