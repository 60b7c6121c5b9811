"""What DVC shows of a suite: a dozen numbers for `dvc metrics` with their changes, and tidy tables for `dvc plots`."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tasks.evaluation import statistics
from tasks.privacy.audits.unaudited import is_private
from tasks.results.coverage import reproduction
from tasks.results.facts import BASE
from tasks.results.load import Results, first_split
from tasks.results.standings import SMALL_EPSILON, Board, Measure

Change = tuple[str, str, str, Any, Any]
"""Suite, what (`suite`, `value`, `claim`), its name, before and now; None where there was, or is, none."""
UTILITY: dict[str, Any] = dict.fromkeys(("system", "setting", "level"), pl.String) | {
    **dict.fromkeys(("epsilon", "utility", "low", "high"), pl.Float64),
    "n": pl.Int64,
}
ATTACKS = {"system": pl.String, "attribute": pl.String, "k": pl.Int64, "f1": pl.Float64}


def summary(results: Results, board: Board | None) -> dict[str, Any]:
    """`summary.json`: the same keys in every suite; None where a suite has no such number.

    board: of the suite alone; None where no utility was measured.
    """
    lines = [line for line in results.lines if is_private(line.entry)]
    places = {"ceiling": board and board.ceiling, "noisy_popularity": board and board.noisy}
    places |= {"best_at_small_user_level_epsilon": board and board.best("user", SMALL_EPSILON)}
    return {
        "utility": {"metric": board and board.measure.label, "small_epsilon": SMALL_EPSILON}
        | {name: row and round(row["utility"], 6) for name, row in places.items()},
        "best_at_user_level_epsilon": {f"{each['limit']:g}": _answer(each) for each in board.answers()}
        if board
        else {},
        "ledger": {
            "private": len(lines),
            "finite": sum(line.entry.accounted_epsilon is not None for line in lines),
            "audited": sum(line.audit is not None for line in lines),
            "refuted": sum(line.audit is not None and line.audit["verdict"] == "refuted" for line in lines),
        },
        "claims": dict(sorted(results.claims["verdict"].value_counts().iter_rows())),
        "published": reproduction(results.comparison),
    }


def _answer(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = ("utility", "utility_std", "share", "gain", "audited")
    return {"system": row["system"]} | {name: row[name] and round(row[name], 6) for name in numbers}


@dataclass(frozen=True)
class State:
    """The headline of a suite at one revision."""

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`summary.json`: groups of named values."""
    claims: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(artefact, claim) -> verdict."""


def state(summary: str, claims: str) -> State:
    """The headline of a suite from the texts of summary.json and claims.csv, empty where there was none.

    Raises:
        KeyError, ValueError: they are something else.
    """
    rows = csv.DictReader(io.StringIO(claims))
    return State(json.loads(summary or "{}"), {(row["artefact"], row["claim"]): row["verdict"] for row in rows})


def changes(before: Mapping[str, State], now: Mapping[str, State]) -> Iterator[Change]:
    """What differs in headline values, to three decimals, and in verdicts on claims; a suite that is new or gone."""
    for suite in sorted(before.keys() | now.keys()):
        if suite not in before or suite not in now:
            yield suite, "suite", suite, suite in before, suite in now
            continue
        for kind, old, new in (
            ("value", _flat(before[suite]), _flat(now[suite])),
            ("claim", before[suite].claims, now[suite].claims),
        ):
            for name in dict.fromkeys((*old, *new)):
                if old.get(name) != new.get(name):
                    yield suite, kind, ": ".join(name), old.get(name), new.get(name)


def _flat(state: State) -> dict[tuple[str, ...], Any]:
    named: dict[tuple[str, ...], Any] = {(group,): values for group, values in state.values.items()}
    while nested := [name for name, value in named.items() if isinstance(value, Mapping)]:
        named |= {(*name, key): value for name in nested for key, value in named.pop(name).items()}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in named.items()}


def plots(results: Results, by: Measure, entries: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """File -> table; those of which a suite has nothing have no rows. Training curves are in DVCLive's layout, too.

    entries: of `tasks.results.standings`.
    """
    epochs = curves(results)
    tables = {"utility.csv": utility(results, by, entries), "attacks.csv": attacks(results), "curves.csv": epochs}
    files = {name: table.with_columns(data=pl.lit(results.suite.kind)) for name, table in tables.items()}
    for system in results.suite.systems:
        for metric in ("loss", "valid"):
            steps = epochs.filter(pl.col("system") == system.label, pl.col(metric).is_not_null())
            if len(steps):
                files[f"metrics/{system.experiment}/{metric}.tsv"] = steps.select("step", metric)
    return files


def write_plots(folder: Path, files: dict[str, pl.DataFrame]) -> None:
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
            of_runs = statistics.summary([values[seed] for seed in sorted(values)])
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
        [(system.experiment, system.label) for system in results.suite.systems], ["experiment", "label"], orient="row"
    )
    network = pl.when(pl.col("network").fill_null("") == "").then(None).otherwise("network")
    joined = results.history.join(labels, on="experiment").with_columns(
        system=pl.concat_str("label", network, separator=", ", ignore_nulls=True), step=pl.col("epoch").cast(pl.Int64)
    )
    return joined.group_by("system", "step", maintain_order=True).agg(pl.col("loss", "valid").cast(pl.Float64).mean())
