"""Membership inference by shadow runs of a recommender that can be trained again: worlds, signals, what they tell.

Half of the users are in a run if a fair coin says so, with everything they did: the targets of kind `user`. The others
are always in, but of each a few interactions are in if a coin of their own says so: kind `interaction`. Everybody is
served from the same known history in every run, whoever was in, and none of the interactions that are asked about is in
it. So the serving rule is the same for members and for others, nothing but what was trained tells them apart, and what
training guarantees bounds what the attacks may find.

Sources: `tasks.attacks.membership`; the worlds are those of Carlini et al. (S&P 2022), section IV.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.attacks.membership import as_likelihoods, lira_online, loss_threshold, rmia
from tasks.evaluation.detection import RATES, Scored
from tasks.evaluation.ranking import Seen
from tasks.evaluation.statistics import clopper_pearson

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["user", "interaction"]
KINDS: tuple[Kind, ...] = ("user", "interaction")
SEEN = ("scores", "lists")
"""What the attacker sees: the scores of all items, or the first k items that are new to the history."""
ATTACKS = ("threshold", "LiRA", "RMIA")
COLUMNS: dict[str, Any] = {
    "system": pl.String,  # experiment
    "target": pl.String,  # one of KINDS
    "seen": pl.String,  # one of SEEN; "nothing": a control
    "attack": pl.String,  # or the control
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
    "refuted": pl.Boolean,
}
"""Columns of `membership.parquet`, of one row per attack or control."""
SHOWN = 60
"""Points of a ROC curve that are kept."""


@dataclass(frozen=True)
class Targets:
    """Who and what is attacked, among interactions that are parallel arrays `users` and `items`.

    by_coin: (n_users,) bool, users who are in by a coin of their own.
    asked: (n,) places of the interactions that are asked about, ascending; of a user by coin, what stands for the user.
    served: what lists are made from, in every run.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    by_coin: Bools
    asked: Ints
    served: Seen

    @property
    def owners(self) -> Ints:
        """(n,) users of what is asked about."""
        return self.users[self.asked].astype(np.int64)

    def of(self, kind: Kind) -> Bools:
        """(n,) bool: which of what is asked about belongs to targets of that kind."""
        return self.by_coin[self.owners] == (kind == "user")


