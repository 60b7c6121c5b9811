"""Pages of suites: every number is a cell of a committed table, of one level, with its reasons and conditions."""

import csv
import json
import math
import re
from collections import defaultdict
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

from tasks.pages import page
from tasks.pages.suite import gaps, ledger, pages
from tasks.pipeline.papers import describe
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.audits.unaudited import is_private
from tasks.privacy.remarks import Explanation
from tasks.privacy.terms import Level
from tasks.privacy.units import LEVELS
from tasks.results import tables
from tasks.results.facts import BASE, Together
from tasks.results.load import Results
from tasks.results.standings import entries, measure
from tasks.results.tables import Spent
from tests.pages.committed import REFERENCE, RESULTS, SUITES, paper, results, table, text_of
from tests.results import made

DRAWN = ("gerai", "privsr", "dpvae-netflix-twin", "dpcrosue-ione", "dipsgnn")
OWN_PARTS = ("index", "ledger", "training", "data", "provenance")
BY_LEVEL = {level: f"{level} ε" for level in page.english()["levels"].values()}


@pytest.fixture(params=DRAWN)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def drawn(suite: str) -> dict[str, str]:
    """Part -> its page as HTML."""
    return draw(results(suite), paper(suite))


def draw(of: Results, by: Any, **more: Any) -> dict[str, str]:
    """The same of any results."""
    return {Path(each.address).stem: page.render(each) for each in pages(of, by, **more)}


@cache
def cells(suite: str, name: str) -> list[dict[str, str]]:
    """A committed CSV table as text."""
    with (RESULTS / suite / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table_of(html: str, caption: str) -> str:
    """A table whose caption begins so."""
    match = re.search(rf'<table[^>]*data-caption="{re.escape(escape(caption))}.*?</table>', html, re.DOTALL)
    assert match is not None, caption
    return match.group()


def sorted_by(html: str, caption: str) -> list[list[float | None]]:
    """The numbers that the cells of a table are sorted by, row by row, without its first column."""
    body = table_of(html, caption).partition("<tbody>")[2]
    rows = [re.findall(r"<td([^>]*)>", row) for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)]
    numbers = [[re.search(r'data-sort="([^"]*)"', cell) for cell in row] for row in rows]
    return [[None if number is None else float(number[1]) for number in row] for row in numbers]


def names(html: str, caption: str) -> list[str]:
    """The first texts of the rows of a table."""
    return re.findall(r'<th scope="row">(?:<a[^>]*>)?([^<]*)', table_of(html, caption))


# Numbers of the report.


@pytest.mark.parametrize("suite", [name for name in DRAWN if name != "dpcrosue-ione"])
def test_utilities_are_cells_of_the_table_of_means(suite: str) -> None:
    by = measure(results(suite), paper(suite))
    known = {
        row["experiment"]: row
        for row in cells(suite, "metrics")
        if (row["setting"], row["metric"]) == (BASE, by.metric)
    }
    column = f"mean@{by.k}" if by.k else "mean"
    labels = {system.label: system.experiment for system in results(suite).suite.compared}
    html = drawn(suite)["index"]
    shown = zip(names(html, "Systems at setting base"), sorted_by(html, "Systems at setting base"), strict=True)
    for name, numbers in shown:
        assert numbers[0] == pytest.approx(float(known[labels[name]][column]), abs=1e-6)
        assert page.number(numbers[0], by.digits) in html


