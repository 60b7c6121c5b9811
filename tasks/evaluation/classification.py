"""What embeddings say about their users: interests (several at once) and classes, next to what no embedding gives.

Source: DP-CroSUE, section 5.3, docs/methods.md §6: a decision tree on 80 % of the users whose labels are known, judged
on the rest, five times. Here every repeat draws another split. The released code draws one and repeats the tree, so
the spread that the paper prints is of trees, not of users, and far too small for "A beats B".

The paper does not say what its precision is. Of interests the released code takes the micro average, and hands guess
and truth to scikit-learn in the wrong order, which turns it into micro recall: both are here, as `precision` and
`precision_swapped`; micro-F1 is the same in either order. Of one class for each user nothing is released, and micro
average and F1 would be equal, which they are not in print. Its DeepWalk gets a gender precision near 0.50 in all four
networks at micro-F1 of 0.51 to 0.58, as the mean over the classes would: that is `precision` there. Precisions on
occupation are within 1.8 % of micro-F1 (median of 36 pairs, at most 6.3 %), as where classes are weighted by how many
users have them: that is `precision_weighted`.

An unpruned tree guesses labels about as often as they are, so vectors that say nothing get more than nothing. Anyone
who gives every label to everyone has a micro-F1 of 2 s/(1 + s), s being the share of labels that are set: 0.56 on the
interests of Foursquare, where the paper's methods have 0.45 to 0.55. So controls are always next to the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tasks.core.errors import DataError
from tasks.evaluation.metrics import Record, micro_f1, record

Vectors = NDArray[np.floating]
"""(n_users, d) one vector for each user."""
Classifier = Callable[[Vectors, NDArray[np.integer], Vectors, np.random.Generator], NDArray[np.integer]]
"""(vectors and labels of the labelled users, vectors of the others, generator) -> guessed labels of the others."""

UNKNOWN = -1
"""Class of a user of whom no one knows it: neither trained nor tested on."""
TEST_SHARE, REPEATS = 0.2, 5
"""Share of the labelled users on whom a classifier is tested, and how often."""


class Scores(NamedTuple):
    """One repeat. 0 where nothing was guessed, or nothing was to be guessed."""

    precision: float
    """Of interests: guessed labels that are right, over all users and labels (micro). Of classes: mean over the classes
    that occur or are guessed of the share of its guesses that are right (macro)."""
    precision_swapped: float
    """The same with guess and truth exchanged, as the released code has it: recall (micro or macro)."""
    micro_f1: float


class ClassScores(NamedTuple):
    """One repeat where there is one class for each user; as `Scores`, and another mean over the classes."""

    precision: float
    precision_swapped: float
    micro_f1: float
    precision_weighted: float
    """Mean over the users of the share of the guesses of the user's class that are right: classes count by their users,
    and one that is never guessed as 0."""


@dataclass(frozen=True)
class Prediction:
    """Scores of the vectors and, on the same splits, of guesses that need none; one for each repeat.

    controls: name -> scores. `majority`: what is most frequent among the labelled users, for everyone (of interests,
        each label that most of them have: what a tree learns of a constant input); `everything`: every label for
        everyone (interests alone).
    """

    scores: tuple[Scores | ClassScores, ...]
    controls: Mapping[str, tuple[Scores | ClassScores, ...]] = field(default_factory=dict)


def predict_labels(
    vectors: Vectors,
    users: NDArray[np.integer],
    labels: NDArray[np.integer] | NDArray[np.bool_],
    *,
    seed: int,
    repeats: int = REPEATS,
) -> Prediction:
    """Multi-label prediction by a decision tree (DP-CroSUE, Table 3); also of occupations, if they are to be several.

    Args:
        vectors: (n_users, d).
        users: (n_labelled,) whose labels are known, each once. Their order does not matter.
        labels: (n_labelled, n_labels) 0 or 1.
        seed: of splits and trees. Equal seeds give equal splits, regardless of the vectors: other vectors of the same
            users, random ones or those learned without attributes, are controls if they get the same seed.

    Raises:
        DataError: fewer than two users are labelled, a user is unknown or twice there, a label is not 0 or 1, or a
            vector is not finite.
    """
    order = np.argsort(users, kind="stable")
    with_label, truth = users[order].astype(np.int64), np.asarray(labels)[order]
    if truth.ndim != 2 or len(truth) != len(with_label) or not truth.shape[1]:
        raise DataError(f"labels: shape {truth.shape} for {len(with_label)} labelled users; a row for each is needed")
    if not np.isin(truth, (0, 1)).all():
        raise DataError("labels: a value is neither 0 nor 1; leave users of unknown labels out")
    truth = truth.astype(np.int8)

    def constant(train: NDArray[np.integer], n: int) -> Mapping[str, NDArray[np.integer]]:
        majority = np.broadcast_to(2 * train.sum(axis=0, dtype=np.int64) > len(train), (n, truth.shape[1]))
        return {"majority": majority.astype(np.int8), "everything": np.ones((n, truth.shape[1]), np.int8)}

    rows = _of_labelled(vectors, with_label)
    return _predict(rows, truth, decision_tree, label_scores, constant, seed, repeats)


def predict_classes(
    vectors: Vectors,
    classes: NDArray[np.integer],
    classifier: Classifier,
    *,
    seed: int,
    repeats: int = REPEATS,
) -> Prediction:
    """One class for each user (DP-CroSUE, Table 4): gender by `logistic_regression`, occupation by `decision_tree`.

    Args:
        classes: (n_users,) from 0, or `UNKNOWN`. Users of several occupations have a class of their own.
        vectors, seed, repeats: as in `predict_labels`.

    Raises:
        DataError: as there.
    """
    if len(classes) != len(vectors):
        raise DataError(f"classes: {len(classes)} for {len(vectors)} vectors; every user has one of each")
    with_label = np.flatnonzero(classes != UNKNOWN)
    truth = np.asarray(classes)[with_label]

    def constant(train: NDArray[np.integer], n: int) -> Mapping[str, NDArray[np.integer]]:
        return {"majority": np.full(n, np.bincount(train).argmax())}

    rows = _of_labelled(vectors, with_label)
    return _predict(rows, truth, classifier, class_scores, constant, seed, repeats)


def interests(network: str, vectors: Vectors, labels: pl.DataFrame, *, seed: int) -> list[Record]:
    """How well a decision tree predicts interests, and what giving the same to everyone scores.

    Args:
        network: its name.
        vectors: (n_users, d), row i of user i.
        labels: `contracts.labels_schema`; users one of whose labels is not known are left out.
        seed: of splits and trees (`split_seed`), the same for all systems that are compared.

    Returns:
        NET/interests/{precision, precision-swapped, micro-f1}, the mean over five splits, and the same of the controls
        `majority` and `everything`.
    """
    with_label = labels.drop_nulls()
    users, truth = with_label["user"].to_numpy(), with_label.drop("user").to_numpy()
    return scores(f"{network}/interests", predict_labels(vectors, users, truth, seed=seed))


def scores(name: str, prediction: Prediction) -> list[Record]:
    """Metrics NAME/SCORE and NAME/CONTROL/SCORE: means over the splits."""
    score_sets = {name: prediction.scores} | {f"{name}/{key}": value for key, value in prediction.controls.items()}
    return [
        record(f"{metric}/{score.replace('_', '-')}", np.mean([getattr(split, score) for split in splits]))
        for metric, splits in score_sets.items()
        for score in splits[0]._fields
    ]


def split_seed(seed: int, run: int) -> int:
    """The seed of everything random in judging a run: of the suite's seed and the run's, regardless of the system.

    So two systems meet the same splits and pairs in their runs of one seed, and other ones in those of another.
    """
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])


def held_out(n: int, test_share: float, repeats: int, seed: int) -> NDArray[np.bool_]:
    """(repeats, n) who of n labelled users is tested: at least one, and at least one is not.

    Raises:
        DataError: fewer than two users.
    """
    if n < 2:
        raise DataError(f"labels are known of {n} users; at least 2 are needed, one to learn from and one to test")
    n_tested = min(max(round(n * test_share), 1), n - 1)
    tested = np.zeros((repeats, n), bool)
    for repeat, row in enumerate(tested):
        row[np.random.default_rng([seed, repeat]).permutation(n)[:n_tested]] = True
    return tested


def label_scores(truth: NDArray[np.integer], guess: NDArray[np.integer]) -> Scores:
    """Micro averages over (n, n_labels) zeros and ones."""
    right, guessed, actual = (int(np.count_nonzero(mask)) for mask in (truth * guess, guess, truth))
    return Scores(_ratio(right, guessed), _ratio(right, actual), _ratio(2 * right, guessed + actual))


def class_scores(truth: NDArray[np.integer], guess: NDArray[np.integer]) -> ClassScores:
    """Of (n,) classes from 0: macro precision in both orders, accuracy, which is micro-F1, and weighted precision."""
    n = int(max(truth.max(), guess.max())) + 1
    right, guessed, actual = (np.bincount(classes, minlength=n) for classes in (truth[truth == guess], guess, truth))
    occurs = (guessed + actual) > 0
    right_of_guessed, right_of_actual = (right / np.maximum(totals, 1) for totals in (guessed, actual))
    precision, swapped = (float(shares[occurs].mean()) for shares in (right_of_guessed, right_of_actual))
    weighted = float(right_of_guessed @ actual / len(truth))
    return ClassScores(precision, swapped, micro_f1(truth, guess), weighted)


def decision_tree(
    train: Vectors, labels: NDArray[np.integer], test: Vectors, rng: np.random.Generator
) -> NDArray[np.integer]:
    """Scikit-learn's tree as it is by default, grown until its leaves are pure (the released code's)."""
    tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31))).fit(train, labels)
    guess: NDArray[np.integer] = tree.predict(test)
    return guess


def logistic_regression(
    train: Vectors, labels: NDArray[np.integer], test: Vectors, _: np.random.Generator
) -> NDArray[np.integer]:
    """Logistic regression (L2, C = 1) on columns of mean 0 and variance 1, or the only class there is.

    Scaling is ours: without it the penalty, and so the attack, would depend on how long a model's vectors are.
    """
    if (labels == labels[0]).all():
        return np.full(len(test), labels[0])
    guess: NDArray[np.integer] = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(train, labels).predict(test)
    )
    return guess


def check_vectors(vectors: Vectors, name: str = "vectors") -> None:
    """Refuse what is no table of finite numbers.

    Raises:
        DataError: says which row.
    """
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise DataError(f"{name}: shape {vectors.shape}, not (n_users, d)")
    if (wrong := ~np.isfinite(vectors).all(axis=1)).any():
        raise DataError(f"{name}: not finite for {wrong.sum()} users, first user {wrong.argmax()}; training diverged")


def _of_labelled(vectors: Vectors, with_label: NDArray[np.int64]) -> Vectors:
    """Vectors of the labelled users, whose numbers ascend."""
    if len(with_label) and ((with_label[1:] == with_label[:-1]).any() or with_label[0] < 0):
        raise DataError("labels: a user is there twice or has no number from 0")
    check_vectors(vectors)
    if len(with_label) and with_label[-1] >= len(vectors):
        raise DataError(f"labels: user {with_label[-1]} is none of the {len(vectors)} users with a vector")
    return vectors[with_label]


def _predict(
    rows: Vectors,
    truth: NDArray[np.integer],
    classifier: Classifier,
    score: Callable[[NDArray[np.integer], NDArray[np.integer]], Scores | ClassScores],
    constant: Callable[[NDArray[np.integer], int], Mapping[str, NDArray[np.integer]]],
    seed: int,
    repeats: int,
) -> Prediction:
    """The vectors, and every guess that needs none, on the same splits."""
    scores: list[Scores | ClassScores] = []
    controls: dict[str, list[Scores | ClassScores]] = {}
    for repeat, tested in enumerate(held_out(len(truth), TEST_SHARE, repeats, seed)):
        train_labels = truth[~tested]
        rng = np.random.default_rng([seed, repeat, *b"classifier"])
        # Scikit-learn forgets that a single label was a column.
        guess = classifier(rows[~tested], train_labels, rows[tested], rng).reshape(truth[tested].shape)
        scores.append(score(truth[tested], guess))
        for name, without in constant(train_labels, int(tested.sum())).items():
            controls.setdefault(name, []).append(score(truth[tested], without))
    return Prediction(tuple(scores), {name: tuple(splits) for name, splits in controls.items()})


def _ratio(part: int, total: int) -> float:
    return part / total if total else 0.0
