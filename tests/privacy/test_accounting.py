"""Accounting agrees with closed forms, is never below them, and refuses what it cannot account for."""

import math
import resource
import time
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from tasks.privacy.accounting import account as accounting
from tasks.privacy.accounting.account import account, estimate
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.audits import gaussian_runs, one_run

pytestmark = pytest.mark.usefixtures("composed_anew")


def event(kind: str, count: int = 1, **parameters: float) -> Event:
    return Event(kind=kind, parameters=parameters, count=count)


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Balle and Wang 2018, theorem 8, solved for epsilon."""

    def excess(epsilon: float) -> float:
        half, ratio = 1 / (2 * noise_multiplier), epsilon * noise_multiplier
        return stats.norm.cdf(half - ratio) - math.exp(epsilon) * stats.norm.cdf(-half - ratio) - delta

    return optimize.brentq(excess, 0, 100)


def test_pure_budgets_add_up() -> None:
    assert account([event("pure-local", 8, epsilon=2.5)]).epsilon == 20
    assert account([event("laplace", noise_multiplier=4.0)]).epsilon == 0.25
    assert account([event("discrete-laplace", noise_parameter=0.02, sensitivity=50)]).epsilon == pytest.approx(1)
    mixed = [event("laplace", 3, noise_multiplier=2.0), event("pure-local", epsilon=0.5)]
    assert account(mixed) == (2.0, 0.0, "")


@pytest.mark.parametrize(("noise_multiplier", "count"), [(1.0, 1), (0.5, 1), (3.0, 10), (20.0, 1000)])
def test_gaussian_noise_matches_the_analytic_formula(noise_multiplier: float, count: int) -> None:
    spent = account([event("gaussian", count, noise_multiplier=noise_multiplier)], delta=1e-5)
    assert spent.epsilon == pytest.approx(gaussian_epsilon(noise_multiplier / math.sqrt(count), 1e-5), rel=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_sampling_is_accounted_a_little_tighter_than_by_renyi_divergence(rate: float) -> None:
    spent = account([event("sampled-gaussian", 1000, noise_multiplier=1.1, sampling_probability=rate)], delta=1e-5)
    renyi = rdp.RdpAccountant()
    renyi.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(1.1)), 1000)
    assert 0.8 * renyi.get_epsilon(1e-5) < spent.epsilon < renyi.get_epsilon(1e-5)


@pytest.mark.parametrize("probability", [1 - 1e-7, 1.0])
def test_gaussian_noise_beside_sampled_steps_is_composed_with_them(probability: float) -> None:
    """Nearly everyone is in the sample, or everyone, so that both are Gaussian releases but for rounding."""
    sampled = event("sampled-gaussian", 3, noise_multiplier=2.0, sampling_probability=probability)
    gaussian = event("gaussian", noise_multiplier=1.5)
    every = account([event("gaussian", 3, noise_multiplier=2.0), gaussian], 1e-5).epsilon
    assert account([sampled, gaussian], 1e-5).epsilon == pytest.approx(every, rel=1e-2)


def test_sampled_releases_with_hardly_any_noise_are_bounded_by_unsampled_ones() -> None:
    spent = account([event("sampled-gaussian", 10, noise_multiplier=0.01, sampling_probability=0.3)], delta=1e-3)
    assert spent == account([event("gaussian", 10, noise_multiplier=0.01)], delta=1e-3)


@pytest.mark.parametrize(
    ("release", "delta", "epsilon"),
    [
        (event("laplace", noise_multiplier=2.0), 0.01, 0.5 + 2 * math.log(0.99)),
        (event("pure-local", epsilon=1.0), 0.1, math.log(math.e - 0.1 * (1 + math.e))),
    ],
)
def test_one_release_at_positive_delta_matches_its_hockey_stick(release: Event, delta: float, epsilon: float) -> None:
    """Laplace noise: δ(ε) = 1 - e^((ε - 1/b)/2) for ε <= 1/b; the worst ε0-DP mechanism: (e^ε0 - e^ε)/(1 + e^ε0)."""
    assert account([release], delta).epsilon == pytest.approx(epsilon, abs=2e-4)


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_one_discrete_laplace_release_at_positive_delta_matches_its_hockey_stick(sensitivity: int) -> None:
    """δ(ε) is the sum of what one law exceeds e^ε times the other by."""
    spent = account([event("discrete-laplace", noise_parameter=0.2, sensitivity=sensitivity)], delta=0.05)
    first, other = (stats.dlaplace(0.2).pmf(np.arange(-200, 201) - moved) for moved in (0, sensitivity))
    assert np.maximum(first - math.exp(spent.epsilon) * other, 0).sum() == pytest.approx(0.05, rel=1e-2)


def test_composition_is_between_one_release_and_the_sum() -> None:
    many = account([event("pure-local", 1000, epsilon=0.1)], delta=1e-5).epsilon
    advanced = 0.1 * math.sqrt(2 * 1000 * math.log(1e5)) + 1000 * 0.1 * math.expm1(0.1)
    assert 0.1 < many < advanced < 100


KINDS = {
    "small": event("laplace", noise_multiplier=4.0),
    "large": event("pure-local", epsilon=60.0),
    "gaussian": event("gaussian", noise_multiplier=3.0),
    "loud": event("gaussian", noise_multiplier=0.1),
    "sampled": event("sampled-gaussian", noise_multiplier=8.0, sampling_probability=0.25),
}
"""Also what is so large that it is not composed by privacy loss distributions, and Gaussian noise as small."""
TOGETHER = [kinds for size in (2, 3) for kinds in combinations(KINDS, size) if not {"loud", "sampled"} <= {*kinds}]
"""Without the two whose distribution takes minutes."""
RELEASES = [*((kinds, 1e-2) for kinds in TOGETHER), *((kinds, 1e-6) for kinds in TOGETHER if len(kinds) == 2)]


@cache
def composed(counts: tuple[tuple[str, int], ...], delta: float) -> float:
    events = [KINDS[kind].model_copy(update={"count": count}) for kind, count in counts if count]
    return account(events, delta).epsilon  # type: ignore[return-value]


@pytest.mark.parametrize(("kinds", "delta"), RELEASES, ids=[f"{'-'.join(kinds)}-{delta}" for kinds, delta in RELEASES])
def test_every_release_counts_each_time_whatever_it_is_composed_with(kinds: tuple[str, ...], delta: float) -> None:
    """A pure one adds no more than its budget, and all of it where the budget is so large that δ takes nothing off."""
    for kind in kinds:
        none, once, twice = (
            composed(tuple((other, times if other == kind else 2) for other in kinds), delta) for times in range(3)
        )
        assert none + 1e-3 < once < twice - 1e-3
        if budget := {"small": 0.25, "large": 60.0}.get(kind):
            assert twice < none + 2 * budget + 1e-3
        if kind == "large":
            assert twice == pytest.approx(none + 120.0, abs=0.01)


@pytest.mark.parametrize("count", [2**16 - 1, 2**16 + 2**15, 2**17 - 1])
def test_of_more_releases_than_are_composed_at_once_every_one_counts(count: int) -> None:
    """The loss of many small pure releases is nearly that of Gaussian noise (Dong, Roth and Su, 2022)."""
    pure, normal = event("pure-local", epsilon=0.004), event("gaussian", noise_multiplier=250.0)
    composed, limit = (account([kind.model_copy(update={"count": count})], 1e-3).epsilon for kind in (pure, normal))
    assert composed == pytest.approx(limit, rel=1e-3)


def test_discrete_laplace_noise_of_a_large_sensitivity_is_accounted_at_its_budget() -> None:
    parts = [event("discrete-laplace", noise_parameter=2**-21, sensitivity=float(2**scale)) for scale in (21, 22)]
    for noisy, budget in zip(parts, (1.0, 2.0), strict=True):
        assert account([noisy], 1e-6).epsilon == pytest.approx(account([event("pure-local", epsilon=budget)], 1e-6)[0])


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "no release was recorded"),
        ([event("non-private")], "without protection"),
        ([event("pure-local", epsilon=1.0), event("non-private")], "without protection"),
        ([event("shuffle", epsilon=1.0)], "no accounting is known for events of kind 'shuffle'"),
        ([event("laplace", scale=1.0)], "needs \\['noise_multiplier'\\]"),
        ([event("laplace", noise_multiplier=0.0)], "no finite epsilon with noise_multiplier = 0"),
        ([event("pure-local", epsilon=-1.0)], "no finite epsilon with epsilon = -1"),
        ([event("gaussian", noise_multiplier=1.0)], "no finite epsilon at delta = 0"),
        ([KINDS["large"], KINDS["gaussian"]], "no finite epsilon at delta = 0"),
        ([event("discrete-laplace", noise_parameter=1.0, sensitivity=1.5)], "integer sensitivity"),
        ([event("laplace", noise_multiplier=5e-324)], "too small for any finite epsilon"),
    ],
)
def test_what_cannot_be_accounted_for_is_refused_with_its_reason(events: list[Event], reason: str) -> None:
    spent = account(events)
    assert spent.epsilon is None
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(spent.reason)


def test_gaussian_noise_of_any_scale_costs_something() -> None:
    """δ(0) is the total variation distance, about 0.4 / noise multiplier; above it ε is positive."""
    for noise_multiplier in (1e9, 1e17, 1e200):
        epsilon = account([event("gaussian", noise_multiplier=noise_multiplier)], delta=1e-250).epsilon
        assert epsilon > 1 / noise_multiplier
    assert account([event("gaussian", noise_multiplier=1e17)], delta=1e-5).epsilon == 0


@pytest.mark.parametrize("delta", [1e-13, 1e-16, 1e-30, 1e-300])
def test_sampled_steps_have_a_finite_epsilon_at_any_delta(delta: float) -> None:
    """As dp_accounting's Rényi accountant, which has other orders."""
    renyi = rdp.RdpAccountant([*range(2, 400)])
    renyi.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 1000)
    spent = account([event("sampled-gaussian", 1000, noise_multiplier=1.0, sampling_probability=0.01)], delta)
    assert spent.epsilon == pytest.approx(renyi.get_epsilon(delta), rel=2e-3)