def test_budgets_of_the_report_are_cells_of_the_ledger_and_of_audits(suite: str) -> None:
    """Claims and bounds are the largest cells; what several releases of one run spend is at most their sum, or ∞."""
    labels = {system.label: system.experiment for system in results(suite).suite.compared}
    bounds = defaultdict(list)
    for row in cells(suite, "audits"):
        for number in json.loads(row["lines"]):
            bounds[number].append(float(row["audited_epsilon"]))
    html = drawn(suite)["index"]
    levels = re.findall(r'data-group="([^"]*)">claimed', html)
    shown = zip(names(html, "Systems at setting base"), sorted_by(html, "Systems at setting base"), strict=True)
    for label, numbers in shown:
        for place, name in enumerate(levels):
            lines = [line for line in cells(suite, "ledger") if name == of_level(line) and line["setting"] == BASE]
            lines = [line for line in lines if line["experiment"] == labels[label]]
            claimed, accounted, audited = numbers[len(numbers) - 3 * (len(levels) - place) :][:3]
            assert claimed == max(
                (float(line["claimed_epsilon"]) for line in lines if line["claimed_epsilon"]), default=None
            )
            assert audited == max((bound for line in lines for bound in bounds[int(line["line"])]), default=None)
            spent = [float(line["accounted_epsilon"]) for line in lines]
            assert (accounted is None) == (not spent)
            if accounted is not None:
                assert max(spent) <= accounted <= sum(spent)


def of_level(line: dict[str, str]) -> str:
    """The name of ε of the level of a row of ledger.csv; what nothing protects is of its kind of data."""
    unprotected = {"feature": "feature", "text": "text", "edge": "edge", "anchor": "edge"}
    level = LEVELS.get(line["unit"]) or unprotected.get(line["protects"], "interaction")  # type: ignore[call-overload]
    return f"{page.english()['levels'][level]} ε"


def test_the_audits_line_counts_the_refuted_audits(suite: str) -> None:
    audits = results(suite).audits
    refuted = audits.filter(verdict="refuted").height
    said = re.search(r"(\d+) of (\d+) refute a claim", text_of(drawn(suite)["index"]))
    assert (int(said[1]), int(said[2])) == (refuted, audits.height)


# Levels.


@pytest.mark.parametrize("part", ["index", "ledger", "training"])
def test_no_column_and_no_axis_has_two_levels(suite: str, part: str) -> None:
    html = drawn(suite)[part]
    for group in set(re.findall(r'data-group="([^"]*ε)"', html)):
        assert group in BY_LEVEL.values()
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        axes = [name for name in re.findall(r">([^<>]*)</text>", picture) if name.endswith(" ε")]
        assert set(axes) <= set(BY_LEVEL.values())
        assert len(set(axes)) <= 1
    assert (
        "interaction: " not in text_of(html)
        and not re.search(r"(?<!-level )(?<!\()ε = \d", text_of(html).replace("user-level ε", ""))
    ) or part != "index"


def test_a_difference_from_noisy_popularity_names_the_unit_of_that(suite: str) -> None:
    of = results(suite)
    by = measure(of, paper(suite))
    heads = re.findall(r">against ([^<]*?)</th>", drawn(suite)["index"])
    (noisy,) = [each.experiment for each in of.suite.compared if each.label == by.noisy] or [""]
    levels = {LEVELS[line.entry.unit] for line in of.lines_of(noisy) if is_private(line.entry)}
    assert heads == [f"{by.noisy} ({level}-level)" for level in levels]


@pytest.mark.parametrize("suite", SUITES)
def test_a_part_of_the_ledger_has_the_lines_of_its_level_and_all_lines_have_a_part(suite: str) -> None:
    sections = ledger(results(suite))["sections"]
    assert [section["level"] for section in sections] == [
        name for name in get_args(Level) if name in {s["level"] for s in sections}
    ]
    units = {
        section["level"]: {row["entry"].unit for row in (*section["base"], *section["settings"])}
        for section in sections
    }
    for level, known in units.items():
        assert {LEVELS[unit] for unit in known if unit in LEVELS} <= {level}
    rows = [row for section in sections for row in (*section["base"], *section["settings"])]
    assert sum(row["n_lines"] for row in rows) == results(suite).ledger.height
    assert sum(row["n_runs"] for row in rows) == sum(len(line.seeds) for line in results(suite).lines)
    assert sum(len(section["audits"]) for section in sections) == results(suite).audits.height
    assert sum(len(section["one_run"]) for section in sections) == results(suite).one_run.height


# The ledger.


