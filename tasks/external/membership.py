"""Do the lists tell who, and which interactions, were trained on?

Members are what was trained on. Non-members are what is public and was not: users with a list of their own, folded in
as members are, and pairs of trained users that were held back. Controls see no list, or the list of another user who is
as active: what still succeeds with exchanged lists is a difference of the data. An attack counts only if it beats
chance and every control. Whether members score higher or lower is learned from shadow runs, never from the audited one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tasks.attacks.membership import Bools, Floats, scored
from tasks.evaluation.detection import FEWEST, p_different
from tasks.external import signals
from tasks.external.attacks import SEPARATES, Attacked, Signal, Values, attack, both_ways, exchange, measure
from tasks.external.findings import Answer, Attack, tested, undecided
from tasks.external.inputs import Inputs, Ints, Pairs, Scores, Shadow, listed, row, sample
from tasks.external.signals import Weights

MOST_USERS = 5_000
"""Members, and non-members, that are attacked; a random sample where there are more."""
PER_USER = 5
"""Pairs of each user that are attacked: so many that were trained on and as many that were held back."""
ALIKE = 0.2
"""Of the different items in lists of members or of non-members, the share in those of the others: below, one list."""
FEWEST_BY_CHANCE = 10
"""Items of their own that users would have in one another's lists, below which nothing is said of what is left out."""
LEFT_OUT = 0.1
"""Items of their own in users' lists, as a share of what there would be otherwise, below which lists leave them out."""
DIFFERENT = 0.01
"""p-value of a control below which a successful attack may be due to what was chosen for non-members."""
FOLDS = 5
CLOSEST = 3
"""Items of a list that the second signal of an interaction looks at."""


def users(inputs: Inputs, seed: int) -> Answer:
    """Membership of users."""
    rng = np.random.default_rng([seed, *b"users"])
    absent = np.diff(inputs.trained.indptr) == 0
    outside = absent & (np.diff(inputs.known.indptr) > 0) & ~inputs.planted
    members, outsiders = (
        sample(np.flatnonzero(users & inputs.has_list), MOST_USERS, rng) for users in (inputs.is_member, outside)
    )
    if min(len(members), len(outsiders)) < FEWEST:
        why = "give --public with users who were not trained on, and lists for them, made as those of trained users are"
        return undecided("users", "users", f"{why} ({len(outsiders)} such users now, at least {FEWEST} needed)")
    if trap := served_otherwise(inputs, members, outsiders):
        return undecided("users", "users", trap)
    targets = np.concatenate([members, outsiders])
    is_member = np.arange(len(targets)) < len(members)
    # of a member what was trained on: what was held back would be similar to the history by the member's own row
    histories = (inputs.trained + inputs.known.multiply(absent[:, None])).tocsr()
    similarity = signals.cosines(histories[np.flatnonzero(~inputs.planted)])
    of_lists: dict[str, Signal] = {
        "similarity to the history": lambda run: signals.user_similarity(similarity, run.lists, histories, targets),
        "share of own items": lambda run: signals.own_share(run.lists, histories, targets),
    }
    if np.ptp(signals.lengths(inputs.lists, targets)):
        of_lists["length of the list"] = lambda run: signals.lengths(run.lists, targets)
    lengths = np.diff(histories.indptr)[targets]
    known: dict[str, Floats] = {
        "items of the history": naive_bayes(histories[targets], is_member, targets, rng),
        "length of the history": lengths.astype(np.float64),
        "popularity of the history": (histories @ np.log1p(inputs.popularity))[targets] / np.maximum(lengths, 1),
        "coherence of the history": signals.coherence(similarity, histories, targets),
    }
    included = _in_shadows(inputs, targets, inputs.n_items)
    exchanged = exchange(inputs.lists, targets, histories, rng)
    without = [int((kind & ~inputs.has_list).sum()) for kind in (inputs.is_member, outside)]
    notes = [
        f"{len(members):,} members, {len(outsiders):,} non-members, {len(inputs.shadows)} shadow runs; "
        f"without a list, and not looked at: {without[0]:,} and {without[1]:,}"
    ]
    values = attack(inputs, of_lists, included, np.ones_like(included), exchanged, notes)
    if inputs.scores is not None:
        values |= _of_scores(*_mean_scores(inputs.scores, histories, targets), notes)
    difference = _difference(known, is_member, None, seed)
    return _answer("users", notes, measure(values, known, is_member, None, seed), difference)


class Interactions(NamedTuple):
    """What was found of single interactions: the pairs that were attacked, and what each attack says of them."""

    answer: Answer
    pairs: Pairs
    is_member: Bools
    values: Values
    difference: str
    """How training pairs differ from held-back ones without any list; empty where they do not."""
    listed: float = 1.0
    """p-value of "that a pair is listed tells no more than what is known without lists"."""


