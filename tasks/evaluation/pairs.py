"""Which of two systems is better: their difference over users and runs, and an interval that depends on nothing else.

With D_us = a_us - b_us for users u (n of them) and runs s (S of them), V_u = Var_u(mean over s of D_us) / n and
V_s = Var_s(mean over u of D_us) / S, the interval is mean ± sqrt(t²_{n-1} V_u + t²_{S-1} V_s), t being the quantile of
Student's distribution. Runs are seeds or, where the data were split several times, splits, each the mean over its
seeds; over overlapping folds V_s has the factor of Nadeau & Bengio, "Inference for the Generalization Error", Machine
Learning 2003. Simulated, intervals of 99 % cover in 98.9 to 100 % of the cases (tests/evaluation/test_pairs.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.contracts import DOUBLE, INT, LONG, TEXT, contract
from tasks.evaluation.metrics import Measured
from tasks.evaluation.run_numbers import split_of

Verdict = Literal["better", "worse", "none"]
LEVEL = 0.99
"""Of the intervals by which one system is called better than another."""
ALL = "all"
"""The facet that has every user."""
LOWER = ("mae", "mae/uncut", "mae/sensitive", "mae/public")
"""Metrics of which less is better."""

BY_USER = contract(("k",), metric=TEXT, k=INT, user=INT, total=DOUBLE, examples=INT)
"""What one run is worth to each user. The metric is the sum of `total`, over the user's examples, divided by that of
`examples`."""
PAIRS = contract(
    ("k", "var_users", "var_runs"),
    **dict.fromkeys(("a", "b", "metric"), TEXT),
    k=INT,
    facet=TEXT,
    n_users=LONG,
    mean=DOUBLE,
    var_users=DOUBLE,
    n_runs=LONG,
    var_runs=DOUBLE,
)
"""metric: as in METRICS, at setting `base`; facet: which users; the rest are the fields of `Difference`."""


@dataclass(frozen=True)
class Difference:
    """How much one system's metric is above another's."""

    n_users: int
    mean: float
    """Over runs, of splits each with the same weight."""
    var_users: float | None
    """Variance over users of their part in the mean; None for one user."""
    n_runs: int
    """Seeds or, where there are several, splits."""
    var_runs: float | None
    """Variance over them; None for one."""


FIELDS = tuple(field.name for field in fields(Difference))


class Interval(NamedTuple):
    """A difference with its interval, and what follows from it."""

    mean: float
    low: float
    high: float
    verdict: Verdict
    undecided: Literal["", "one run", "one user"]
    """Why there is no interval; its ends are then infinite."""


def by_user(measured: Iterable[Measured]) -> pl.DataFrame:
    """BY_USER of one run: a row for each metric and each user who has an example of it."""
    tables = []
    for metric, k, users, values in measured:
        examples = np.bincount(users)
        tested = np.flatnonzero(examples)
        total = np.bincount(users, values)
        columns = {"user": tested, "total": total[tested], "examples": examples[tested]}
        tables.append(pl.DataFrame(columns).with_columns(metric=pl.lit(metric), k=pl.lit(k, pl.Int32)))
    return pl.concat(tables).select(BY_USER.names)


def difference(
    first: NDArray[np.float64], second: NDArray[np.float64], examples: NDArray[np.generic], splits: NDArray[np.integer]
) -> Difference:
    """The first system minus the second in one metric, which is an average over examples.

    Where users have one example each, `var_users` is the variance over users of the mean over runs. Otherwise a user's
    part in the mean is linearised: D_us less the run's mean for each of the user's examples, as for a ratio of sums.

    Args:
        first, second: (n_runs, n_users) sums over each user's examples.
        examples: (n_runs, n_users) numbers of them; 0 where a run does not test a user.
        splits: (n_runs,) the split of the data that each run is of.
    """
    if not first.shape == second.shape == examples.shape == (len(splits), examples.shape[1]) or not examples.size:
        raise ValueError(f"sums of {first.shape} and {second.shape}, {examples.shape} examples, {splits.shape} splits")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a value of a user is not finite")
    per_run, n_users = examples.sum(axis=1), examples.shape[1]
    if not (per_run.all() and examples.any(axis=0).all()):
        raise ValueError("a run, or a user, has no examples")
    gap = first - second
    of_run = gap.sum(axis=1) / per_run
    _, split, n_seeds = np.unique(splits, return_inverse=True, return_counts=True)
    share = 1.0 / (len(n_seeds) * n_seeds[split])
    parts = n_users * (share / per_run) @ (gap - of_run[:, None] * examples)
    runs = np.bincount(split, of_run / n_seeds[split]) if len(n_seeds) > 1 else of_run
    var_users = float(parts @ parts) / (n_users - 1) if n_users > 1 else None
    var_runs = float(runs.var(ddof=1)) if len(runs) > 1 else None
    return Difference(n_users, float(share @ of_run), var_users, len(runs), var_runs)


def interval(gap: Difference, *, overlap: float = 0.0, lower: bool = False) -> Interval:
    """The interval of a difference for other users and other runs, and whether the first system is better.

    Args:
        overlap: where runs are folds of one cross-validation, tested over training examples of a fold.
        lower: whether less of the metric is better.
    """
    if not 0 <= overlap < math.inf:
        raise ValueError(f"the overlap must lie from 0, not {overlap}")
    variances = [gap.var_users or 0.0, gap.var_runs or 0.0]
    if not (np.isfinite([gap.mean, *variances]).all() and min(variances) >= 0):
        raise ValueError(f"not a difference: {gap}")
    if gap.var_runs is None or gap.var_users is None:
        return Interval(gap.mean, -math.inf, math.inf, "none", "one run" if gap.var_runs is None else "one user")
    from scipy.special import stdtrit  # a fifth of a second to import, and not every page compares

    tail = (1 + LEVEL) / 2
    width = math.hypot(
        float(stdtrit(gap.n_users - 1, tail)) * math.sqrt(gap.var_users / gap.n_users),
        float(stdtrit(gap.n_runs - 1, tail)) * math.sqrt(gap.var_runs * (1 / gap.n_runs + overlap)),
    )
    low, high = gap.mean - width, gap.mean + width
    side = (low > 0) - (high < 0)
    verdict: Verdict = "none" if not side else "better" if (side > 0) != lower else "worse"
    return Interval(gap.mean, low, high, verdict, "")


def compare(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Differences of two systems on the same data in all metrics that both were tested in: PAIRS without `a` and `b`.

    They are of common users and common runs. A system without randomness, one that is worth the same to every user
    with each of its seeds on a split, is compared with every seed of the other. Metrics of which some users have other
    numbers of examples in one system than in the other are left out.

    Args:
        first, second: BY_USER of all runs, with a column `run` (`tasks.evaluation.run_numbers`).
    """
    keys = ["metric", "k", "user"]
    joined = (
        _matched(first, second)
        .join(first, left_on="first", right_on="run")
        .join(second, left_on=["second", *keys], right_on=["run", *keys], nulls_equal=True, suffix=" of second")
    )
    rows = []
    for (metric, k), part in joined.sort("metric", "k").group_by("metric", "k", maintain_order=True):
        if not part["examples"].equals(part["examples of second"]):
            continue
        users, user = np.unique(part["user"].to_numpy(), return_inverse=True)
        runs, run = np.unique(part["run"].to_numpy(), return_inverse=True)
        first_sums, second_sums, examples = np.zeros((3, len(runs), len(users)))
        first_sums[run, user], second_sums[run, user] = part["total"].to_numpy(), part["total of second"].to_numpy()
        examples[run, user] = part["examples"].to_numpy()
        gap = difference(first_sums, second_sums, examples, np.array([split_of(each) for each in runs.tolist()]))
        rows.append({"metric": metric, "k": k, "facet": ALL} | asdict(gap))
    return pl.DataFrame(rows, schema={name: kind for name, kind in pl.Schema(PAIRS).items() if name not in ("a", "b")})


