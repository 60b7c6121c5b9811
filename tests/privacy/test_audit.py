"""Audits find broken mechanisms, do not accuse sound ones, and say what they could have found."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.attacks import edges
from tasks.contracts import Feature
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.audits import worst_cases
from tasks.privacy.audits.audit import audit, lower_bound, provable, verdict
from tasks.privacy.mechanisms import aggregation, laplace, multidimensional, piecewise, unary
from tasks.privacy.mechanisms.shared_noise import SharedNoise

FEATURES = (
    *(Feature(name=f"number {i}", kind="numeric", low=0, high=1) for i in range(5)),
    Feature(name="colour", kind="categorical", categories=("red", "green", "blue")),
)
N = 50_000
CONFIDENCE = 0.999
DELTA = 1e-5


def clean(values: np.ndarray, *_: object) -> np.ndarray:
    """A mechanism that forgot its noise."""
    return values


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 5.0])
def test_sound_mechanisms_are_consistent_and_the_bound_is_close(epsilon: float) -> None:
    """Each of the 16 audits accuses a sound mechanism with probability 1e-3 or less."""
    rng = np.random.default_rng(1)
    for samples in (
        worst_cases.piecewise_samples(epsilon, N, rng),
        worst_cases.unary_samples(epsilon, 4, N, rng),
        worst_cases.multidimensional_samples(FEATURES, epsilon, N, rng),
        worst_cases.counts_samples(epsilon, 1, N, rng),
    ):
        result = audit(*samples, CONFIDENCE)
        assert 0.75 * epsilon < result.epsilon <= epsilon
        assert verdict(result, epsilon) == "consistent"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 5.0])
def test_cells_and_words_are_consistent(epsilon: float) -> None:
    """Each of the 8 audits accuses a sound mechanism with probability 1e-3 or less. Words next to words: the event that
    tells most is rare, so half the budget is what so many samples show."""
    rng = np.random.default_rng(1)
    for samples in (worst_cases.cells_samples(epsilon, N, rng), worst_cases.words_samples(epsilon, N, rng)):
        assert 0.5 * epsilon < audit(*samples, CONFIDENCE).epsilon <= epsilon


def test_more_counts_per_user_stay_within_the_budget() -> None:
    result = audit(*worst_cases.counts_samples(2.0, 20, N, np.random.default_rng(2)), CONFIDENCE)
    assert 0 < result.epsilon <= 2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 5.0])
def test_noise_that_is_off_is_caught(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control, for each mechanism: an audit that cannot catch this catches nothing."""
    rng = np.random.default_rng(9)
    monkeypatch.setattr(piecewise, "perturb", clean)
    monkeypatch.setattr(unary, "perturb", clean)
    monkeypatch.setattr(laplace, "noisy_counts", clean)
    for samples in (
        worst_cases.piecewise_samples(epsilon, N, rng),
        worst_cases.unary_samples(epsilon, 4, N, rng),
        worst_cases.multidimensional_samples(FEATURES, epsilon, N, rng),
        worst_cases.counts_samples(epsilon, 1, N, rng),
    ):
        result = audit(*samples, CONFIDENCE)
        assert result.epsilon == pytest.approx(result.provable)
        assert verdict(result, epsilon) == "refuted"


def test_a_threshold_for_a_larger_budget_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that pass as if with 2ε, and words that are drawn as if with 2ε."""
    drop, substitute = worst_cases.edges.tail, worst_cases.words.substitute
    monkeypatch.setattr(worst_cases.edges, "tail", lambda value, epsilon: drop(value, 2 * epsilon))
    monkeypatch.setattr(worst_cases.words, "substitute", lambda w, v, epsilon, rng: substitute(w, v, 2 * epsilon, rng))
    rng = np.random.default_rng(11)
    for samples in (worst_cases.cells_samples(1.0, N, rng), worst_cases.words_samples(1.0, N, rng)):
        assert verdict(audit(*samples, CONFIDENCE), 1.0) == "refuted"


def test_a_budget_spent_on_every_feature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six features with 2.5 each, where only two may be reported."""
    monkeypatch.setattr(
        multidimensional, "_sample", lambda n_users, n_features, *_: np.ones((n_users, n_features), dtype=np.bool_)
    )
    samples = worst_cases.multidimensional_samples(FEATURES, 5.0, N, np.random.default_rng(10))
    assert verdict(audit(*samples, CONFIDENCE), 5.0) == "refuted"