def choose(
    users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, most: int, rng: np.random.Generator
) -> Targets:
    """Half of the users by coin; of everybody a random third of the interactions is asked about, `most` at most."""
    by_coin = rng.permutation(n_users) < n_users // 2
    order = np.lexsort((rng.random(len(users)), users))
    counts = np.bincount(users, minlength=n_users)
    place = np.arange(len(users)) - (np.cumsum(counts) - counts)[users[order]]
    asked = np.sort(order[place < np.minimum(most, counts // 3)[users[order]]])
    rest = np.delete(np.arange(len(users)), asked)
    return Targets(users, items, by_coin, asked, Seen.from_pairs(users[rest], items[rest], n_users))


def throw(targets: Targets, rng: np.random.Generator) -> tuple[Bools, Bools]:
    """The coins of a run: which interactions are trained on, and which of those that are asked about, (n,)."""
    of_users = rng.random(len(targets.by_coin)) < 0.5
    of_asked = rng.random(len(targets.asked)) < 0.5
    trained = of_users[targets.users] | ~targets.by_coin[targets.users]
    included = np.where(targets.of("user"), trained[targets.asked], of_asked)
    trained[targets.asked] = included
    return trained, included


def read_signals(
    score: Callable[[NDArray[np.int32]], NDArray[np.floating]], targets: Targets, k: int
) -> dict[str, Floats]:
    """Seen -> (n,) signal of everything that is asked about.

    `scores`: how many standard deviations the item's score is above the mean over items that are new to the user.
    `lists`: 1 / rank among them, 0 beyond k; of equal scores the mean rank.

    Args:
        score: users, each once -> (len(users), n_items) of everybody as served.
    """
    users, first, counts = np.unique(targets.owners, return_index=True, return_counts=True)
    scores, ranks = np.empty(len(targets.asked)), np.empty(len(targets.asked))
    for part in np.array_split(np.arange(len(users)), max(1, len(users) // 256)):
        rows = np.asarray(score(users[part].astype(np.int32)), np.float64)
        for row, user, start, count in zip(rows, users[part], first[part], counts[part], strict=True):
            known = targets.served.items[targets.served.indptr[user] : targets.served.indptr[user + 1]]
            new = np.delete(row, known)
            asked = row[targets.items[targets.asked[start : start + count]]]
            scores[start : start + count] = (asked - new.mean()) / max(float(new.std()), 1e-12)
            ordered = np.sort(new)
            above, level = (len(new) - np.searchsorted(ordered, asked, side) for side in ("right", "left"))
            ranks[start : start + count] = (above + level + 1) / 2
    return {"scores": scores, "lists": np.where(ranks <= k, 1 / ranks, 0.0)}


def of_kind(targets: Targets, kind: Kind, values: NDArray[np.generic]) -> NDArray[Any]:
    """(..., n) -> (..., n targets of a kind): a user's value is the mean over what is asked about."""
    mine = values[..., targets.of(kind)].astype(np.float64)
    if kind == "interaction":
        return mine
    owners = targets.owners[targets.of(kind)]
    starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    return np.add.reduceat(mine, starts, axis=-1) / np.diff(np.append(starts, len(owners)))


def groups(targets: Targets, kind: Kind) -> Ints | None:
    """Whose each interaction is, as intervals need it; None where targets are users."""
    return targets.owners[targets.of("interaction")] if kind == "interaction" else None


def controls(targets: Targets, kind: Kind) -> dict[str, Floats]:
    """What an attacker could go by who sees nothing of the run: control -> (n targets,) scores."""
    popularity = np.log1p(np.bincount(targets.items))[targets.items[targets.asked]]
    lengths = targets.served.counts[targets.owners].astype(np.float64)
    return {
        "popularity of the item" if kind == "interaction" else "popularity of the history": of_kind(
            targets, kind, popularity
        ),
        "length of the history": of_kind(targets, kind, lengths),
    }


def attack(signals: Floats, shadows: Floats, included: Bools) -> dict[str, Floats]:
    """Attack -> (n,) scores, from one signal; none depends on the coins of the attacked run.

    Args:
        signals: (n,) of the attacked run; shadows: (n_runs, n) of the shadow runs; included: (n_runs, n) their coins.
    """
    values = {"threshold": loss_threshold(-signals)}
    both = included.any(axis=0) & ~included.all(axis=0)
    if both.any() and np.ptp(shadows) > 0:
        values["LiRA"] = lira_online(signals, shadows, included)
        values["RMIA"] = rmia(as_likelihoods(signals), as_likelihoods(shadows), included, np.ones(len(signals), bool))
    return values


def measure(scores: Floats, is_member: Bools, of: Ints | None, seed: int) -> dict[str, Any]:
    """AUC and true positive rates with 95 % intervals, and the ROC curve; targets without a score are left out."""
    usable = ~np.isnan(scores)
    scores, is_member = scores[usable], is_member[usable]
    parts = None if of is None else (of[usable][is_member], of[usable][~is_member])
    scored = Scored(scores[is_member], scores[~is_member], parts)
    record: dict[str, Any] = dict(zip(("auc", "auc_low", "auc_high"), scored.auc_interval(seed), strict=True))
    for rate, name in zip(RATES, ("tpr1", "tpr01"), strict=True):
        share = scored.tpr_interval(rate, seed) if scored.resolves(rate) else (None, None, None)
        record |= dict(zip((name, f"{name}_low", f"{name}_high"), share, strict=True))
    false, true = scored.roc(SHOWN)
    return record | {
        "members": int(is_member.sum()),
        "others": int((~is_member).sum()),
        "fpr": [*false],
        "tpr": [*true],
    }


def shuffle(is_member: Bools, seed: int) -> Bools:
    """Random memberships, as many of them."""
    return np.random.default_rng([seed, *b"shuffled"]).permutation(is_member)


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
    members, others = scores[included], scores[~included]
    setting, tested = np.sort(others[::2])[::-1], others[1::2]
    if not len(members) or not len(tested):
        return False
    threshold = setting[min(int(len(setting) * RATES[0]), len(setting) - 1)]
    true, _ = clopper_pearson(int((members > threshold).sum()), len(members), level=1 - alarm)
    _, false = clopper_pearson(int((tested > threshold).sum()), len(tested), level=1 - alarm)
    return true > allowed_tpr(epsilon, delta, false)


def ranked(scores: Floats, rng: np.random.Generator) -> Floats:
    """Ranks from 0 of scores, the middle for those that are missing, ties at random: what guesses about all need."""
    filled = np.where(np.isnan(scores), np.nanmedian(scores) if not np.isnan(scores).all() else 0.0, scores)
    ranks = np.empty(len(filled))
    ranks[np.lexsort((rng.random(len(filled)), filled))] = np.arange(len(filled))
    return ranks


def records(
    own: Mapping[str, Floats], shadows: Mapping[str, Floats], coins: Bools, targets: Targets, seed: int
) -> list[dict[str, Any]]:
    """Every attack on every kind of target beside its controls; `scores` and `included` of attacks are for guesses.

    Args:
        own: seen -> (n,) signals of the attacked run; shadows: seen -> (n_shadows, n).
        coins: (1 + n_shadows, n), the attacked run first.
    """
    results = []
    for kind in KINDS:
        included = of_kind(targets, kind, coins) > 0.5
        is_member, whose = included[0], groups(targets, kind)
        tries = {
            (seen, name): scores
            for seen, signals in own.items()
            for name, scores in attack(
                of_kind(targets, kind, signals), of_kind(targets, kind, shadows[seen]), included[1:]
            ).items()
        }
        for (seen, name), scores in tries.items():
            about = {"target": kind, "seen": seen, "attack": name, "shadows": len(coins) - 1}
            results.append(about | measure(scores, is_member, whose, seed) | {"scores": scores, "included": is_member})
        best = tries[max(tries, key=lambda key: (key[1] == "LiRA", key[0] == "scores"))]
        nothing = {"random membership": (best, shuffle(is_member, seed))}
        nothing |= {name: (scores, is_member) for name, scores in controls(targets, kind).items()}
        for name, (scores, members) in nothing.items():
            about = {"target": kind, "seen": "nothing", "attack": name, "shadows": 0}
            results.append(about | measure(scores, members, whose, seed))
    return results
