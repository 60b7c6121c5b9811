"""The page of reproduction: printed and ours by table, claims of the paper judged, and rank disagreements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tasks.results.load import Results
from tasks.results.paper import Paper, artefact_name
from tasks.results.printed import Against, Cell
from tasks.results.reproduction import Pair, blocks, figures, pairs, statistics


def reproduction(results: Results, paper: Paper) -> dict[str, Any]:
    """What fills `suite/reproduction.html.j2`."""
    against = Against(results, paper)
    parts = blocks(against)
    every = pairs(against, parts, paper.reasons)
    claims = [claim | {"readings": []} for claim in results.claims.to_dicts()]
    for (number, reading, verdict, absent), rows in _readings(results).items():
        own = {"reading": reading, "verdict": verdict, "absent": json.loads(absent or "[]")}
        claims[number]["readings"].append(own | evidence(rows))
    caveats = [text for key in ("", results.suite.publication) for text in paper.caveats.get(key, ())]
    return {
        "paper": paper,
        "name_of": artefact_name,
        "caveats": caveats,
        "artefacts": _artefacts(parts, every),
        "blocks": parts,
        "figures": figures(against),
        "statistics": statistics(results),
        "measured": _measured(results, paper),
        "claims": claims,
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "pairs": every,
        "reversed": [pair for pair in every if pair.order == "reversed"],
    }


def evidence(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What bears on one interpretation of a claim.

    `tests` are comparisons, the least as claimed first, of which `held` have a mean as claimed, `significant` of them
    significantly and `broken` significantly the other way; `floor` are settings next to a trivial baseline, the worst
    first; `numbers` are computed alone.
    """
    tests = sorted((row for row in rows if row["runs"] is not None), key=lambda row: row["difference"])
    return {
        "tests": tests,
        "held": sum(row["difference"] > 0 for row in tests),
        "significant": sum(row["as_claimed"] for row in tests),
        "broken": sum(row["reversed"] for row in tests),
        "floor": sorted((row for row in rows if row["floor"]), key=lambda row: row["gap"]),
        "numbers": [row for row in rows if row["measure"] and row["runs"] is None and not row["floor"]],
        "runs": sorted({row["runs"] for row in tests}),
    }


def _readings(results: Results) -> dict[tuple[int, str, str, str], list[dict[str, Any]]]:
    """Rows of evidence.csv by claim and reading."""
    grouped: dict[tuple[int, str, str, str], list[dict[str, Any]]] = {}
    for row in results.evidence.to_dicts():
        key = (row["number"], row["reading"] or "", row["verdict"], row["absent"])
        grouped.setdefault(key, []).append(row)
    return grouped


def _measured(results: Results, paper: Paper) -> list[dict[str, Any]]:
    """`group`, its `qualities` that were measured, and a row of means for each compared system."""
    tables = []
    for group, qualities in paper.measured.items():
        rows = []
        for system in results.suite.compared:
            means = {of.metric: results.mean(system.experiment, of.metric, of.cutoff(0)) for of in qualities}
            if any(mean is not None for mean in means.values()):
                rows.append({"label": system.label} | means)
        if rows:
            tables.append({"group": group, "qualities": qualities, "rows": rows})
    return tables


def _artefacts(parts: list[dict[str, Any]], every: list[Pair]) -> list[dict[str, Any]]:
    """A row for each printed table: numbers printed, run, and within 10 %, methods not run, and pairs of methods."""
    cells: dict[str, dict[tuple[str, ...], Cell]] = {}
    tables = {of["table"].key: of["table"] for of in parts}
    for of in parts:
        known = cells.setdefault(of["table"].key, {})
        for _, line in of["rows"]:
            for column, cell in zip(of["part"].columns, line, strict=True):
                if cell.printed is not None:  # of several scores of one number the first counts
                    known.setdefault((column.data, column.published, column.setting, cell.method), cell)
    rows = []
    for key, table in tables.items():
        numbers, own = cells[key].values(), [pair for pair in every if pair.table == key]
        row = {"table": table, "printed": len(numbers), "measured": sum(cell.n > 0 for cell in numbers)}
        row |= {"near": sum(bool(cell.near) for cell in numbers), "pairs": len(own)}
        row |= {"agree": sum(pair.order == "as printed" for pair in own), "shown": sum(pair.shown for pair in own)}
        rows.append(row | {"absent": list(dict.fromkeys(cell.method for cell in numbers if not cell.n))})
    return rows
