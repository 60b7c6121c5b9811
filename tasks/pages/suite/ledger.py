"""The privacy ledger: every line with what was audited, gaps each once, audits; a part for each level."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

from tasks.privacy.audits.unaudited import is_private, reason
from tasks.privacy.terms import KnownGap, Level
from tasks.privacy.units import LEVELS
from tasks.results import audits
from tasks.results.budgets import UNPROTECTED, level
from tasks.results.facts import BASE, Together
from tasks.results.load import Line, Results


def ledger(results: Results) -> dict[str, Any]:
    """What fills `suite/ledger.html.j2`: `sections`, one for each level of the ledger, and `gaps`."""
    levels = {level(line.entry) for line in results.lines}
    rows = [_line(results, line) for line in results.lines]
    lines_by_number = {line.number: line for line in results.lines}
    proved = [_audit(results, row, lines_by_number) for row in results.audits.to_dicts()]
    one_run = [_one_run(results, row) for row in results.one_run.to_dicts()]
    sections = [
        {
            "level": name,
            "base": [row for row in rows if row["level"] == name and row["setting"] == BASE],
            "settings": [row for row in rows if row["level"] == name and row["setting"] != BASE],
            "audits": [row for row in proved if row["level"] == name],
            "one_run": [row for row in one_run if row["level"] == name],
            "together": [_together(row) for row in results.composed if _level(row.unit, "") == name],
        }
        for name in get_args(Level)
        if name in levels
    ]
    return {"sections": sections, "gaps": gaps(results), "n_lines": len(rows), "n_audits": len(proved)}


def _line(results: Results, line: Line) -> dict[str, Any]:
    """A row of the ledger: its entry's fields, its audit, and why it has none."""
    entry, audit = line.entry, line.audit or {}
    accounted = math.inf if entry.accounted_epsilon is None else entry.accounted_epsilon
    return {
        "label": results.system(line.experiment).label,
        "level": level(entry),
        "about": "",
        "setting": line.setting,
        "network": line.network,
        "n_seeds": len(line.seeds),
        "entry": entry,
        "claimed": entry.claimed_epsilon,
        "accounted": accounted,
        "audited": audit.get("audited_epsilon"),
        "verdict": audit.get("verdict", ""),
        "provable": audit.get("provable"),
        "half": audit.get("control_half"),
        "none": audit.get("control_none"),
        "unaudited": "" if audit or not is_private(entry) else reason(entry) or "",
    }


def _audit(results: Results, row: dict[str, Any], lines: dict[int, Line]) -> dict[str, Any]:
    """A row of audits.csv with the systems and settings that it is of, and whether its bound could not be larger."""
    concerned = [lines[number] for number in json.loads(row["lines"])]
    labels = list(dict.fromkeys(results.system(line.experiment).label for line in concerned))
    settings = list(dict.fromkeys(line.setting for line in concerned))
    return row | {
        "about": "",
        "level": _level(row["unit"], row["protects"]),
        "labels": labels,
        "settings": [] if BASE in settings else settings,
        "saturated": audits.is_saturated(row),
    }


def _one_run(results: Results, row: dict[str, Any]) -> dict[str, Any]:
    return row | {"label": results.system(row["experiment"]).label, "level": _level(row["unit"], "interaction")}


def _together(row: Together) -> dict[str, Any]:
    """`epsilon` is infinity where no finite one follows."""
    epsilon = math.inf if row.epsilon is None else row.epsilon
    return vars(row) | {"about": "", "epsilon": epsilon, "n_left_out": len(row.left_out)}


def _level(unit: Any, protects: str) -> str:
    return LEVELS.get(unit) or UNPROTECTED.get(protects, "interaction")


def gaps(results: Results) -> list[dict[str, Any]]:
    """Known gaps between guarantees and runs, each once: `labels` of the systems, and their `gaps`; most systems first.

    Of a gap whose numbers differ by setting those of setting `base` are shown.
    """
    concerned: dict[str, dict[str, None]] = {}
    variants: dict[str, dict[str, KnownGap]] = {}
    for line in sorted(results.lines, key=lambda line: line.setting != BASE):
        for gap in line.entry.gaps:
            concerned.setdefault(gap.id, {})[results.system(line.experiment).label] = None
            if line.setting == BASE or gap.id not in variants:
                variants.setdefault(gap.id, {})[gap.model_dump_json()] = gap
    by_owners: dict[tuple[str, ...], list[KnownGap]] = {}
    for name, labels in concerned.items():
        by_owners.setdefault(tuple(labels), []).extend(variants[name].values())
    return [
        {"labels": labels, "gaps": group_gaps}
        for labels, group_gaps in sorted(by_owners.items(), key=lambda each: -len(each[0]))
    ]
