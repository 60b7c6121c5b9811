"""Attribute inference from released embeddings, and what it gains over an attacker without them.

Source: DP-CroSUE, section 5.3 (gender by logistic regression, occupation by a decision tree, the others' labels being
known to the attacker). The paper prints scores without what guessing gives, and few users have a known occupation: so
here every known user is a target once, in five folds of an 80/20 split, and each score has its controls beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.attacks.attribute import UNKNOWN, Attacker, Labels, shuffled
from tasks.attacks.targets import FEWEST_LABELLED
from tasks.errors import DataError
from tasks.evaluation.classification import Vectors, check_vectors, decision_tree, logistic_regression
from tasks.evaluation.gains import Gain, gain

ATTACKERS: Mapping[str, Attacker] = {"logistic_regression": logistic_regression, "decision_tree": decision_tree}
"""Those of the paper. Any in `tasks.attacks.ATTACKERS` that takes negative numbers (all but naive Bayes) does too."""
PUBLISHED = {"gender": "logistic_regression", "occupation": "decision_tree"}
"""Attribute -> the attacker that the paper uses."""
FOLDS = 5


class Inference(NamedTuple):
    """How well one attacker guesses one attribute from releases of several seeds."""

    attribute: str
    attacker: str
    f1: float
    """Micro-F1, which with one class per user is accuracy; mean over seeds."""
    controls: dict[str, float]
    """Control -> its micro-F1. `majority`: the most frequent class of the labelled users, for everybody; `random`: the
    same attacker on attributes dealt out anew; `attribute-free`: on embeddings learnt without attributes."""
    gains: dict[str, Gain]
    """Control -> the same, subtracted, with the 95 % interval for other seeds and other users."""
    right: NDArray[np.bool_]
    """(n_seeds, n_known) who was guessed right, in order of user."""


def infer(
    releases: Sequence[Vectors],
    labels: Mapping[str, Labels],
    attackers: Mapping[str, Attacker],
    *,
    seed: int,
    attribute_free: Sequence[Vectors] = (),
) -> list[Inference]:
    """Attack every attribute by every attacker.

    Folds and an attacker's randomness depend on `seed`, attribute and attacker alone, so equal releases get equal
    scores.

    Args:
        releases: for each seed of the system (n_users, d) float.
        labels: attribute -> (n_users,) classes from 0, or `UNKNOWN`.
        attribute_free: like `releases`, of the same seeds or of one, learnt without the attributes; or none.

    Raises:
        DataError: an attribute is known of too few users; releases differ in their number of users or are not finite.
    """
    for name, given in (("release", releases), ("attribute-free", attribute_free)):
        for vectors in given:
            check_vectors(vectors, name)
            if any(len(vectors) != len(classes) for classes in labels.values()):
                raise DataError(f"{name}: {len(vectors)} users are not those of the labels")
    if len(attribute_free) not in (0, 1, len(releases)):
        raise DataError(f"{len(attribute_free)} attribute-free embeddings for {len(releases)} releases; give 1 or all")
    dealt = shuffled(labels, seed)
    found = []
    for attribute, classes in labels.items():
        for name, attacker in attackers.items():
            key = f"{attribute}/{name}"
            right = np.stack([cross_fitted(vectors, classes, attacker, key, seed) for vectors in releases])
            controls = {
                "majority": cross_fitted(releases[0], classes, _majority, key, seed)[None],
                "random": np.stack([cross_fitted(one, dealt[attribute], attacker, key, seed) for one in releases]),
            }
            if attribute_free:
                free = [cross_fitted(vectors, classes, attacker, key, seed) for vectors in attribute_free]
                controls["attribute-free"] = np.stack(free)
            means = {control: float(guessed.mean()) for control, guessed in controls.items()}
            gains = {control: gain(right, guessed) for control, guessed in controls.items()}
            found.append(Inference(attribute, name, float(right.mean()), means, gains, right))
    return found


def cross_fitted(vectors: Vectors, classes: Labels, attacker: Attacker, key: str, seed: int) -> NDArray[np.bool_]:
    """(n_known,) which users of known class, in order of user, are guessed right by an attacker taught on other folds.

    Args:
        key: what the attacker's randomness and the folds depend on beside the seed.

    Raises:
        DataError: fewer than ten users are left to teach the attacker.
    """
    known = np.flatnonzero(classes != UNKNOWN)
    truth = classes[known]
    if len(known) - -(-len(known) // FOLDS) < FEWEST_LABELLED:
        attribute = key.partition("/")[0]
        raise DataError(
            f"attribute {attribute!r} is known of {len(known)} users; an attacker taught on four fifths of them needs "
            f"at least {FEWEST_LABELLED}; leave the attribute out"
        )
    fold = folds(truth, seed)
    right = np.zeros(len(known), bool)
    for number in range(FOLDS):
        target = fold == number
        rng = np.random.default_rng([seed, number, *key.encode()])
        guess = attacker(vectors[known[~target]], truth[~target], vectors[known[target]], rng)
        right[target] = guess == truth[target]
    return right


def folds(truth: Labels, seed: int) -> NDArray[np.int64]:
    """(n,) fold of each user: users sorted by class, random among equals, are dealt out in turn.

    So every fold has nearly the shares of all: otherwise the majority of the others would tend to be the minority here.
    """
    order = np.lexsort((np.random.default_rng([seed, *b"folds"]).random(len(truth)), truth))
    fold = np.empty(len(truth), np.int64)
    fold[order] = np.arange(len(truth)) % FOLDS
    return fold


def _majority(train: Vectors, labels: Labels, test: Vectors, rng: np.random.Generator) -> Labels:
    del train, rng
    return np.full(len(test), np.bincount(labels).argmax())