@pytest.mark.parametrize(
    ("order", "noise_multiplier", "probability"),
    [(2, 1.0, 0.01), (7, 0.6, 0.3), (40, 3.0, 1e-12), (300, 1e6, 1e-9), (20_000, 400.0, 1e-3), (20_000, 90.0, 1e-3)],
)
def test_renyi_divergence_of_a_sampled_release_is_exact(order, noise_multiplier, probability) -> None:
    """Mironov, Talwar and Zhang 2019, section 3.3, in 60 digits."""
    with mpmath.workdps(60):
        q = mpmath.mpf(probability)
        term, total = (1 - q) ** order, mpmath.mpf(0)
        for k in range(min(order, 2000) + 1):
            total += term * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * mpmath.mpf(noise_multiplier) ** 2))
            term *= q / (1 - q) * (order - k) / (k + 1)
        exact = float(mpmath.log(total) / (order - 1))
    bound = accounting._sampled_renyi(float(order), noise_multiplier, probability)
    assert bound == pytest.approx(exact, rel=1e-6, abs=0)


def test_rounding_in_fourier_transforms_takes_nothing_off_epsilon() -> None:
    """Without an allowance for it, ε is 0.3 % below the exact one here, and more at smaller δ."""
    everybody = event("sampled-gaussian", 10_000, noise_multiplier=100.0, sampling_probability=1.0)
    for delta in (1e-9, 1e-10, 2e-11, 1e-12):
        assert accounting._compose([everybody], None, delta, accounting.POINTS) >= gaussian_epsilon(1.0, delta)