def test_numbers_of_ledger_lines_are_cells(suite: str) -> None:
    html, lines = drawn(suite)["ledger"], results(suite).ledger
    shown: dict[str, list[Any]] = defaultdict(list)
    for level in get_args(Level):
        name = BY_LEVEL[page.english()["levels"][level]]
        for at in ("at setting base", "at other settings"):
            if f'data-caption="{name} of one run {at}' in html:
                for row in sorted_by(html, f"{name} of one run {at}"):
                    shown["claimed"].append(row[-6])
                    shown["accounted"].append(row[-5])
    assert set(shown["accounted"]) == set(lines["accounted_epsilon"])
    assert {value for value in shown["claimed"] if value is not None} == set(lines["claimed_epsilon"].drop_nulls())


def test_every_infinity_has_its_reason_and_every_finite_budget_its_conditions(suite: str) -> None:
    said = text_of(drawn(suite)["ledger"])
    for line in results(suite).lines:
        for reason in line.entry.reasons if line.entry.accounted_epsilon is None else ():
            assert " ".join(page.sentence(reason).split()) in said
        for condition in page.conditions(line.entry.given):
            assert condition in said.partition("onditional on")[2]


def test_every_gap_of_a_line_stands_once_with_its_system(suite: str) -> None:
    groups = gaps(results(suite))
    owners = {gap.id: group["labels"] for group in groups for gap in group["gaps"]}
    assert len(owners) == len({gap.id for line in results(suite).lines for gap in line.entry.gaps})
    for line in results(suite).lines:
        for gap in line.entry.gaps:
            assert results(suite).systems[line.experiment].label in owners[gap.id]
    listed = [gap.model_dump_json() for group in groups for gap in group["gaps"]]
    assert len(listed) == len(set(listed))


def test_releases_together_stand_in_the_part_of_their_level() -> None:
    common = {"network": "", "observer": "", "protects": ("interaction",), "left_out": 0}
    row = Together(**common, unit="user", releases=60, largest=1.0, epsilon=366.8, delta=1e-3, given=("preparation",))
    endless = Together(**common, unit="interaction", releases=75, largest=0.4, epsilon=None, delta=0.0, given=())
    given = Results(RESULTS / "gerai", REFERENCE)
    given.composed = [row, endless]
    sections = {section["level"]: section for section in ledger(given)["sections"]}
    assert [each["epsilon"] for each in sections["user"]["together"]] == [366.8]
    assert [each["epsilon"] for each in sections["interaction"]["together"]] == [math.inf]
    assert not sections["feature"]["together"]


# Data, training, provenance.


def test_counts_of_the_data_are_cells(suite: str) -> None:
    numbers = sorted_by(drawn(suite)["data"], "What each step of the preparation left")
    known = [[float(row[name]) for name in tables.LEFT if row[name]] for row in cells(suite, "counts")]
    assert [[number for number in row if number is not None] for row in numbers] == known


def test_every_setting_that_was_measured_is_in_the_table_of_settings(suite: str) -> None:
    by = measure(results(suite), paper(suite))
    experiments = {system.experiment for system in results(suite).suite.compared}
    means = results(suite).means.filter(
        pl.col("metric") == by.metric, pl.col("k") == by.k, pl.col("experiment").is_in(experiments)
    )
    html = drawn(suite)["training"]
    if means.is_empty():
        assert "of every setting" not in html
    else:
        shown = [row[1] for row in sorted_by(html, f"{by.label} of every setting")]
        assert sorted(shown) == pytest.approx(sorted(means["mean"]))  # type: ignore[type-var]


def test_trials_of_tuning_are_all_shown_and_best_of_each_system_first(suite: str) -> None:
    html, trials = drawn(suite)["training"], results(suite).tuning
    if trials.height:
        rows = table(html, "Trials on validation data")[1:]
        assert len(rows) == trials.height
        firsts = {
            row[0]: number[2] for row, number in reversed(list(zip(rows, sorted_by(html, "Trials"), strict=True)))
        }
        best = trials.group_by("experiment").agg(pl.col("valid").cast(pl.Float64).max())
        assert sorted(firsts.values()) == pytest.approx(sorted(best["valid"]))  # type: ignore[type-var]
    else:
        assert "Trials on validation data" not in html


