"""Attacks on signals of lists, each with its controls: the same on exchanged lists, and what sees no list.

With too few shadow runs to learn from (`tasks.attacks.membership`) every attack is made both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tasks.attacks.membership import FEWEST_SHADOWS, Bools, Floats, scored, shadow_attacks
from tasks.evaluation.detection import FEWEST, RATES, Scored, p_above, p_above_chance, p_at_low_rate, p_different
from tasks.external.findings import Attack, with_interval
from tasks.external.inputs import Inputs, Ints, Shadow

Signal = Callable[[Shadow], Floats]
"""A run: what it was trained on, and its lists -> (n,) the signal of every target in it."""
NAMES = {
    "loss-threshold": "loss threshold",
    "lira-online": "LiRA (online)",
    "lira-offline": "LiRA (offline)",
    "rmia": "RMIA",
}
"""Id of an attack -> its name in audit.json."""
ALIKE_IN_ACTIVITY = 20
"""Users among whom lists are exchanged: neighbours in the order of activity."""
MOST_SIMILAR = "lists of the most similar users"
BLOCK = 500
SEPARATES = 0.05
"""p-value of a control below which members are different anyhow, and single hits at low rates prove nothing."""


class Attacked(NamedTuple):
    """What an attack says of all targets, and what shadow runs teach of it."""

    scores: Floats
    """(n,) the higher, the more like a member; NaN where nothing is said of a target."""
    controls: Mapping[str, Floats]
    """Controls of its own: the same from exchanged lists, and of shadow runs how many were trained on a target."""
    tpr: float | None = None
    """True positive rate at the first of `RATES` in shadow runs; None where these are too few."""


Values = dict[str, Attacked]
"""By the name of the attack."""


def attack(
    inputs: Inputs,
    signals: Mapping[str, Signal],
    included: Bools,
    counted: Bools,
    exchanged: Mapping[str, Ints],
    notes: list[str],
) -> Values:
    """The threshold, and where there are shadow runs LiRA and RMIA, on every signal.

    Args:
        included, counted: (n_shadows, n) whether a target was in that run, and whether it is one of that run's targets.
        exchanged: control -> (n_users, K) lists of other users.
        notes: takes what shadow runs were too few for.
    """
    values: Values = {}
    for name, signal in signals.items():
        local = signal(Shadow(inputs.trained_keys, inputs.lists))
        swapped = {control: signal(Shadow(inputs.trained_keys, lists)) for control, lists in exchanged.items()}
        shadows = np.array([signal(shadow) for shadow in inputs.shadows]).reshape(-1, len(local))
        for kind, attack in shadow_attacks(local, shadows, included).items():
            controls = {control: attack.scores(values) for control, values in swapped.items()}
            if kind != "loss-threshold":  # the fewer runs say something of a target, the wider its scores
                controls["number of shadow runs"] = included.sum(axis=0).astype(np.float64)
            scores = attack.scores(local)
            if direction := attack.learn(counted):
                sign, tpr = direction
                signed = {control: sign * value for control, value in controls.items()}
                values[f"{NAMES[kind]} on {name}"] = Attacked(sign * scores, signed, tpr)
            else:
                values |= both_ways(f"{NAMES[kind]} on {name}", scores, controls)
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
        f"{name}, reversed": Attacked(-scores, {control: -values for control, values in controls.items()}),
    }


def exchange(lists: Ints, users: Ints, histories: csr_array, rng: np.random.Generator) -> dict[str, Ints]:
    """Control -> lists that are exchanged among these users, (n,); those of other users stay.

    Shuffled among users of like activity, and of each user the list of the one with the most similar history: a chart
    of their country serves both alike.
    """
    shuffled, nearest, rows = lists.copy(), lists.copy(), histories[users].astype(np.float32)
    order = users[np.lexsort((rng.random(len(users)), np.diff(rows.indptr)))]
    shuffled[order] = lists[order[np.lexsort((rng.random(len(users)), np.arange(len(users)) // ALIKE_IN_ACTIVITY))]]
    rows.data /= np.sqrt(np.repeat(np.diff(rows.indptr), np.diff(rows.indptr)))
    ties = rng.random(len(users), dtype=np.float32) * 1e-6
    for start in range(0, len(users), BLOCK):
        similar = (rows[start : start + BLOCK] @ rows.T).toarray() + ties
        np.fill_diagonal(similar[:, start:], -1)
        nearest[users[start : start + BLOCK]] = lists[users[similar.argmax(axis=1)]]
    return {"exchanged lists": shuffled, MOST_SIMILAR: nearest}


def measure(
    values: Values, controls: Mapping[str, Floats], is_member: Bools, groups: Ints | None, seed: int
) -> list[Attack]:
    """Each attack with its AUC, its true positive rates at low false positive rates, its controls and its p-value.

    An attack whose scores are all equal is left out: it tests nothing.

    Args:
        values: a target with NaN is left out.
        controls: control -> (n,) scores.
        groups: (n,) the user of each target, or None where targets are users.
    """
    attacks = []
    for name, attacked in values.items():
        usable = ~np.isnan(attacked.scores)
        if groups is not None:
            usable = _balanced(usable, is_member, groups)
        chosen = None if groups is None else groups[usable]
        scores, labels = attacked.scores[usable], is_member[usable]
        if min(labels.sum(), (~labels).sum()) < FEWEST or not np.ptp(scores):
            continue
        result = scored(scores, labels, chosen)
        if result.n_groups < FEWEST:
            continue
        without = {
            control: scored(np.nan_to_num(of_control[usable]), labels, chosen)
            for control, of_control in {**controls, **attacked.controls}.items()
        }
        at_low = [
            _p_at_low_rate(sign * np.nan_to_num(of_control[usable]), labels, chosen, None)
            for of_control in {**controls, **attacked.controls}.values()
            for sign in (1, -1)
        ]
        all_controls = {**without, "random membership": scored(scores, _shuffle(labels, chosen, seed), chosen)}
        rates = [rate for rate in RATES if result.resolves(rate)]
        attacks.append(
            Attack(
                name=name,
                measures=[
                    with_interval("AUC", *result.auc_interval(seed)),
                    *(with_interval(f"TPR at {rate:.1%} FPR", *result.tpr_interval(rate, seed)) for rate in rates),
                ],
                controls=[
                    with_interval(f"AUC, {control}", *value.auc_interval(seed))
                    for control, value in all_controls.items()
                ],
                p=_p(result, without, _p_at_low_rate(scores, labels, chosen, attacked.tpr), at_low, seed),
                roc=[(float(false), float(true)) for false, true in zip(*result.roc(60), strict=True)],
            )
        )
    return attacks


def _p(result: Scored, controls: Mapping[str, Scored], at_low: float, of_controls: Sequence[float], seed: int) -> float:
    """Of "no better than chance or than a control": by AUC or at the lowest rate, corrected for being two tests.

    At the lowest rate only where no control tells members apart, neither by AUC nor there (`of_controls`, Bonferroni).
    """
    by_auc = max([p_above_chance(result, seed), *(p_above(result, control, seed) for control in controls.values())])
    differs = any(p_different(control, seed) < SEPARATES for control in controls.values())
    differs |= min(of_controls, default=1.0) * len(of_controls) < SEPARATES
    return min(1.0, 2 * (by_auc if differs else min(by_auc, at_low)))


def _p_at_low_rate(scores: Floats, is_member: Bools, groups: Ints | None, tpr: float | None) -> float:
    """Of the first target of either kind of every user, where there are groups."""
    owners = np.arange(len(scores)) if groups is None else groups
    members, outsiders = (
        np.flatnonzero(kind)[np.unique(owners[kind], return_index=True)[1]] for kind in (is_member, ~is_member)
    )
    return p_at_low_rate(scores[members], scores[outsiders], RATES[0], pairs=groups is not None, tpr=tpr)


def _balanced(usable: Bools, is_member: Bools, groups: Ints) -> Bools:
    """Of every user as many targets of either kind, the first ones that are usable."""
    rows = np.flatnonzero(usable)
    rows = rows[np.lexsort((is_member[rows], groups[rows]))]
    _, first, counts = np.unique(2 * groups[rows] + is_member[rows], return_index=True, return_counts=True)
    fewest = np.minimum(*(np.bincount(groups[rows], is_member[rows] == kind) for kind in (True, False)))
    kept = np.arange(len(rows)) - np.repeat(first, counts) < fewest[groups[rows]]
    return np.isin(np.arange(len(usable)), rows[kept])


def _shuffle(is_member: Bools, groups: Ints | None, seed: int) -> Bools:
    """Memberships shuffled, within each user where there are groups."""
    rng = np.random.default_rng([seed, *b"shuffled"])
    owners = np.zeros(len(is_member), np.int64) if groups is None else groups
    result = is_member.copy()
    result[np.argsort(owners, kind="stable")] = is_member[np.lexsort((rng.random(len(owners)), owners))]
    return result
