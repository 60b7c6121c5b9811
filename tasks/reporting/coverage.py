"""How many of the numbers that papers print were measured, on which kind of data, and why the others were not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType

import polars as pl

from tasks.reporting.core import comparison, origins
from tasks.reporting.core.layout import DASH, Cell, Heading, Row, Table, join_words
from tasks.reporting.core.origins import KINDS, Kind
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.reporting.sections.data_statistics import counts
from tasks.results.paper import Figure, artefact_name

Number = tuple[str, str, str, str, str, str]
"""A printed number: the columns `KEY` of paper_tables.csv."""
KEY = ("paper", "artefact", "dataset", "method", "setting", "metric")
NONE = "none"
COLUMNS = (*KINDS, NONE)
NO_SYSTEM, NO_RESULTS = "there is no {}.", "the suite has {} since these results were made; run it again."
NO_SUITE = "no suite of the paper has results on {}, a part of it or a replica"
NEAR = "within 10 %"
DRAWN, DRAWN_OF, ELSEWHERE = "drawn", "of {}", "on other data"


@dataclass(frozen=True)
class Drawing:
    """What one suite draws of a figure of its paper."""

    methods: tuple[str, ...]
    """The figure's methods that it has."""
    complete: bool
    """Whether these are all of them."""
    elsewhere: bool
    """Whether it is on data of which the paper prints nothing."""

    @property
    def text(self) -> str:
        """`DRAWN`, of which methods where others lack, and whether on other data."""
        of = [] if self.complete else [DRAWN_OF.format(join_words(self.methods))]
        return ", ".join([DRAWN, *of, *([ELSEWHERE] if self.elsewhere else [])])

    @property
    def rank(self) -> tuple[bool, int]:
        """More is better: on the paper's data first, as numbers on other data do not count at all; then by methods."""
        return not self.elsewhere, len(self.methods)


@dataclass(frozen=True)
class Evidence:
    """What one suite has of the numbers that its paper prints of the data that the suite's stand for."""

    suite: str
    kind: Kind
    """Of what it measured and drew."""
    paper: str
    original: str
    """The published data set that the suite's data are or stand for."""
    measured: Mapping[Number, Kind]
    """With the data that each is of: what is counted may be of all of which the suite measures on a part."""
    near: frozenset[Number]
    """Those within 10 %; none of synthetic data, which are not compared."""
    reasons: Mapping[Number, str]
    """Why the suite has no value for others that are printed of its data."""
    absent: Mapping[Number, str]
    """Labels of the systems that it lacks for some of these."""
    drawn: Mapping[str, Drawing]
    """Key of each figure of the paper that it has a chart for -> what that chart has of it."""


@dataclass(frozen=True)
class Line:
    """The printed numbers of a table on one data set; of a figure, which prints none, the charts that there are."""

    paper: str
    artefact: str
    name: str
    """What the paper calls it."""
    dataset: str = ""
    """Empty for a figure."""
    numbers: Counter[str] = field(default_factory=Counter)
    """One of `COLUMNS` -> how many; each number counts once, under the best kind of data that it has."""
    near: int = 0
    suites: tuple[str, ...] = ()
    """Where they were measured or drawn."""
    reasons: tuple[str, ...] = ()
    """Why the others were not."""
    steps: tuple[str, ...] = ()
    """Commands for whoever has the official data, where not all is measured on them."""
    drawn: Mapping[Kind, str] = field(default_factory=dict)
    """Kinds of data that a figure is drawn on -> what the suite draws that has most of it on such data."""


