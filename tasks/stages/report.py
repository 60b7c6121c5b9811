"""Stage `report`: what follows from the results of one suite, what it says of its data, and the published figures.

Writes the pages of the suite in data/reports/<suite>/ (self-contained, they work offline) and, next to the results,
comparison.csv (printed numbers with ours), claims.csv and evidence.csv (what the paper says, judged), composed.json
(what all releases spend together), summary.json (what `dvc metrics` compares) and plots/ (what `dvc plots` draws). The
same results always give the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.config.params import PARAMS_FILE, load
from tasks.config.tasks import ATTACKS, TASKS, resolve
from tasks.core.errors import DataError
from tasks.pages import suite
from tasks.pages.page import render
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import REFERENCE, REPORTS, RESULTS, atomic_write
from tasks.pipeline.papers import describe, named_functions
from tasks.results import facts, summary
from tasks.results.files import SUITE
from tasks.results.judging import claim_tables
from tasks.results.load import COMPOSED, TOGETHER, Results
from tasks.results.paper import Paper
from tasks.results.printed import Against, comparison
from tasks.results.standings import boards, entries, measure

if TYPE_CHECKING:
    from tasks.results.leakage import Kind


def main(name: str) -> None:
    """Write the pages of suite `name`, and the tables next to its results."""
    from tasks.results.composition import compose  # with the accountant, which pages do not need

    for file, frame in judged(results_of(name)).items():
        with atomic_write(RESULTS / name / f"{file}.csv") as target:
            frame.write_csv(target)
    results = results_of(name)
    together = compose([(results, results.suite.systems)])
    path = RESULTS / name / COMPOSED
    if not path.exists() or list(map(_rounded, together)) != list(map(_rounded, results.composed)):
        with atomic_write(path) as target:
            target.write_bytes(TOGETHER.dump_json(together, indent=1) + b"\n")
        results = results_of(name)
    pages = pages_of(results)
    by = measure(results, paper_of(results))
    table = entries(results, by)
    files = summary.plots(results, by, table)
    short = summary.summary(results, next(iter(boards([(by, table)])), None))
    with atomic_write(RESULTS / name / "summary.json") as target:
        target.write_text(json.dumps(short, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with atomic_write(RESULTS / name / "plots") as folder:
        folder.mkdir()
        for file, table in files.items():
            table.write_csv(folder / file, float_precision=6)
    write(REPORTS / name, pages)


def _rounded(entry: facts.Together) -> facts.Together:
    """Without the digits that differ from one processor to another."""
    numbers = {"largest": entry.largest, "epsilon": entry.epsilon, "delta": entry.delta}
    return entry.model_copy(update={name: value and float(f"{value:.12g}") for name, value in numbers.items()})


def draw(name: str, folder: Path) -> None:
    """Write the pages of suite `name` alone."""
    write(folder, pages_of(results_of(name)))


def judged(results: Results) -> dict[str, pl.DataFrame]:
    """comparison.csv, claims.csv and evidence.csv: printed numbers with ours, and what the paper claims, judged."""
    paper = paper_of(results)
    functions = {name: resolve(name) for name in named_functions(results.suite.paper)}
    measured = set(results.metrics.filter(metric=paper.utility.metric)["k"]) - {0} or {paper.headline_k}
    k = min(measured, key=lambda cutoff: (abs(cutoff - paper.headline_k), cutoff))
    against = Against(results, paper)
    return {
        "comparison": comparison(results, paper, functions.get(paper.counts, lambda _: [])),
        **claim_tables(against, k, functions),
    }


def collected() -> list[str]:
    """Suites that have results."""
    return sorted(path.parent.name for path in RESULTS.glob(f"*/{SUITE}"))


def results_of(name: str) -> Results:
    """The results of a suite, with what its parameters say of it.

    Raises:
        DataError: there are none.
    """
    if not (RESULTS / name / SUITE).is_file():
        available = ", ".join(collected()) or "none"
        raise DataError(f"{RESULTS / name}: no results; collect them with `dprec run {name}`. There are: {available}")
    results, about = Results(RESULTS / name, REFERENCE / "paper_tables.csv"), dict[str, Any](title=name)
    if PARAMS_FILE.is_file() and (options := (params := load()).suites.get(name)):  # else the suite is gone
        validation = TASKS[options.task].validation.format(k=options.training.validation_k)
        about = options.about.model_dump(exclude={"real"}) | {"title": options.title, "validation": validation}
        prepared, users = params.processed[options.data], results.counts.filter(~pl.col("counted"))["users"][-1]
        about |= {"preparation": {"protocol": prepared.protocol, "users": users} | prepared.options}
    results.suite, results.kinds = results.suite.model_copy(update=about), kinds(results.suite)
    return results


def kinds(suite: facts.Suite) -> list[Kind]:
    """What reads the evidence of a suite's attack."""
    return [resolve(name) for name in ATTACKS[suite.attack["kind"]].evidence] if suite.attack else []


def paper_of(results: Results) -> Paper:
    """The paper whose tables, figures and claims the pages of a suite have."""
    return describe(results.suite.paper, results.suite.networks)


def pages_of(results: Results) -> dict[str, str]:
    """File within the folder of the suite's report -> page: a value, without revisions, times and machines."""
    results.runs = ()
    pages = suite.pages(results, paper_of(results))
    return {PurePosixPath(page.address).name: render(page, home=False) for page in pages}


def write(folder: Path, pages: dict[str, str]) -> None:
    """Replace the report of a suite."""
    with atomic_write(folder) as target:
        target.mkdir()
        for file, text in pages.items():
            (target / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run_stage(main)
