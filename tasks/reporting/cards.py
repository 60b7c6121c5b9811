"""Privacy cards: what a system protects, from whom, what it claims, what that is worth, and what is known to lack."""

from __future__ import annotations

from tasks.reporting.core import headline, ledger
from tasks.reporting.core.layout import Cell, Heading, Row, Table, count, join_words, missing_cell, number
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
        cells = [Cell(ledger.claimed_budget(entry)), Cell(ledger.accounted_budget(entry)), Cell(_audited(line))]
        cells += [Cell(entry.observer or ANYONE, kind=""), Cell(entry.neighbouring, kind="wide")]
        rows.append(Row(line.protects, [*cells, Cell(str(len(entry.gaps)))]))
    headings = ["Protects", "claimed ε", "accounted ε", "audited ε", "from", "neighbouring inputs", "known gaps"]
    reached = f"{utility.at(utility.cutoff(k))} {number(float(values.mean()))}" if len(values) else "not measured"
    seconds = None if run is None else run.seconds if run.training_seconds is None else run.training_seconds
    cost = "; its cost was not recorded" if seconds is None else f"; {seconds:.0f} s of training"
    named = _gaps(lines)
    return [
        heading("{}", system.label, anchor=f"card-{system.experiment}"),
        paragraph("Utility: {}{}.", reached, cost),
        Table(
            f"Privacy card of {system.label} ({results.suite}): ε of one run",
            [Heading(text, "") for text in headings],
            rows,
        ),
        Fold(count(len(named), "known gap"), bullets(named)) if named else None,
    ]


def summary_rows(results: Results, k: int) -> list[Row]:
    """Every card of a suite as one line, with a link to it; best utility first."""
    utility, rows = results.layout.utility, []
    for standing in headline.standings(results, k):
        lines = _private_lines(results, standing.system)
        if not lines:
            continue
        claimed = unique([ledger.claimed_budget(of.entry) for of in lines if of.entry.claimed_epsilon is not None])
        proved = missing_cell(UNAUDITED)
        if standing.proved is not None:
            verdict = ("refuted",) if standing.refuted else ()
            proved = Cell(f"≥ {standing.proved:.3g}", verdict, "number found" if verdict else "number")
        reached = missing_cell("not measured") if standing.utility is None else Cell(number(standing.utility))
        rows.append(
            Row(
                f"{standing.system.label} ({results.suite})",
                [
                    Cell("card", href=f"#card-{standing.system.experiment}", kind=""),
                    Cell(join_words(claimed) or ledger.UNCLAIMED),
                    Cell(ledger.format_budget(standing.accounted), tuple(filter(None, [standing.unit]))),
                    proved,
                    reached,
                    Cell(utility.at(utility.cutoff(k)), kind=""),
                ],
            )
        )
    return rows


def summary(rows: list[Row]) -> Table:
    """Every card as one line."""
    headings = ["System (suite)", "card", "claimed ε", "accounted ε", "audited ε", "utility", "measure"]
    return Table(
        "Every private system: ε of one run; bold: an audit proves more than is claimed",
        [Heading(text, "number" if 1 < place < 6 else "") for place, text in enumerate(headings)],
        rows,
    )


def _private_lines(results: Results, system: System) -> list[Line]:
    """What the system spends at its base setting."""
    return [line for line in ledger.lines_at(results, system) if line.entry.mechanism != ledger.NO_MECHANISM]


def _audited(line: Line) -> str:
    return UNAUDITED if line.audit is None else f"≥ {line.audit['audited_epsilon']:.3g}, {line.audit['verdict']}"


def _gaps(lines: list[Line]) -> list[str]:
    """Every known gap once; one that not all lines have says whose it is."""
    of: dict[str, list[Line]] = {}
    for line in lines:
        for gap in unique(ledger.gaps(line.entry)):
            of.setdefault(gap, []).append(line)
    return [
        gap if len(mine) == len(lines) else f"{join_words(unique([line.protects for line in mine]))}: {gap}"
        for gap, mine in of.items()
    ]
