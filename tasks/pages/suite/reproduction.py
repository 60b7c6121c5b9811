"""The page of reproduction: printed and ours by table, claims of the paper judged, and rank disagreements."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tasks.pages.page import Page
from tasks.results import figures, reproduction
from tasks.results.load import Results
from tasks.results.paper import Paper, artefact_name


def pages(results: Results, paper: Paper) -> list[Page]:
    """The page; none of a suite that reproduces no paper.

    paper: the one that the suite names.
    """
    if results.suite.paper is None:
        return []
    address = f"suites/{results.suite.suite}/reproduction.html"
    return [Page(address, "suite/reproduction.html.j2", context(results, paper))]


def context(results: Results, paper: Paper) -> dict[str, Any]:
    """What the page's template is filled with."""
    parts = reproduction.parts(results, paper)
    pairs = reproduction.pairs(results, parts, paper.reasons)
    claims = results.claims.to_dicts()
    caveats = [text for key in ("", results.suite.publication) for text in paper.caveats.get(key, ())]
    return {
        "paper": paper,
        "name_of": artefact_name,
        "caveats": caveats,
        "artefacts": _artefacts(parts, pairs),
        "blocks": parts,
        "figures": figures.drawn(results, paper),
        "statistics": reproduction.statistics(results),
        "claims": claims,
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "pairs": pairs,
        "reversed": [pair for pair in pairs if pair.order == "reversed"],
    }


def _artefacts(parts: list[dict[str, Any]], pairs: list[reproduction.Pair]) -> list[dict[str, Any]]:
    """A row for each printed table: numbers printed, run, and within 10 %, methods not run, and pairs of methods."""
    rows: dict[str, dict[str, Any]] = {}
    counted = set()
    for of in parts:
        table = of["table"]
        row = rows.setdefault(table.key, {"table": table, "printed": 0, "measured": 0, "near": 0, "absent": {}})
        for place, column in enumerate(of["part"].columns):
            for name, line in of["rows"]:
                number = (table.key, column.data, column.published, column.setting, name)
                cell = line[place]
                if cell.printed is None or number in counted:
                    continue
                counted.add(number)
                row["printed"] += 1
                row["measured"] += cell.ours is not None
                row["near"] += bool(cell.near)
                if cell.ours is None:
                    row["absent"][name] = None
    for key, row in rows.items():
        own = [pair for pair in pairs if pair.table == key]
        row |= {"pairs": len(own), "agree": sum(pair.order == "as printed" for pair in own)}
        row["shown"] = sum(pair.shown for pair in own)
        row["absent"] = list(row["absent"])
    return list(rows.values())
