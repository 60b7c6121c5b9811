"""Attribute inference: from what a user rated and was recommended, guess gender, age group or occupation.

Source: GERAI §5.3 and §5.8, docs/methods.md §7. The attacker sees released recommendations, the rated items and the
labels of some users, and guesses the labels of the others. What an attacker may tune, it tunes on its own labelled
users.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit
from sklearn import config_context
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import normalize
from sklearn.tree import DecisionTreeClassifier

from tasks.attacks import ATTACKERS
from tasks.attacks.targets import FEWEST_LABELLED
from tasks.core.errors import DataError
from tasks.evaluation.metrics import micro_f1

Profiles = NDArray[np.float32]
"""(n_users, n_items) float32: how often each item occurs among a user's rated and recommended ones."""
Labels = NDArray[np.int64]
"""(n_users,) int64 class of each user, from 0; `UNKNOWN` where no one knows."""
Attacker = Callable[[Profiles, Labels, Profiles, np.random.Generator], Labels]
"""(profiles and labels of the labelled users, profiles of the targets, generator) -> guessed labels of the targets."""

UNKNOWN = -1
"""Class of a user who neither teaches an attacker nor is a target of that attribute."""
FOLDS = 5


def profiles(
    users: NDArray[np.int32], items: NDArray[np.int32], recommended: NDArray[np.int32], n_items: int
) -> Profiles:
    """Input of every attacker: Σ onehot(rated items) + Σ onehot(recommended items) (GERAI §5.3).

    Args:
        users, items: (n_interactions,) what the users rated and the system saw.
        recommended: (n_users, K) released recommendations; K = 0 is the attacker that sees the ratings alone.
    """
    n_users = len(recommended)
    rated = users.astype(np.int64) * n_items + items
    released = (np.arange(n_users)[:, None] * n_items + recommended).ravel()
    counts = np.zeros(n_users * n_items, np.float32)
    np.add.at(counts, np.concatenate([rated, released]), 1.0)
    return counts.reshape(n_users, n_items)


@dataclass(frozen=True)
class Score:
    """How well one attacker guessed one attribute of the targets."""

    attribute: str
    attacker: str
    f1: float
    """Micro-F1, which with one label per user is accuracy; the values printed in the paper fit no macro-F1."""
    advantage: float
    """F1 minus that of guessing the labelled users' most frequent class for every target."""
    right: NDArray[np.bool_] = field(compare=False)
    """(n_targets,) whether each target of known class was guessed right, in order of user; its mean is `f1`."""


