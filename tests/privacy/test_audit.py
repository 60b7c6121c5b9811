"""Audits find broken mechanisms, do not accuse sound ones, and say what they could have found."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.audits import Auditor, releases
from tasks.privacy.audits.audit import Audit, audit, lower_bound, verdict
from tasks.privacy.audits.gaussian_runs import epsilon_of
from tasks.privacy.controls import scaled
from tasks.privacy.mechanisms import edges, multidimensional

N = 50_000
CONFIDENCE = 0.999


def bound(auditor: Auditor, seed: int, epsilon: float) -> Audit:
    """What samples of an audit prove of any mechanism."""
    samples = auditor(seed, N, epsilon)
    return audit(samples.present, samples.without, CONFIDENCE)


@pytest.mark.parametrize("mu", [0.5, 1.5, 3.0])
def test_the_bound_of_gaussian_noise_is_close_and_closer_than_that_of_any(mu: float) -> None:
    """At a δ where events with the ratio of the claim are too rare to be seen."""
    rng, claimed = np.random.default_rng(1), epsilon_of(mu, 1e-6)
    samples = rng.normal(mu, 1, N), rng.normal(0, 1, N)
    result = audit(*samples, CONFIDENCE, 1e-6, gaussian=True)
    assert 0.8 * claimed < result.epsilon <= claimed < result.provable
    assert audit(*samples, CONFIDENCE, 1e-6).epsilon < 0.8 * claimed


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 5.0])
@pytest.mark.parametrize("auditor", [releases.numbers, releases.categories, releases.features])
def test_sound_mechanisms_are_consistent_and_the_bound_is_close(auditor: Auditor, epsilon: float) -> None:
    """Each of the 12 audits accuses a sound mechanism with probability 1e-3 or less, and refutes half of its noise."""
    result = bound(auditor, 1, epsilon)
    assert 0.75 * epsilon < result.epsilon <= epsilon
    with scaled(0.5):
        assert verdict(result.epsilon, epsilon, epsilon, [bound(auditor, 2, epsilon).epsilon]) == "consistent"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 5.0])
def test_cells_are_consistent(epsilon: float) -> None:
    """Each of the 4 audits accuses a sound mechanism with probability 1e-3 or less."""
    assert 0.5 * epsilon < bound(releases.cells, 1, epsilon).epsilon <= epsilon


def test_a_threshold_for_a_larger_budget_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that pass as if with 2ε."""
    drop = edges.tail
    monkeypatch.setattr(edges, "tail", lambda value, epsilon: drop(value, 2 * epsilon))
    assert verdict(bound(releases.cells, 11, 1.0).epsilon, 1.0, None) == "refuted"


def test_a_budget_spent_on_every_feature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six features with 2.5 each, where only two may be reported."""
    monkeypatch.setattr(
        multidimensional, "_sample", lambda n_users, n_features, *_: np.ones((n_users, n_features), dtype=np.bool_)
    )
    assert verdict(bound(releases.features, 10, 5.0).epsilon, 5.0, None) == "refuted"


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


def test_what_chose_the_event_does_not_judge_it() -> None:
    """Equal inputs, audited 200 times at 90 %: more than 40 bounds above 0 (of 20 expected at most) have probability
    8e-6. Judged by the samples that chose it, an event tells equal inputs apart each time."""
    rng = np.random.default_rng(8)
    bounds = [audit(rng.normal(size=200), rng.normal(size=200), 0.9).epsilon for _ in range(200)]
    assert sum(bound > 0 for bound in bounds) <= 40


def test_the_bound_holds_as_often_as_stated() -> None:
    """Randomised response at ε = 1, audited 400 times at 90 %: more than 65 false bounds (of 40 expected at most)
    have probability 5e-5."""
    rng = np.random.default_rng(6)
    truth = math.e / (1 + math.e)
    bounds = [audit(rng.random(400) < truth, rng.random(400) < 1 - truth, 0.9).epsilon for _ in range(400)]
    assert sum(bound > 1 for bound in bounds) <= 65


def test_few_samples_are_inconclusive_about_a_large_budget() -> None:
    result = bound(releases.numbers, 7, 20.0)
    assert result.provable < 20
    assert result.epsilon <= result.provable
    assert verdict(result.epsilon, 20.0, 20.0, [result.provable]) == "inconclusive"


def test_bounds_are_clopper_pearson() -> None:
    low = stats.binomtest(80, 100).proportion_ci(0.98, "exact").low
    high = stats.binomtest(10, 100).proportion_ci(0.98, "exact").high
    bound = lower_bound(np.array([80]), np.array([10]), 100, 0.98)
    assert bound[0] == pytest.approx(math.log(low / high))
    low_delta = lower_bound(np.array([80]), np.array([10]), 100, 0.98, delta=0.1)
    assert low_delta[0] == pytest.approx(math.log((low - 0.1) / high))
    assert lower_bound(np.array([0]), np.array([100]), 100, 0.98)[0] == -math.inf
    few, many = (float(lower_bound(np.array([n]), np.array([0]), n, CONFIDENCE)[0]) for n in (10_000, 100_000))
    assert few < many < math.log(100_000)


def test_gaussian_noise_is_within_its_budget_at_its_delta() -> None:
    """σ = 1, δ = 1e-3: ε = 2.78 by Balle and Wang."""
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=N) + 1, rng.normal(size=N)
    assert 0.5 < audit(a, b, CONFIDENCE, delta=1e-3).epsilon < 2.78


def test_a_claim_is_consistent_only_where_every_control_is_refuted() -> None:
    """Coins that show nothing, of which so many samples could have proved 7; controls of ε = 0 and of 3."""
    rng = np.random.default_rng(12)
    blind, seeing = (audit(rng.random(N) < first, rng.random(N) < 0.5, CONFIDENCE) for first in (0.5, 0.999))
    assert blind.provable > 1
    verdicts = [
        verdict(blind.epsilon, 0.5, 0.5, [control.epsilon for control in controls])
        for controls in ((), (blind,), (blind, seeing), (seeing, seeing))
    ]
    assert verdicts == ["inconclusive", "inconclusive", "inconclusive", "consistent"]
    assert verdict(seeing.epsilon, 0.5, 0.5) == "refuted"
    assert verdict(blind.epsilon, 0.5, 0.6, [seeing.epsilon]) == "inconclusive", "more is accounted than claimed"
    assert verdict(blind.epsilon, 0.5, None, [seeing.epsilon]) == "inconclusive"
