"""Attack on single interactions: whether what is released tells that one of them is there.

The score is the attacker's advantage, true minus false positive rate: 0 is chance, 1 certainty. The other world lacks
an earlier interaction (`removed`) or the last one (`last`), or has two neighbouring ones exchanged (`swapped`).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

BASELINES = ("popular lists", "random lists")
"""Lists of no system: controls of the attack itself."""
VARIED = "epsilon"


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS` of attacks.parquet: the advantage over chance by other world, what is seen and claimed ε.

    What is released without noise (no ε), and lists of no system, are controls: they show what the attack can do.
    """
    rows = []
    for row in _attacks(results).iter_rows(named=True):
        about = {"target": row["world"], "experiment": row["system"], "setting": row["setting"]}
        about |= {"attacker": "likelihood", "seen": row["target"], "epsilon": row["epsilon"], "control": "chance"}
        about |= {"value": row["advantage"], "gain": row["advantage"], "low": row["low"], "high": row["high"]}
        rows.append(about | {"is_control": row["epsilon"] is None or row["system"] in BASELINES})
    return significance.table(rows)


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`points`: every attack, an infinite ε for no noise; `rows`: the largest ε of each system, by what is seen.

    Rows have `experiment`, `seen`, `epsilon`, and for each world W the columns of attacks.parquet under `W` and, where
    nothing is noisy, the advantage under `W_open`.
    """
    del judged
    attacks = _attacks(results).filter(pl.col("setting") == "base")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for attack in attacks.sort("epsilon", nulls_last=False, maintain_order=True).iter_rows(named=True):
        about = {"experiment": attack["system"], "seen": attack["target"], "is_control": attack["system"] in BASELINES}
        row = rows.setdefault((attack["system"], attack["target"]), about | {"epsilon": None})
        if attack["epsilon"] is None:
            row[f"{attack['world']}_open"] = attack["advantage"]
        row |= {attack["world"]: attack, "epsilon": attack["epsilon"]}
    points = attacks.with_columns(pl.col("epsilon").fill_null(float("inf"))).sort("epsilon", maintain_order=True)
    return {"rows": list(rows.values()), "points": points.to_dicts()}


def _attacks(results: Results) -> pl.DataFrame:
    """attacks.parquet; a setting that varies nothing but the claimed ε is `base`, as ε has a column of its own."""
    points = {
        setting
        for system in results.suite.systems
        for setting, keys in system.settings().items()
        if set(keys) <= {VARIED}
    }
    alike = pl.when(pl.col("setting").is_in(points)).then(pl.lit("base")).otherwise("setting")
    order = {name: place for place, name in enumerate((*[of.experiment for of in results.suite.systems], *BASELINES))}
    place = pl.col("system").replace_strict(order, return_dtype=pl.Int32)
    return results.attacks.with_columns(setting=alike).sort(place, maintain_order=True)


KIND = Kind("interactions", "edges", gains, shown=shown)
