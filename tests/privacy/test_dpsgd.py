"""The noise of DP-SGD is enough and hardly more, and samples follow their law."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.privacy.accounting.account import Spent, account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.mechanisms.dpsgd import PRECISION, clip_factors, noise_multiplier, poisson_sample, release


def spent(multiplier: float, probability: float, steps: int, delta: float) -> float:
    return account([release(multiplier, probability, steps)], delta).epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "probability", "steps"),
    [(1.0, 1e-3, 1.0, 1), (4.0, 1e-5, 1.0, 40), (100.0, 1e-3, 1.0, 7), (1.0, 1e-3, 0.25, 40)],
)
def test_the_budget_is_met_and_used_up(epsilon, delta, probability, steps):
    multiplier = noise_multiplier(epsilon, delta, probability, steps)
    assert 0.99 * epsilon < spent(multiplier, probability, steps, delta) <= epsilon
    assert spent(multiplier / (1 + 2 * PRECISION), probability, steps, delta) > epsilon


@settings(max_examples=6, derandomize=True, phases=[Phase.generate])
@given(*[st.floats(0, 1)] * 4)
def test_the_multiplier_is_enough_and_at_most_a_thousandth_too_large(epsilon, delta, probability, steps):
    """ε from 1e-3 to 1e3, δ from 1e-30 to 1e-3, sampling probabilities from 1e-4 to 1, up to 10,000 steps."""
    epsilon, delta = 10 ** (6 * epsilon - 3), 10 ** (27 * delta - 30)
    probability, steps = 10 ** (4 * probability - 4), int(10 ** (4 * steps))
    multiplier = noise_multiplier(epsilon, delta, probability, steps)
    assert spent(multiplier, probability, steps, delta) <= epsilon
    assert spent(multiplier / (1 + PRECISION), probability, steps, delta) > epsilon


def test_at_a_tiny_delta_the_multiplier_is_that_of_renyi_divergence():
    assert noise_multiplier(1.0, 1e-15, 0.01, 1000) == pytest.approx(2.67, abs=0.01)


def test_every_record_is_sampled_independently_at_the_rate():
    """Sizes are binomial and pairs of records independent; false alarms: one in 1,000 for each of the three tests."""
    n, probability, draws = 40, 0.3, 4000
    rng = np.random.default_rng(0)
    taken = np.zeros((draws, n), bool)
    for row in taken:
        sample = poisson_sample(n, probability, rng)
        assert (np.diff(sample) > 0).all()
        row[sample] = True
    per_record = stats.binomtest(int(taken.sum()), draws * n, probability).pvalue
    sizes = np.bincount(np.clip(taken.sum(1), 6, 18) - 6, minlength=13)
    law = stats.binom(n, probability)
    expected = np.array([law.cdf(6), *law.pmf(np.arange(7, 18)), law.sf(17)])
    of_sizes = stats.chisquare(sizes, draws * expected).pvalue
    both = stats.binomtest(int((taken[:, 0] & taken[:, 1]).sum()), draws, probability**2).pvalue
    assert min(per_record, of_sizes, both) > 1e-3


def test_samples_may_be_everything_or_nothing():
    rng = np.random.default_rng(0)
    assert poisson_sample(5, 1.0, rng).tolist() == [0, 1, 2, 3, 4]
    assert len(poisson_sample(5, 1e-12, rng)) == len(poisson_sample(0, 0.5, rng)) == 0


def test_clipping_bounds_norms_and_leaves_small_gradients_alone():
    gradients = torch.randn(30, 7, generator=torch.Generator().manual_seed(0)) * torch.arange(30)[:, None] / 5
    factors = clip_factors(gradients.square().sum(1), 4.0)
    norms = gradients.norm(dim=1)
    torch.testing.assert_close((factors[:, None] * gradients).norm(dim=1), norms.clamp(max=4.0))
    assert ((factors == 1) == (norms <= 4.0)).all()
    assert (clip_factors(gradients.square().sum(1), math.inf) == 1).all()
    assert len(clip_factors(torch.zeros(0), 1.0)) == 0


def test_a_budget_that_what_else_is_released_nearly_spends_is_refused_in_one_line() -> None:
    others = [release(1.0, 0.01, 1000)]
    spent = account(others, 1e-7).epsilon
    with pytest.raises(ValueError, match="leaves too little for the steps"):
        noise_multiplier(spent * 1.001, 1e-7, 0.01, 2_000_000, others)


@pytest.mark.usefixtures("composed_anew")
def test_calibration_asks_the_accountant_seldom_where_its_estimate_misleads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step it asked 462 times, two minutes at ε = 0.001 and 1."""
    asked = []

    def counted(events: Sequence[Event], delta: float) -> Spent:
        asked.append(delta)
        return account(events, delta)

    monkeypatch.setattr(dpsgd, "account", counted)
    monkeypatch.setattr(dpsgd, "_noise_multiplier", dpsgd._noise_multiplier.__wrapped__)
    assert dpsgd.noise_multiplier(1, 1e-3, 1e-4, 1000) == pytest.approx(0.35644, rel=1e-3)
    assert len(asked) < 10


def test_one_full_step_is_the_analytic_gaussian_mechanism():
    """Balle and Wang 2018, theorem 8: δ(ε) in closed form."""
    multiplier = noise_multiplier(1.0, 1e-3, 1.0, 1)
    half = 1 / (2 * multiplier)
    delta = stats.norm.cdf(half - multiplier) - math.e * stats.norm.cdf(-half - multiplier)
    assert delta == pytest.approx(1e-3, rel=0.02)
    assert delta <= 1e-3