def test_noise_for_twice_the_budget_is_caught() -> None:
    samples = worst_cases.piecewise_samples(2.0, N, np.random.default_rng(3))
    assert verdict(audit(*samples, CONFIDENCE), 1.0) == "refuted"


def test_a_rare_leak_is_caught() -> None:
    """The true input comes out in 1 of 50 draws: mean and variance hardly show it."""
    rng = np.random.default_rng(4)
    leak = rng.random(N) < 0.02
    a, b = np.where(leak, 1.0, rng.normal(size=N)), np.where(leak, -1.0, rng.normal(size=N))
    assert audit(a, b, CONFIDENCE).epsilon > 3


def test_equal_inputs_give_no_bound() -> None:
    rng = np.random.default_rng(5)
    assert audit(rng.normal(size=N), rng.normal(size=N), CONFIDENCE).epsilon == 0
    assert audit(np.zeros(N), np.zeros(N), CONFIDENCE).epsilon == 0


def test_the_bound_holds_as_often_as_stated() -> None:
    """Randomised response at ε = 1, audited 400 times at 90 %: more than 65 false bounds (of 40 expected at most)
    have probability 5e-5."""
    rng = np.random.default_rng(6)
    truth = math.e / (1 + math.e)
    bounds = [audit(rng.random(400) < truth, rng.random(400) < 1 - truth, 0.9).epsilon for _ in range(400)]
    assert sum(bound > 1 for bound in bounds) <= 65


def test_few_samples_are_inconclusive_about_a_large_budget() -> None:
    result = audit(*worst_cases.piecewise_samples(20.0, N, np.random.default_rng(7)), CONFIDENCE)
    assert result.provable < 20
    assert result.epsilon <= result.provable
    assert verdict(result, 20.0) == "inconclusive"


def test_bounds_are_clopper_pearson() -> None:
    low = stats.binomtest(80, 100).proportion_ci(0.98, "exact").low
    high = stats.binomtest(10, 100).proportion_ci(0.98, "exact").high
    bound = lower_bound(np.array([80]), np.array([10]), 100, 0.98)
    assert bound[0] == pytest.approx(math.log(low / high))
    low_delta = lower_bound(np.array([80]), np.array([10]), 100, 0.98, delta=0.1)
    assert low_delta[0] == pytest.approx(math.log((low - 0.1) / high))
    assert lower_bound(np.array([0]), np.array([100]), 100, 0.98)[0] == -math.inf
    assert provable(10_000, CONFIDENCE) < provable(100_000, CONFIDENCE) < math.log(100_000)


def test_gaussian_noise_is_within_its_budget_at_its_delta() -> None:
    """σ = 1, δ = 1e-3: ε = 2.78 by Balle and Wang."""
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=N) + 1, rng.normal(size=N)
    assert 0.5 < audit(a, b, CONFIDENCE, delta=1e-3).epsilon < 2.78


def test_impossible_arguments_are_refused() -> None:
    ones = np.ones(10)
    for a, b in ((ones, ones[:5]), (ones[:3], ones[:3]), (np.ones((4, 2)), np.ones((4, 2)))):
        with pytest.raises(ValueError, match="two 1-D arrays of equal length"):
            audit(a, b, 0.9)
    with pytest.raises(ValueError, match="10 of 20 samples are NaN"):
        audit(ones, np.full(10, np.nan), 0.9)
    with pytest.raises(ValueError, match="confidence must be in"):
        audit(ones, ones, 1.0)
    with pytest.raises(ValueError, match="delta must be in"):
        audit(ones, ones, 0.9, delta=1.0)