@pytest.mark.parametrize(
    ("noise", "probability", "interval"),
    [(0.7, 0.1, 1e-3), (1.9, 0.2255, 1e-4), (8.0, 1.0, 1e-4), (2.0, 1 - 1e-7, 1e-4), (1.0, 1e-300, 1e-4)],
)
def test_losses_at_once_are_those_of_dp_accounting(noise: float, probability: float, interval: float) -> None:
    both = (
        accounting._gaussian_distribution(noise, probability, interval),
        from_gaussian_mechanism(noise, sampling_prob=probability, value_discretization_interval=interval),
    )
    epsilons, deltas = (
        {distribution.self_compose(7).get_epsilon_for_delta(1e-6) for distribution in both},
        {distribution.get_delta_for_epsilon(-0.1) for distribution in both},  # where adding a record shows more
    )
    assert len(epsilons) == len(deltas) == 1


def test_an_estimate_is_an_upper_bound_and_near() -> None:
    for multiplier, probability, count in ((0.5, 0.01, 1000), (4.0, 0.1, 300), (20.0, 0.3, 5000)):
        sampled = event("sampled-gaussian", count, noise_multiplier=multiplier, sampling_probability=probability)
        bound, rough = account([sampled], 1e-5).epsilon, estimate([sampled], 1e-5).epsilon
        assert bound <= rough < 1.01 * bound


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


