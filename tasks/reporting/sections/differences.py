"""Why we differ: how many pairs of methods are ordered otherwise than printed, of which kind, and each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from markupsafe import Markup

from tasks.reporting.core import differences, origins
from tasks.reporting.core.claims import evaluate
from tasks.reporting.core.differences import PART, REVERSED, UNDECIDED, UNSHOWN, Pair
from tasks.reporting.core.layout import (
    NUMBER,
    Cell,
    Heading,
    Row,
    Table,
    count,
    format_difference,
    join_words,
    missing_cell,
)
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.reporting.core.section import Blocks, Fold, Section, bullets, optional, paragraph
from tasks.reporting.core.words import wording
from tasks.results.claims import KINDS, Claim, Reason

ABOUT = (
    "A pair is two methods of one printed column, as far as it prints them apart and both were run; of several scores "
    "of one printed number the first counts. A reversed pair is put down to the first of the paper's known reasons "
    "that covers it. A reason that stands on another reading covers a pair only where the paired test shows that "
    "reading to order it as printed. Such a reason decides nothing where it reverses at least as many pairs "
    "that are ordered as printed."
)
WITHIN = (
    "“Within our spread”: the paired test over {}s, in both directions, does not show our order; a single run shows "
    "none. That is no reason: such a pair stays not decided unless a reason covers it. Of pairs that do not differ, "
    "one in forty is shown by chance."
)
NO_PART = (
    "These data are a part of the printed ones, and any of these pairs may be reversed by that. No run with more of "
    "them tells which, so none is put down to it."
)
IN_WORDS = (
    "The paper prints no number of a method, so no pair of methods can be reversed. These are the claims in words that "
    "our numbers contradict, each put down to the first of the known reasons that speaks of it."
)
UNKNOWN = Reason(
    "no known reason", UNDECIDED, "No reading that was measured covers these, and no fact that is known.", sources=()
)
"""Stands for what no reason covers."""
OURS = "Measured here: {}. {}"
NOT_RUN = "not run"
Item = TypeVar("Item", Pair, Claim)


def section(results: Results, report: PaperReport, claims: Sequence[Claim] = ()) -> Section:
    """Counts by kind, and the pairs folded by reason; where none is printed, claims; nothing of replicas.

    claims: what the suite's paper says, judged.
    """
    every = differences.pairs(results, report.differences)
    blocks = blocks_of(results, report, every) if every else blocks_of_claims(results, report, claims)
    return Section(
        "differences", "Why we differ", blocks, about=paragraph(ABOUT if every else IN_WORDS), link="Reversed pairs"
    )


def blocks_of_claims(results: Results, report: PaperReport, claims: Sequence[Claim]) -> list[Blocks]:
    """The contradicted claims of a paper without printed numbers, by reason, with their evidence."""
    wrong = differences.contradicted(results, claims, report.differences)
    made: list[Blocks] = []
    for reason, mine in _by_reason(report.differences, [*wrong.items()]):
        tested = [of for of in evaluate(results, reason.measured) if of.verdict != NOT_RUN]
        said = [paragraph("{}", OURS.format(f"{of.claim}: {of.verdict}", of.evidence)) for of in tested]
        said.append(bullets([f"{of.claim}. {of.evidence}" for of in mine]))
        made.append(_fold(reason, count(len(mine), "claim"), said))
    return made


def blocks_of(results: Results, report: PaperReport, every: Sequence[Pair]) -> list[Blocks]:
    """The counts of pairs, what they do not say, and the reversed ones."""
    lead = optional(paragraph("{}", summary(every)), notes(results, every))
    return [*lead, by_table(every), folds(results, differences.weighed(results, report.differences), every)]


def summary(every: Sequence[Pair]) -> str:
    """How many pairs are ordered as printed, and how many reversed ones are of each kind."""
    orders, of = [pair.order for pair in every], differences.counts(every)
    equal = f", {orders.count('equal')} equal here" if "equal" in orders else ""
    said = f"Of {len(every):,} pairs {orders.count('as printed')} are ordered as printed{equal} and "
    said += f"{of[REVERSED]} reversed, {of[REVERSED] - of[UNSHOWN]} of these beyond our spread."
    named = join_words([f"{kind} {of[kind]}" for kind in KINDS if of[kind]])
    return f"{said} By reason: {named}." if named else said


def notes(results: Results, every: Sequence[Pair]) -> Markup:
    """What the counts do not say."""
    said = WITHIN.format(wording(results.layout).run)
    if origins.kind(results) == "part" and not differences.counts(every)[PART]:
        said += f" {NO_PART}"
    return paragraph("{}", said, kind="soft")


def by_table(every: Sequence[Pair]) -> Table:
    """A row for each printed table: its pairs, the reversed ones, these by kind, and those within our spread."""
    tables = unique([pair.table for pair in every])
    rows = [(table.name, (), differences.counts([p for p in every if p.table == table])) for table in tables]
    return counted("Reversed pairs by table", ["Table"], rows)


def counted(caption: str, headings: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell], Counter[str]]]) -> Table:
    """Pairs under `differences.COLUMNS`, with their total below several rows.

    Args:
        caption: of the table.
        headings: of the name of a row, and of the cells before its counts.
        rows: name, these cells, and counts.
    """
    first = len(headings) - 1
    made = [Row(name, [*cells, *_numbers(of)]) for name, cells, of in rows]
    if len(rows) > 1:
        total = sum((of for *_, of in rows), Counter[str]())
        made.append(Row("all", [*[missing_cell()] * first, *_numbers(total)], "foot"))
    return Table(
        caption,
        [
            *(Heading(text, "") for text in headings),
            *(Heading(text) for text in differences.COLUMNS),
        ],
        made,
        [("", first + 2), ("reversed, by reason", len(KINDS)), ("reversed", 1)],
    )


def _numbers(of: Counter[str]) -> list[Cell]:
    return [_number(of[column]) for column in differences.COLUMNS]


def _number(n: int) -> Cell:
    """A count, grey where there is nothing to count."""
    return Cell(f"{n:,}", kind=NUMBER if n else f"{NUMBER} quiet")


def folds(results: Results, reasons: Sequence[Reason], every: Sequence[Pair]) -> list[Fold]:
    """The reversed pairs of each of the paper's reasons with its evidence, those without one last."""
    made = []
    for reason, mine in _by_reason(reasons, [(pair, pair.reason) for pair in differences.reversed_pairs(every)]):
        of = f"{count(len(mine), 'pair')}, {sum(not pair.shown for pair in mine)} {UNSHOWN}"
        made.append(_fold(reason, of, [pair_table(results, mine, reason.name)]))
    return made


