"""What a paper says about its tables and figures, held against our numbers: `claims.csv` and `evidence.csv`.

A claim is one or more comparisons, each tested in both directions by a paired t-test over seeds, each direction at
2.5 %. A claim is supported if every comparison is significant as claimed: all of them must be, so none is corrected
(the intersection-union test). It is contradicted if a comparison is significant the other way after Holm's correction
over all of the claim's, or in another claim that has it, too. Otherwise it is not decided. A claim of what holds "in
most cases", "in general" or "generally" needs more than half of its cases, and is contradicted by half of them; there
both directions of all comparisons are corrected together. A sentence that can be read in several ways is one claim;
where the readings have different verdicts it depends on the reading, and where some were not run it is not decided.
Tests over seeds speak of the users and items at hand, as the paper's averages do: seeds share the attacked users or the
held-out items, or split the same users again (embeddings).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from tasks.errors import DataError
from tasks.evaluation import statistics
from tasks.evaluation.statistics import PairedTest
from tasks.results.claims import Claim, Computed, Readings, Row, Spec, Verdict
from tasks.results.comparisons import Comparison, below_floor, comparisons
from tasks.results.load import CLAIMS, EVIDENCE, Results
from tasks.results.printed import Against

SIGNIFICANCE = 0.05
ONE_SIDED = 0.025
Function = Callable[[Against], Any]
"""What a paper's file names."""


@dataclass(frozen=True)
class Judged:
    """One interpretation of a claim with its verdict and the comparisons behind it."""

    verdict: Verdict
    evidence: tuple[dict[str, Any], ...] = ()
    """Rows of `EVIDENCE`, without claim and reading."""
    absent: tuple[str, ...] = ()


def claim_tables(against: Against, k: int, functions: Mapping[str, Function]) -> dict[str, pl.DataFrame]:
    """`claims` and `evidence`: every claim of the suite's paper, table by table; no rows without a paper.

    On other data than the paper's there are none either, unless the paper is tested there, too (`Paper.elsewhere`).

    Args:
        k: the cut-off of claims for which the paper names none.
        functions: all that the paper's file names.
    """
    paper, rows = against.paper, list[Row]()
    if against.compared and (paper.elsewhere or against.printed()):
        rows = claim_rows(against, k, functions)
    order = [paper.data_table, paper.settings_table]
    order += [table.key for table in paper.tables] + [figure.key for figure in paper.figures]
    judged = sorted(_judged(against, rows, functions), key=lambda each: order.index(each[0].artefact))
    claims, evidence = [], []
    for number, (row, readings) in enumerate(judged):
        about = {"number": number, "artefact": row.artefact}
        note = row.note if isinstance(row, Claim) else ""
        claims.append(about | {"claim": row.claim, "verdict": merged(readings), "note": note})
        for variant, result in readings.items():
            line = {"number": number, "reading": variant, "verdict": result.verdict}
            evidence += [line | {"absent": json.dumps(result.absent)} | each for each in result.evidence or ({},)]
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


def merged(readings: Mapping[str, Judged]) -> Verdict:
    """The verdict of all readings of a sentence."""
    verdicts = {judged.verdict for judged in readings.values()}
    run = verdicts - {"not run"}
    if len(run) > 1:
        return "depends on the reading"
    if run and run != verdicts:
        return "not decided"  # what was not run may go either way
    return next(iter(run), "not run")


def _judged(
    against: Against, rows: Sequence[Row], functions: Mapping[str, Function]
) -> Iterator[tuple[Row, dict[str, Judged]]]:
    tested = iter(_verdicts(against, [spec for row in rows for spec in _specs(row)]))
    for row in rows:
        if isinstance(row, Readings):
            yield row, {variant: next(tested) for variant in row.specs}
        elif isinstance(row, Computed):
            verdict, numbers = functions[row.computed_by](against)
            values = [{"measure": name, "left_mean": float(value)} for name, value in numbers.items()]
            yield row, {"": Judged(verdict, tuple(values))}
        elif isinstance(row, Claim):
            yield row, {"": Judged(row.verdict)}
        else:
            yield row, {"": next(tested)}


def _specs(row: Row) -> Sequence[Spec]:
    if isinstance(row, Readings):
        return [*row.specs.values()]
    return () if isinstance(row, Computed | Claim) else (row,)


