"""Intervals cover as they say, corrections match the definition, ties are treated as documented."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.evaluation import statistics
from tasks.evaluation.statistics import bootstrap_interval, crossed_interval, holm, paired_tests, summary


def test_summary_of_known_values() -> None:
    actual = summary([1.0, 2.0, 3.0, 4.0])
    assert (actual.n, actual.mean) == (4, 2.5)
    assert actual.std == pytest.approx(math.sqrt(5 / 3))
    assert 1 <= actual.low < 2.5 < actual.high <= 4
    assert summary([1.0, 2.0, 3.0, 4.0]) == actual
    alone = summary([0.3])
    assert (alone.mean, alone.low, alone.high) == (0.3, 0.3, 0.3)
    assert math.isnan(alone.std)


def test_the_bootstrap_interval_equals_plain_resampling() -> None:
    """Ends of 20,000 resamples agree with those of another 20,000 within 0.01 (their own standard error is 0.002)."""
    values = np.random.default_rng(4).random(12)
    drawn = np.random.default_rng(5).choice(values, (20_000, 12)).mean(1)
    expected = np.quantile(drawn, [0.05, 0.95])
    assert bootstrap_interval(values, level=0.9, resamples=20_000) == pytest.approx(expected, abs=0.01)


def test_holm_of_known_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_paired_tests_use_the_pairing_and_correct_together() -> None:
    noise = np.array([0.0, 5.0, -3.0, 2.0, 1.0])
    better = noise + np.array([1.0, 1.2, 0.9, 1.1, 1.0])
    actual = paired_tests({"better": (better, noise), "worse": (noise, better)})
    assert actual["better"].difference == pytest.approx(1.04)
    assert actual["better"].p == pytest.approx(stats.ttest_rel(better, noise, alternative="greater").pvalue)
    assert actual["better"].p_holm == pytest.approx(2 * actual["better"].p)
    assert actual["worse"].p_holm == pytest.approx(1.0, abs=1e-4)


def test_differences_without_any_variation_prove_nothing() -> None:
    actual = paired_tests({"constant": ([0.3] * 5, [0.1] * 5), "equal": ([0.2, 0.3], [0.2, 0.3])})
    assert actual["constant"].p == 1.0
    assert actual["equal"].p == 1.0
    assert (actual["constant"].low, actual["constant"].high) == pytest.approx((0.2, 0.2))
    assert (actual["constant"].effect, actual["equal"].effect) == (None, None)


def test_interval_and_effect_of_independent_runs_are_scipys() -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 7))
    plain, zero = (paired_tests({"claim": (a, b)}, overlap=overlap)["claim"] for overlap in (None, 0.0))
    theirs = stats.ttest_rel(a, b, alternative="greater")
    both = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert zero == plain
    assert plain.p == pytest.approx(theirs.pvalue, rel=1e-12)
    assert (plain.low, plain.high) == pytest.approx(tuple(both), rel=1e-12)
    assert plain.effect == pytest.approx(theirs.statistic / math.sqrt(7), rel=1e-12)


def test_the_corrected_test_equals_its_formula() -> None:
    """Written out in plain Python from Nadeau & Bengio's variance, for five folds."""
    a, b = [0.83, 0.79, 0.85, 0.81, 0.80], [0.80, 0.79, 0.81, 0.80, 0.78]
    differences = [left - other for left, other in zip(a, b, strict=True)]
    mean = sum(differences) / 5
    variance = sum((difference - mean) ** 2 for difference in differences) / 4
    t = mean / math.sqrt((1 / 5 + 1 / 4) * variance)
    actual = paired_tests({"claim": (a, b)}, overlap=0.25)["claim"]
    # The t distribution with 4 degrees of freedom has a closed form
    expected = 0.5 - t / math.sqrt(4 + t * t) * (1 + 2 / (4 + t * t)) / 2
    assert actual.p == pytest.approx(expected, rel=1e-9)
    half = 2.7764451051977987 * math.sqrt((1 / 5 + 1 / 4) * variance)
    assert (actual.low, actual.high) == pytest.approx((mean - half, mean + half), rel=1e-9)
    assert actual.effect == pytest.approx(mean / math.sqrt(variance))  # what was seen, whatever it proves