def interactions(inputs: Inputs, similarity: Weights, seed: int) -> Interactions:
    """Membership of single interactions of trained users; no pairs where nothing can be decided."""
    rng = np.random.default_rng([seed, *b"interactions"])
    pairs, is_member = drawn_pairs(inputs, rng)
    n_users = len(np.unique(pairs.users))
    if n_users < FEWEST:
        why = "give --public with interactions of trained users that were held back from training"
        why += f" ({n_users} users with some now, at least {FEWEST} needed)"
        return Interactions(undecided("interactions", "interactions", why), pairs, is_member, {}, "")
    notes = [f"{len(pairs.users) // 2:,} pairs that were trained on and as many held back, of {n_users:,} users"]
    in_lists = _listed(inputs.lists, pairs)
    shares = in_lists[is_member].mean(), in_lists[~is_member].mean()
    rule = shares[0] < LEFT_OUT * shares[1]

    def similar(weights: Weights, run: Shadow, closest: int | None = None) -> Floats:
        # each run by draws of its own: of equal ones members and others would make different things
        run_rng = np.random.default_rng([seed, int(run.keys.sum()), *b"stand-ins"])
        left_out = signals.stand_ins(inputs.known, run.keys, pairs, run_rng)
        return signals.list_similarity(weights, run.lists, pairs, left_out, closest)

    of_lists: dict[str, Signal] = {
        "similarity to the list": lambda run: similar(similarity, run),
        f"similarity to the {CLOSEST} closest listed items": lambda run: similar(similarity, run, CLOSEST),
    }
    if inputs.shadows:
        associations = signals.associations(inputs.known, inputs.shadows)
        of_lists["association trained on shadow runs"] = lambda run: similar(associations, run)
    if rule:
        notes.append(
            "The serving rule: lists leave out trained items. That alone tells of an item in a list that it was "
            f"not trained on: of those held back {shares[1]:.1%} are in a list, of those trained on {shares[0]:.1%}. "
            "It is no part of the attacks below."
        )
    else:
        of_lists["rank in the list"] = lambda run: signals.reciprocal_rank(run.lists, pairs)
    items = Pairs(np.arange(len(pairs.users)), pairs.items).matrix(len(pairs.users), inputs.n_items)
    known = {
        "the item": naive_bayes(items, is_member, pairs.users, rng),
        "popularity of the item": inputs.popularity[pairs.items].astype(np.float64),
        "similarity to the history": signals.history_similarity(similarity, inputs.trained, pairs, rng),
    }
    keys = pairs.keys(inputs.n_items)
    included, of_members = _in_shadows(inputs, keys), _in_shadows(inputs, pairs.users, inputs.n_items)
    owners = np.unique(pairs.users)
    attacked = Pairs(pairs.users[is_member], pairs.items[is_member]).matrix(inputs.n_users, inputs.n_items)
    others = (inputs.trained - attacked).tocsr()  # with which a user's neighbour is found
    others.eliminate_zeros()
    exchanged = exchange(inputs.lists, owners, others, rng)
    values = attack(inputs, of_lists, included, of_members, exchanged, notes)
    if inputs.scores is not None:
        values |= _of_scores(inputs.scores.lookup(keys), inputs.scores.of_others(keys, inputs.n_items), notes)
    difference = _difference(known, is_member, pairs.users, seed)
    answer = _answer("interactions", notes, measure(values, known, is_member, pairs.users, seed), difference)
    foreign = {control: _listed(lists, pairs) for control, lists in exchanged.items()}
    by_lists = measure({"listed": Attacked(in_lists, foreign)}, known, is_member, pairs.users, seed)
    return Interactions(answer, pairs, is_member, values, difference, max((each.p for each in by_lists), default=1.0))


def _listed(lists: Ints, pairs: Pairs) -> Floats:
    return (signals.reciprocal_rank(lists, pairs) > 0).astype(np.float64)


def naive_bayes(features: csr_array, is_member: Bools, groups: Ints, rng: np.random.Generator) -> Floats:
    """(n,) mean log odds of membership by features alone, trained on the groups of other folds.

    Features are (n, m) of 0 and 1; counts are smoothed by one.
    """
    fold = rng.integers(FOLDS, size=int(groups.max()) + 1)[groups]
    result = np.zeros(len(groups))
    for left in range(FOLDS):
        counts = [features[(fold != left) & kind].sum(axis=0) + 1 for kind in (is_member, ~is_member)]
        odds = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        result[fold == left] = features[fold == left] @ odds
    return result / np.maximum(features.sum(axis=1), 1)


