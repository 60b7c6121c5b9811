"""Stage `report`: what follows from the results of one suite, from data/results/ and the published figures alone.

Writes data/reports/<suite>/index.html (self-contained, works offline) and, beside the results, comparison.csv (each
published figure with ours), claims.csv (what the paper says, judged), ledger.csv, summary.json (what `dvc metrics`
compares) and plots/ (what `dvc plots` draws). Everything is computed before
anything is written, and the same results always give the same bytes.
"""

from __future__ import annotations

import json

import polars as pl

from tasks.config.tasks import resolve
from tasks.errors import DataError
from tasks.reporting import files
from tasks.reporting.core import claims, comparison, corrections, headline, ledger, origins, plots
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results
from tasks.reporting.page import headline_cutoff, render
from tasks.reporting.sections import data_statistics
from tasks.results.claims import Claim
from tasks.stages.command import run_stage
from tasks.stages.common import REFERENCE, REPORTS, RESULTS, atomic_write
from tasks.stages.papers import describe, named_functions

DOCS = "../../quality"
"""Data docs seen from data/reports/<suite>/index.html."""


def main(name: str) -> None:
    """Write the report of suite `name` and the tables beside its results."""
    results, report, tested = read(name)
    page, k = render(results, report, tested, docs=DOCS), headline_cutoff(results)
    frames, drawn, short = (
        tables(results, report, tested),
        plots.tables(results, k),
        headline.summary(results, tested, k),
    )
    for table, frame in frames.items():
        with atomic_write(RESULTS / name / f"{table}.csv") as place:
            frame.write_csv(place, float_precision=6)
    with atomic_write(RESULTS / name / "summary.json") as place:
        place.write_text(json.dumps(short, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with atomic_write(RESULTS / name / "plots") as folder:
        plots.write(folder, drawn)
    write(name, page)


def standings(name: str) -> tuple[str, list[headline.Standing]]:
    """What the utility of suite `name` is called, and its systems as a terminal shows them."""
    results = _results(name)
    k = headline_cutoff(results)
    return results.layout.utility.at(k), headline.select_lines(headline.standings(results, k))


def draw(name: str) -> None:
    """Write the report of suite `name` alone."""
    results, report, tested = read(name)
    write(name, render(results, report, tested, docs=DOCS))


def read(name: str) -> tuple[Results, PaperReport, list[Claim]]:
    """The results of a suite, what its paper's reports show, and the paper's claims, judged.

    Raises:
        DataError: there are none, or a file is not what was written.
    """
    results = _results(name)
    report = report_of(results.paper)
    return results, report, claims.published_claims(results, report, headline_cutoff(results))


def _results(name: str) -> Results:
    if not (RESULTS / name / "results.json").is_file():
        known = ", ".join(sorted(path.parent.name for path in RESULTS.glob("*/results.json"))) or "none"
        raise DataError(f"{RESULTS / name}: no results; collect them with `dprec run {name}`. There are: {known}")
    return corrections.correct(files.read(RESULTS / name, REFERENCE / "paper_tables.csv", describe))


def report_of(paper: str | None) -> PaperReport:
    """What the reports of a paper show; None: of a suite that reproduces none."""
    return PaperReport.of(describe(paper), {name: resolve(name) for name in named_functions(paper)})


def tables(results: Results, report: PaperReport, tested: list[Claim]) -> dict[str, pl.DataFrame]:
    """Name -> what follows from the results, as a table that says of which data; an empty text is no value."""
    counted = [(of, count) for of in origins.counted(results) for count in data_statistics.counts(of, report)]
    frames = {
        "comparison": comparison.frame(results, counted),
        "ledger": ledger.frame(results),
        "claims": origins.with_kind(claims.frame(tested), results),
    }
    return {name: table.with_columns(pl.col(pl.String).replace("", None)) for name, table in frames.items()}


def write(name: str, page: str) -> None:
    """Replace the page of a suite."""
    with atomic_write(REPORTS / name) as place:
        place.mkdir()
        (place / "index.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    run_stage(main)
