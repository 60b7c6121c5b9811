"""Tables that `dvc plots` draws: utility against ε by level, attacks by the length of the list, training curves.

Tidy: a row is a point.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

from tasks.evaluation.statistics import summary
from tasks.results.facts import BASE
from tasks.results.load import Results, first_split
from tasks.results.standings import Measure

UTILITY: dict[str, Any] = dict.fromkeys(("system", "setting", "level"), pl.String) | {
    **dict.fromkeys(("epsilon", "utility", "low", "high"), pl.Float64),
    "n": pl.Int64,
}
ATTACKS = {"system": pl.String, "attribute": pl.String, "k": pl.Int64, "f1": pl.Float64}


def plots(results: Results, by: Measure, entries: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """File -> table; those of which a suite has nothing have no rows. Training curves are in DVCLive's layout, too.

    entries: of `tasks.results.standings`.
    """
    drawn = curves(results)
    tables = {"utility.csv": utility(results, by, entries), "attacks.csv": attacks(results), "curves.csv": drawn}
    files = {name: table.with_columns(data=pl.lit(results.suite.kind)) for name, table in tables.items()}
    for system in results.suite.systems:
        for metric in ("loss", "valid"):
            steps = drawn.filter(pl.col("system") == system.label, pl.col(metric).is_not_null())
            if len(steps):
                files[f"metrics/{system.experiment}/{metric}.tsv"] = steps.select("step", metric)
    return files


def write(folder: Path, files: dict[str, pl.DataFrame]) -> None:
    """Files, as `plots` names them, into a folder."""
    for name, table in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write_csv(path, float_precision=6, separator="\t" if path.suffix == ".tsv" else ",")


def utility(results: Results, by: Measure, entries: pl.DataFrame) -> pl.DataFrame:
    """`UTILITY`: every setting whose accounted ε at a level is finite and not 0; a 95 % interval over n seeds."""
    rows = []
    for row in entries.iter_rows(named=True):
        values = first_split(results.values(row["experiment"], by.metric, by.k, row["setting"]))
        if values and row["level"] and row["accounted"] and not math.isinf(row["accounted"]):
            of_runs = summary([values[seed] for seed in sorted(values)])
            names = row["system"], row["setting"], row["level"], row["accounted"]
            rows.append((*names, of_runs.mean, of_runs.low, of_runs.high, of_runs.n))
    return pl.DataFrame(rows, UTILITY, orient="row")


def attacks(results: Results) -> pl.DataFrame:
    """`ATTACKS`: what the first attacker of a suite guesses from the top k, mean over seeds; no rows without one."""
    suite, attacks = results.suite, results.attacks
    if suite.attack is None or "attribute" not in attacks.columns or attacks.is_empty():
        return pl.DataFrame(schema=ATTACKS)
    attacker = suite.attack["attackers"][0]
    rows = [
        (system.label, attribute, k, mean)
        for system in suite.compared
        for attribute in attacks["attribute"].unique().sort()
        for metric in [f"attribute/{attribute}/{attacker}/f1"]
        for k in results.cutoffs(metric)
        if (mean := results.mean(system.experiment, metric, k, BASE)) is not None
    ]
    return pl.DataFrame(rows, ATTACKS, orient="row")


def curves(results: Results) -> pl.DataFrame:
    """Columns system, step, loss, valid: of every epoch at setting `base`, mean over the seeds that reached it.

    Networks that are embedded one by one, without validation, have a curve each.
    """
    labels = pl.DataFrame(
        [(of.experiment, of.label) for of in results.suite.systems], ["experiment", "label"], orient="row"
    )
    network = pl.when(pl.col("network").fill_null("") == "").then(None).otherwise("network")
    joined = results.history.join(labels, on="experiment").with_columns(
        system=pl.concat_str("label", network, separator=", ", ignore_nulls=True), step=pl.col("epoch").cast(pl.Int64)
    )
    return joined.group_by("system", "step", maintain_order=True).agg(pl.col("loss", "valid").cast(pl.Float64).mean())