def evidence(results: Results, report: PaperReport, k: int) -> Evidence | None:
    """What a suite has of its paper's numbers; None where it has no paper, or its data stand for no published ones.

    k: the cut-off of a figure for which the paper names none.
    """
    kind, original = origins.kind(results), origins.as_original(results)
    if original.reproduced is None:
        return None
    lacking = report.lacking(original) if report.lacking else {}
    measured, near = dict[Number, Kind](), set[Number]()
    reasons, absent = dict[Number, str](), dict[Number, str]()
    for entry in comparison.entries(original):
        if entry.printed is None:
            continue
        of = entry.table.key, entry.column.data, *entry.method.printed_as(entry.column), entry.column.published
        number = _number(original, *of)
        if not len(entry.ours):
            label = _absent(results, entry.method)
            cause = NO_SYSTEM.format(label) if label else _reason(entry.method)
            impossible = [f"Not there: {text.rstrip('.')}." for text in lacking.get(entry.table.key, ())]
            reasons[number] = " ".join([f"{results.suite}: {cause}", *impossible])
            absent |= {number: label} if label else {}
            continue
        if number not in measured and comparison.is_near(entry):  # of several scores of one number the first decides
            near.add(number)
        measured[number] = kind
    for whose in origins.counted(results):  # the best data last
        kind_of, shown = origins.kind(whose), origins.as_original(whose)
        for count in counts(shown, report):
            theirs = count.printed(shown)
            number = _number(shown, count.artefact, count.data, count.method, count.setting, count.metric)
            if theirs is not None and count.ours is None:
                reasons[number] = f"{results.suite}: the data do not tell it."
            elif theirs is not None and count.ours is not None:
                measured[number] = kind_of
                (near.add if comparison.is_close(count.ours, theirs) else near.discard)(number)
    drawn = {
        figure.key: _drawn(results, figure, elsewhere=not (measured or reasons))
        for figure in results.layout.figures
        if figure.key in report.figures and report.figures[figure.key](results, figure, k).panels
    }
    return Evidence(
        results.suite,
        kind,
        original.reproduced.key,
        original.origin,
        measured,
        frozenset(number for number in near if measured[number] != "synthetic"),
        reasons,
        absent,
        drawn,
    )


def _drawn(results: Results, figure: Figure, *, elsewhere: bool) -> Drawing:
    """What a suite draws of a figure that it has a chart for; of one without named methods that is all.

    elsewhere: whether the paper prints nothing of the suite's data.
    """
    methods = results.layout.methods
    here = tuple(name for name in figure.drawn if results.find(methods.get(name, name)) is not None) or figure.drawn
    return Drawing(here, here == figure.drawn, elsewhere)


def _number(original: Results, artefact: str, data: str, method: str, setting: str, metric: str) -> Number:
    return original.layout.key, artefact, data or original.origin, method, setting, metric


def _absent(results: Results, method: comparison.Method) -> str:
    """The label of the system that a suite would have to have for a method; empty where it has it."""
    label = results.layout.methods[method.name] if method.version is None else method.version.system
    return "" if method.system is not None or results.find(label) is not None else label


def _reason(method: comparison.Method) -> str:
    """Why a suite that has the system of a method has no value of it."""
    if method.system is not None or method.version is None:
        return f"{method.name} has no such metric."
    return f"{method.version.system} was not run at {method.setting}."


