"""What attacks gain over their controls, as one table for every kind of attack, and whether that is leakage.

An attack leaks something only where it beats every control that decides for its kind. Two rules are shown side by side:
the 95 % interval of one attack lies above zero (missing a leak is worse than naming one too many), and one attack at
least stays significant at 5 % after Bonferroni's correction for all attacks on the same target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

SIGNIFICANCE = 0.05
GAINS: dict[str, Any] = {
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


def table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows under `GAINS`; what a row does not have is null, but for setting base, nothing seen, k 0 and no control."""
    blank = dict.fromkeys(GAINS) | {"setting": "base", "seen": "", "k": 0, "is_control": False}
    return pl.DataFrame([{name: row.get(name, blank[name]) for name in GAINS} for row in rows], schema=GAINS)


def assess(gains: pl.DataFrame, deciding: Sequence[str] = ()) -> pl.DataFrame:
    """A row for each attack at setting `base`: that of the control that it beats least, with `p` and `p_adjusted`.

    Args:
        gains: `GAINS`; rows of controls are left out.
        deciding: controls that an attack has to beat; empty for all. Attacks without any of these do not count.
    """
    counted = gains.filter(~pl.col("is_control") & (pl.col("setting") == "base"))
    if deciding:
        counted = counted.filter(pl.col("control").is_in(deciding))
    hardest = counted.with_row_index("place").sort(pl.col("low").fill_null(-np.inf), maintain_order=True)
    rows = hardest.unique(ATTACK, keep="first").sort("place").drop("place")
    p = pl.Series([_p_value(*row) for row in rows.select("gain", "low", "runs").iter_rows()], dtype=pl.Float64)
    adjusted = (pl.col("p") * pl.len().over("target")).clip(upper_bound=1.0)
    judged = rows.with_columns(p=p).with_columns(p_adjusted=adjusted)
    significant = pl.col("p_adjusted") < SIGNIFICANCE
    return judged.with_columns(significant=significant, above=(pl.col("low") > 0).fill_null(value=False))


def findings(judged: pl.DataFrame) -> list[dict[str, Any]]:
    """What all attacks on each target found, target by target; empty without any.

    `attacks` that were tried, for so many is the correction, on `systems`; the systems that are `leaking`, after the
    correction; `uncorrected`: attacks whose own 95 % interval lies above zero, of which one in forty is expected
    without any leakage; `strongest`: the attack with the least adjusted p, and of these the one that gains most.
    """
    return [
        {
            "target": rows["target"][0],
            "attacks": rows.height,
            "systems": rows["experiment"].unique(maintain_order=True).to_list(),
            "leaking": rows.filter("significant")["experiment"].unique(maintain_order=True).to_list(),
            "uncorrected": int(rows["above"].sum()),
            "strongest": rows.sort("p_adjusted", -pl.col("gain"), maintain_order=True).row(0, named=True),
        }
        for rows in judged.partition_by("target", maintain_order=True)
    ]


def strongest(judged: pl.DataFrame, gains: pl.DataFrame) -> list[dict[str, Any]]:
    """The strongest attack on each target of each system, with its gain over each control C as `over_C`, `low_C`."""
    best = judged.with_row_index("place").sort("p_adjusted", -pl.col("gain"), maintain_order=True)
    best = best.unique(("target", "experiment"), keep="first").sort("place").drop("place")
    over: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in gains.iter_rows(named=True):
        gains_over = over.setdefault(tuple(row[name] for name in ATTACK), {})
        gains_over |= {f"over_{row['control']}": row["gain"], f"low_{row['control']}": row["low"]}
    return [row | over[tuple(row[name] for name in ATTACK)] for row in best.iter_rows(named=True)]


def paired(left: Mapping[int, float], right: Mapping[int, float]) -> dict[str, Any]:
    """`gain`, `low`, `high` and `runs` of the difference of two metrics at their common seeds, by the paired t-test.

    Without two seeds there is no interval. Empty without a common seed.
    """
    seeds = sorted(left.keys() & right.keys())
    if not seeds:
        return {}
    gaps = np.array([left[seed] - right[seed] for seed in seeds])
    gain = {"gain": float(gaps.mean()), "low": None, "high": None, "runs": len(seeds)}
    if len(seeds) < 2:
        return gain
    half = _t(len(seeds)) * float(gaps.std(ddof=1)) / len(seeds) ** 0.5
    return gain | {"low": gain["gain"] - half, "high": gain["gain"] + half}


def _p_value(gain: float, low: float | None, runs: int | None) -> float:
    """Twice the one-sided p of a gain above zero, from its 95 % interval: 1 where it is not above zero.

    The interval of the t-test gives the test back. A bootstrap's lower half is taken as that of a normal distribution.
    Differences that are equal in all runs say nothing about chance; equal for all users, they are as sure as can be.
    """
    from scipy.special import ndtr, stdtr  # a fifth of a second to import, and not every suite was attacked

    if low is None or gain <= 0:
        return 1.0
    if gain <= low:
        return 0.0 if runs is None else 1.0
    if runs is None:
        return float(2 * ndtr(-1.959964 * gain / (gain - low)))
    return float(2 * stdtr(runs - 1, -_t(runs) * gain / (gain - low)))


def _t(runs: int) -> float:
    """The 97.5 % quantile of Student's distribution with `runs` - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(runs - 1, 0.975))
