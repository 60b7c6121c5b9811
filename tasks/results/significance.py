"""How sure a difference is, by one rule for claims and for attacks, and what attacks gain over their controls.

A comparison depends on its two sides alone. Stored are its estimate and its 95 % interval (`paired`); what they decide
is read off them (`decide`), for which the interval of 99 % must leave out zero. An attack leaks something only where it
beats every control that decides for its kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from tasks.evaluation.run_numbers import split_of

if TYPE_CHECKING:
    from tasks.core.rows import Columns, Row

STORED, WANTED = 0.975, 0.995
"""Quantiles of the intervals that are stored, and of those that decide."""
Undecided = Literal["", "one-run", "equal-runs", "zero-inside"]
GAINS: Columns = {
    "target": pl.String,  # what is inferred
    "experiment": pl.String,  # what is attacked; of controls, what stands for that
    "setting": pl.String,
    "attacker": pl.String,
    "seen": pl.String,  # what the attacker sees of it, where that varies
    "k": pl.Int32,  # length of the list that it sees; 0 for none
    "epsilon": pl.Float64,  # claimed by what is attacked, where that varies
    "control": pl.String,
    "value": pl.Float64,  # the attack's own score
    "gain": pl.Float64,  # over the control; above zero is success
    "low": pl.Float64,  # 95 % interval
    "high": pl.Float64,
    "runs": pl.Int64,  # behind an interval by the t-test; null for one by the bootstrap over users
    "is_control": pl.Boolean,  # whether nothing private is attacked, or nothing that is protected
}
"""One row for each attack and control."""
ATTACK = ("target", "experiment", "setting", "attacker", "seen", "k", "epsilon")
"""Columns that tell attacks apart."""


def table(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows under `GAINS`; what a row does not have is null, but for setting base, nothing seen, k 0 and no control."""
    blank = dict.fromkeys(GAINS) | {"setting": "base", "seen": "", "k": 0, "is_control": False}
    return pl.DataFrame([{name: row.get(name, blank[name]) for name in GAINS} for row in rows], schema=GAINS)


class Decision(NamedTuple):
    """What a difference decides."""

    low: float | None
    """Of the 99 % interval; None for none."""
    high: float | None
    side: int
    """1 for a difference above zero, -1 for one below; 0 where neither is decided."""
    undecided: Undecided
    """Why."""


def decide(difference: float, low: float | None, high: float | None, runs: int | None) -> Decision:
    """The decision of a difference by its 95 % interval.

    Differences that are equal in all runs say nothing about chance; equal for all users, they are as sure as can be.

    runs: independent ones, of an interval by the t-test; None for a bootstrap over users, whose halves are taken as
    those of a normal distribution.
    """
    if low is None or high is None:
        return Decision(None, None, 0, "one-run")
    if runs is not None and high - low <= 1e-12 * abs(difference):
        return Decision(None, None, 0, "equal-runs")
    wider = _quantile(runs, WANTED) / _quantile(runs, STORED)
    low, high = (difference + wider * (end - difference) for end in (low, high))
    side = (low > 0) - (high < 0)
    return Decision(low, high, side, "" if side else "zero-inside")


def assess(gains: pl.DataFrame, deciding: Sequence[str] = ()) -> pl.DataFrame:
    """A row for each attack at setting `base`: that of the control that it beats least, with its `Decision`.

    Args:
        gains: `GAINS`; rows of controls are left out.
        deciding: controls that an attack has to beat; empty for all. Attacks without any of these do not count.
    """
    counted = gains.filter(~pl.col("is_control") & (pl.col("setting") == "base"))
    if deciding:
        counted = counted.filter(pl.col("control").is_in(deciding))
    decisions = [decide(*row) for row in counted.select("gain", "low", "high", "runs").iter_rows()]
    schema = {"low": pl.Float64, "high": pl.Float64, "side": pl.Int8, "undecided": pl.String}
    judged = counted.with_columns(pl.DataFrame(decisions, schema, orient="row"))
    hardest = _firsts(judged, ATTACK, lambda rows: rows.sort("low", nulls_last=False, maintain_order=True))
    return hardest.with_columns(significant=pl.col("side") > 0)