SIZES = {
    "pure-local": {"epsilon": powers(-320, 300)},
    "laplace": {"noise_multiplier": powers(-8, 200)},
    "discrete-laplace": {"noise_parameter": powers(-12, 2), "sensitivity": powers(0, 12).map(round).map(float)},
    "gaussian": {"noise_multiplier": powers(-200, 200)},
    "sampled-gaussian": {
        "noise_multiplier": powers(-1, 3) | powers(-200, 200),
        "sampling_probability": powers(-6, 0) | powers(-300, 0),
    },
}
COUNTS = st.just(1) | powers(0, 15).map(int)
EVENTS = st.one_of(
    st.builds(Event, kind=st.just(kind), parameters=st.fixed_dictionaries(sizes), count=COUNTS)
    for kind, sizes in SIZES.items()
)
STEPS = event("sampled-gaussian", 1000, noise_multiplier=1.0, sampling_probability=0.01)


@settings(max_examples=5, derandomize=True, phases=[Phase.explicit, Phase.generate])
@example([event("pure-local", epsilon=710.0), STEPS], 1e-5)
@example([event("laplace", noise_multiplier=1e-5), STEPS], 1e-5)
@example([event("discrete-laplace", noise_parameter=1e-9, sensitivity=4e9), STEPS], 1e-5)
@example([event("laplace", 10**6, noise_multiplier=100.0)], 1e-5)
@example([event("pure-local", 10**12, epsilon=1e-11)], 1e-2)
@example([event("pure-local", 10**5, epsilon=0.5)], 1e-2)
@example([event("sampled-gaussian", 10**6, noise_multiplier=5.0, sampling_probability=0.1)], 1e-5)
@example([event("sampled-gaussian", noise_multiplier=0.14, sampling_probability=0.3)], 1e-5)
@example([event("laplace", 100, noise_multiplier=1 + k / 100) for k in range(100)], 1e-5)
@example([event("discrete-laplace", noise_parameter=1e-7 + k * 1e-9, sensitivity=5e5 + k) for k in range(100)], 1e-6)
@example([event("sampled-gaussian", noise_multiplier=1e3 + k, sampling_probability=1e-3) for k in range(500)], 1e-6)
@example([event("sampled-gaussian", noise_multiplier=30 + k / 10, sampling_probability=0.1) for k in range(5000)], 1e-6)
@example([event("sampled-gaussian", noise_multiplier=1e9 + k, sampling_probability=0.01) for k in range(999)], 1e-300)
@example([event("sampled-gaussian", noise_multiplier=1.0, sampling_probability=5e-324)], 1e-5)
@example([event("sampled-gaussian", noise_multiplier=1 + k, sampling_probability=1e-309) for k in range(101)], 1e-5)
@example([event("gaussian", noise_multiplier=1e-160), STEPS], 1e-5)
@example([event("pure-local", epsilon=0.01 + k * 1e-5) for k in range(3000)], 1e-6)
@given(st.lists(EVENTS, min_size=1, max_size=8), powers(-300, -1))
def test_whatever_is_composed_takes_little_time_and_memory(events: list[Event], delta: float) -> None:
    """Five seconds of a free processor, and a gigabyte."""
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, limits[1]))
    try:
        start = time.process_time()
        spent = account(events, delta)
        assert time.process_time() - start < 5
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert spent.epsilon is None or 0 <= spent.epsilon < math.inf


