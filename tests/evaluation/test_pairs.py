"""Which of two systems is better: what intervals cover, and what they depend on."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

from tasks.evaluation.metrics import Measured
from tasks.evaluation.pairs import Difference, by_user, compare, difference, interval, verdicts
from tasks.evaluation.run_numbers import APART

ONE_SPLIT = np.zeros(4, np.int64)
KNOWN = Difference(n_users=100, mean=0.05, var_users=0.04, n_runs=5, var_runs=0.0001)
"""Of 100 users, whose interval at 99 % is 0.05 ± 0.0563."""


def equal(values: NDArray[np.float64], splits: NDArray[np.int64] | None = None) -> Difference:
    """The difference from nothing of (n_runs, n_users) values, one example each."""
    splits = np.zeros(len(values), np.int64) if splits is None else splits
    return difference(values, np.zeros_like(values), np.ones(values.shape, np.int64), splits)


def drawn(
    rng: np.random.Generator, n_runs: int, n_users: int, users: float, runs: float, rest: float
) -> NDArray[np.float64]:
    """(n_runs, n_users) differences whose true mean is 0: effects of users, of runs, and what is left, by deviation."""
    return rng.normal(0, users, n_users) + rng.normal(0, runs, (n_runs, 1)) + rng.normal(0, rest, (n_runs, n_users))


@pytest.mark.parametrize("n_runs", [3, 5])
@pytest.mark.parametrize("effects", [(1.0, 0.0, 0.5), (1.0, 0.1, 0.5), (0.3, 0.3, 0.3), (0.0, 1.0, 1.0)])
def test_intervals_of_99_percent_cover_in_98_9_to_100(n_runs: int, effects: tuple[float, float, float]) -> None:
    """2,000 draws of 100 users each; 98.9 % less 4 standard errors of a coverage of 98.9 % (false alarm 3e-5)."""
    rng = np.random.default_rng([n_runs, *(round(10 * effect) for effect in effects)])
    intervals = [interval(equal(drawn(rng, n_runs, 100, *effects))) for _ in range(2000)]
    covered = np.mean([each.low <= 0 <= each.high for each in intervals])
    assert covered >= 0.989 - 4 * math.sqrt(0.989 * 0.011 / 2000)


def test_the_difference_equals_loops_over_users_and_runs() -> None:
    """Two splits with two and three seeds, each with the same weight."""
    rng = np.random.default_rng(2)
    first, second = rng.random((2, 5, 8))
    gap = difference(first, second, np.ones((5, 8), np.int64), np.array([0, 0, 1, 1, 1]))
    values = first - second
    of_user = [(np.mean(values[:2, user]) + np.mean(values[2:, user])) / 2 for user in range(8)]
    of_split = [np.mean(values[:2]), np.mean(values[2:])]
    assert (gap.n_users, gap.n_runs) == (8, 2)
    assert gap.mean == pytest.approx(np.mean(of_split))
    assert gap.var_users == pytest.approx(np.var(of_user, ddof=1))
    assert gap.var_runs == pytest.approx(np.var(of_split, ddof=1))


def test_the_interval_equals_the_formula_and_that_of_the_t_test_where_only_users_vary() -> None:
    values = np.random.default_rng(3).normal(0.2, 1, 60)
    gap = equal(np.tile(values, (4, 1)))
    assert gap.var_runs == pytest.approx(0, abs=1e-30)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.99)
    assert interval(gap)[1:3] == pytest.approx(tuple(expected))
    width = math.hypot(stats.t.ppf(0.995, 99) * 0.2 / 10, stats.t.ppf(0.995, 4) * 0.01 * math.sqrt(0.2 + 0.25))
    assert interval(KNOWN, overlap=0.25)[1:3] == pytest.approx((0.05 - width, 0.05 + width))


def test_users_with_several_examples_count_by_them() -> None:
    """The mean is over examples, and its variance over users that of 4,000 samples of users, within 10 %."""
    rng = np.random.default_rng(4)
    examples = rng.integers(1, 20, (1, 300))
    sums = examples * rng.normal(0.3, 1, (1, 300)) + rng.normal(0, 1, (1, 300))
    gap = difference(sums, np.zeros_like(sums), examples, np.zeros(1, np.int64))
    assert gap.mean == pytest.approx(sums.sum() / examples.sum())
    samples = rng.integers(0, 300, (4000, 300))
    means = sums[0, samples].sum(axis=1) / examples[0, samples].sum(axis=1)
    assert gap.var_users / 300 == pytest.approx(means.var(), rel=0.1)


def test_users_whom_only_one_split_tests_count_once() -> None:
    """Two splits that test 50 users each are worth as much as one that tests all of them."""
    values = np.random.default_rng(5).random(100)
    examples = np.repeat(np.eye(2, dtype=np.int64), 50, axis=1)
    apart = difference(values * examples, np.zeros((2, 100)), examples, np.array([0, 1]))
    assert apart.mean == pytest.approx(values.mean())
    within = np.sum((values.reshape(2, 50) - values.reshape(2, 50).mean(axis=1, keepdims=True)) ** 2) / 99
    assert apart.var_users == pytest.approx(within)


@pytest.mark.parametrize(("mean", "lower", "verdict"), [
    (0.06, False, "better"), (-0.06, False, "worse"), (0.06, True, "worse"), (-0.06, True, "better"),
    (0.05, False, "none"), (-0.05, True, "none"),
])  # fmt: skip
def test_a_verdict_needs_the_whole_interval_on_one_side(mean: float, lower: bool, verdict: str) -> None:
    judged = interval(replace(KNOWN, mean=mean), lower=lower)
    assert judged.verdict == verdict
    assert not judged.undecided


def test_without_variance_the_interval_is_a_point() -> None:
    assert interval(equal(np.full((3, 10), 0.25))) == pytest.approx((0.25, 0.25, 0.25, "better", ""))
    assert interval(equal(np.zeros((3, 10)))) == (0, 0, 0, "none", "")


@pytest.mark.parametrize(("shape", "why"), [((1, 20), "one run"), ((4, 1), "one user"), ((1, 1), "one run")])
def test_one_run_or_one_user_decides_nothing(shape: tuple[int, int], why: str) -> None:
    judged = interval(equal(np.full(shape, 0.5)))
    assert judged == (0.5, -math.inf, math.inf, "none", why)


def system(values: dict[int, NDArray[np.float64]], metric: str = "full/ndcg") -> pl.DataFrame:
    """A system of such values of users by run."""
    tables = [
        by_user([Measured(metric, 10, np.arange(len(each)), each)]).with_columns(run=pl.lit(run, pl.Int64))
        for run, each in values.items()
    ]
    return pl.concat(tables)


def test_users_are_summed_over_their_examples() -> None:
    table = by_user([Measured("mae", None, np.array([3, 1, 3]), np.array([1.0, 0.5, 2.0]))])
    assert table.rows() == [("mae", None, 1, 0.5, 1), ("mae", None, 3, 3.0, 2)]


def test_runs_are_compared_where_both_have_them() -> None:
    rng = np.random.default_rng(9)
    values = {run: rng.random(12) for run in (0, 1, 2, 7)}
    others = {run: rng.random(12) for run in (0, 2, 5, 7)}
    (row,) = compare(system(values), system(others)).iter_rows(named=True)
    gap = np.array([values[run] - others[run] for run in (0, 2, 7)])
    assert (row["metric"], row["k"], row["n_users"], row["n_runs"]) == ("full/ndcg", 10, 12, 3)
    assert row["mean"] == pytest.approx(gap.mean())
    assert row["var_users"] == pytest.approx(gap.mean(axis=0).var(ddof=1))
    assert row["var_runs"] == pytest.approx(gap.mean(axis=1).var(ddof=1))


@pytest.mark.parametrize("first", [True, False])
def test_a_system_without_randomness_is_compared_with_all_seeds(first: bool) -> None:
    rng = np.random.default_rng(10)
    same, values = rng.random(12), {run: rng.random(12) for run in range(5)}
    fixed, other = system({0: same, 1: same}), system(values)
    (row,) = compare(*((fixed, other) if first else (other, fixed))).iter_rows(named=True)
    gap = (same - np.array(list(values.values()))) * (1 if first else -1)
    assert row["n_runs"] == 5
    assert row["mean"] == pytest.approx(gap.mean())
    alone = compare(system({0: same}), other)
    assert alone["n_runs"].to_list() == [1]  # one seed does not show that nothing is random
    assert verdicts(alone.select(pl.lit("x").alias("a"), pl.lit("y").alias("b"), pl.all()))["undecided"][0] == "one run"


def test_runs_are_matched_within_their_split() -> None:
    rng = np.random.default_rng(11)
    runs = [split * APART + seed for split in range(3) for seed in range(2)]
    first, second = ({run: rng.random(12) for run in runs} for _ in range(2))
    (row,) = compare(system(first), system(second)).iter_rows(named=True)
    of_split = [np.mean([first[run] - second[run] for run in runs[start : start + 2]]) for start in (0, 2, 4)]
    assert row["n_runs"] == 3
    assert row["var_runs"] == pytest.approx(np.var(of_split, ddof=1))


def test_metrics_of_other_examples_are_left_out() -> None:
    """As of ratings that are sensitive in one system and not in the other."""
    examples = [np.array([0, 0, 1]), np.array([0, 1, 1])]
    first, second = (
        by_user([Measured("mae/sensitive", None, users, np.ones(3)), Measured("mae", None, np.arange(3), np.ones(3))])
        .with_columns(run=pl.lit(0, pl.Int64)) for users in examples
    )  # fmt: skip
    assert compare(first, second)["metric"].to_list() == ["mae"]


def test_a_verdict_is_of_the_pair_alone_and_knows_when_less_is_better() -> None:
    rng = np.random.default_rng(12)
    values = {run: rng.random(40) for run in range(4)}
    below = {run: each - 0.5 for run, each in values.items()}
    pair = [pl.lit("x").alias("a"), pl.lit("y").alias("b"), pl.all()]
    lists, errors = (compare(system(values, name), system(below, name)).select(pair) for name in ("full/ndcg", "mae"))
    third = lists.with_columns(b=pl.lit("z"), mean=-lists["mean"])
    judged = verdicts(pl.concat([lists, errors, third]))
    assert judged["verdict"].to_list() == ["better", "worse", "worse"]
    assert judged[:1].equals(verdicts(lists))
    assert verdicts(lists.clear()).is_empty()
