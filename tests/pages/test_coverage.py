"""How many printed numbers count as measured and as reproduced, and what changed since a revision."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.pages.page import render
from tasks.pages.site import pages
from tasks.results.facts import KINDS
from tasks.results.load import COMPARISON, PUBLISHED
from tasks.results.summary import NUMBER, coverage, reproduction
from tasks.stages import site
from tests.command import git
from tests.pages import committed

CLAIMS = "number,artefact,claim\n0,table2,A is best\n1,table2,B is fast\n"
EVIDENCE = (
    "number,reading,case,most_of,only,absent,difference,low,high,runs\n0,,0,0,,[],{0},{0},{0},\n1,,0,0,,[],1,1,1,\n"
)


def printed(*values: float) -> pl.DataFrame:
    rows = [("gerai", "table2", "ml-100k", "A", None, f"hit@{k}", value, None) for k, value in enumerate(values)]
    return pl.DataFrame(rows, schema=PUBLISHED, orient="row")


def ours(table: pl.DataFrame, *means: float | None, data: str = "real", scale: float = 1.0) -> pl.DataFrame:
    numbers = {"ours_mean": pl.Series(means, dtype=pl.Float64), "ours_std": None, "seeds": 3}
    made = table.rename({"value": "published"}).with_columns(pl.col("published") * scale, **numbers)
    return made.with_columns(protocol=pl.lit("full"), data=pl.lit(data)).select(*COMPARISON)


def suite(**more: Any) -> Any:
    return committed.results("gerai").suite.model_copy(update=more)


def counts(table: pl.DataFrame) -> dict[str, int]:
    return table.select("printed", *KINDS, "none", "reproduced").sum().to_dicts()[0]


def test_each_number_counts_once_under_the_best_data_that_it_was_measured_on() -> None:
    table = printed(1.0, 1.0, 1.0, 1.0)
    real, part = ours(table, 1.05, None, None, None), ours(table, 2.0, 1.2, None, None, data="part")
    replica = ours(table, 9.0, 9.0, 1.0, None, data="synthetic").with_columns(
        published=pl.lit(None, dtype=pl.Float64), method=pl.lit("our-a"), dataset=pl.lit("twin")
    )
    twin = suite(synthetic=True, stands_for="ml-100k", dataset="twin")
    known = [(twin, replica, {"A": "our-a"}), (suite(), part, {}), (suite(), real, {})]
    for order in (known, known[::-1]):
        covered = counts(coverage(table, order))
        assert covered == {"printed": 4, "real": 1, "part": 1, "synthetic": 1, "none": 1, "reproduced": 1}


def test_a_number_is_near_within_ten_percent_in_the_unit_of_ours() -> None:
    table = printed(10.0, 10.0, -10.0)
    covered = coverage(table, [(suite(), ours(table, 0.109, 0.111, -0.095, scale=0.01), {})])
    assert counts(covered)["reproduced"] == 2


def test_without_suites_nothing_is_measured_and_a_suite_of_no_paper_measures_nothing() -> None:
    table = printed(1.0)
    for suites in ([], [(suite(paper=None), ours(table, 1.0), {})]):
        assert counts(coverage(table, suites))["none"] == 1


def test_statistics_and_further_scores_of_a_number_are_no_reproduction() -> None:
    table = ours(printed(1.0, 2.0), 1.0, None)
    again = table.with_columns(ours_mean=pl.lit(5.0), protocol=pl.lit("other"))
    counted = table.with_columns(artefact=pl.lit("table1"), protocol=pl.lit("counted"))
    assert reproduction(pl.concat([table, again, counted])) == {"cells": 2, "run": 2, "within_10_percent": 1}


def test_every_printed_result_of_every_paper_is_counted_and_no_statistic_of_data() -> None:
    results = [committed.results(name) for name in committed.SUITES]
    published = results[0].published
    covered = coverage(
        published, [(of.suite, of.comparison, committed.paper(of.suite.suite).methods) for of in results]
    )
    results_alone = published.filter(~((pl.col("paper") == "dpvae") & (pl.col("artefact") == "table3")))
    assert covered["printed"].sum() == len(results_alone.filter(pl.col("method") != "statistics").unique(NUMBER))
    assert covered.select((pl.col("printed") == pl.sum_horizontal(*KINDS, "none")).all()).item()
    assert (covered["reproduced"] <= covered["real"] + covered["part"]).all()


@pytest.fixture
def headline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes the headline of a suite in an empty repository."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "nothing yet")

    def write(name: str, utility: float | None, verdict: str = "supported") -> None:
        place = tmp_path / "data/results" / name
        place.mkdir(parents=True, exist_ok=True)
        as_good = [] if utility is None else ["svd", "ease"]
        values = {"utility": {"best_private": utility, "as_good": as_good}, "ledger": {"finite": 2}}
        (place / "summary.json").write_text(json.dumps(values))
        (place / "claims.csv").write_text(CLAIMS)
        (place / "evidence.csv").write_text(EVIDENCE.format(1 if verdict == "supported" else -1))

    return write


def commit() -> None:
    git(Path(), "add", "-A")
    git(Path(), "commit", "-q", "-m", "results")


def test_values_verdicts_and_suites_that_differ_are_listed(headline: Callable[..., None]) -> None:
    headline("a", 0.25)
    headline("b", 0.5)
    headline("old", 1.0)
    commit()
    assert site.changes_since("HEAD") == []
    headline("a", 0.3, "contradicted")
    headline("b", 0.5000001)
    headline("new", 0.1)
    git(Path(), "rm", "-q", "-r", "data/results/old")
    assert site.changes_since("HEAD") == [
        ("a", "value", "utility: best_private", 0.25, 0.3),
        ("a", "claim", "table2: A is best", "supported", "contradicted"),
        ("new", "suite", "new", False, True),
        ("old", "suite", "old", True, False),
    ]
    commit()
    headline("a", None, "contradicted")
    assert site.changes_since("HEAD") == [
        ("a", "value", "utility: best_private", 0.3, None),
        ("a", "value", "utility: as_good", "svd, ease", None),
    ]
    index = render(pages([], coverage(printed(), []), None, site.changes_since("HEAD"), "HEAD")[0])
    assert "as_good</td><td>svd, ease</td><td>–</td>" in index


def test_before_the_first_results_every_suite_is_new_and_unknown_revisions_are_refused(
    headline: Callable[..., None],
) -> None:
    headline("a", 0.25)
    commit()
    assert site.changes_since("HEAD~1") == [("a", "suite", "a", False, True)]
    for unknown in ("nope", "--output=x", ""):
        with pytest.raises(DataError, match="git knows no such revision"):
            site.changes_since(unknown)
    assert not Path("x").exists()


def test_a_damaged_headline_is_named(headline: Callable[..., None]) -> None:
    headline("a", 0.25)
    commit()
    Path("data/results/a/summary.json").write_text("{")
    with pytest.raises(DataError, match="data/results/a"):
        site.changes_since("HEAD")
