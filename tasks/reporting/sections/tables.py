"""The result tables of a report: headline, sweep points, and every published table beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.statistics import ordering_agreement
from tasks.reporting.core import audits, comparison, findings, ledger
from tasks.reporting.core.comparison import Entry
from tasks.reporting.core.headline import REFUTED
from tasks.reporting.core.layout import (
    DASH,
    LOWER,
    MISSING,
    NUMBER,
    Cell,
    Heading,
    Row,
    Table,
    count,
    direction_mark,
    format_difference,
    missing_cell,
    number,
    plain_cell,
)
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.section import Blocks, Fold, Section, paragraph
from tasks.reporting.core.words import wording
from tasks.reporting.sections.controls import level
from tasks.results import paper as published

NOT_RUN = "not run"


def section(results: Results, k: int) -> Section:
    """Every system, its means and its sweep points."""
    advantage = paragraph(
        "Advantage is the attacker's F1 minus that of guessing the most frequent class. The two ranking columns follow "
        "different protocols; compare within a column."
    )
    sweeps = sweep_points(results, k)
    blocks: list[Blocks] = [
        *([advantage] if results.attributes() else []),
        headline(results, k),
        Fold("Every sweep point", sweeps) if sweeps else None,
    ]
    return Section("headline", "Every system", blocks)


def headline(results: Results, k: int) -> Table:
    """Every system at setting `base`: ranking, what one attacker gains, and the three budgets.

    Those on other data than the suite's stand below the others, with their data named.
    """
    attributes, layout = results.attributes(), results.layout
    blank, budgets = [missing_cell()] * len(layout.qualities), [missing_cell()] * 3
    rows = []
    if attributes:
        chance = [plain_cell(results.majority(attribute)) for attribute in attributes]
        alone = [plain_cell(level(results, _advantage(results, attribute))) for attribute in attributes]
        rows.append(Row("chance: F1 of the majority guess", [*blank, *chance, *budgets], "reference"))
        rows.append(Row("ratings alone: advantage", [*blank, *alone, *budgets], "reference"))
    groups_measured = [
        (name, group)
        for name, group in layout.measured.items()
        if any(len(results.values(of, each.metric, each.cutoff(0))) for of in results.systems for each in group)
    ]
    for system in (*results.compared, *results.elsewhere):
        measured = [cell for _, group in groups_measured for cell in _cells(results, system, group)]
        cells = _measured_cells(results, system, BASE, k) + measured + _budgets(results, system)
        rows.append(Row(results.full_label(system), cells, about=system_terms(results, system)))
    ranked = _ranking_headings(results, k)
    further = [quality.label for _, group in groups_measured for quality in group]
    headings = ["System", *ranked, *attributes, *further, "claimed", "accounted", "audited"]
    marks = ["", *_marks(results), *("" for _ in further), LOWER, LOWER, ""]
    groups = [
        (wording(layout).quality, len(ranked)),
        (f"Advantage of the {results.shown_attacker} attacker", len(attributes)),
    ]
    groups += [*((name, len(group)) for name, group in groups_measured), ("ε of one run", 3)]
    return Table(
        caption=f"Every system: mean ± standard deviation over {results.word_for_run}s{_cutoff(results, k)}",
        headings=[
            Heading(text, NUMBER if 0 < n < len(headings) - 3 else "", mark)
            for n, (text, mark) in enumerate(zip(headings, marks, strict=True))
        ],
        rows=rows,
        groups=[group for group in groups if group[1]],
    )


def sweep_points(results: Results, k: int) -> Table | None:
    """All settings beside `base`, in the columns of the headline table; None where there is none."""
    attributes = results.attributes()
    rows = [
        Row(f"{results.full_label(system)}, {setting}", _measured_cells(results, system, setting, k))
        for system in results.systems
        for setting in results.settings(system)
        if setting != BASE
    ]
    if not rows:
        return None
    headings = [
        "System and setting",
        *_ranking_headings(results, k),
        *(f"advantage {a}" for a in attributes),
    ]
    return Table(
        f"Sweep points: mean ± standard deviation over {results.word_for_run}s{_cutoff(results, k)}",
        [
            Heading(text, NUMBER if index else "", mark)
            for index, (text, mark) in enumerate(zip(headings, ["", *_marks(results)], strict=True))
        ],
        rows,
    )


def published_tables(results: Results) -> list[tuple[published.Table, list[Table]]]:
    """Every table of the layout with the parts that have anything to show."""
    entries = comparison.entries(results)
    shown: list[tuple[published.Table, list[Table]]] = []
    for table in results.layout.tables:
        if not comparison.has_table(results, table):
            shown += [(table, [])] if results.reproduced else []
            continue
        parts = []
        for part in table.parts:
            of_part = [entry for entry in entries if entry.table == table and entry.column in part.columns]
            if any(len(entry.ours) or entry.printed is not None for entry in of_part):
                parts.append(_part(results, table, part, of_part))
        if parts or (not table.parts and results.reproduced):
            shown.append((table, parts))
    return shown


def _part(results: Results, table: published.Table, part: published.Part, entries: Sequence[Entry]) -> Table:
    by_place = {(entry.method.name, entry.column): entry for entry in entries}
    filled = {entry.column for entry in entries if entry.printed is not None or len(entry.ours)}
    columns = [column for column in part.columns if column in filled]
    rows = _references(results, columns)
    marks = _best_marks(entries) if table.marked else {}
    for method in comparison.methods(results, table):
        cells = [by_place[method.name, column] for column in columns]
        rows.append(
            Row(method.name, [_comparison_cell(entry, marks.get((method.name, entry.column), "")) for entry in cells])
        )
    name, what = "", f"mean ± standard deviation over {results.word_for_run}s"
    protocol = "" if table.comparable else f", protocol {table.protocol}"
    if results.reproduced:
        name = f"{table.name}, "
    if any(entry.printed is not None for entry in entries):
        what = "ours, mean ± standard deviation; below it the paper's figure, and ours minus the paper's"
        rows.append(Row("ordering agreement", [_agreement(entries, column) for column in columns], "foot"))
    return Table(
        caption=f"{name}{part.title}{protocol} ({what})",
        headings=[
            Heading("Method", ""),
            *(Heading(column.label, better=direction_mark(lower=column.better == "lower")) for column in columns),
        ],
        rows=rows,
    )


def _references(results: Results, columns: Sequence[published.Column]) -> list[Row]:
    """Chance level and ratings-only attacker, for the columns that an attacker fills."""
    if any(column.controls for column in columns):
        return _controls(results, columns)
    attacked = [column.metric.split("/") if column.metric.startswith("attribute/") else None for column in columns]
    if not any(attacked):
        return []
    majority = [plain_cell(results.majority(parts[1]) if parts else None) for parts in attacked]
    alone = [plain_cell(level(results, "/".join(parts or ()))) for parts in attacked]
    return [Row("majority guess", majority, "reference"), Row("ratings alone", alone, "reference")]


def _controls(results: Results, columns: Sequence[published.Column]) -> list[Row]:
    """What needs no method, for the columns that have such controls."""
    names = unique([name for column in columns for name in column.controls])
    rows = []
    for name in names:
        metrics = [column.controls.get(name, "") for column in columns]
        rows.append(Row(name, [plain_cell(level(results, metric)) for metric in metrics], "reference"))
    return rows


def _comparison_cell(entry: Entry, mark: str = "") -> Cell:
    digits = entry.column.digits
    paper: tuple[str, ...] = () if entry.printed is None else (f"paper {number(entry.printed, digits)}",)
    if not len(entry.ours):
        return Cell(NOT_RUN, paper, MISSING)
    if entry.printed is not None:
        paper += (f"difference {format_difference(float(entry.ours.mean()) - entry.printed, digits)}",)
    return Cell(
        _mean_std(entry.ours, digits), (*paper, *([mark] if mark else [])), f"{NUMBER} found" if mark else NUMBER
    )


def _run(entries: Sequence[Entry], column: published.Column) -> list[Entry]:
    """The rows of a column that were run, as far as they may be set side by side."""
    return comparison.on_same_runs([of for of in entries if of.column == column and len(of.ours)])


def _best_marks(entries: Sequence[Entry]) -> dict[tuple[str, published.Column], str]:
    """(method, column) -> its mark, for the best of those that claim a budget and the best of the others."""
    marks = {}
    for column in unique([entry.column for entry in entries]):
        sign = 1.0 if column.better == "higher" else -1.0
        for private, mark in ((True, "best private"), (False, "best public")):
            measured = [
                entry
                for entry in _run(entries, column)
                if entry.method.system is not None
                and not findings.is_released_code(entry.method.system)
                and findings.claims_privacy(entry.method.system) == private
            ]
            if measured:
                best = max(measured, key=lambda entry: sign * float(entry.ours.mean()))
                marks[best.method.name, column] = mark
    return marks


def _agreement(entries: Sequence[Entry], column: published.Column) -> Cell:
    rows = [(entry.printed, float(entry.ours.mean())) for entry in _run(entries, column) if entry.printed is not None]
    if len(rows) < 2:
        return missing_cell("too few run")
    printed, ours = zip(*rows, strict=True)
    share = ordering_agreement(list(printed), list(ours))
    if share is None:
        return missing_cell(DASH)
    ordered = sum(first != second for first, second in combinations(printed, 2))  # others have no order to agree with
    return Cell(f"{100 * share:.0f} %", (f"of {count(ordered, 'pair')}",))


def _measured_cells(results: Results, system: System, setting: str, k: int) -> list[Cell]:
    metrics = [(quality.metric, quality.digits, quality.cutoff(k)) for quality in results.layout.qualities]
    metrics += [(_advantage(results, attribute), 3, k) for attribute in results.attributes()]
    cells = []
    for metric, digits, cutoff in metrics:
        values = results.values(system, metric, cutoff, setting)
        if len(values):
            mean, _, deviation = _mean_std(values, digits).partition(" ± ")
            cells.append(Cell(mean, (f"± {deviation}",) if deviation else ()))
        else:
            cells.append(missing_cell(NOT_RUN))
    return cells


def _advantage(results: Results, attribute: str) -> str:
    return f"attribute/{attribute}/{results.shown_attacker}/advantage"


def _cutoff(results: Results, k: int) -> str:
    """The cut-off where all columns share one."""
    qualities = results.layout.qualities
    return "" if not qualities or any(quality.k is not None for quality in qualities) else f", K = {k}"


def _ranking_headings(results: Results, k: int) -> list[str]:
    """Headings of the ranking metrics."""
    qualities = results.layout.qualities
    return [f"{quality.at(k)}, {quality.protocol}" if quality.protocol else quality.at(k) for quality in qualities]


def _marks(results: Results) -> list[str]:
    """Which is better, of the ranking metrics and of what an attacker gains."""
    return [
        *(direction_mark(lower=quality.lower) for quality in results.layout.qualities),
        *(LOWER for _ in results.attributes()),
    ]


def _cells(results: Results, system: System, qualities: Sequence[published.Quality]) -> list[Cell]:
    """Further quantities of a system, which need not have been measured of it."""
    cells = []
    for quality in qualities:
        values = results.values(system, quality.metric, quality.cutoff(0))
        varies = len(values) > 1 and float(np.ptp(values)) > 0
        deviation = (f"± {number(float(values.std(ddof=1)), quality.digits)}",) if varies else ()
        cells.append(
            Cell(_group_digits(float(values.mean()), quality.digits), deviation) if len(values) else missing_cell()
        )
    return cells


def _group_digits(value: float, digits: int) -> str:
    return number(value, digits) if digits else f"{value:,.0f}"


def _mean_std(values: NDArray[np.float64], digits: int = 3) -> str:
    mean = number(float(values.mean()), digits)
    return mean if len(values) < 2 else f"{mean} ± {number(float(values.std(ddof=1)), digits)}"


def _budgets(results: Results, system: System) -> list[Cell]:
    """Claimed, accounted and audited, one line per protected thing."""
    spent = ledger.budgets(ledger.lines_at(results, system))
    if not spent:
        return [missing_cell("no entry")] * 3
    refuted = {
        audits.format_bound(line.audit)
        for line in ledger.lines_at(results, system)
        if line.audit is not None and line.audit["verdict"] == REFUTED
    }
    proved = [f"{of.audited}, refuted" if of.audited in refuted else of.audited for of in spent]
    columns = zip(
        *((of.claimed, of.accounted, bound) for of, bound in zip(spent, proved, strict=True)),
        strict=True,
    )
    networks = {line.network for line in ledger.lines(results)}
    only = f"{networks.pop()}: " if len(networks) == 1 else ""  # the name of the only network says nothing
    whats = [budget.what.removeprefix(only) for budget in spent]
    named = [unique([f"{what}: {text}" for what, text in zip(whats, texts, strict=True)]) for texts in columns]
    return [Cell("", tuple(lines), "stack") for lines in named]


UNRECORDED = "not recorded"


def system_terms(results: Results, system: System) -> list[tuple[str, str]]:
    """Terms and texts for the row of a system."""
    stages = ["train", *(["attack"] if results.run("attack", system.experiment) else [])]
    commands = [f"dvc repro suites/{results.suite}/dvc.yaml:{stage}@{system.experiment}" for stage in stages]
    ran = [run for stage in stages if (run := results.run(stage, system.experiment))]
    commits = dict.fromkeys(f"{run.revision} ({run.stage}, {run.started})" for run in ran)
    return [
        ("Command", "; ".join(commands)),
        ("Parameters", json.dumps(system.parameters, sort_keys=True, ensure_ascii=False)),
        ("Commit", ", ".join(commits) or UNRECORDED),
        ("Data", f"{system.dataset}, SHA-256 {results.fingerprints.get(system.dataset, UNRECORDED)}"),
    ]
