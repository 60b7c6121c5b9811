"""Attackers find a planted attribute, nothing where nothing is, and never see what they guess; so of blurring."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize
from sklearn.tree import DecisionTreeClassifier

from tasks.attacks import ATTACKERS, attribute
from tasks.attacks.attribute import UNKNOWN, Labels, Profiles, attack, majority_right, profiles
from tasks.attacks.blurring import Detection, auc_interval, detect
from tasks.attacks.targets import split_users
from tasks.core.errors import DataError
from tasks.datasets.encoding import classes
from tasks.datasets.movielens import ML_100K
from tests.datasets import formats


def planted(n_users: int, strength: float, seed: int) -> tuple[Profiles, Labels]:
    """Users of three classes (shares ½, ¼, ¼), rating any of 60 items with probability 0.1 and those
    of its own 20 with `strength` more."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n_users, p=[0.5, 0.25, 0.25])
    own = np.arange(60) // 20 == labels[:, None]
    return (rng.random((n_users, 60)) < 0.1 + strength * own).astype(np.float32), labels


@pytest.mark.parametrize("name", ATTACKERS)
def test_every_attacker_finds_a_planted_attribute(name: str) -> None:
    features, labels = planted(400, 0.5, seed=1)
    is_target = split_users(400, 0.25, 0)
    (score,) = attack(features, {"taste": labels}, is_target, [name], seeds=(3,))
    assert (score.attribute, score.attacker) == ("taste", name)
    assert score.advantage == pytest.approx(score.f1 - majority_right(labels, is_target).mean())
    assert score.advantage > 0.2


@pytest.mark.parametrize("name", ATTACKERS)
def test_an_attacker_gains_nothing_from_labels_that_are_random(name: str) -> None:
    """1,600 targets with two equally frequent random labels: attacker and majority guess are each right for a share
    of 1/2 with standard error 0.0125, so their difference has one of at most 0.025; within 4 of these (6e-5)."""
    features, _ = planted(1750, 0.0, seed=2)
    labels = np.random.default_rng(7).integers(0, 2, 1750)
    (score,) = attack(features, {"coin": labels}, split_users(1750, 1600 / 1750, 0), [name], seeds=(3,))
    assert abs(score.advantage) < 4 * 0.025


@pytest.mark.parametrize("name", ATTACKERS)
def test_users_of_unknown_class_change_nothing(name: str) -> None:
    features, labels = planted(300, 0.5, seed=1)
    is_target = split_users(300, 0.25, 0)
    unknown = np.random.default_rng(2).random(300) < 0.3
    expected = attack(features[~unknown], {"taste": labels[~unknown]}, is_target[~unknown], [name], seeds=(3,))
    actual = attack(features, {"taste": np.where(unknown, UNKNOWN, labels)}, is_target, [name], seeds=(3,))
    assert actual == expected


def test_an_attribute_that_is_hardly_known_is_refused() -> None:
    features, labels = planted(100, 0.5, seed=1)
    is_target = split_users(100, 0.25, 0)
    labels[np.flatnonzero(~is_target)[9:]] = UNKNOWN
    with pytest.raises(DataError, match="'taste' is known of 9 labelled users and 25 targets"):
        attack(features, {"taste": labels}, is_target, ["knn"], seeds=(3,))


def spy(train: Profiles, labels: Labels, test: Profiles, rng: np.random.Generator) -> Labels:
    """Guesses what its generator says; fails if the labels it got are not exactly those of the labelled users."""
    assert len(train) == len(labels) == 60
    assert (labels == train[:, 0]).all()
    assert len(test) == 20
    return rng.integers(0, 3, len(test))


def test_attackers_get_the_labels_of_labelled_users_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKERS, "spy", f"{__name__}:spy")
    features, labels = planted(80, 0.3, seed=1)
    features[:, 0] = labels
    scores = attack(features, {"taste": labels}, split_users(80, 0.25, 0), ["spy"], seeds=(0,))
    assert [score.attacker for score in scores] == ["spy"], "it was called, and its own assertions held"


def test_scores_do_not_depend_on_what_else_is_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKERS, "spy", f"{__name__}:spy")
    features, labels = planted(80, 0.3, seed=1)
    features[:, 0] = labels
    is_target = split_users(80, 0.25, 0)
    names = ["neural", "decision_tree", "spy"]
    together = attack(features, {"taste": labels, "same": labels}, is_target, names, seeds=(5,))
    alone = [attack(features, {"taste": labels}, is_target, [name], seeds=(5,))[0] for name in names]
    assert together[:3] == alone
    assert attack(features, {"taste": labels}, is_target, names, seeds=(6,)) != alone