def _answer(kind: Literal["users", "interactions"], notes: list[str], attacks: list[Attack], difference: str) -> Answer:
    """The answer; it is none where an attack succeeds and members differ from non-members without any list."""
    if difference and any(attack.p < SEPARATES for attack in attacks):
        return undecided(kind, kind, difference)
    return tested(kind, kind, [*notes, *filter(None, [difference])], attacks)


def _difference(controls: Mapping[str, Floats], is_member: Bools, groups: Ints | None, seed: int) -> str:
    """How what was trained on differs from what was not without any list; empty where it does not."""
    measured = {name: scored(values, is_member, groups) for name, values in controls.items()}
    unlike = [f"{name} (AUC {of.auc:.2f})" for name, of in measured.items() if p_different(of, seed) < DIFFERENT]
    return (
        f"what was trained on differs from what was not in {', '.join(unlike)}; choose both at random" if unlike else ""
    )


def drawn_pairs(inputs: Inputs, rng: np.random.Generator) -> tuple[Pairs, Bools]:
    """Of every trained user with a list: pairs held back, and as many that were trained on; which are members."""
    owners, items, is_member = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, bool)]
    for user in sample(inputs.compared, MOST_USERS, rng):
        trained, held_back = row(inputs.trained, user), row(inputs.held_back, user)
        n = min(len(trained), len(held_back), PER_USER)
        owners.append(np.full(2 * n, user))
        items += [rng.choice(trained, n, replace=False), rng.choice(held_back, n, replace=False)]
        is_member.append(np.repeat([True, False], n))
    return Pairs(np.concatenate(owners), np.concatenate(items).astype(np.int64)), np.concatenate(is_member)


def served_otherwise(inputs: Inputs, members: Ints, outsiders: Ints) -> str:
    """Why non-members' lists were not made as members' are, or nothing: then an attack would measure the serving."""
    n = min(len(members), len(outsiders), 200)
    # Of equal length: that lengths differ is an attack of its own.
    length = int(min(np.median(signals.lengths(inputs.lists, users)) for users in (members, outsiders)))
    first, second = (len(np.unique(inputs.lists[users[:n], :length])) for users in (members, outsiders))
    if min(first, second) < ALIKE * max(first, second):
        return (
            f"{n} lists of non-members hold {second} different items and as many of members {first}: they were not "
            "made alike, and an attack would measure the serving rule"
        )
    shares = {
        "members": _own_over_chance(inputs, inputs.trained, members),
        "non-members": _own_over_chance(inputs, inputs.known, outsiders),
    }
    for who, those in (("members", "non-members"), ("non-members", "members")):
        if shares[who] < LEFT_OUT <= shares[those]:
            return f"lists of {who} leave out their history, those of {those} do not: fold them in with the same rule"
    return ""


def _own_over_chance(inputs: Inputs, histories: csr_array, users: Ints) -> float:
    """Items of their own in users' lists, as a share of those in one another's; NaN where these are few."""
    lists, histories = listed(inputs.lists[users], inputs.n_items), histories[users]
    hits, chance = (rows.multiply(histories).nnz for rows in (lists, lists[np.roll(np.arange(len(users)), 1)]))
    return hits / chance if chance >= FEWEST_BY_CHANCE else float("nan")


def _in_shadows(inputs: Inputs, values: Ints, divisor: int = 1) -> Bools:
    """(n_shadows, n) whether each was trained on: keys of pairs, or users where keys are divided by `n_items`."""
    return np.array([np.isin(values, shadow.keys // divisor) for shadow in inputs.shadows], bool).reshape(
        -1, len(values)
    )


def _of_scores(values: Floats, of_others: Floats, notes: list[str]) -> Values:
    """Attacks on released scores of targets that have one, both ways: of no shadow run there are scores.

    of_others: the same from the scores that other users have of the same items.
    """
    notes.append(f"{1 - np.isnan(values).mean():.1%} of targets have a released score")
    return both_ways("loss threshold on the score", values, {"scores of the same items for others": of_others})


def _mean_scores(released: Scores, histories: csr_array, targets: Ints) -> tuple[Floats, Floats]:
    """Mean released score of what is in each user's history, NaN where none is; and that of others' scores of it."""
    n_items, chosen = histories.shape[1], histories[targets]
    rows = np.repeat(np.arange(len(targets)), np.diff(chosen.indptr))
    keys = targets[rows] * n_items + chosen.indices.astype(np.int64)
    values, of_others = released.lookup(keys), released.of_others(keys, n_items)
    rows, both = rows[~np.isnan(values)], np.column_stack([values, of_others])[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        first, second = (
            np.bincount(rows, scores, len(targets)) / np.bincount(rows, minlength=len(targets)) for scores in both.T
        )
    return first, second