def _firsts(rows: pl.DataFrame, key: tuple[str, ...], order: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Of each key the row that an order has first, in their places."""
    return order(rows.with_row_index("place")).unique(key, keep="first").sort("place").drop("place")


def findings(judged: pl.DataFrame) -> list[dict[str, object]]:
    """What all attacks on each target found, target by target; empty without any.

    `attacks` that were tried on `systems`, of which so many are `significant`: one in two hundred is expected to be
    without any leakage; the systems that are `leaking`; `strongest`: the attack with the largest gain in halves of its
    interval.
    """
    return [
        {
            "target": rows["target"][0],
            "attacks": rows.height,
            "significant": int(rows["significant"].sum()),
            "systems": rows["experiment"].unique(maintain_order=True).to_list(),
            "leaking": rows.filter("significant")["experiment"].unique(maintain_order=True).to_list(),
            "strongest": _strongest_first(rows).row(0, named=True),
        }
        for rows in judged.partition_by("target", maintain_order=True)
    ]


def _strongest_first(judged: pl.DataFrame) -> pl.DataFrame:
    in_halves = (pl.col("gain") / (pl.col("gain") - pl.col("low"))).fill_nan(None)
    return judged.sort(in_halves, "gain", descending=True, nulls_last=True, maintain_order=True)


def strongest(judged: pl.DataFrame, gains: pl.DataFrame) -> list[dict[str, object]]:
    """The strongest attack on each target of each system, with its gain over each control C as `over_C`, `low_C`."""
    over: dict[tuple[object, ...], dict[str, object]] = {}
    for row in gains.iter_rows(named=True):
        gains_over = over.setdefault(tuple(row[name] for name in ATTACK), {})
        gains_over |= {f"over_{row['control']}": row["gain"], f"low_{row['control']}": row["low"]}
    best = _firsts(judged, ("target", "experiment"), _strongest_first)
    return [row | over[tuple(row[name] for name in ATTACK)] for row in best.iter_rows(named=True)]


def paired(left: Mapping[int, float], right: Mapping[int, float], overlap: float | None = None) -> Row:
    """`estimate` of the difference of two metrics at their common runs."""
    return estimate({run: left[run] - right[run] for run in sorted(left.keys() & right.keys())}, overlap)


def estimate(gaps: Mapping[int, float], overlap: float | None = None) -> Row:
    """`gain`, its 95 % interval by the t-test (`low`, `high`), and independent `runs` behind it.

    Splits of the data are independent runs, each the mean over its seeds; on one split its seeds are. Empty without a
    run; without two there is no interval.

    Args:
        gaps: run -> difference.
        overlap: of folds of one cross-validation, tested over training examples of a fold (Nadeau & Bengio 2003); None
            for runs that are independent.
    """
    splits: dict[int, list[float]] = {}
    for run, gap in gaps.items():
        splits.setdefault(split_of(run), []).append(gap)
    values = np.array([fmean(part) for part in splits.values()] if len(splits) > 1 else [*gaps.values()])
    if not len(values):
        return {}
    mean, varies = float(values.mean()), float(np.ptp(values)) > 1e-12 * float(np.abs(values).max())
    result: Row = {"gain": mean, "low": None, "high": None, "runs": len(values)}
    if len(values) < 2:
        return result
    variance = float(values.var(ddof=1)) if varies else 0.0
    half = _quantile(len(values), STORED) * math.sqrt(variance / len(values) + (overlap or 0.0) * variance)
    return result | {"low": mean - half, "high": mean + half}


def _quantile(runs: int | None, level: float) -> float:
    """Of Student's distribution with `runs` - 1 degrees of freedom; of the normal one for None."""
    from scipy.special import ndtri, stdtrit  # a fifth of a second to import, and not every suite was attacked

    return float(ndtri(level) if runs is None else stdtrit(runs - 1, level))
