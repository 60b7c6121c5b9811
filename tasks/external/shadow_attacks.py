"""Attacks with shadow runs on signals of lists, and the same attacks on exchanged lists.

Whether members score higher or lower, and how many of them score higher than a false positive rate allows, is learnt
from shadow runs, each attacked with the help of the others, and never from the audited one; with too few of them every
attack is made both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.attacks.membership import as_likelihoods, lira_offline, lira_online, rmia
from tasks.evaluation.detection import RATES, Scored
from tasks.external.inputs import Inputs, Ints, Shadow
from tasks.external.signals import Floats

Signal = Callable[[Shadow], Floats]
"""A run: what it was trained on, and its lists -> (n,) the signal of every target in it."""
ShadowAttack = Callable[[Floats, Floats, NDArray[np.bool_]], Floats]
"""Signals of the attacked run, those of shadow runs, and who was in these -> (n,) scores."""
FEWEST_SHADOWS = 4
"""Shadow runs, with members and non-members among the targets, that an attack is learnt from."""
ALIKE_IN_ACTIVITY = 20
"""Users among whom lists are exchanged: neighbours in the order of activity."""
ONLINE = 0.9
"""Share of targets that shadow runs must have in and out for the online attacks, which leave the other targets out."""
OFFLINE_RMIA = 0.3
"""The a of offline RMIA, which its authors take for most data sets."""


class Attacked(NamedTuple):
    """What an attack says of all targets, and what shadow runs teach of it."""

    scores: Floats
    """(n,) the higher, the more like a member; NaN where nothing is said of a target."""
    controls: Mapping[str, Floats]
    """Controls of its own: the same from exchanged lists."""
    tpr: float | None = None
    """True positive rate at the first of `RATES` in shadow runs; None where these are too few."""


Values = dict[str, Attacked]
"""By the name of the attack."""


def attack(
    inputs: Inputs,
    of_lists: Mapping[str, Signal],
    included: NDArray[np.bool_],
    counted: NDArray[np.bool_],
    exchanged: Ints,
    notes: list[str],
) -> Values:
    """The threshold, and where there are shadow runs LiRA and RMIA, on every signal.

    Args:
        included, counted: (n_shadows, n) whether a target was in that run, and whether it is one of that run's targets.
        exchanged: (n_users, K) lists of other users, for the control.
        notes: takes what shadow runs were too few for.
    """
    values: Values = {}
    online = (included.any(axis=0) & ~included.all(axis=0)).mean() >= ONLINE if len(included) else False
    for name, signal in of_lists.items():
        own, swapped = (signal(Shadow(inputs.trained_keys, lists)) for lists in (inputs.lists, exchanged))
        runs = np.array([signal(shadow) for shadow in inputs.shadows]).reshape(-1, len(own))
        attacks: dict[str, tuple[ShadowAttack, Callable[[Floats], Floats]]] = {
            "loss threshold": (lambda signals, *_: signals, np.asarray)
        }
        if len(runs) and np.nanstd(own) > 0:  # something that shadow runs could make clearer
            attacks |= {
                "LiRA (online)" if online else "LiRA (offline)": (lira_online if online else lira_offline, np.asarray),
                "RMIA": (partial(_rmia, offline=None if online else OFFLINE_RMIA), as_likelihoods),
            }
        for kind, (try_on, prepare) in attacks.items():
            of_runs = prepare(runs)
            scores, control = (try_on(prepare(of), of_runs, included) for of in (own, swapped))
            if learnt := _learn(try_on, of_runs, included, counted):
                sign, tpr = learnt
                values[f"{kind} on {name}"] = Attacked(sign * scores, {"exchanged lists": sign * control}, tpr)
            else:
                values |= both_ways(f"{kind} on {name}", scores, {"exchanged lists": control})
    if any(attacked.tpr is None for attacked in values.values()):
        notes.append(
            f"{len(inputs.shadows)} shadow runs are too few to learn an attack from ({FEWEST_SHADOWS} with members and "
            "non-members are needed): it is made both ways, and half of the non-members set its threshold at a low "
            "false positive rate."
        )
    return values


def both_ways(name: str, scores: Floats, controls: Mapping[str, Floats]) -> Values:
    """An attack whose direction is not known, and the same with members below others."""
    return {
        name: Attacked(scores, controls),
        f"{name}, reversed": Attacked(-scores, {control: -of for control, of in controls.items()}),
    }


def _learn(
    attack: ShadowAttack, runs: Floats, included: NDArray[np.bool_], counted: NDArray[np.bool_]
) -> tuple[float, float] | None:
    """Direction, 1 or -1, and share of members that are flagged, of an attack on shadow runs by the help of the others.

    -1 where their AUC is below 1/2 on average; None where too few runs have both members and non-members.
    """
    kinds = []
    for run in range(len(runs)):
        others = np.arange(len(runs)) != run
        scores = attack(runs[run], runs[others], included[others])
        usable = counted[run] & ~np.isnan(scores)
        kinds.append((scores[usable & included[run]], scores[usable & ~included[run]]))
    kinds = [both for both in kinds if all(map(len, both))]
    if len(kinds) < FEWEST_SHADOWS:
        return None
    sign = -1.0 if np.mean([Scored(*both).auc for both in kinds]) < 0.5 else 1.0
    return sign, float(np.mean([Scored(sign * first, sign * other).tpr(RATES[0]) for first, other in kinds]))


def _rmia(signals: Floats, shadows: Floats, included: NDArray[np.bool_], offline: float | None) -> Floats:
    needed = [~included] if offline is not None else [~included, included]
    known = ~np.isnan(signals) & np.all([(of & ~np.isnan(shadows)).any(axis=0) for of in needed], axis=0)
    return rmia(signals, shadows, included, known, offline=offline) if known.any() else np.full(len(signals), np.nan)


def exchange(lists: Ints, users: Ints, activity: Ints, rng: np.random.Generator) -> Ints:
    """Lists that are shuffled among these users, (n,), of like activity, (n,); those of other users stay."""
    result = lists.copy()
    order = users[np.lexsort((rng.random(len(users)), activity))]
    result[order] = lists[order[np.lexsort((rng.random(len(users)), np.arange(len(users)) // ALIKE_IN_ACTIVITY))]]
    return result
