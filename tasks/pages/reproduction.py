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
from tasks.results.significance import decide


def reproduction(results: Results, paper: Paper) -> dict[str, Any]:
    """What fills `suite/reproduction.html.j2`."""
    against = Against(results, paper)
    parts = blocks(against)
    all_pairs = pairs(against, parts, paper.reasons)
    claims = [claim | {"readings": []} for claim in results.claims.to_dicts()]
    for (number, variant, absent), rows in results.evidence.partition_by(
        "number", "reading", "absent", as_dict=True
    ).items():
        verdict = results.verdicts[number][variant or ""]
        judged = {"reading": variant or "", "verdict": verdict, "absent": json.loads(absent)}
        claims[number]["readings"].append(judged | evidence(rows.to_dicts()))
    caveats = [text for key in ("", results.suite.publication) for text in paper.caveats.get(key, ())]
    return {
        "paper": paper,
        "name_of": artefact_name,
        "caveats": caveats,
        "artefacts": _artefacts(parts, all_pairs),
        "blocks": parts,
        "figures": figures(against),
        "statistics": statistics(results),
        "claims": claims,
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "pairs": all_pairs,
        "reversed": [pair for pair in all_pairs if pair.order == "reversed"],
    }


def evidence(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What bears on one interpretation of a claim.

    `tests` are comparisons with their `Decision`, the least as claimed first, of which `held` have a mean as claimed,
    `significant` of them significantly and `broken` significantly the other way; `floor` are settings next to a trivial
    baseline, the worst first; `numbers` are computed alone.
    """
    compared = sorted((row for row in rows if row["runs"] is not None), key=lambda row: row["difference"])
    numbers = ("difference", "low", "high", "runs")
    tests = [row | decide(*(row[name] for name in numbers))._asdict() for row in compared]
    return {
        "tests": tests,
        "held": sum(row["difference"] > 0 for row in tests),
        "significant": sum(row["side"] > 0 and row["only"] != "contradicts" for row in tests),
        "broken": sum(row["side"] < 0 and row["only"] != "supports" for row in tests),
        "floor": sorted((row for row in rows if row["floor"]), key=lambda row: row["gap"]),
        "numbers": [row for row in rows if row["measure"] and row["runs"] is None and not row["floor"]],
        "runs": sorted({row["runs"] for row in tests}),
    }


def _artefacts(parts: list[dict[str, Any]], all_pairs: list[Pair]) -> list[dict[str, Any]]:
    """A row for each printed table: numbers printed, run, and within 10 %, methods not run, and pairs of methods."""
    cells: dict[str, dict[tuple[str, ...], Cell]] = {}
    tables = {block["table"].key: block["table"] for block in parts}
    for block in parts:
        printed = cells.setdefault(block["table"].key, {})
        for _, line in block["rows"]:
            for column, cell in zip(block["part"].columns, line, strict=True):
                if cell.printed is not None:  # of several scores of one number the first counts
                    printed.setdefault((column.data, column.published, column.setting, cell.method), cell)
    rows = []
    for key, table in tables.items():
        numbers, table_pairs = cells[key].values(), [pair for pair in all_pairs if pair.table == key]
        rows.append({
            "table": table,
            "printed": len(numbers),
            "measured": sum(cell.n > 0 for cell in numbers),
            "near": sum(bool(cell.near) for cell in numbers),
            "absent": list(dict.fromkeys(cell.method for cell in numbers if not cell.n)),
            "pairs": len(table_pairs),
            "agree": sum(pair.order == "as printed" for pair in table_pairs),
            "shown": sum(pair.shown for pair in table_pairs),
        })  # fmt: skip
    return rows
