"""Privacy cards: what a system protects, from whom, what it claims, what that is worth, and what is known to lack."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core import headline, known_gaps, ledger
from tasks.reporting.core.layout import DASH, Cell, Heading, Row, Table, count, join_words, missing_cell, number
from tasks.reporting.core.ledger import Line
from tasks.reporting.core.results import Results, System, unique
from tasks.reporting.core.section import Blocks, Fold, bullets, heading, paragraph

ANYONE = "anyone who sees the release"
UNAUDITED = "not audited"


def card(results: Results, system: System, k: int) -> list[Blocks]:
    """The card of a system; nothing for one that spends no budget."""
    lines = _private_lines(results, system)
    if not lines:
        return []
    utility, run = results.layout.utility, results.run("train", system.experiment)
    values = results.values(system, utility.metric, utility.cutoff(k))
    rows = []
    for line in lines:
        entry = line.entry
        cells = [Cell(ledger.claimed_budget(entry)), _accounted(entry), _audited(line)]
        cells += [Cell(entry.observer or ANYONE, kind=""), Cell(entry.neighbouring, kind="wide")]
        row = Row(line.protects, [*cells, Cell(str(len(known_gaps.of(results, entry))))])
        rows += [] if row in rows else [row]  # lines of several mechanisms or seeds may say the same
    headings = ["Protects", "claimed ε", "accounted ε", "audited ε", "from", "neighbouring inputs", "known gaps"]
    reached = f"{utility.at(utility.cutoff(k))} {number(float(values.mean()))}" if len(values) else "not measured"
    seconds = None if run is None else run.seconds if run.training_seconds is None else run.training_seconds
    cost = "; its cost was not recorded" if seconds is None else f"; {seconds:.0f} s of training"
    named = _gaps(results, lines)
    return [
        heading("{}", system.label, anchor=f"card-{system.experiment}"),
        paragraph("Utility: {}{}.", reached, cost),
        Table(
            f"Privacy card of {system.label} ({results.suite}): ε of one run",
            [Heading(text, "number" if place in {1, 2, 3, 6} else "") for place, text in enumerate(headings)],
            rows,
        ),
        Fold(count(len(named), "known gap"), bullets(named)) if named else None,
    ]


def summary_rows(results: Results, k: int) -> list[Row]:
    """Every card of a suite as one line, with a link to it; best utility first."""
    utility, rows = results.layout.utility, []
    synthetic = ("synthetic",) if results.synthetic else ()
    for standing in headline.standings(results, k):
        lines = _private_lines(results, standing.system)
        if not lines:
            continue
        claims = unique([ledger.claimed_budget(of.entry) for of in lines if of.entry.claimed_epsilon is not None])
        of_claim = [[of for of in lines if ledger.claimed_budget(of.entry) == budget] for budget in claims]
        audited = [f"{budget}: {_proved(of)}" for budget, of in zip(claims, of_claim, strict=True)]
        reached = missing_cell("not measured")
        if standing.utility is not None:
            reached = Cell(number(standing.utility), (utility.at(utility.cutoff(k)),))
        rows.append(
            Row(
                standing.system.label,
                [
                    Cell(results.suite, synthetic, href=f"#card-{standing.system.experiment}", kind=""),
                    Cell("", tuple(claims) or (ledger.UNCLAIMED,), "stack"),
                    Cell(ledger.format_budget(standing.accounted), _notes(lines, standing), "number wrap"),
                    Cell(standing.unit or DASH, kind="wide"),
                    Cell("", tuple(audited) or (_proved(lines),), "stack wide"),
                    reached,
                ],
            )
        )
    return rows


def _notes(lines: Sequence[Line], standing: headline.Standing) -> tuple[str, ...]:
    """Towards whom an accounted ε holds, where observers differ in theirs, and what it takes as fixed."""
    given = standing.given if standing.accounted is not None else ""
    return (*_towards(lines, standing.accounted), *filter(None, [given]))


def _towards(lines: Sequence[Line], accounted: float | None) -> tuple[str, ...]:
    """Towards whom an accounted ε holds, where observers differ in theirs."""
    observers = unique([line.entry.observer for line in lines if line.entry.observer])
    mine = [line.entry.observer for line in lines if line.entry.accounted_epsilon == accounted]
    return (f"towards {mine[0]}",) if len(observers) > 1 and mine and mine[0] else ()


def _proved(lines: Sequence[Line]) -> str:
    """What audits prove of one claim, at most, and show of it."""
    known = [line.audit for line in lines if line.audit is not None]
    if not known:
        return UNAUDITED
    most = max(known, key=lambda audit: (audit["verdict"] == headline.REFUTED, audit["audited_epsilon"]))
    return f"≥ {most['audited_epsilon']:.3g}, {most['verdict']}"


def summary(rows: list[Row]) -> Table:
    """Every card as one line."""
    headings = ["System", "its card, by suite", "claimed ε", "accounted ε", "accounted for", "audited ε", "utility"]
    return Table(
        "Every private system: ε of one run, and what audits prove of each claim",
        [Heading(text, "number" if place in {2, 3, 5, 6} else "") for place, text in enumerate(headings)],
        rows,
    )


def _private_lines(results: Results, system: System) -> list[Line]:
    """What the system spends at its base setting."""
    return [line for line in ledger.lines_at(results, system) if line.entry.mechanism != ledger.NO_MECHANISM]


def _accounted(entry: LedgerEntry) -> Cell:
    """The accounted budget, and below it what that takes as fixed."""
    budget = ledger.format_budget(entry.accounted_epsilon, entry.accounted_delta)
    condition = ledger.condition(entry).removeprefix(", ")
    return Cell(budget, (condition,) if condition else (), "number wrap")


def _audited(line: Line) -> Cell:
    if line.audit is None:
        return missing_cell(UNAUDITED)
    verdict = line.audit["verdict"]
    return Cell(
        f"≥ {line.audit['audited_epsilon']:.3g}", (verdict,), f"number{' found' * (verdict == headline.REFUTED)}"
    )


def _gaps(results: Results, lines: list[Line]) -> list[str]:
    """Every known gap once; one that not all lines have says whose it is."""
    of: dict[str, list[Line]] = {}
    for line in lines:
        for gap in unique(known_gaps.of(results, line.entry)):
            of.setdefault(gap, []).append(line)
    return [
        gap if len(mine) == len(lines) else f"{join_words(unique([line.protects for line in mine]))}: {gap}"
        for gap, mine in of.items()
    ]
