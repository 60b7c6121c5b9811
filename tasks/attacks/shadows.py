"""Membership inference by shadow runs of a recommender that can be trained again: worlds, signals, what they tell.

Half of the users are in a run if a fair coin says so, with everything they did: the targets of kind `user`. The others
are always in, but of each a few interactions are in if a coin of their own says so: kind `interaction`. Everyone is
served from the same known history in every run, whoever was in, and none of the interactions that are asked about is in
it. So the serving rule is the same for members and for others, nothing but what was trained tells them apart, and what
training guarantees bounds what the attacks may find.

Sources: `tasks.attacks.membership`; the worlds are those of Carlini et al. (S&P 2022), section IV. An accounted
(ε, δ) bounds the attacks: the true positive rate is at most e^ε times the false positive rate, plus δ. Two tests hold
them to it (`refute`): of these rates, as if targets were independent, and a bound on ε from guesses of membership bits,
which needs no such assumption (`tasks.privacy.audits.one_run`) but proves nothing where δ is about one in the number of
targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.attacks.membership import scored, shadow_attacks
from tasks.core.hashing import Uniforms
from tasks.evaluation.detection import RATES, flag
from tasks.evaluation.ranking import Seen
from tasks.evaluation.splits import random_ranks
from tasks.evaluation.statistics import clopper_pearson
from tasks.privacy.audits import one_run

if TYPE_CHECKING:
    from tasks.core.rows import Columns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["user", "interaction"]
KINDS: tuple[Kind, ...] = ("user", "interaction")
SEEN = ("scores", "lists")
"""What the attacker sees: the scores of all items, or the first k items that are new to the history."""
ATTACKS = 3
"""On one signal: the threshold, LiRA and RMIA."""
COLUMNS: Columns = {
    "system": pl.String,  # experiment
    "target": pl.String,  # one of KINDS
    "seen": pl.String,  # one of SEEN; "nothing": a control
    "attack": pl.String,  # an id, or that of a control
    "shadows": pl.Int64,
    **dict.fromkeys(("auc", "auc_low", "auc_high"), pl.Float64),
    **dict.fromkeys((f"tpr1{end}" for end in ("", "_low", "_high")), pl.Float64),  # at 1 % false positives
    **dict.fromkeys((f"tpr01{end}" for end in ("", "_low", "_high")), pl.Float64),  # at 0.1 %; null: too few targets
    "members": pl.Int64,
    "others": pl.Int64,
    "fpr": pl.List(pl.Float64),  # vertices of the ROC curve
    "tpr": pl.List(pl.Float64),
    "epsilon": pl.Float64,  # accounted for this kind of target; null: nothing is
    "delta": pl.Float64,
    "proved": pl.Float64,  # what the attack's guesses prove of epsilon at least
    "provable": pl.Float64,
    "allowed": pl.Float64,  # true positive rate that (epsilon, delta) allows at 1 % false positives
}
"""Columns of `membership.parquet`, of one row per attack or control."""
SHOWN = 60
"""Points of a ROC curve that are kept."""
GUESSED = 0.25
"""Share of the targets about whom the attacker guesses, half of them `in`."""
Bounds = dict[Kind, tuple[float, float]]
"""Kind of target -> (ε, δ) that is accounted for; none where nothing bounds it."""


@dataclass(frozen=True)
class Targets:
    """Who and what is attacked, among interactions that are parallel arrays `users` and `items`.

    by_coin: (n_users,) bool, users who are in by a coin of their own.
    asked: (n,) places of the interactions that are asked about, ascending; of a user by coin, what stands for the user.
    served: what lists are made from, in every run.
    draws: of membership.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    by_coin: Bools
    asked: Ints
    served: Seen
    draws: Uniforms

    @property
    def owners(self) -> Ints:
        """(n,) users of what is asked about."""
        return self.users[self.asked].astype(np.int64)

    def is_kind(self, kind: Kind) -> Bools:
        """(n,) bool: which of what is asked about belongs to targets of that kind."""
        return self.by_coin[self.owners] == (kind == "user")


