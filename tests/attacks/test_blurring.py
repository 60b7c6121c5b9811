"""The detector sees what is there to be seen, and nothing where nothing is."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tasks.attacks.blurring import Detection, auc_interval, detect
from tasks.attacks.targets import split_users
from tasks.errors import DataError

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