def test_the_statistic_of_noisy_matrices_is_normal_and_lies_as_far_apart_as_a_visit_moves_them() -> None:
    """√6/σ standard deviations: three entries of each matrix. As above, 1e-5 for each of 6 comparisons."""
    sigma, tolerance = 1.3, stats.norm.isf(5e-6)
    samples = worst_cases.matrices_samples(sigma, N, np.random.default_rng(21))
    spread = math.sqrt(6) / sigma
    assert np.mean(samples[0]) - np.mean(samples[1]) == pytest.approx(
        spread**2, abs=tolerance * spread * (2 / N) ** 0.5
    )
    for world in samples:
        assert np.var(world) == pytest.approx(spread**2, rel=tolerance * (2 / N) ** 0.5)
        assert stats.kstest((world - world.mean()) / world.std(), "norm").pvalue > 1e-5
    assert abs(np.corrcoef(*samples)[0, 1]) < tolerance / N**0.5


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_submission_costs_what_is_claimed_of_its_noise_and_no_more(epsilon: float) -> None:
    """Equal components of the vector use up all of the L1 sensitivity, 2Δ√K, for which the noise is scaled. With one
    component an audit of this size comes close to it."""
    noise = SharedNoise("laplace", 2 * 4.0 / epsilon)
    samples = worst_cases.submissions_samples(noise, 8.0, 1, 1, N, np.random.default_rng(25), drew_h=False)
    result = audit(*samples, CONFIDENCE)
    assert verdict(result, epsilon) == "consistent"
    assert result.epsilon > 0.8 * epsilon


def test_fresh_noise_in_every_iteration_adds_up_and_who_drew_it_sees_through_it() -> None:
    noise = SharedNoise("laplace", 2 * 4.0 * 3**0.5 / 0.5)
    found = [
        audit(
            *worst_cases.submissions_samples(noise, 8 / 3**0.5, 3, 20, N, np.random.default_rng(26), drew_h=drew),
            CONFIDENCE,
        )
        for drew in (False, True)
    ]
    assert [verdict(result, 0.5) for result in found] == ["refuted", "refuted"]
    assert found[1].epsilon > found[0].epsilon + 1


@pytest.mark.parametrize("iterations", [1, 7])
def test_the_statistic_of_gaussian_submissions_is_normal_and_lies_as_far_apart_as_a_rating_moves_them(
    iterations: int,
) -> None:
    """√T 2Δ/σ standard deviations; 1e-5 for each of 4 comparisons."""
    sigma, tolerance = 11.0, stats.norm.isf(5e-6)
    samples = worst_cases.submissions_samples(
        SharedNoise("gaussian", sigma), 8 / 3**0.5, 3, iterations, N, np.random.default_rng(27), drew_h=False
    )
    spread = iterations**0.5 * 8 / sigma
    for world, sign in zip(samples, (1, -1), strict=True):
        assert np.mean(world) == pytest.approx(sign * spread**2 / 2, abs=tolerance * spread / N**0.5)
        assert np.std(world) == pytest.approx(spread, rel=tolerance / (2 * N) ** 0.5)


def test_what_is_audited_is_a_visit_removed_from_real_matrices(monkeypatch) -> None:
    """Without noise the statistic differs by ‖difference‖²/σ² of the attack's own matrices, the farthest that any
    removed visit moves them: by √6."""
    monkeypatch.setattr(worst_cases, "normals", lambda _, ids, width: np.zeros((len(ids), width), np.float32))
    first, second = worst_cases.matrices_samples(2.0, 5, np.random.default_rng(0))
    moved = edges.aggregate_difference([0, 1, 2], edges.remove_visit([0, 1, 2], 1), np.eye(3))
    assert first - second == pytest.approx(np.full(5, (moved**2).sum() / 2.0**2), rel=1e-9)


def test_noise_for_one_entry_of_a_matrix_is_refuted_by_a_visit() -> None:
    """... which is three entries of each of two matrices, √6 in norm: true ε is about 12 where 5 is claimed."""
    sigma = aggregation.sigma(1, 1.0, 5.0, DELTA)
    result = audit(*worst_cases.matrices_samples(sigma, 4 * N, np.random.default_rng(24)), CONFIDENCE, DELTA)
    assert verdict(result, 5.0) == "refuted"
    event = Event(kind="gaussian", parameters={"noise_multiplier": sigma / math.sqrt(6)})
    assert result.epsilon <= account([event], DELTA).epsilon