def choose(users: NDArray[np.int32], items: NDArray[np.int32], draws: Uniforms, at_most: int) -> Targets:
    """Users by a coin each; of everyone a random third of the interactions is asked about, at most so many.

    Args:
        users, items: ascending.
        draws: of all users there are; what becomes of one does not depend on the others.
    """
    counts = np.bincount(users, minlength=len(draws.users))
    asked = random_ranks(users, items, draws, "asked about") < np.minimum(at_most, counts // 3)[users]
    served = Seen.from_pairs(users[~asked], items[~asked], len(draws.users))
    return Targets(users, items, draws.of_users("by coin") < 0.5, np.flatnonzero(asked), served, draws)


def toss(targets: Targets, run: int) -> tuple[Bools, Bools]:
    """Membership bits of a run: which interactions are trained on, and which of those that are asked about, (n,)."""
    asked, purpose = targets.asked, f"coins of run {run}"
    user_coins = targets.draws.of_users(purpose) < 0.5
    item_coins = targets.draws.of_pairs(purpose, targets.users[asked], targets.items[asked]) < 0.5
    trained = user_coins[targets.users] | ~targets.by_coin[targets.users]
    included = np.where(targets.is_kind("user"), trained[asked], item_coins)
    trained[asked] = included
    return trained, included


def read_signals(
    score: Callable[[NDArray[np.int32]], NDArray[np.floating]], targets: Targets, k: int
) -> dict[str, Floats]:
    """Seen -> (n,) signal of everything that is asked about.

    `scores`: how many standard deviations the item's score is above the mean over items that are new to the user.
    `lists`: 1 / rank among them, 0 beyond k; of equal scores the mean rank.

    Args:
        score: users, each once -> (len(users), n_items) of everyone as served.
    """
    users, first, counts = np.unique(targets.owners, return_index=True, return_counts=True)
    scores, ranks = np.empty(len(targets.asked)), np.empty(len(targets.asked))
    for part in np.array_split(np.arange(len(users)), max(1, len(users) // 256)):
        rows = np.asarray(score(users[part].astype(np.int32)), np.float64)
        for row, user, start, count in zip(rows, users[part], first[part], counts[part], strict=True):
            history = targets.served.items[targets.served.indptr[user] : targets.served.indptr[user + 1]]
            new = np.delete(row, history)
            tested = row[targets.items[targets.asked[start : start + count]]]
            scores[start : start + count] = (tested - new.mean()) / max(float(new.std()), 1e-12)
            ordered = np.sort(new)
            above, level = (len(new) - np.searchsorted(ordered, tested, side) for side in ("right", "left"))
            ranks[start : start + count] = (above + level + 1) / 2
    return {"scores": scores, "lists": np.where(ranks <= k, 1 / ranks, 0.0)}


def of_kind(targets: Targets, kind: Kind, values: NDArray[np.generic]) -> Floats:
    """(..., n) -> (..., n targets of a kind): a user's value is the mean over what is asked about."""
    chosen = values[..., targets.is_kind(kind)].astype(np.float64)
    if kind == "interaction":
        return chosen
    owners = targets.owners[targets.is_kind(kind)]
    starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    return np.add.reduceat(chosen, starts, axis=-1) / np.diff(np.append(starts, len(owners)))


def controls_of(targets: Targets, kind: Kind) -> dict[str, Floats]:
    """What an attacker could go by who sees nothing of the run: control -> (n targets,) scores."""
    popularity = np.log1p(np.bincount(targets.items))[targets.items[targets.asked]]
    lengths = targets.served.counts[targets.owners].astype(np.float64)
    of_popularity = "item-popularity" if kind == "interaction" else "history-popularity"
    by_name = {of_popularity: popularity, "history-length": lengths}
    return {name: of_kind(targets, kind, values) for name, values in by_name.items()}


def measure(scores: Floats, is_member: Bools, groups: Ints | None, seed: int) -> dict[str, object]:
    """AUC and true positive rates with 95 % intervals, and the ROC curve; targets without a score are left out."""
    tested = scored(scores, is_member, groups)
    record: dict[str, object] = dict(zip(("auc", "auc_low", "auc_high"), tested.auc_interval(seed), strict=True))
    for rate, name in zip(RATES, ("tpr1", "tpr01"), strict=True):
        share = tested.tpr_interval(rate, seed) if tested.resolves(rate) else (None, None, None)
        record |= dict(zip((name, f"{name}_low", f"{name}_high"), share, strict=True))
    false, true = tested.roc(SHOWN)
    sizes = {"members": len(tested.members), "others": len(tested.non_members)}
    return record | sizes | {"fpr": [*false], "tpr": [*true]}


def allowed_tpr(epsilon: float, delta: float, rate: float) -> float:
    """The true positive rate that (ε, δ) allows at a false positive rate (Kairouz, Oh and Viswanath, 2015, thm 2.1)."""
    likely = math.exp(min(epsilon, 700.0))
    return min(1.0, likely * rate + delta, 1 - (1 - delta - rate) / likely)


def exceeds(scores: Floats, included: Bools, epsilon: float, delta: float, alarm: float) -> bool:
    """Whether the true positive rate is above e^ε times the false positive rate, plus δ.

    At a threshold that 1 % of every second non-member exceeds; of the other non-members and of the members the rates
    have exact intervals, each end wrong with probability alarm / 2, as if targets were independent.

    Args:
        scores: (n,) without missing ones.
    """
    members, outsiders = scores[included], scores[~included]
    if not len(members) or len(outsiders) < 2:
        return False
    flagged = flag(members, outsiders, RATES[0], False, None)
    (true, _), (_, false) = (clopper_pearson(int(those.sum()), len(those), level=1 - alarm) for those in flagged)
    return true > allowed_tpr(epsilon, delta, false)


def refute(
    scores: Floats, included: Bools, bound: tuple[float, float] | None, alarm: float, seed: int
) -> dict[str, object]:
    """What the attack's guesses prove of ε, and what is accounted; nothing where nothing is.

    Args:
        scores: (m,) of one kind of target; those that are missing count as undecided.
        included: (m,) their membership bits.
        bound: (ε, δ); alarm: probability of refuting it falsely; seed: of ties.
    """
    if bound is None:
        return {}
    epsilon, delta = bound
    ranks = ranked(scores, np.random.default_rng([seed, *b"ties"]))
    proved = one_run.audit(ranks, included, int(GUESSED * len(scores)), delta, 1 - alarm / 2)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "proved": proved.epsilon,
        "provable": proved.provable,
        "allowed": allowed_tpr(epsilon, delta, RATES[0]),
        "refuted": proved.epsilon > epsilon or exceeds(ranks, included, epsilon, delta, alarm / 2),
    }


def ranked(scores: Floats, rng: np.random.Generator) -> Floats:
    """Ranks from 0 of scores, the middle for those that are missing, ties at random: what guesses about all need."""
    filled = np.where(np.isnan(scores), np.nanmedian(scores) if not np.isnan(scores).all() else 0.0, scores)
    ranks = np.empty(len(filled))
    ranks[np.lexsort((rng.random(len(filled)), filled))] = np.arange(len(filled))
    return ranks


def records(
    signals: Mapping[str, Floats], included: Bools, targets: Targets, bounds: Bounds, alarm: float, seed: int
) -> list[dict[str, object]]:
    """Every attack on every kind of target, held to the bounds, and its controls: rows of `COLUMNS` without `system`.

    Args:
        signals: seen -> (1 + n_shadows, n) signals, the attacked run first; included: likewise, membership bits.
        alarm: probability that one of the attacks refutes a bound that holds.
    """
    results = []
    for kind in KINDS:
        bits = of_kind(targets, kind, included) > 0.5
        is_member = bits[0]
        groups = targets.owners[targets.is_kind(kind)] if kind == "interaction" else None
        tries = {}
        for signal in SEEN:
            values = of_kind(targets, kind, signals[signal])
            for name, attack in shadow_attacks(values[0], values[1:], bits[1:]).items():
                sign, _ = attack.learn(np.ones(bits[1:].shape, bool)) or (1.0, 0.0)
                tries[signal, name] = sign * attack.scores(values[0])
        for (signal, name), scores in tries.items():
            about = {"target": kind, "seen": signal, "attack": name, "shadows": len(included) - 1}
            bound = refute(scores, is_member, bounds.get(kind), alarm, seed)
            results.append(about | measure(scores, is_member, groups, seed) | bound)
        best = tries[max(tries, key=lambda key: (key[1] in ("lira-online", "lira-offline"), key[0] == "scores"))]
        shuffled = np.random.default_rng([seed, *b"shuffled"]).permutation(is_member)
        controls = {name: (scores, is_member) for name, scores in controls_of(targets, kind).items()}
        for name, (scores, members) in ({"random-membership": (best, shuffled)} | controls).items():
            about = {"target": kind, "seen": "nothing", "attack": name, "shadows": 0}
            results.append(about | measure(scores, members, groups, seed))
    return results
