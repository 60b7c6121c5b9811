"""Scores equal scikit-learn's, controls are what no embedding gives, and unknown users take no part."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score
from sklearn.tree import DecisionTreeClassifier

from tasks.evaluation.classification import (
    UNKNOWN,
    class_scores,
    decision_tree,
    held_out,
    label_scores,
    logistic_regression,
    predict_classes,
    predict_labels,
)


def interests(n: int, seed: int) -> np.ndarray:
    """Four labels of different frequency."""
    return (np.random.default_rng(seed).random((n, 4)) < [0.7, 0.5, 0.3, 0.1]).astype(np.int8)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.4, 1.0])
def test_micro_scores_are_those_of_scikit_learn_in_either_order(density: float) -> None:
    rng = np.random.default_rng(0)
    truth = interests(50, 1)
    guess = (rng.random(truth.shape) < density).astype(np.int8)
    actual = label_scores(truth, guess)
    assert actual.precision == pytest.approx(precision_score(truth, guess, average="micro", zero_division=0))
    assert actual.precision_swapped == pytest.approx(precision_score(guess, truth, average="micro", zero_division=0))
    assert actual.micro_f1 == pytest.approx(f1_score(guess, truth, average="micro", zero_division=0))
    assert actual.micro_f1 == pytest.approx(f1_score(truth, guess, average="micro", zero_division=0))


def test_macro_scores_are_those_of_scikit_learn_also_with_classes_that_are_never_guessed_or_never_there() -> None:
    rng = np.random.default_rng(0)
    truth, guess = rng.choice([0, 1, 4], 60), rng.choice([0, 2, 4], 60)
    actual = class_scores(truth, guess)
    assert actual.precision == pytest.approx(precision_score(truth, guess, average="macro", zero_division=0))
    assert actual.precision_swapped == pytest.approx(precision_score(guess, truth, average="macro", zero_division=0))
    assert actual.micro_f1 == pytest.approx(accuracy_score(truth, guess))
    assert actual.micro_f1 == pytest.approx(f1_score(truth, guess, average="micro"))
    weighted = precision_score(truth, guess, average="weighted", zero_division=0)
    assert actual.precision_weighted == pytest.approx(weighted)
    assert abs(weighted - actual.precision) > 0.05  # or the test would not tell one from the other


def test_a_repeat_is_scikit_learns_tree_on_its_split_and_the_majority_is_its_tree_on_a_constant() -> None:
    rng = np.random.default_rng(2)
    vectors, users, labels = rng.standard_normal((90, 3)), rng.permutation(90)[:70], interests(70, 3)
    actual = predict_labels(vectors, users, labels, seed=5, repeats=2)
    order = np.argsort(users)
    x, truth = vectors[users[order]], labels[order]
    for tested, majority in zip(held_out(70, 0.2, 2, 5), actual.controls["majority"], strict=True):
        tree = DecisionTreeClassifier().fit(np.zeros((56, 1)), truth[~tested])
        assert majority == label_scores(truth[tested], tree.predict(np.zeros((14, 1))).astype(np.int8))
    for repeat, tested in enumerate(held_out(70, 0.2, 2, 5)):
        state = int(np.random.default_rng([5, repeat, *b"classifier"]).integers(2**31))
        tree = DecisionTreeClassifier(random_state=state).fit(x[~tested], truth[~tested])
        assert actual.scores[repeat] == label_scores(truth[tested], tree.predict(x[tested]).astype(np.int8))


def test_a_single_label_is_one_column_of_several() -> None:
    labels = interests(80, 0)[:, :1]
    actual = predict_labels(np.hstack([labels, labels]) * 1.0, np.arange(80), labels, seed=0)
    assert set(actual.scores) == {(1.0, 1.0, 1.0)}


def test_equal_seeds_give_equal_scores_and_unknown_users_and_their_order_change_nothing() -> None:
    rng = np.random.default_rng(4)
    vectors, users, labels = rng.standard_normal((60, 5)), rng.permutation(60)[:40], interests(40, 4)
    actual = predict_labels(vectors, users, labels, seed=1)
    order = rng.permutation(40)
    changed = vectors.copy()
    changed[np.setdiff1d(np.arange(60), users)] += 100
    assert predict_labels(changed, users[order], labels[order], seed=1) == actual
    assert predict_labels(vectors, users, labels, seed=2) != actual
    classes = np.full(60, UNKNOWN)
    classes[users] = labels[:, 0]
    known = predict_classes(vectors, classes, logistic_regression, seed=1)
    assert predict_classes(changed, classes, logistic_regression, seed=1) == known


def test_other_vectors_of_the_same_users_are_judged_on_the_same_splits() -> None:
    """What is guessed without vectors is right equally often against either, repeat by repeat."""
    rng = np.random.default_rng(4)
    classes, labels, users = rng.integers(0, 3, 60), interests(60, 4), np.arange(60)
    ours, others = rng.standard_normal((60, 5)), rng.standard_normal((60, 2))
    of_ours, of_others = (predict_classes(some, classes, decision_tree, seed=1) for some in (ours, others))
    assert of_ours.scores != of_others.scores
    assert of_ours.controls == of_others.controls
    assert {name: len(scores) for name, scores in of_ours.controls.items()} == {"majority": 5}
    several = [predict_labels(some, users, labels, seed=1).controls for some in (ours, others)]
    assert several[0] == several[1]
    assert set(several[0]) == {"majority", "everything"}


@pytest.mark.parametrize("classifier", [logistic_regression, decision_tree])
def test_one_class_alone_and_classes_of_one_member_are_no_failure(classifier) -> None:
    vectors = np.random.default_rng(0).standard_normal((30, 2))
    alone = predict_classes(vectors, np.full(30, 2), classifier, seed=0)
    assert {scores.micro_f1 for scores in alone.scores} == {1.0}
    classes = np.repeat([0, 1], 15)
    classes[7] = 2
    actual = predict_classes(np.stack([classes, classes % 2], axis=1) * 1.0, classes, classifier, seed=0, repeats=20)
    tested = held_out(30, 0.2, 20, 0)[:, 7]
    assert tested.any()
    assert not tested.all()
    # Where the only member is tested, no one could learn its class; everyone else is distinguished.
    assert all(
        scores.micro_f1 == pytest.approx(5 / 6 if alone_is_tested else 1)
        for scores, alone_is_tested in zip(actual.scores, tested, strict=True)
    )


def test_splits_test_a_fifth_and_always_leave_somebody_to_learn_from() -> None:
    assert held_out(101, 0.2, 7, 3).sum(axis=1).tolist() == [20] * 7
    assert held_out(2, 0.01, 3, 0).sum(axis=1).tolist() == [1] * 3
    assert held_out(2, 0.99, 3, 0).sum(axis=1).tolist() == [1] * 3
    assert (held_out(101, 0.2, 7, 3)[:2] == held_out(101, 0.2, 2, 3)).all(), "more repeats change none of the first"