def _matched(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Columns `run`, its number, and `first` and `second`, the runs of each system that are compared there."""
    seeds = [sorted(table["run"].unique()) for table in (first, second)]
    rows = []
    for split in sorted({split_of(run) for run in seeds[0]} & {split_of(run) for run in seeds[1]}):
        first_runs, second_runs = ([run for run in runs if split_of(run) == split] for runs in seeds)
        if first_runs != second_runs and _constant(first, first_runs):
            rows += [(run, first_runs[0], run) for run in second_runs]
        elif first_runs != second_runs and _constant(second, second_runs):
            rows += [(run, run, second_runs[0]) for run in first_runs]
        else:
            rows += [(run, run, run) for run in first_runs if run in second_runs]
    return pl.DataFrame(rows, schema=dict.fromkeys(("run", "first", "second"), first.schema["run"]), orient="row")


def _constant(table: pl.DataFrame, runs: list[int]) -> bool:
    """Whether several runs are worth the same to every user; one alone does not show that."""
    parts = [table.filter(run=run).drop("run").sort("metric", "k", "user") for run in runs]
    return len(parts) > 1 and all(part.equals(parts[0]) for part in parts[1:])


def verdicts(pairs: pl.DataFrame, *, overlap: float = 0.0) -> pl.DataFrame:
    """Intervals and verdicts of stored pairs: columns a, b, metric, k, facet, and those of `Interval`.

    Args:
        pairs: PAIRS; every row has a verdict of its own.
        overlap: as of `interval`.
    """
    intervals = [
        interval(
            Difference(*(row[name] for name in FIELDS)),
            overlap=overlap,
            lower=row["metric"] in LOWER,
        )
        for row in pairs.iter_rows(named=True)
    ]
    schema = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "verdict": pl.String, "undecided": pl.String}
    return pairs.select("a", "b", "metric", "k", "facet").hstack(pl.DataFrame(intervals, schema=schema, orient="row"))
