"""The page of reproduction: printed and ours by table, claims of the paper judged, and rank disagreements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from tasks.pages.page import Column, english, number
from tasks.results.load import Results
from tasks.results.paper import Paper, Table, artefact_name
from tasks.results.printed import Against, Cell
from tasks.results.reproduction import Pair, blocks, figures, pairs, statistics
from tasks.results.significance import decide


def reproduction(results: Results, paper: Paper) -> dict[str, Any]:
    """What fills `suite/reproduction.html.j2`."""
    against = Against(results, paper)
    parts = blocks(against)
    all_pairs = pairs(against, parts, paper.reasons)
    reversed_pairs = [pair for pair in all_pairs if pair.order == "reversed"]
    claims, readings = _claims(results, paper.english)
    caveats = [text for key in ("", results.suite.publication) for text in paper.caveats.get(key, ())]
    return {
        "paper": paper,
        "caveats": caveats,
        "artefacts": _artefacts(parts, all_pairs),
        "numbers": [_numbers(table, [*group]) for table, group in groupby(parts, key=itemgetter("table"))],
        "figures": figures(against),
        "statistics": statistics(results),
        "measured": _measured(results, paper),
        "claims": claims,
        "readings": readings,
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "pairs": all_pairs,
        "reversed": [_disagreement(pair) for pair in reversed_pairs],
        "orders": _orders(reversed_pairs),
        "reasons": _reasons(reversed_pairs),
    }


def _claims(results: Results, names: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row for each claim, with `variants` where verdicts differ, and for each interpretation with its evidence."""
    words = english()["verdicts"]
    places, claims = Counter[str](), dict[int, dict[str, Any]]()
    for claim in results.claims.to_dicts():
        places[claim["artefact"]] += 1
        name = f"{artefact_name(claim['artefact'])} ({places[claim['artefact']]})"
        claims[claim["number"]] = claim | {
            "name": name,
            "verdict": words[claim["verdict"]],
            "variants": [],
            "note": claim["note"] or None,
        }
    readings = []
    for (place, variant, absent), rows in results.evidence.partition_by(
        "number", "reading", "absent", as_dict=True
    ).items():
        claim = claims[place]
        verdict = words[results.verdicts[place][variant or ""]]
        judged = {"reading": names.get(variant, variant or ""), "verdict": verdict}
        claim["variants"] += [judged] if variant else []
        about = {"name": claim["name"], "absent": [names.get(side, side) for side in json.loads(absent)]}
        found = evidence([{key: names.get(value, value) for key, value in row.items()} for row in rows.to_dicts()])
        counts = {"n": len(found["tests"]), **{name: found[name] for name in ("held", "significant", "broken")}}
        readings.append(
            judged | about | {"least": "", "by": ""} | found | (counts if counts["n"] else dict.fromkeys(counts))
        )
    for claim in claims.values():
        if len({each["verdict"] for each in claim["variants"]}) < 2:
            claim["variants"] = []
    return [*claims.values()], readings


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


