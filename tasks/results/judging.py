"""What a paper says of its tables and figures, next to our numbers: `claims.csv` and `evidence.csv`.

Verdicts are in neither: `tasks.results.claims.verdict` reads them off the numbers. Intervals over runs speak of the
users and items at hand, as the paper's averages do: runs share the attacked users or the held-out items, or split the
same users again (embeddings).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from tasks.results.claims import Claim, Computed, Readings, Row, Spec
from tasks.results.comparisons import below_floor, comparisons
from tasks.results.load import CLAIMS, EVIDENCE
from tasks.results.printed import Against
from tasks.results.significance import estimate

Function = Callable[[Against], Any]
"""What a paper's file names."""


def claim_tables(against: Against, k: int, functions: Mapping[str, Function]) -> dict[str, pl.DataFrame]:
    """`claims` and `evidence`: every claim of the suite's paper, table by table; no rows without a paper.

    On other data than the paper's there are none either, unless the paper is tested there, too (`Paper.elsewhere`).

    k: the cut-off of claims for which the paper names none; functions: all that the paper's file names.
    """
    paper, rows = against.paper, list[Row]()
    if against.compared and (paper.elsewhere or against.printed()):
        rows = claim_rows(against, k, functions)
    order = [paper.data_table, paper.settings_table]
    order += [table.key for table in paper.tables] + [figure.key for figure in paper.figures]
    claims, evidence = [], []
    for number, row in enumerate(sorted(rows, key=lambda each: order.index(each.artefact))):
        note = row.note if isinstance(row, Claim) else ""
        claims.append({"number": number, "artefact": row.artefact, "claim": row.claim, "note": note})
        for variant, lines in _evidence(against, row, functions).items():
            evidence += [{"number": number, "reading": variant, "absent": "[]", "most_of": 0} | line for line in lines]
    kind = pl.lit(against.results.suite.kind)
    return {
        "claims": pl.DataFrame(claims, schema={**CLAIMS, "data": pl.String}).with_columns(data=kind),
        "evidence": pl.DataFrame(evidence, schema=EVIDENCE),
    }


def claim_rows(against: Against, k: int, functions: Mapping[str, Function]) -> list[Row]:
    """What the paper claims, for these results; `k` is the cut-off of claims for which it names none."""
    paper = against.paper
    names = {
        "k": k,
        "data": against.origin,
        "printed": bool(against.printed()),
        "systems": [system.model for system in against.results.suite.compared],
    }
    return paper.claim_rows(names | (functions[paper.numbers](against) if paper.numbers else {}))


def _evidence(against: Against, row: Row, functions: Mapping[str, Function]) -> dict[str, Sequence[dict[str, Any]]]:
    """Interpretation -> rows of `EVIDENCE`."""
    if isinstance(row, Readings):
        return {variant: tested(against, spec) for variant, spec in row.specs.items()}
    if isinstance(row, Computed):
        margin, numbers = functions[row.computed_by](against)
        values = [{"measure": name, "left_mean": float(value)} for name, value in numbers.items()]
        return {"": [{"case": 0, "difference": margin, "low": margin, "high": margin}, *values]}
    return {} if isinstance(row, Claim) else {"": tested(against, row)}


def tested(against: Against, spec: Spec) -> list[dict[str, Any]]:
    """Rows of `EVIDENCE` on one interpretation of a claim; one row at least, with what was not run."""
    compared, absent = comparisons(against, spec)
    cases = {group: case for case, group in enumerate(dict.fromkeys(group for group, *_ in compared))}
    rows = list[dict[str, Any]]()
    for group, about, gaps in compared:
        measured = estimate(gaps, against.paper.overlap)
        rows.append(about | {"case": cases[group], "difference": measured.pop("gain")} | measured)
    floor = {"floor": spec.floor, "right": spec.floor, "right_setting": "{}"}
    rows += [floor | row for row in below_floor(against, spec)]
    lacking = json.dumps([{"method": side.method, "setting": side.values} for side in absent])
    shared = {"absent": lacking, "most_of": spec.cases if spec.most else 0}
    return [shared | row for row in rows or [{}]]