def majority_right(labels: Labels, is_target: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_targets,) which targets of known class, in order of user, have the labelled users' most frequent class.

    Of equally frequent ones the first is guessed.
    """
    labelled, truth = labels[~is_target & (labels != UNKNOWN)], labels[is_target & (labels != UNKNOWN)]
    return truth == np.bincount(labelled).argmax()


def attack(
    features: Profiles,
    labels: Mapping[str, Labels],
    is_target: NDArray[np.bool_],
    attackers: Sequence[str],
    seeds: Sequence[int],
) -> list[Score]:
    """Let every attacker guess every attribute of the targets.

    An attacker's randomness depends on `seeds`, attribute and attacker alone: two releases, or two cut-offs of one,
    meet the same attacker, and equal inputs give equal scores.

    Args:
        features: see `profiles`.
        labels: attribute -> class of every user; only those of the labelled users are shown to the attackers.
        is_target: (n_users,) whose classes are guessed.
        attackers: names in `tasks.attacks.ATTACKERS`.

    Raises:
        DataError: of an attribute, too few labelled users or no target is known.
    """
    scores = []
    for attribute, classes in labels.items():
        is_train, is_test = ~is_target & (classes != UNKNOWN), is_target & (classes != UNKNOWN)
        if is_train.sum() < FEWEST_LABELLED or not is_test.any():
            raise DataError(
                f"attribute {attribute!r} is known of {is_train.sum()} labelled users and {is_test.sum()} targets; at "
                f"least {FEWEST_LABELLED} and 1 are needed"
            )
        labelled, truth = classes[is_train], classes[is_test]
        majority = float(majority_right(classes, is_target).mean())
        for name in attackers:
            rng = np.random.default_rng([*seeds, *f"{attribute}/{name}".encode()])
            if (labelled == labelled[0]).all():
                guess = np.full(len(truth), labelled[0])  # one class is nothing to learn from
            else:
                guess = attacker(name)(features[is_train], labelled, features[is_test], rng)
            f1 = micro_f1(truth, guess)
            scores.append(Score(attribute, name, f1, f1 - majority, guess == truth))
    return scores


def shuffle_labels(labels: Mapping[str, Labels], seed: int) -> dict[str, Labels]:
    """Every attribute shuffled among the users whose class is known: nothing is left to infer.

    What an attacker scores on these is chance for an attacker that works as hard.
    """
    permuted = {}
    for attribute, classes in labels.items():
        labelled = np.flatnonzero(classes != UNKNOWN)
        permuted[attribute] = classes.copy()
        permuted[attribute][labelled] = np.random.default_rng([seed, *attribute.encode()]).permutation(
            classes[labelled]
        )
    return permuted


def attacker(name: str) -> Attacker:
    """The attacker of that name in params.yaml."""
    module, _, function = ATTACKERS[name].partition(":")
    loaded: Attacker = getattr(importlib.import_module(module), function)
    return loaded


def decision_tree(train: Profiles, labels: Labels, test: Profiles, rng: np.random.Generator) -> Labels:
    """Decision tree with leaves of at least five users; its depth is chosen by cross-validation."""

    def guesses(depths: Sequence[float], train: Profiles, labels: Labels, test: Profiles) -> Iterator[Labels]:
        for depth in depths:
            tree = DecisionTreeClassifier(max_depth=int(depth), min_samples_leaf=5, random_state=state)
            yield tree.fit(train, labels).predict(test)

    state = int(rng.integers(2**31))
    return _tuned(guesses, (2, 4, 8), train, labels, test, rng)


def naive_bayes(train: Profiles, labels: Labels, test: Profiles, rng: np.random.Generator) -> Labels:
    """Multinomial naive Bayes on the counts; its smoothing is chosen by cross-validation."""
    return _tuned(_naive_bayes_guesses, (0.1, 1, 3, 10, 30), train, labels, test, rng)


def _naive_bayes_guesses(alphas: Sequence[float], train: Profiles, labels: Labels, test: Profiles) -> Iterator[Labels]:
    """What `MultinomialNB` guesses with each smoothing, from one count of the items."""
    counted = MultinomialNB().fit(train, labels)
    for alpha in alphas:
        smoothed = counted.feature_count_ + alpha
        likely = np.log(smoothed) - np.log(smoothed.sum(axis=1))[:, None]
        yield counted.classes_[(test @ likely.T + counted.class_log_prior_).argmax(axis=1)]


def knn(train: Profiles, labels: Labels, test: Profiles, _: np.random.Generator) -> Labels:
    """k nearest neighbours by cosine; k is chosen by leaving out one labelled user at a time."""
    ks = np.array([5, 11, 21, 41, 81])
    ks = ks[ks < len(labels)]
    unit, n_classes = normalize(train), int(labels.max()) + 1
    # Between vectors of length one, Euclidean and cosine neighbours are the same.
    index = KNeighborsClassifier(int(ks[-1]), algorithm="brute").fit(unit, labels)

    def votes(neighbours: NDArray[np.intp]) -> NDArray[np.intp]:
        """Guess from the nearest k for each of `ks`: (n, len(ks))."""
        counts = np.cumsum(np.eye(n_classes)[labels[neighbours]], axis=1)
        return counts[:, ks - 1].argmax(axis=2)

    neighbour_votes = votes(index.kneighbors(return_distance=False))
    best = int((neighbour_votes == labels[:, None]).mean(axis=0).argmax())
    return votes(index.kneighbors(normalize(test), return_distance=False))[:, best]


def gaussian_process(train: Profiles, labels: Labels, test: Profiles, _: np.random.Generator) -> Labels:
    """Gaussian-process classifier (Laplace approximation, one against the rest) on profiles of length one.

    Kernel 5·exp(-‖x - y‖²/2). Profiles without a common item are √2 apart, so a length scale of 1 spans the whole
    range of similarity; the amplitude allows for probabilities near 0 and 1. Both are fixed for every data set and
    release, which gives the attacker no chance to tune on its targets. Scikit-learn's own classifier gives the same
    guesses (tested) and takes three times as long: it looks for each posterior mode twice, in float64.
    """
    unit = normalize(np.concatenate([train, test]).astype(np.float64))
    kernel = (GP_AMPLITUDE * np.exp(-0.5 * euclidean_distances(unit, unit[: len(train)], squared=True))).astype("f4")
    classes = np.unique(labels)
    wanted = classes[1:] if len(classes) == 2 else classes
    beliefs = np.stack([_belief(kernel, (labels == label).astype(np.float32)) for label in wanted])
    if len(classes) == 2:
        return np.where(beliefs[0] > 0, classes[1], classes[0])
    return classes[beliefs.argmax(axis=0)]


GP_AMPLITUDE = 5.0
NEWTON_STEPS = 100
NEWTON_TOLERANCE = 1e-4


def _belief(kernel: NDArray[np.float32], truth: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-odds that each target is of one class; positive means more likely than not.

    Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithms 3.1 and 3.2; the logistic
    function is averaged over the latent value's normal distribution by MacKay's approximation.

    Args:
        kernel: (n_train + n_test, n_train); truth: (n_train,) 1 for users of the class, else 0.
    """
    n = len(truth)
    train, cross = kernel[:n], kernel[n:]
    latent = np.zeros(n, np.float32)
    for _ in range(NEWTON_STEPS):
        likely = expit(latent)
        curvature = likely * (1 - likely)
        root = np.sqrt(curvature)
        factor = train * root * root[:, None]
        factor[np.diag_indices(n)] += 1
        factor = cholesky(factor, lower=True, overwrite_a=True, check_finite=False)
        b = curvature * latent + truth - likely
        a = b - root * cho_solve((factor, True), root * (train @ b), check_finite=False)
        step = train @ a - latent
        latent += step
        if np.abs(step).max() < NEWTON_TOLERANCE:
            break
    mean = cross @ (truth - expit(latent))
    explained = solve_triangular(factor, (cross * root).T, lower=True, check_finite=False)
    variance = GP_AMPLITUDE - (explained * explained).sum(axis=0)
    return mean / np.sqrt(1 + np.pi / 8 * variance)


