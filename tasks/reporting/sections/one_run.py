"""What one training run with canaries proves of its ε, beside what is claimed and accounted for the same setting."""

from __future__ import annotations

from tasks.reporting.core import ledger
from tasks.reporting.core.layout import Cell, Heading, Row, Table, join_words, missing_cell, number
from tasks.reporting.core.results import BASE, Results, System, unique

FIELDS = (
    "experiment",
    "setting",
    "auditor",
    "epsilon",
    "confidence",
    "canaries",
    "guesses",
    "correct",
    "provable",
    "accounted",
    "control",
)
"""Of a record of one_run.json. `auditor`: who guesses. `epsilon` is the lower bound that the guesses prove, `provable`
the one that they would if all were right, `accounted` the upper bound (null: none), `control` the lower bound of the
same audit without noise.
"""
AUDITORS = {"network": "the released network", "steps": "what every step releases"}
"""Who guesses -> what they see."""


def table(results: Results) -> Table | None:
    """One row per audited setting; None where nothing was audited."""
    known = {system.experiment: system for system in results.systems}
    rows = []
    for record in results.one_run:
        system, setting = known.get(record["experiment"]), record["setting"]
        name = record["experiment"] if system is None else system.label
        accounted, proved = record["accounted"], record["epsilon"]
        refuted = accounted is not None and proved > accounted
        share = f"{record['correct']} of {record['guesses']} guesses right, {record['canaries']} canaries"
        rows.append(
            Row(
                name if setting == BASE else f"{name}, {setting}",
                [
                    Cell(AUDITORS[record["auditor"]]),
                    missing_cell(ledger.UNCLAIMED) if system is None else _claimed_cell(results, system, setting),
                    Cell(
                        ledger.format_budget(accounted),
                        ()
                        if system is None or accounted is None
                        else tuple(filter(None, [ledger.fixed_conditions(results, system)])),
                    ),
                    Cell(
                        number(proved, 2),
                        (f"{100 * record['confidence']:g} % confidence", *(["above accounted"] if refuted else [])),
                        "bad number" if refuted else "number",
                    ),
                    Cell(number(record["provable"], 2), (share,)),
                    Cell(number(record["control"], 2)),
                    Cell(number(record["control_half"], 2)) if "control_half" in record else missing_cell(),
                ],
            )
        )
    if not rows:
        return None
    headings = [
        "System",
        "auditor sees",
        "claimed ε",
        "accounted ε",
        "audited ε",
        "largest provable",
        "control, no noise",
        "control, half the noise",
    ]
    return Table(
        "Audited by one training run: a lower bound on ε from guesses who of many canaries was in the data",
        [Heading(text, "number" if place > 1 else "") for place, text in enumerate(headings)],
        rows,
    )


def _claimed_cell(results: Results, system: System, setting: str) -> Cell:
    """What the ledger claims for interactions, where it claims anything for them, else for whatever it does."""
    entries = [line.entry for line in ledger.lines_of(results, system) if line.setting == setting]
    first = [entry for entry in entries if entry.protects != "feature"] or entries
    claims = unique(
        [
            ledger.UNCLAIMED if entry.claimed_epsilon is None else ledger.format_budget(entry.claimed_epsilon)
            for entry in first
        ]
    )
    return Cell(join_words(claims)) if claims else missing_cell("no entry")
