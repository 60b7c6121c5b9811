"""Tables that `dvc plots` draws: utility against ε, attacks by the length of the list, training curves.

Tidy: a row is a point.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tasks.evaluation.statistics import summary
from tasks.reporting.core import ledger, origins
from tasks.reporting.core.results import Results


def tables(results: Results, k: int) -> dict[str, pl.DataFrame]:
    """File -> table; those of which a suite has nothing have no rows. Training curves are in DVCLive's layout, too.

    k: the cut-off of the utility.
    """
    drawn = curves(results)
    files = {"utility.csv": utility(results, k), "attacks.csv": attacks(results), "curves.csv": drawn}
    files = {name: origins.with_kind(table, results) for name, table in files.items()}
    for system in results.systems:
        for metric in ("loss", "valid"):
            steps = drawn.filter(pl.col("system") == system.label, pl.col(metric).is_not_null())
            if len(steps):
                files[f"metrics/{system.experiment}/{metric}.tsv"] = steps.select("step", metric)
    return files


def write(folder: Path, files: dict[str, pl.DataFrame]) -> None:
    """Files, as `tables` names them, into a folder."""
    for name, table in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write_csv(path, float_precision=6, separator="\t" if path.suffix == ".tsv" else ",")


def utility(results: Results, k: int) -> pl.DataFrame:
    """Columns system, setting, epsilon, utility, low, high, n: every setting whose accounted ε is finite and not 0.

    `epsilon` is of everything that a system learns from; `low` and `high` are the 95 % interval over n seeds.
    """
    chosen, rows = results.layout.utility, []
    for system in results.compared:
        for setting in results.settings(system):
            values = results.values(system, chosen.metric, chosen.cutoff(k), setting, first_split=True)
            epsilon = ledger.total_epsilon(results, system, setting)
            if len(values) and epsilon:
                measured = summary(values)
                rows.append((system.label, setting, epsilon, measured.mean, measured.low, measured.high, measured.n))
    names = ("system", "setting", "epsilon", "utility", "low", "high", "n")
    types = (pl.String, pl.String, *[pl.Float64] * 4, pl.Int64)
    return pl.DataFrame(rows, dict(zip(names, types, strict=True)), orient="row")


def attacks(results: Results) -> pl.DataFrame:
    """Columns system, attribute, k, f1: what the attacker of the headline guesses from the top k, mean over seeds."""
    rows = [
        (system.label, attribute, k, float(np.mean(values)))
        for system in results.compared
        for attribute in results.attributes()
        for metric in [f"attribute/{attribute}/{results.shown_attacker}/f1"]
        for k in results.cutoffs(metric)
        if len(values := results.values(system, metric, k))
    ]
    return pl.DataFrame(
        rows, {"system": pl.String, "attribute": pl.String, "k": pl.Int64, "f1": pl.Float64}, orient="row"
    )


def curves(results: Results) -> pl.DataFrame:
    """Columns system, step, loss, valid: of every epoch at setting `base`, mean over the seeds that reached it.

    Networks that are embedded one by one, without validation, have a curve each.
    """
    points = [
        (", ".join(filter(None, (system.label, network))), record["epoch"], record["loss"], record.get("valid"))
        for system in results.systems
        for (_, network), records in system.trainings.items()
        for record in records
    ]
    types = {"system": pl.String, "step": pl.Int64, "loss": pl.Float64, "valid": pl.Float64}
    return pl.DataFrame(points, types, orient="row").group_by("system", "step", maintain_order=True).mean()
