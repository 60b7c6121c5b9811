"""The report of one screen: who wins, what it costs, a chart for each level, and all systems in one table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, get_args

import polars as pl

from tasks.privacy.terms import Level
from tasks.results.facts import BASE
from tasks.results.load import Results
from tasks.results.standings import SMALL_EPSILON, Measure, base_budgets, best_bounded, headline, standings

KINDS = ("claimed", "accounted", "audited")


def overview(results: Results, by: Measure, reference: str) -> dict[str, Any]:
    """What fills `suite/index.html.j2`.

    reference: of the suite's paper; empty for none.
    """
    table, spent = standings(results, by), base_budgets(results)
    top = headline(table, spent, by)
    private = spent.filter(pl.col("private"))
    levels = [level for level in get_args(Level) if level in set(private["level"])]
    refuted = results.audits.filter(verdict="refuted")
    own = spent.filter(experiment=top.own["experiment"]) if top.own else spent.clear()
    labels = {system.experiment: system.label for system in results.suite.systems}
    lines = {number for row in refuted["lines"] for number in json.loads(row)}
    drawn = [_level(table, private, spent, level, top.ceiling, top.noisy) for level in levels] if by.metric else []
    return {
        "by": by,
        "top": top,
        "reference": reference,
        "most_runs": max((len(system.seeds) for system in results.suite.compared), default=0),
        "own_budgets": [row for level in levels for row in own.filter(pl.col("private"), level=level).to_dicts()],
        "own_refuted": "refuted" in set(own["verdict"]),
        "audits": results.audits.height,
        "refuted": refuted.height,
        "refuted_labels": list(
            dict.fromkeys(labels[line.experiment] for line in results.lines if line.number in lines)
        ),
        "levels": [level for level in drawn if level["points"]],
        "shown": levels,
        "systems": _systems(results, table, spent),
    }


def _level(
    table: pl.DataFrame,
    private: pl.DataFrame,
    spent: pl.DataFrame,
    level: Any,
    ceiling: dict[str, Any] | None,
    noisy: dict[str, Any] | None,
) -> dict[str, Any]:
    """The chart of one level: its private systems as points, the ceiling and noisy popularity as lines."""
    rows = table.filter(pl.col("utility").is_not_null()).join(private.filter(level=level), on="experiment")
    return {
        "level": level,
        "best": best_bounded(table, spent, level, SMALL_EPSILON if level == "user" else math.inf),
        "points": rows.select(pl.col("label").alias("name"), "utility", *KINDS).to_dicts(),
        "across": [{"name": row["label"], "utility": row["utility"]} for row in (ceiling, noisy) if row],
    }


def _systems(results: Results, table: pl.DataFrame, spent: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the table: a system with the columns `LEVEL_claimed`, ... of each level, its parameters and commit."""
    by_level = {(row["experiment"], row["level"]): row for row in spent.to_dicts()}
    levels = list(dict.fromkeys(spent["level"]))
    commits = {run.name: run.revision for run in results.runs if run.stage == "train"}
    made = []
    for row in table.to_dicts():
        experiment = row["experiment"]
        system = results.system(experiment)
        budgets = {level: by_level.get((experiment, level), dict.fromkeys((*KINDS, "verdict"))) for level in levels}
        cells = {f"{level}_{kind}": budget[kind] for level, budget in budgets.items() for kind in KINDS}
        for level, budget in budgets.items():
            cells[f"{level}_audited_verdict"] = budget["verdict"]
        about = {"parameters": json.dumps(system.config, sort_keys=True), "revision": commits.get(experiment, "")}
        made.append(row | cells | about | {"reasons": _reasons(results, experiment)})
    return made


def _reasons(results: Results, experiment: str) -> Sequence[Any]:
    """Why no finite ε follows for lines of a system, each once."""
    lines = [line for line in results.lines if (line.experiment, line.setting) == (experiment, BASE)]
    unbounded = [line.entry for line in lines if line.entry.accounted_epsilon is None]
    return list({reason.model_dump_json(): reason for entry in unbounded for reason in entry.reasons}.values())