def _numbers(table: Table, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A printed table as one of ours: a row for each method, with the printed number below each mean."""
    columns, rows = [Column("method", "Method"), Column("runs", "runs")], dict[str, dict[str, Any]]()
    for part in (block["part"] for block in parts):
        for each in part.columns:
            title = each.label if each.group == part.title or len(parts) > 1 else f"{each.group} {each.label}"
            group = part.title if len(parts) > 1 else ""
            key = f"c{len(columns)}"
            columns.append(Column(key, title, "mean", each.digits, each.better, f"{key}_printed", group))
    keys = iter(columns[2:])
    for block in parts:
        shown = [next(keys) for _ in block["part"].columns]
        for method, cells in block["rows"]:
            row = rows.setdefault(method.name, {"method": method.name, "n": set()})
            for column, cell in zip(shown, cells, strict=True):
                row["n"] |= {cell.n} - {0}
                row |= {column.key: cell.mean, f"{column.key}_std": cell.std, f"{column.key}_near": cell.near}
                row[column.second] = None if cell.printed is None else number(cell.printed, column.digits)
    for row in rows.values():
        row["runs"] = "–".join(map(str, sorted({min(row["n"]), max(row["n"])}))) if row["n"] else None
    return {"table": table, "columns": columns, "rows": [*rows.values()]}


def _measured(results: Results, paper: Paper) -> dict[str, Any]:
    """`columns` of what else was measured, and `rows` of means for each compared system that has any."""
    columns = [Column("label", "System")]
    rows: list[dict[str, Any]] = [{"label": system.label} for system in results.suite.compared]
    for group, qualities in paper.measured.items():
        for quality in qualities:
            key, better = f"c{len(columns)}", "lower" if quality.lower else ""
            columns.append(Column(key, quality.label, "number", quality.digits, better, group=group))
            for row, system in zip(rows, results.suite.compared, strict=True):
                row[key] = results.mean(system.experiment, quality.metric, quality.cutoff(0))
    measured = [row for row in rows if any(value is not None for key, value in row.items() if key != "label")]
    return {"columns": columns, "rows": measured} if measured else {}


def _metric(pair: Pair) -> str:
    return pair.column.published + (f" ({pair.column.setting})" if pair.column.setting else "")


def _listed(group: Sequence[Pair]) -> list[str]:
    """Metrics of pairs, with all cut-offs of one together: "hit@5, 10"."""
    cutoffs: dict[str, list[str]] = {}
    for pair in group:
        name, _, k = _metric(pair).partition("@")
        cutoffs.setdefault(name, []).append(k)
    return [name + ("@" if ks[0] else "") + ", ".join(ks) for name, ks in cutoffs.items()]


def _disagreement(pair: Pair) -> dict[str, Any]:
    """A row of the file of all rank disagreements."""
    return {
        "table": pair.table,
        "metric": _metric(pair),
        "better in print": pair.better.method,
        "worse in print": pair.worse.method,
        "printed difference": round(pair.better.printed - pair.worse.printed, 6),  # type: ignore[operator]  # ordered
        "our difference": pair.ours,
        "significant": pair.shown,
        "reason": pair.reason.name if pair.reason else "",
    }


def _orders(reversed_pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A row for each two methods of a table that a reason orders otherwise, of some metric significantly."""
    grouped: dict[tuple[str, ...], list[Pair]] = {}
    for pair in reversed_pairs:
        reason = pair.reason.name if pair.reason else "no known one"
        grouped.setdefault((f"{pair.better.method} before {pair.worse.method}", pair.table, reason), []).append(pair)
    return [
        {
            "order": order,
            "table": artefact_name(table),
            "reason": reason,
            "shown": _listed([pair for pair in group if pair.shown]),
            "others": _listed([pair for pair in group if not pair.shown]),
        }
        for (order, table, reason), group in grouped.items()
        if any(pair.shown for pair in group)
    ]


def _reasons(reversed_pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A row for each reason of reversed pairs, and one for those without."""
    grouped: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in reversed_pairs:
        reason = (pair.reason.name, pair.reason.evidence) if pair.reason else ("no known one", "")
        grouped.setdefault((pair.kind, *reason), []).append(pair)
    return [
        {"kind": english()["reasons_why"][kind], "reason": name, "evidence": text, "pairs": len(group)}
        | {"significant": sum(pair.shown for pair in group)}
        for (kind, name, text), group in sorted(grouped.items(), key=lambda item: item[0][0])
    ]


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
            "name": table.name,
            "title": table.title,
            "printed": len(numbers),
            "measured": sum(cell.n > 0 for cell in numbers),
            "near": sum(bool(cell.near) for cell in numbers),
            "absent": list(dict.fromkeys(cell.method for cell in numbers if not cell.n)),
            "pairs": len(table_pairs),
            "agree": sum(pair.order == "as printed" for pair in table_pairs),
            "shown": sum(pair.shown for pair in table_pairs),
        })  # fmt: skip
    return rows
