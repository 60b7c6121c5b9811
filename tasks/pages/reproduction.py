"""The page of reproduction: printed and ours by table, claims of the paper judged, and rank disagreements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.pages.page import Column, english, number
from tasks.results.load import Results
from tasks.results.paper import Paper, Table, artefact_name
from tasks.results.printed import Against
from tasks.results.reproduction import Pair, blocks, figures, pairs, statistics
from tasks.results.significance import decide
from tasks.results.summary import once
from tasks.results.summary import reproduction as counts

if TYPE_CHECKING:
    from tasks.core.rows import Row

DISAGREEMENTS = dict.fromkeys(("table", "order", "metric"), pl.String) | {
    **{"printed": pl.Float64, "ours": pl.Float64, "significant": pl.Boolean},
    **dict.fromkeys(("kind", "reason", "evidence"), pl.String),
}
"""A pair that our means order otherwise than print; by how much each exceeds, and the first reason that covers it."""


def reproduction(results: Results, paper: Paper) -> Row:
    """What fills `suite/reproduction.html.j2`."""
    against = Against(results, paper)
    parts = blocks(against)
    all_pairs = pairs(against, parts, paper.reasons)
    claims, readings = _claims(results, paper)
    caveats = [text for key in ("", results.suite.publication) for text in paper.caveats.get(key, ())]
    return {
        "paper": paper,
        "caveats": caveats,
        "artefacts": _artefacts(results.comparison, [block["table"] for block in parts], all_pairs),
        "numbers": [_numbers(table, [*group]) for table, group in groupby(parts, key=itemgetter("table"))],
        "figures": figures(against),
        "statistics": statistics(results),
        "claims": claims,
        "readings": readings,
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "pairs": all_pairs,
    } | _disagreements([pair for pair in all_pairs if pair.order == "reversed"])


def _claims(results: Results, paper: Paper) -> tuple[list[Row], list[Row]]:
    """A row for each claim, with `variants` where verdicts differ, and for each interpretation with its evidence."""
    words, names = english()["verdicts"], paper.english
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
    for (claim_number, variant, absent), rows in results.evidence.partition_by(
        "number", "reading", "absent", as_dict=True
    ).items():
        claim = claims[claim_number]
        verdict = words[results.verdicts[claim_number][variant or ""]]
        judged = {"reading": names.get(variant, variant or ""), "verdict": verdict}
        claim["variants"] += [judged] if variant else []
        about = {"name": claim["name"], "absent": [_side(paper, **side) for side in json.loads(absent)]}
        bearing = evidence([_named(paper, row) for row in rows.to_dicts()])
        counts = {"n": len(bearing["tests"]), **{name: bearing[name] for name in ("held", "significant", "broken")}}
        readings.append(
            judged | about | {"least": "", "by": ""} | bearing | (counts if counts["n"] else dict.fromkeys(counts))
        )
    for claim in claims.values():
        if len({each["verdict"] for each in claim["variants"]}) < 2:
            claim["variants"] = []
    return [*claims.values()], readings


def _named(paper: Paper, row: Row) -> Row:
    """A row of evidence.csv in the words of its paper, `left` of a trend being what is averaged."""
    named = [side for side in ("left", "right") if row[side]]
    sides = {side: _side(paper, row[side], json.loads(row[f"{side}_setting"])) for side in named}
    trend = {"left": ", ".join(json.loads(row["methods"]))} if row["methods"] else {}
    return {key: paper.english.get(value, value) for key, value in row.items()} | sides | trend


def _side(paper: Paper, method: str, setting: Mapping[str, object]) -> str:
    """A method with what its setting is called, or else its values."""
    values = ", ".join(key if value is None else f"{key} = {value}" for key, value in setting.items())
    called = next((word.text for word in paper.words if setting and word.setting == setting), values)
    return f"{method} ({called})" if called else method


def evidence(rows: Sequence[Row]) -> Row:
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


def _numbers(table: Table, parts: Sequence[Row]) -> Row:
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
        part_columns = [next(keys) for _ in block["part"].columns]
        for method, cells in block["rows"]:
            row = rows.setdefault(method.name, {"method": method.name, "n": set()})
            for column, cell in zip(part_columns, cells, strict=True):
                row["n"] |= {cell.n} - {0}
                row |= {column.key: cell.mean, f"{column.key}_std": cell.std, f"{column.key}_near": cell.near}
                row[column.second] = None if cell.printed is None else number(cell.printed, column.digits)
    for row in rows.values():
        row["runs"] = "–".join(map(str, sorted({min(row["n"]), max(row["n"])}))) if row["n"] else None
    return {"table": table, "columns": columns, "rows": [*rows.values()]}


def _disagreements(reversed_pairs: Sequence[Pair]) -> dict[str, list[dict[str, object]]]:
    """Reversed pairs (`reversed`), their `reasons`, and of each two methods of a table the metrics (`orders`)."""
    rows = [
        {
            "table": artefact_name(pair.table),
            "order": f"{pair.better.method} before {pair.worse.method}",
            "metric": pair.column.published + (f" ({pair.column.setting})" if pair.column.setting else ""),
            "printed": round(abs((pair.better.printed or 0.0) - (pair.worse.printed or 0.0)), 6),
            "ours": pair.ours,
            "significant": pair.shown,
            "kind": english()["reasons_why"][pair.kind],
            "reason": pair.reason.name if pair.reason else "no known one",
            "evidence": pair.reason.evidence if pair.reason else None,
        }
        for pair in reversed_pairs
    ]
    table, significant = pl.DataFrame(rows, schema=DISAGREEMENTS), pl.col("significant")
    orders = table.group_by("order", "table", "reason", maintain_order=True).agg(
        shown=pl.col("metric").filter(significant), others=pl.col("metric").filter(~significant)
    )
    reasons = table.group_by("kind", "reason", "evidence", maintain_order=True).agg(significant.sum(), pairs=pl.len())
    return {
        "reversed": table.drop("evidence").to_dicts(),
        "orders": orders.filter(pl.col("shown").list.len() > 0).to_dicts(),
        "reasons": reasons.sort("kind", maintain_order=True).to_dicts(),
    }


def _artefacts(comparison: pl.DataFrame, tables: Iterable[Table], all_pairs: list[Pair]) -> list[dict[str, object]]:
    """A row for each printed table: numbers printed, run, and within 10 %, methods not run, and pairs of methods."""
    rows = []
    for table in {table.key: table for table in tables}.values():
        numbers = once(comparison.filter(artefact=table.key))
        pairs = [pair for pair in all_pairs if pair.table == table.key]
        rows.append({
            "key": table.key,
            "name": table.name,
            "title": table.title,
            **counts(numbers),
            "absent": numbers.filter(pl.col("ours_mean").is_null())["method"].unique(maintain_order=True).to_list(),
            "pairs": len(pairs),
            "agree": sum(pair.order == "as printed" for pair in pairs),
            "shown": sum(pair.shown for pair in pairs),
        })  # fmt: skip
    return rows