def _by_reason(
    reasons: Sequence[Reason], covered: Sequence[tuple[Item, Reason | None]]
) -> list[tuple[Reason, list[Item]]]:
    """Each reason with what it covers, where that is anything; what none covers stands last, under `UNKNOWN`."""
    by_reason = [
        (reason, [item for item, why in covered if (why or UNKNOWN) == reason]) for reason in (*reasons, UNKNOWN)
    ]
    return [(reason, mine) for reason, mine in by_reason if mine]


def _fold(reason: Reason, of: str, content: Sequence[Blocks]) -> Fold:
    """What a reason covers, below its evidence. of: how much that is."""
    title = f"{reason.kind[:1].upper()}{reason.kind[1:]}: {reason.name} ({of})"
    said = " ".join(filter(None, [reason.evidence, weight(reason)]))
    return Fold(title, [paragraph("{}", said), *content])


def weight(reason: Reason) -> str:
    """What its reading does to all pairs of the suite; empty where it moves none, or there is none."""
    if not reason.turned and not reason.broken:
        return ""
    said = f"Of all pairs it turns {reason.turned} to the printed order and reverses {reason.broken} that ours has so"
    return f"{said}{'.' if reason.broken < reason.turned else ': a reading that breaks what it mends decides nothing.'}"


def pair_table(results: Results, reversed_: Sequence[Pair], name: str) -> Table:
    """A row for every two methods of a table: in which columns they are reversed, and where by most."""
    rows = []
    for table, methods in unique([(pair.table, pair.name) for pair in reversed_]):
        mine = [pair for pair in reversed_ if pair.table == table and pair.name == methods]
        widest = max(mine, key=lambda pair: abs(pair.ours))
        within = sum(not pair.shown for pair in mine)
        cells = [
            Cell(table.name, kind=""),
            Cell(str(len(mine))),
            _number(within),
            Cell(format_difference(widest.printed)),
            Cell(format_difference(widest.ours), (_column_name(widest),)),
            Cell("", (", ".join(map(_column_name, mine)),), "reasons"),
        ]
        rows.append(Row(methods, cells))
    headings = ["In print", "table", "columns", UNSHOWN, "printed difference", "ours, where widest", "which"]
    return Table(
        f"{results.suite}, reversed pairs: {name}",
        [Heading(text, "number" if 1 < place < 6 else "") for place, text in enumerate(headings)],
        rows,
    )


def _column_name(pair: Pair) -> str:
    """A printed column in a few words."""
    column = pair.column
    of = [column.published, column.label if column.setting else "", column.data]
    return " ".join(filter(None, of))