def test_the_crossed_interval_covers_the_mean_of_seeds_and_users() -> None:
    """Seed and user effects with five seeds and 200 users: of 300 tables the 95 % interval covers the true mean in at
    least 85 % (five seeds give too narrow a share of the interval; a binomial of 300 at 0.9 is below 0.85 in 0.3 %)."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        table = 0.1 + 0.02 * rng.normal(size=(5, 1)) + 0.5 * rng.normal(size=(1, 200)) + 0.3 * rng.normal(size=(5, 200))
        low, high = crossed_interval(table, resamples=500)
        covered += low <= 0.1 <= high
    assert covered / 300 >= 0.85


def test_the_crossed_interval_is_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(0).normal(size=(3, 50))
    interval = crossed_interval(table)
    monkeypatch.setattr(statistics, "BLOCK", 999)
    assert crossed_interval(table) == interval


def test_the_crossed_interval_has_no_width_without_spread_and_is_the_plain_one_for_one_seed() -> None:
    assert crossed_interval(np.full((3, 4), 0.25)) == (0.25, 0.25)
    values = np.random.default_rng(1).normal(size=400)
    low, high = crossed_interval(values[None], resamples=20_000)
    plain = bootstrap_interval(values, resamples=20_000)
    assert (low, high) == pytest.approx(plain, abs=0.005)


def test_over_splits_and_seeds_the_more_careful_of_two_tests_decides() -> None:
    """Written out for three splits of two seeds: by splits with two degrees of freedom, by seeds with one."""
    a = np.array([[0.30, 0.34], [0.40, 0.42], [0.38, 0.41]])
    b = np.array([[0.28, 0.31], [0.33, 0.36], [0.36, 0.35]])
    differences = a - b
    mean = sum(differences.ravel()) / 6
    by_split = [(row[0] + row[1]) / 2 for row in differences]
    by_seed = [sum(differences[:, seed]) / 3 for seed in (0, 1)]
    splits = 2 * sum((value - mean) ** 2 for value in by_split) / 2
    seeds = 3 * sum((value - mean) ** 2 for value in by_seed) / 1
    assert splits > seeds
    errors = {2: math.sqrt(splits / 6), 1: math.sqrt(seeds / 6)}
    actual = paired_tests({"claim": (a, b)})["claim"]
    p = {freedom: stats.t.sf(mean / error, freedom) for freedom, error in errors.items()}
    assert actual.p == pytest.approx(max(p.values()), rel=1e-9)
    widths = [stats.t.ppf(0.975, freedom) * error for freedom, error in errors.items()]
    assert actual.high == pytest.approx(mean + max(widths), rel=1e-9)
    turned = paired_tests({"claim": (a.T, b.T)})["claim"]
    assert turned == actual  # which of the two is called a split makes no difference


@pytest.mark.parametrize(("of_split", "of_seed"), [(0.0, 0.0), (3.0, 0.0), (0.0, 3.0), (1.0, 1.0)])
@pytest.mark.parametrize("splits", [2, 3])
def test_over_splits_and_seeds_a_true_null_is_rarely_rejected(splits: int, of_split: float, of_seed: float) -> None:
    """700 tables of five seeds without a difference: at most 5 % and 4 standard errors (3e-5), and so intervals miss.

    The plain test takes all runs for independent and is wrong far more often where splits or seeds matter. That of the
    larger mean square alone is wrong too often with two splits, whose own test has one degree of freedom.
    """
    rng, runs = np.random.default_rng(5), 700
    tables = of_split * rng.normal(size=(runs, splits, 1)) + of_seed * rng.normal(size=(runs, 1, 5))
    tables = tables + rng.normal(size=(runs, splits, 5))
    zero = np.zeros((splits, 5))
    bound = 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)
    crossed = paired_tests({str(run): (table, zero) for run, table in enumerate(tables)})
    assert np.mean([test.p <= 0.05 for test in crossed.values()]) <= bound
    assert np.mean([test.low > 0 or test.high < 0 for test in crossed.values()]) <= bound
    if splits == 3:
        plain = paired_tests({str(run): (table.ravel(), zero.ravel()) for run, table in enumerate(tables)})
        assert (np.mean([test.p <= 0.05 for test in plain.values()]) > bound) == (of_split + of_seed > 0)


def test_splits_that_differ_alone_are_tested_as_splits() -> None:
    """Systems without randomness: seeds repeat a computation, and three runs are three."""
    a, b = np.random.default_rng(4).normal(size=(2, 3))
    alone, repeated = (
        paired_tests({"": (np.repeat(a[:, None], n, axis=1), np.repeat(b[:, None], n, axis=1))})[""] for n in (1, 5)
    )
    assert (repeated.p, repeated.low) == pytest.approx((alone.p, alone.low), rel=1e-9)
    assert alone == paired_tests({"": (a, b)})[""]  # without a second seed they are independent runs


def test_over_folds_the_plain_test_alarms_falsely_and_the_corrected_one_does_not() -> None:
    """Two learners whose expected errors are the same: least squares on 30 features each, drawn for nothing.

    In 1,000 cross-validations of 50 examples in five folds. What a learner makes of one training set it makes of the
    next, which shares three quarters with it, so differences go together. A test at 5 % may be wrong in 5 % of them,
    plus 4 standard errors (false alarm 3e-5).
    """
    rng, runs = np.random.default_rng(12), 1_000
    truth = rng.normal(size=(runs, 5, 10))
    errors = []
    for _ in range(2):
        x = rng.normal(size=(runs, 5, 10, 30))
        square = np.einsum("rfip,rfiq->rfpq", x, x, optimize=True)
        cross = np.einsum("rfip,rfi->rfp", x, truth)
        others = [values.sum(axis=1, keepdims=True) - values for values in (square, cross)]  # folds but the tested one
        weights = np.linalg.solve(others[0], others[1][..., None])[..., 0]
        errors.append(((truth - np.einsum("rfip,rfp->rfi", x, weights)) ** 2).mean(axis=2))
    claims = {str(run): (errors[0][run], errors[1][run]) for run in range(runs)}
    bound = 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)
    assert np.mean([test.p <= 0.05 for test in paired_tests(claims).values()]) > bound
    assert np.mean([test.p <= 0.05 for test in paired_tests(claims, overlap=0.25).values()]) <= bound