@pytest.mark.parametrize("noise", [1e-160, 1e-99, 1e-3])
@pytest.mark.parametrize("count", [1, 2**53])
def test_one_release_more_never_makes_a_bound_smaller(noise: float, count: int) -> None:
    hardly_hidden = event("gaussian", count, noise_multiplier=noise)
    alone = account([hardly_hidden], 1e-5).epsilon
    for other in (event("laplace", noise_multiplier=10.0), STEPS):
        both = account([hardly_hidden, other], 1e-5).epsilon
        assert both is None if alone is None else both is not None and both >= alone


def test_many_kinds_of_sampled_gaussians_are_bounded_closely() -> None:
    """A falling noise of 3,000 kinds costs what 30 kinds do that lie between."""

    def composed(noises: Sequence[float], count: int) -> float:
        steps = [
            event("sampled-gaussian", count, noise_multiplier=noise, sampling_probability=0.01) for noise in noises
        ]
        return account(steps, 1e-6).epsilon

    many = composed([1 + k / 1000 for k in range(3000)], 1)
    assert (
        composed([1.1 + k / 10 for k in range(30)], 100) < many < 1.15 * composed([1 + k / 10 for k in range(30)], 100)
    )


def test_choosing_among_sixteen_privately_takes_much_noise() -> None:
    """docs/guarantees.md has the ratio (Papernot and Steinke, ICLR 2022); both are by Rényi divergence."""
    orders = [1 + 2 ** (power / 8) for power in range(-16, 64)]

    def scale(chosen: bool) -> float:
        def excess(noise: float) -> float:
            event = dp_accounting.GaussianDpEvent(noise)
            accountant = rdp.RdpAccountant(orders)
            accountant.compose(RepeatAndSelectDpEvent(event, mean=16, shape=1) if chosen else event)
            return accountant.get_epsilon(1e-4) - 1

        return optimize.brentq(excess, 2, 20, xtol=0.01)

    assert scale(chosen=True) / scale(chosen=False) == pytest.approx(2.4, abs=0.05)


DELTA = 1e-5


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_the_truth_is_refuted_no_more_often_than_said(mu: float, share: float) -> None:
    rng, m, runs = np.random.default_rng(0), 300, 200
    r = round(share * m)
    wrong = {"f-DP": 0, "separation": 0}
    known: dict[int, bool] = {}
    for _ in range(runs):
        included = rng.random(m) < 0.5
        scores = rng.standard_normal(m) + mu * included
        correct = one_run.count_correct(scores, included, (r + 1) // 2, r // 2)
        if correct not in known:
            known[correct] = gaussian_runs.refuted(m, r, correct, mu, 0.05)
        wrong["f-DP"] += known[correct]
        wrong["separation"] += gaussian_runs.separation(scores, included, 0.95) > mu
    assert max(wrong.values()) <= 20  # P[Bin(200, 0.05) > 20] = 1e-3


def test_it_proves_more_than_the_bound_for_any_mechanism() -> None:
    rng, m, mu = np.random.default_rng(1), 2000, 1.75
    included = rng.random(m) < 0.5
    scores = rng.standard_normal(m) + mu * included
    correct = one_run.count_correct(scores, included, 300, 300)
    proved = gaussian_runs.epsilon_of(gaussian_runs.f_dp(m, 600, correct, 0.95), DELTA)
    true = gaussian_runs.epsilon_of(mu, DELTA)
    assert one_run.lower_bound(m, 600, correct, DELTA, 0.95) < proved < true
    estimated = gaussian_runs.epsilon_of(gaussian_runs.separation(scores, included, 0.95), DELTA)
    assert proved < estimated < true


def test_right_guesses_prove_more_and_chance_proves_nothing() -> None:
    bounds = [gaussian_runs.f_dp(1000, 200, correct, 0.95) for correct in (0, 100, 130, 160, 190, 200)]
    assert bounds[:2] == [0.0, 0.0]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[2] > 0


def test_without_noise_no_epsilon_is_large_enough() -> None:
    included = np.arange(40) % 2 == 0
    assert math.isinf(gaussian_runs.separation(included.astype(float), included, 0.95))
    assert math.isinf(gaussian_runs.epsilon_of(math.inf, DELTA))
    assert gaussian_runs.separation(np.zeros(40), included, 0.95) == 0.0