def _verdicts(against: Against, specs: Sequence[Spec]) -> list[Judged]:
    compared_specs = [(spec, *comparisons(against, spec)) for spec in specs]
    tested = [_tests(against, spec, compared) for spec, compared, _ in compared_specs]
    compared_rows = zip(chain(*(compared for _, compared, _ in compared_specs)), chain(*tested), strict=True)
    broken = {
        _key(comparison) for comparison, row in compared_rows if row["reversed"]
    }  # by any claim that has the comparison
    judged = []
    for (spec, compared, absent), rows in zip(compared_specs, tested, strict=True):
        rows = [row | {"reversed": _key(comparison) in broken} for comparison, row in zip(compared, rows, strict=True)]
        verdict = _verdict(spec, compared, rows, absent)
        rows += [{"floor": spec.floor, "right": spec.floor} | row for row in below_floor(against, spec)]
        judged.append(Judged(verdict, tuple(rows), tuple(absent)))
    return judged


def _tests(against: Against, spec: Spec, compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Comparisons as rows of `EVIDENCE`: `difference` is by how much one is as claimed, with its 95 % interval.

    `as_claimed`, `reversed`: whether it is significant so; without a test where it is of one run.
    """
    tested = [index for index, sides in enumerate(compared) if len(sides.left) > 1]
    claimed = {f"{index} as claimed": (compared[index].left, compared[index].right) for index in tested}
    other = {f"{index} reversed": (compared[index].lowest, compared[index].left) for index in tested}
    if spec.most:
        tests = paired_tests(against, claimed | other)
        significant = {name: test.p_holm < SIGNIFICANCE for name, test in tests.items()}
    else:
        tests, reversed_ = paired_tests(against, claimed), paired_tests(against, other)
        significant = {name: test.p < ONE_SIDED for name, test in tests.items()}
        significant |= {name: test.p_holm < ONE_SIDED for name, test in reversed_.items()}
    rows = []
    for index, comparison in enumerate(compared):
        test, gap = tests.get(f"{index} as claimed"), comparison.left - comparison.right
        rows.append({
            **{name: value for name, value in comparison.about.items() if name in EVIDENCE},
            **{name: test and getattr(test, name) for name in ("low", "high", "effect")},
            "difference": float(gap.mean()), "runs": len(gap),
            "as_claimed": significant.get(f"{index} as claimed", False),
            "reversed": significant.get(f"{index} reversed", False),
            "in_every_run": "reversed" if (comparison.left < comparison.lowest).all() else "",
        })  # fmt: skip
    return rows


def paired_tests(against: Against, claims: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> dict[str, PairedTest]:
    """Paired tests over the suite's seeds and splits, or over its folds with the correction for their overlap.

    claims: name -> two arrays (n_runs,) in the order of the runs' numbers.
    """
    results = against.results
    by_split = {name: (_by_split(results, left), _by_split(results, right)) for name, (left, right) in claims.items()}
    return statistics.paired_tests(by_split, overlap=against.paper.overlap)


def _by_split(results: Results, values: ArrayLike) -> NDArray[np.float64]:
    """(n_runs,) values as (n_splits, n_seeds), where they are of all splits; all systems have the same seeds there.

    Raises:
        DataError: they are of more runs than one split has, and not of all.
    """
    array, suite = np.asarray(values, np.float64), results.suite
    n_runs = max(len(system.seeds) for system in suite.compared) if suite.n_splits > 1 else 0
    if n_runs and n_runs // suite.n_splits < len(array) != n_runs:
        raise DataError(f"{suite.suite}: {len(array)} of {n_runs} runs on {suite.n_splits} splits have a value")
    return array.reshape(suite.n_splits, -1) if len(array) == n_runs else array


def _key(comparison: Comparison) -> tuple[bytes, bytes]:
    """What is compared, in whichever claim."""
    return comparison.left.tobytes(), comparison.lowest.tobytes()


def _verdict(spec: Spec, compared: Sequence[Comparison], rows: Sequence[Any], absent: Sequence[str]) -> Verdict:
    if not compared:
        return "not run"
    groups: dict[Any, list[dict[str, Any]]] = {}
    for comparison, row in zip(compared, rows, strict=True):
        groups.setdefault(comparison.group, []).append(row)
    supported = sum(all(row["as_claimed"] for row in group) for group in groups.values())
    broken = sum(any(row["reversed"] for row in group) for group in groups.values())
    cases = max(len(groups), spec.cases)
    if (2 * broken >= cases) if spec.most else broken:  # what was not run may go either way
        return "contradicted"
    if 2 * supported > cases if spec.most else supported == len(groups) and not absent:
        return "supported"
    return "not decided"