def test_runs_are_rows_of_provenance(suite: str) -> None:
    numbers = sorted_by(drawn(suite)["provenance"], "Stages")
    assert [(row[3], row[4], row[5]) for row in numbers] == [
        (run.seconds, run.cpu_seconds, run.peak_memory_mb) for run in results(suite).runs
    ]


# What data the numbers are of.


def test_synthetic_data_are_labelled_on_every_page_and_others_on_none(suite: str) -> None:
    for part in OWN_PARTS:
        assert ("SYNTHETIC DATA" in drawn(suite)[part]) == (results(suite).suite.kind == "synthetic")


# A small suite of a user's own data: no paper, no attack, no audit, no history.


def own(folder: Path, entries: dict[str, list[LedgerEntry]], values: dict[str, list[float]]) -> Results:
    """Results with these entries and values (NDCG@10) of each experiment."""
    systems = [made.system(name, suite="", seeds=range(len(of))) for name, of in values.items()]
    facts = made.suite(systems, suite="mine", paper=None)
    rows = [(name, BASE, "full/ndcg", 10, seed, value) for name, of in values.items() for seed, value in enumerate(of)]
    labels = {system.label: system.experiment for system in systems}
    spent = [
        Spent(labels[name], BASE, seed, entry) for name, of in entries.items() for entry in of for seed in range(2)
    ]
    results = made.write(folder, facts, rows, spent)
    results.suite = facts.model_copy(update={"title": "<My> data"})  # which no results say
    return results


def entry(unit: Any, epsilon: float | None) -> LedgerEntry:
    """An entry with this claim, accounted as much; of infinity for None."""
    if epsilon is None:
        return unbounded_entry("interaction", unit, "none", Explanation(id="true-data"))
    return made.entry(epsilon, unit, neighbouring="add-or-remove", given=("epoch",))


VALUES = {"bpr": [0.5, 0.4], "dpsgd": [0.3, 0.3], "leaky": [0.45, 0.45], "dp-popularity": [0.2, 0.1]}
ENTRIES = {
    "bpr": [entry("any", None)],
    "dpsgd": [entry("user", 1.0)],
    "leaky": [entry("user", 0.5), entry("interaction", None)],
    "dp-popularity": [entry("user", 1.0)],
}


def test_own_data_without_paper_attacks_audits_or_history_draw(tmp_path: Path) -> None:
    html = draw(own(tmp_path, ENTRIES, VALUES), describe(None))
    assert set(OWN_PARTS) <= set(html)
    assert "<My>" not in html["index"]
    assert "&lt;My&gt;" in html["index"]
    assert "Audits of user-level claims" not in html["ledger"]
    assert "<svg" not in html["training"]
    assert html["index"].count('role="img"') == 1  # user level; of interactions nothing is claimed


def test_nothing_at_all_draws(tmp_path: Path) -> None:
    html = draw(own(tmp_path, {}, {"bpr": []}), describe(None))
    assert all("</html>" in page_ for page_ in html.values())


def test_the_named_private_system_has_no_level_without_a_bound(tmp_path: Path) -> None:
    """`leaky` is better and has the smaller user-level ε, but ∞ for interactions."""
    said = text_of(draw(own(tmp_path, ENTRIES, VALUES), describe(None))["index"])
    assert "Best of this suite: dpsgd at user-level ε = 1, conditional on the epoch: NDCG@10 0.300" in said
    assert "a cost of 33 %" in said


def test_the_difference_is_over_common_runs(tmp_path: Path) -> None:
    of = own(tmp_path, ENTRIES, VALUES | {"bpr": [0.5, 0.4, 9.0]})
    rows = {row["system"]: row for row in entries(of, measure(of, describe(None))).to_dicts()}
    assert rows["bpr"]["difference"] == pytest.approx((0.5 - 0.2 + 0.4 - 0.1) / 2)
    assert rows["dp-popularity"]["difference"] is None
    assert [rows[name]["role"] for name in VALUES] == ["ceiling", "private", "private", "baseline"]