def test_profiles_count_rated_and_recommended_items() -> None:
    users, items = np.int32([0, 0, 2]), np.int32([1, 3, 0])
    recommended = np.int32([[0, 4], [2, 1], [3, 4]])
    assert profiles(users, items, recommended, 5).tolist() == [[1, 1, 0, 1, 1], [0, 1, 1, 0, 0], [1, 0, 0, 1, 1]]
    alone = profiles(users, items, recommended[:, :0], 5)
    assert alone.tolist() == [[0, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert alone.dtype == np.float32


def test_targets_resemble_all_users_where_labels_are_given_and_each_user_may_be_one() -> None:
    rng = np.random.default_rng(0)
    labels = {"c": rng.choice(2, 943), "b": rng.choice(3, 943), "a": rng.choice(21, 943, p=np.arange(1, 22) / 231)}
    counts = np.zeros(943)
    for seed in range(40):
        is_target = split_users(943, 0.2, seed, labels)
        assert is_target.sum() == 189
        # Systematic sampling of sorted users is within one user per run of equal ones; "c" is the primary key.
        assert abs(np.bincount(labels["c"][is_target]) - 0.2 * np.bincount(labels["c"])).max() <= 1.1
        assert abs(np.bincount(labels["b"][is_target]) - 0.2 * np.bincount(labels["b"])).max() <= 3
        counts += is_target
    assert (counts > 0).mean() > 0.99


def test_labels_of_one_class_are_guessed_without_an_attacker() -> None:
    features, labels = planted(80, 0.3, seed=1)
    is_target = split_users(80, 0.25, 0)
    labels = np.where(is_target, labels, 1)
    scores = attack(features, {"taste": labels}, is_target, list(ATTACKERS), seeds=(0,))
    assert [score.advantage for score in scores] == [0.0] * len(ATTACKERS)


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_class_that_only_targets_have_or_that_one_user_has_is_no_obstacle(name: str) -> None:
    features, labels = planted(80, 0.3, seed=1)
    is_target = split_users(80, 0.25, 0)
    labels[np.flatnonzero(is_target)[0]] = 5
    labels[np.flatnonzero(~is_target)[0]] = 4
    features[3] = 0  # nor is a user without any item
    (score,) = attack(features, {"taste": labels}, is_target, [name], seeds=(0,))
    assert 0 <= score.f1 < 1


def test_the_gaussian_process_equals_scikit_learns_own_kernel_run_to_convergence() -> None:
    features, labels = planted(160, 0.15, seed=4)
    train, test = features[:120], features[120:]
    ours = attribute.gaussian_process(train, labels[:120], test, np.random.default_rng(0))
    plain = GaussianProcessClassifier(5.0 * RBF(1.0), optimizer=None).fit(normalize(train), labels[:120])
    np.testing.assert_array_equal(ours, plain.predict(normalize(test)))
    assert (ours != 0).any()


def test_nearest_neighbours_equal_the_cosine_classifier_with_the_best_left_out_accuracy() -> None:
    features, labels = planted(160, 0.15, seed=5)
    features *= np.random.default_rng(6).uniform(0.5, 1.5, features.shape).astype(np.float32)  # no equal distances
    train, test = features[:120], features[120:]
    candidates = [KNeighborsClassifier(k, metric="cosine") for k in (5, 11, 21, 41, 81)]
    left_out = [cross_val_score(candidate, train, labels[:120], cv=LeaveOneOut()).mean() for candidate in candidates]
    best = candidates[int(np.argmax(left_out))].fit(train, labels[:120])
    ours = attribute.knn(train, labels[:120], test, np.random.default_rng(0))
    np.testing.assert_array_equal(ours, best.predict(test))


def test_what_is_tuned_is_what_scikit_learns_cross_validation_chooses() -> None:
    chosen = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        train, test = ((rng.random((n, 80)) < 0.1).astype(np.float32) for n in (200, 50))
        labels = rng.integers(0, 2 + seed, len(train))
        expected = np.random.default_rng(seed)
        state = int(expected.integers(2**31))
        for attacker, make, choices in (
            (
                attribute.decision_tree,
                lambda depth, state=state: DecisionTreeClassifier(
                    max_depth=depth, min_samples_leaf=5, random_state=state
                ),
                (2, 4, 8),
            ),
            (attribute.naive_bayes, lambda alpha: MultinomialNB(alpha=alpha), (0.1, 1, 3, 10, 30)),
        ):
            drawn = expected if attacker is attribute.decision_tree else np.random.default_rng(seed)
            folds = KFold(attribute.FOLDS, shuffle=True, random_state=int(drawn.integers(2**31)))
            accuracy = [cross_val_score(make(choice), train, labels, cv=folds).mean() for choice in choices]
            best = choices[int(np.argmax(accuracy))]
            chosen.add(best)
            guess = attacker(train, labels, test, np.random.default_rng(seed))
            assert (guess == make(best).fit(train, labels).predict(test)).all()
    assert len(chosen) > 3


def test_ratings_of_ml_100k_reveal_gender_and_age(mirror: Path, tmp_path: Path) -> None:
    """docs/methods.md §7: over all users the majority guess scores 0.710, 0.577 and 0.208."""
    raw = formats.converted(ML_100K, formats.obtained(ML_100K, tmp_path, mirror))
    ratings, people = raw.scan("interactions").collect(), raw.scan("users").collect()
    labels = classes(people.with_columns(pl.col("user") - 1), raw.schema.features)
    shares = [np.bincount(codes).max() / len(people) for codes in labels.values()]
    assert np.round(shares, 3).tolist() == [0.710, 0.577, 0.208]
    is_target = split_users(len(people), 0.2, 2021, labels)
    known = {name: labels[name] for name in ("gender", "age")}
    users, items = (ratings[name].to_numpy().astype(np.int32) - 1 for name in ("user", "item"))
    features = profiles(users, items, np.empty((len(people), 0), np.int32), 1682)
    scores = attack(features, known, is_target, ["neural", "gaussian_process"], seeds=(2021,))
    majority = [majority_right(codes, is_target).mean() for codes in labels.values()]
    assert majority == pytest.approx(shares, abs=0.01)
    assert majority[0] == pytest.approx(shares[0], abs=0.005)
    assert all(score.advantage > 0.02 for score in scores)


N_USERS, N_ITEMS = 300, 50
IS_TARGET = split_users(N_USERS, 0.3, 0)


def true_profiles(seed: int = 0) -> np.ndarray:
    """Binary, with active and inactive users."""
    rng = np.random.default_rng(seed)
    return (rng.random((N_USERS, N_ITEMS)) < rng.uniform(0.05, 0.6, (N_USERS, 1))).astype(np.float32)


def test_identical_profiles_are_a_coin_toss_exactly() -> None:
    profiles = true_profiles()
    assert detect(profiles, profiles, IS_TARGET, 0).auc == 0.5


def test_a_marker_that_only_blurred_profiles_have_gives_them_all_away() -> None:
    original = true_profiles()
    original[:, 7] = 0
    blurred = original.copy()
    blurred[:, 7] = 1
    assert detect(original, blurred, IS_TARGET, 0) == Detection(1.0, 1.0, 1.0)


def test_targets_teach_the_attacker_nothing() -> None:
    """Only the targets' blurred profiles carry the marker, so an attacker that never saw one cannot know it."""
    original = true_profiles()
    blurred = original.copy()
    blurred[IS_TARGET, 7] = 5
    assert detect(original, blurred, IS_TARGET, 0).auc == 0.5


@pytest.mark.parametrize(("targets", "message"), [(291, "9 labelled users and 291 targets"), (0, "300 .* and 0")])
def test_too_few_users_are_refused(targets: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        detect(true_profiles(), true_profiles(), np.arange(N_USERS) < targets, 0)


def test_the_interval_is_that_of_users_drawn_again_with_both_scores() -> None:
    """Rounded scores, so that there are ties; 2,000 resamples each way. The ends are quantiles, whose error has a
    standard deviation of 0.003 here: within 5 of the difference's (6e-7)."""
    rng = np.random.default_rng(5)
    negatives = rng.normal(size=40).round(1)
    positives = (negatives + rng.normal(0.5, 1, 40)).round(1)
    actual = auc_interval(negatives, positives, rng, resamples=2000)
    assert actual.auc == pytest.approx(roc_auc_score(np.repeat([0, 1], 40), np.concatenate([negatives, positives])))
    drawn = rng.integers(0, 40, (2000, 40))
    difference = positives[drawn][:, :, None] - negatives[drawn][:, None, :]
    slow = ((np.sign(difference) + 1) / 2).mean(axis=(1, 2))
    np.testing.assert_allclose([actual.low, actual.high], np.quantile(slow, [0.025, 0.975]), atol=5 * 0.003 * 2**0.5)
