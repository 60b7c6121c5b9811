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
from tasks.results.standings import SMALL_EPSILON, Board, Measure, boards

KINDS = ("claimed", "accounted", "audited")


def overview(results: Results, by: Measure, entries: pl.DataFrame, reference: str) -> dict[str, Any]:
    """What fills `suite/index.html.j2`.

    Args:
        entries: `tasks.results.standings.ENTRIES`.
        reference: of the suite's paper; empty for none.
    """
    base = entries.filter(setting=BASE)
    board = next(iter(boards([(by, entries)])), None)
    private = set(base.filter("private")["level"])
    levels = [level for level in get_args(Level) if level in private]
    refuted = results.audits.filter(verdict="refuted")
    lines = {number for row in refuted["lines"] for number in json.loads(row)}
    labels = [results.system(line.experiment).label for line in results.lines if line.number in lines]
    method_rows = base.filter("own").to_dicts()
    budgets = {row["level"]: row for row in method_rows if row["private"]}
    charts = [_level(board, level) for level in levels] if board else []
    return {
        "by": by,
        "own": method_rows[0] if method_rows else None,
        "own_budgets": [budgets[level] for level in levels if level in budgets],
        "own_refuted": any(row["verdict"] == "refuted" for row in method_rows),
        "ceiling": board and board.ceiling,
        "noisy": board and board.noisy,
        "best": board and board.best("user", SMALL_EPSILON, noisy=True),
        "reference": reference,
        "most_runs": max((len(system.seeds) for system in results.suite.compared), default=0),
        "audits": results.audits.height,
        "refuted": refuted.height,
        "refuted_labels": list(dict.fromkeys(labels)),
        "levels": [level for level in charts if level["points"]],
        "shown": levels,
        "systems": _systems(results, base),
    }


def _level(board: Board, level: Level) -> dict[str, Any]:
    """The chart of one level: its private systems as points, the ceiling and noisy popularity as lines."""
    lines = [row for row in (board.ceiling, board.noisy) if row]
    return {
        "level": level,
        "best": board.best(level, SMALL_EPSILON if level == "user" else math.inf, noisy=True),
        "points": board.at(level).select(pl.col("system").alias("name"), "utility", *KINDS).to_dicts(),
        "across": [{"name": row["system"], "utility": row["utility"]} for row in lines],
    }


def _systems(results: Results, base: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the table: a system with the columns `LEVEL_claimed`, ... of each level, its parameters and commit."""
    levels = base["level"].drop_nulls().unique()
    commits = {run.name: run.revision for run in results.runs if run.stage == "train"}
    rows: dict[str, dict[str, Any]] = {}
    for row in base.to_dicts():
        experiment = row["experiment"]
        about: dict[str, Any] = {"parameters": json.dumps(results.system(experiment).config, sort_keys=True)}
        about |= {"revision": commits.get(experiment, ""), "reasons": _reasons(results, experiment)}
        empty = dict.fromkeys(
            f"{level}_{kind}" for level in levels for kind in (*KINDS, "audited_verdict", "accounted_observer")
        )
        cells = rows.setdefault(experiment, empty | row | about)
        cells |= {f"{row['level']}_{kind}": row[kind] for kind in KINDS}
        cells |= {
            f"{row['level']}_audited_verdict": row["verdict"],
            f"{row['level']}_accounted_observer": row["observer"],
        }
    return [*rows.values()]


def _reasons(results: Results, experiment: str) -> Sequence[Any]:
    """Why no finite ε follows for lines of a system, each once."""
    lines = [line for line in results.lines if (line.experiment, line.setting) == (experiment, BASE)]
    unbounded = [line.entry for line in lines if line.entry.accounted_epsilon is None]
    return list({reason.model_dump_json(): reason for entry in unbounded for reason in entry.reasons}.values())