def lines(
    collected: Sequence[Evidence],
    printed: pl.DataFrame,
    figures: Mapping[str, Sequence[Figure]],
    steps: Mapping[tuple[str, str], Sequence[str]],
    planned: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[Line]:
    """A line for each table on each data set that it prints numbers of, and for each figure, paper by paper.

    Args:
        collected: what suites have.
        printed: paper_tables.csv.
        figures: paper -> its figures.
        steps: paper and published data set -> commands for whoever has that one.
        planned: suite -> labels of the systems that it is to have.
    """
    best: dict[Number, Kind] = {}
    for kind in reversed(KINDS):
        best |= {number: kind for of in collected for number, mine in of.measured.items() if mine == kind}
    originals = {number[2]: of.original for of in collected for number in (*of.measured, *of.reasons)}
    tables: dict[tuple[str, str, str], list[Number]] = {}
    for row in printed.select(pl.col(KEY).fill_null("")).iter_rows():
        tables.setdefault(row[:3], []).append(row)
    made = []
    for (paper, artefact, dataset), numbers in tables.items():
        counted = Counter[str](best.get(number, NONE) for number in numbers)
        mine = [of for of in collected if any(n in best and of.measured.get(n) == best[n] for n in numbers)]
        near = {number for of in mine for number in of.near if of.measured[number] == best[number]}
        missing = [number for number in numbers if number not in best]
        causes = [_cause(of, number, planned) for number in missing for of in collected if number in of.reasons]
        reasons = causes or ([f"{NO_SUITE.format(dataset)}."] if missing else [])
        commands = steps.get((paper, originals.get(dataset, dataset)), ()) if counted["real"] < len(numbers) else ()
        made.append(
            Line(
                *(paper, artefact, artefact_name(artefact), dataset, counted),
                *(sum(number in near for number in numbers), tuple(of.suite for of in mine)),
                *(tuple(unique(reasons)), tuple(commands)),
            )
        )
    made += [_figure(paper, figure, collected) for paper, every in figures.items() for figure in every]
    papers = unique([line.paper for line in made])
    return sorted(made, key=lambda line: papers.index(line.paper))


def _cause(of: Evidence, number: Number, planned: Mapping[str, Collection[str]]) -> str:
    """Why a suite has no value of a number: that it lacks a system may be so of its results alone."""
    label = of.absent.get(number, "")
    if label not in planned.get(of.suite, ()):
        return of.reasons[number]
    return of.reasons[number].replace(NO_SYSTEM.format(label), NO_RESULTS.format(label))


def _figure(paper: str, figure: Figure, collected: Sequence[Evidence]) -> Line:
    mine = [of for of in collected if of.paper == paper and figure.key in of.drawn]
    drawn = {
        kind: max((of.drawn[figure.key] for of in mine if of.kind == kind), key=lambda drawing: drawing.rank).text
        for kind in KINDS
        if any(of.kind == kind for of in mine)
    }
    reasons = () if drawn else ("no suite has run what it varies.",)
    return Line(paper, figure.key, figure.name, suites=tuple(of.suite for of in mine), reasons=reasons, drawn=drawn)


def by_artefact(counted: Sequence[Line]) -> list[tuple[str, ...]]:
    """Paper, artefact, printed numbers and `COLUMNS` of each table and figure, over all data sets, and their total."""
    rows, totals = [], Counter[str]()
    for (paper, name), group in groupby(counted, key=lambda line: (line.paper, line.name)):
        of = [*group]
        numbers = sum((line.numbers for line in of), Counter[str]())
        totals += numbers
        if numbers:
            rows.append((paper, name, *_count(numbers)))
        else:
            rows.append((paper, name, "picture", *(of[0].drawn.get(kind, "") for kind in KINDS), ""))
    return [*rows, ("all papers", "", *_count(totals))]


def _count(numbers: Counter[str]) -> tuple[str, ...]:
    return f"{numbers.total():,}", *(f"{numbers[column]:,}" for column in COLUMNS)


def artefacts(counted: Sequence[Line]) -> Table:
    """`by_artefact` as a table of a page."""
    *rows, total = by_artefact(counted)
    headings = ["Paper", "artefact", "printed numbers", *COLUMNS]
    return Table(
        "Printed numbers by the data that they were measured on: each counts once, under the best",
        [Heading(text, "number" if place > 1 else "") for place, text in enumerate(headings)],
        [
            Row(paper, [Cell(name, kind=""), *map(Cell, cells)], kind)
            for kind, of in (("", rows), ("foot", [total]))
            for paper, name, *cells in of
        ],
    )


def by_paper(counted: Sequence[Line], references: Mapping[str, str]) -> Table:
    """Printed numbers of each paper, of all its tables and data sets, and those that ours are near."""
    rows = []
    for paper, group in groupby(counted, key=lambda line: line.paper):
        of = [*group]
        rows.append((paper, references[paper], *_total(of)))
    headings = ["Paper", "reference", "printed numbers", *COLUMNS, NEAR]
    return Table(
        "Coverage of the papers",
        [Heading(text, "number" if place > 1 else "") for place, text in enumerate(headings)],
        [
            Row(paper, [Cell(reference, kind="reasons"), *map(Cell, cells)], kind)
            for kind, of in (("", rows), ("foot", [("all papers", "", *_total(counted))]))
            for paper, reference, *cells in of
        ],
    )


def _total(counted: Sequence[Line]) -> tuple[str, ...]:
    numbers = sum((line.numbers for line in counted), Counter[str]())
    compared = numbers["real"] + numbers["part"]
    return *_count(numbers), f"{sum(line.near for line in counted):,}" if compared else DASH


def by_data(counted: Sequence[Line]) -> Table:
    """Each table on each data set: what was measured where, why the rest was not, and what to do with official data."""
    headings = [
        "Paper",
        "artefact",
        "data set",
        "printed numbers",
        *COLUMNS,
        NEAR,
        "suites",
        "what is not of real data",
    ]
    rows = []
    for line in counted:
        if line.numbers or line.reasons:
            official = [f"With the official data: {', '.join(line.steps)}."] if line.steps else []
            cells = [Cell(line.name, kind=""), Cell(line.dataset, kind=""), *map(Cell, _total([line]))]
            cells += [Cell("", line.suites, ""), Cell("", (*line.reasons, *official), "reasons")]
            rows.append(Row(line.paper, cells))
    return Table(
        "Printed numbers by table and data set",
        [Heading(text, "number" if 2 < place < 9 else "") for place, text in enumerate(headings)],
        rows,
    )