def _tuned(
    guesses: Callable[[Sequence[float], Profiles, Labels, Profiles], Iterator[Labels]],
    choices: Sequence[float],
    train: Profiles,
    labels: Labels,
    test: Profiles,
    rng: np.random.Generator,
) -> Labels:
    """The guesses for `test` by the choice that is most accurate in cross-validation on the labelled users.

    Args:
        guesses: from choices, profiles and labels to learn from, and profiles, the guesses by each choice in turn.
    """
    folds = KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    # what scikit-learn's cross_val_score does, without checking the same few numbers again in every fit and prediction
    with config_context(assume_finite=True, skip_parameter_validation=True):
        right = [
            [
                (guess == labels[held_out]).mean()
                for guess in guesses(choices, train[train_rows], labels[train_rows], train[held_out])
            ]
            for train_rows, held_out in folds.split(train)
        ]
        best = choices[int(np.argmax(np.mean(right, axis=0)))]
        return next(iter(guesses([best], train, labels, test)))


HIDDEN = 100
BATCH = 64
MEMBERS = 3
TEN_EPOCHS = {"max_iter": 10, "n_iter_no_change": 8, "tol": 1e9}
"""No epoch improves as much: training ends after ten, without the warning that it might go on."""


def neural(train: Profiles, labels: Labels, test: Profiles, rng: np.random.Generator) -> Labels:
    """Two-layer network of GERAI §5.3: 100 hidden units (ReLU), then a linear projection to the classes.

    Recipe: profiles of length one times the mean length, ten epochs of Adam (learning rate 0.001, L2 penalty 1) in
    batches of 64; the probabilities of three networks are averaged.
    """
    scale = np.linalg.norm(train, axis=1).mean()
    inputs, targets = (normalize(part) * scale for part in (train, test))
    classes, batch = np.unique(labels), min(BATCH, len(labels))
    likely = np.zeros((len(test), len(classes)))
    for state in rng.integers(2**31, size=MEMBERS):
        network = MLPClassifier((HIDDEN,), alpha=1, batch_size=batch, random_state=int(state), **TEN_EPOCHS)
        likely += network.fit(inputs, labels).predict_proba(targets)
    return classes[likely.argmax(axis=1)]
