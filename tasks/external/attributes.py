"""Do the lists tell attributes of users beyond what the ratings alone tell?

Every attacker of `tasks.attacks` learns from some users, and guesses the attribute of the others: from ratings and
lists, from the ratings alone, and from ratings and lists with shuffled labels. An attack counts only if
it beats all of these, the majority guess, and every other attacker on the ratings alone: a control that is merely a
worse attacker is no control.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.attacks import ATTACKERS
from tasks.attacks.attribute import UNKNOWN, Labels, Profiles, attack, majority_right, shuffle_labels
from tasks.attacks.membership import Bools
from tasks.attacks.targets import FEWEST_LABELLED, split_users
from tasks.evaluation.detection import p_more_often
from tasks.evaluation.statistics import clopper_pearson, gain
from tasks.external.findings import Answer, Attack, Measure, tested, undecided, with_interval
from tasks.external.inputs import Inputs, Ints, listed, sample

MOST_LABELLED, MOST_TARGETS = 2_000, 4_000
"""Users that attackers learn from, and users that are attacked: samples where there are more."""
FEWER = {"gaussian_process": 800}
"""Attacker -> users that it learns from at most, from ratings and lists and in its controls alike: the time of a
Gaussian process grows with their cube."""
MOST_ITEMS = 3_000
"""Items of a profile: those in most histories and lists."""
TARGET_SHARE = 0.5
FEWEST = 50
"""Users of a known attribute below which nothing is decided."""

Right = NDArray[np.bool_]
"""(n_targets,) whether each target of known class was guessed right."""
Work = tuple[str, str, str]
"""An attacker, the attribute that it guesses, and from what: both, ratings, or random (both, with shuffled labels)."""


def attributes(inputs: Inputs, users: pl.DataFrame, seed: int, jobs: int, say: Callable[[str], None]) -> list[Answer]:
    """One answer for each attribute.

    Args:
        users: `user` and a column of classes for each attribute (`tasks.external.reading.attributes`).
        jobs: attacks at the same time.
        say: takes lines of progress.
    """
    labels = classes(inputs, users)
    labelled = np.any([values != UNKNOWN for values in labels.values()], axis=0)
    candidates = np.flatnonzero(inputs.is_member & inputs.has_list & labelled)
    chosen = sample(candidates, MOST_LABELLED + MOST_TARGETS, np.random.default_rng([seed, *b"attributes"]))
    notes = [f"a random {len(chosen):,} of {len(candidates):,} users"] if len(candidates) > len(chosen) else []
    labels = {name: values[chosen] for name, values in labels.items()}
    enough = {name: values for name, values in labels.items() if (values != UNKNOWN).sum() >= FEWEST}
    share = TARGET_SHARE if len(chosen) <= 2 * MOST_LABELLED else 1 - MOST_LABELLED / len(chosen)
    is_target = split_users(len(chosen), share, seed, enough) if enough else np.zeros(len(chosen), bool)
    n_taught = {name: (values[~is_target] != UNKNOWN).sum() for name, values in enough.items()}
    enough = {name: values for name, values in enough.items() if n_taught[name] >= FEWEST_LABELLED}
    few = {name: (values != UNKNOWN).sum() for name, values in labels.items() if name not in enough}
    why = "it is known of {} users with a list who were trained on; at least {} are needed"
    answers = [undecided("attributes", name, why.format(n, FEWEST)) for name, n in few.items()]
    if not enough:
        return answers
    both, ratings, covered = profiles(inputs, chosen)
    n_labelled = int((~is_target).sum())
    notes.append(
        f"{n_labelled:,} labelled users, {is_target.sum():,} targets; profiles of {both.shape[1]:,} items "
        f"({covered:.1%} of all ratings and listed items)"
    )
    notes += [f"{by.replace('_', ' ')}: {n} of the labelled users" for by, n in FEWER.items() if n_labelled > n]
    right = _guesses(both, ratings, enough, is_target, seed, jobs, say)
    for name, values in enough.items():
        counts = np.bincount(values[values != UNKNOWN])
        shares = ", ".join(f"{count / counts.sum():.0%}" for count in np.sort(counts)[::-1][:6])
        answers.append(_answer(name, right, majority_right(values, is_target), [*notes, f"classes of {shares}"]))
    return answers


def classes(inputs: Inputs, users: pl.DataFrame) -> dict[str, Labels]:
    """Attribute -> (n_users,) class of every user, `UNKNOWN` where it is not given."""
    rows = pl.DataFrame({"user": inputs.user_names}).join(users, on="user", how="left", maintain_order="left")
    codes = rows.drop("user").select(pl.all().rank("dense").cast(pl.Int64) - 1).fill_null(UNKNOWN)
    return {name: codes[name].to_numpy() for name in codes.columns}


def profiles(inputs: Inputs, users: Ints) -> tuple[Profiles, Profiles, float]:
    """(len(users), n) profiles of ratings and lists, and of the ratings alone; and the share of all that they cover.

    What `tasks.attacks.attribute.profiles` makes, of the `MOST_ITEMS` items that most of these users have.
    """
    rated, released = inputs.trained[users], listed(inputs.lists[users], inputs.n_items)
    counts = (rated + released).sum(axis=0)
    kept = np.sort(np.argsort(-counts, kind="stable")[: min(MOST_ITEMS, int((counts > 0).sum()))])
    ratings, lists = (matrix[:, kept].toarray() for matrix in (rated, released))
    return ratings + lists, ratings, float(counts[kept].sum() / max(counts.sum(), 1))


def _guesses(
    both: Profiles,
    ratings: Profiles,
    labels: Mapping[str, Labels],
    is_target: Bools,
    seed: int,
    jobs: int,
    say: Callable[[str], None],
) -> dict[Work, Right]:
    permuted, rank = shuffle_labels(labels, seed), np.random.default_rng([seed, *b"fewer"]).permutation(len(is_target))
    works = list(product(ATTACKERS, labels, ("both", "ratings", "random")))

    def work(task: Work) -> Right:
        attacker, attribute, kind = task
        truth = (permuted if kind == "random" else labels)[attribute].copy()
        labelled = np.flatnonzero(~is_target & (truth != UNKNOWN))
        truth[labelled[np.argsort(rank[labelled])][FEWER.get(attacker, MOST_LABELLED) :]] = UNKNOWN
        features = ratings if kind == "ratings" else both
        return attack(features, {attribute: truth}, is_target, [attacker], (seed,))[0].right

    right = {}
    with ThreadPoolExecutor(jobs) as pool:
        for done, (task, result) in enumerate(zip(works, pool.map(work, works), strict=True), start=1):
            right[task] = result
            if done % 3 == 0:
                say(f"attributes: {task[0]} on {task[1]} ({done} of {len(works)} attacks)")
    return right


def _answer(attribute: str, right: Mapping[Work, Right], majority: Right, notes: Sequence[str]) -> Answer:
    on_ratings = {by: right[by, attribute, "ratings"] for by in ATTACKERS}
    attacks = []
    for by, control in on_ratings.items():
        both, on_shuffled = right[by, attribute, "both"], right[by, attribute, "random"]
        controls = {"ratings alone": control, "majority guess": majority, "shuffled labels": on_shuffled}
        attacks.append(
            Attack(
                name=by.replace("_", " "),
                measures=[
                    _share("right, ratings and lists", both),
                    with_interval("gain over the ratings alone", *gain(both[None], control[None])),
                ],
                controls=[_share(f"right, {name}", values) for name, values in controls.items()],
                p=max(p_more_often(both, other) for other in (*on_ratings.values(), majority, on_shuffled)),
            )
        )
    return tested("attributes", attribute, list(notes), attacks)


def _share(name: str, right: Right) -> Measure:
    return with_interval(name, float(right.mean()), *clopper_pearson(int(right.sum()), len(right)))
