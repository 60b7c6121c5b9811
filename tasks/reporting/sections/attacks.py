"""The tables of attacks: which controls each attack beats, every gain, and what blurred profiles reveal."""

from __future__ import annotations

from collections.abc import Callable

from tasks.evaluation.gains import Gain
from tasks.evaluation.statistics import summary
from tasks.reporting.core import findings
from tasks.reporting.core.chart import Chart, Heat, Square, share_scale
from tasks.reporting.core.figures import sample_of
from tasks.reporting.core.layout import (
    MISSING,
    NUMBER,
    Cell,
    Heading,
    Row,
    Table,
    count,
    format_difference,
    join_words,
    missing_cell,
    number,
    with_interval,
)
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.section import Fold, Section, bullets, optional, paragraph, subsection
from tasks.reporting.core.words import ATTACKERS

NOT_RUN = "not run"
BLURRING = "blurm"
"""The model that releases blurred profiles."""


def section(results: Results, k: int) -> Section:
    """Attacks on attributes beside their controls."""
    note, blurred = blurring(results, k) or ("", None)
    blocks = [
        optional(chart(results, k)),
        beaten_controls(results, k),
        Fold("The same in words", bullets(unbeaten_controls(results, k))),
        Fold("Every gain with its interval", [gains(results, k)]),
        *subsection("blurring", "Blurred profiles", paragraph("{}", note), blurred),
    ]
    return Section(
        "attacks",
        "Attacks on attributes",
        blocks if results.attributes() else [],
        link="Attacks",
        about=paragraph(
            "Controls: guessing the most frequent class (majority), the same attacker that sees the ratings alone "
            "(ratings), the same attacker when all users' attributes are shuffled (random). An attack that beats none "
            "shows nothing; only one that beats the ratings (bold) shows that recommendations add to them."
        ),
    )


def unbeaten_controls(results: Results, k: int) -> list[str]:
    """Per attribute: how many attacks beat none of their controls, and which attackers never beat any."""
    sentences = []
    for attribute in results.attributes():
        attempts = {name: _attempts(results, attribute, name, k) for name in results.attackers(attribute)}
        total = sum(len(tried) for tried in attempts.values())
        failed = {
            name: [not any(map(findings.beats, gains.values())) for gains in tried] for name, tried in attempts.items()
        }
        if not total:
            continue
        never = [ATTACKERS.get(name, name) for name, outcomes in failed.items() if outcomes and all(outcomes)]
        text = f"{attribute.capitalize()}: {sum(map(sum, failed.values()))} of {count(total, 'attack')} beat none"
        sentences.append(f"{text}; against no system at all: {join_words(never)}." if never else f"{text}.")
    return sentences


def chart(results: Results, k: int) -> Chart:
    """What every attack gains over the ratings alone, a heat map per attribute."""
    panels, n, won = [], 0, 0
    for attribute in results.attributes():
        cells = []
        for system in results.compared:
            for name in results.attackers(attribute):
                gain = results.gain(system, attribute, name, k, "ratings")
                if gain is not None:
                    attacker = ATTACKERS.get(name, name)
                    text = f"{system.label}, {attacker}: {with_interval(gain.mean, gain.low, gain.high)}"
                    cells.append(Square(system.label, attacker, gain.mean, text, findings.beats(gain)))
        panels += [Heat(attribute.capitalize(), "", "", cells)] if cells else []
        n, won = n + len(cells), won + sum(cell.marked for cell in cells)
    return Chart(
        "chart-attacks",
        "What recommendations add to the ratings",
        f"Share of users guessed right from ratings and top {k}, minus that from the ratings alone. Bold: the 95 % "
        "interval over attacked users and seeds lies above zero, uncorrected.",
        share_scale(panels),
        finding=f"{won} of {n} attacks leak beyond the ratings",
        sample=sample_of(
            results, [cell.row for panel in panels for cell in panel.cells], attacked=True, first_split=True
        ),
    )


def beaten_controls(results: Results, k: int) -> list[Table]:
    """Per attribute: for every system and attacker, the controls that the attack beats."""
    return _per_attribute(
        results, "{attribute}: controls that an attack with the top {k} beats{level}", k, _beaten_cell
    )


def gains(results: Results, k: int) -> list[Table]:
    """Per attribute: for every system and attacker, the gain over each control with its interval."""
    return _per_attribute(results, "{attribute}: gain with the top {k}, and 95 % interval", k, _gains)


def blurring(results: Results, k: int) -> tuple[str, Table] | None:
    """Whether blurred profiles can be told from true ones, and what they still reveal; None where there are none."""
    system = results.find_compared(BLURRING)
    if system is None:
        return None
    auc, low, high = (results.values(system, f"blurring/detector/{name}", 0) for name in ("auc", "low", "high"))
    rows = []
    for attribute in results.attributes():
        for attacker in results.attackers(attribute):
            cells = [cell for shown in (0, k) for cell in _blurred_cells(results, system, attribute, attacker, shown)]
            if any(cell.kind != MISSING for cell in cells):
                rows.append(Row(f"{attribute}, {ATTACKERS.get(attacker, attacker)}", cells))
    if not rows:
        return None
    verdict = "Whether a profile was blurred was not tested."
    if len(auc):
        hidden = "the blurring is not hidden" if low.mean() > 0.5 else "that is not shown to beat guessing"
        verdict = (
            f"A detector tells a blurred profile from a true one with AUC {number(auc.mean())} "
            f"({number(low.mean())} to {number(high.mean())}; guessing has 0.5): {hidden}."
        )
    headings = ["Attribute and attacker", *["true", "blurred", "blurred minus true"] * 2]
    return verdict, Table(
        f"F1 of an attacker that sees the true or the blurred profile of {system.label}; 95 % interval over seeds",
        [Heading(text, NUMBER if index else "") for index, text in enumerate(headings)],
        rows,
        groups=[("Profile alone", 3), (f"Profile and top {k}", 3)],
    )


def _per_attribute(results: Results, caption: str, k: int, cell: Callable[[dict[str, Gain]], Cell]) -> list[Table]:
    shown = []
    for attribute in results.attributes():
        names = results.attackers(attribute)
        rows = [
            Row(system.label, [cell(findings.controls(results, system, attribute, name, k)) for name in names])
            for system in results.compared
        ]
        chance = results.majority(attribute)
        level = "" if chance is None else f" (majority guess: F1 {number(chance)})"
        shown.append(
            Table(
                caption.format(attribute=attribute.capitalize(), k=k, level=level),
                [Heading("System", ""), *(Heading(ATTACKERS.get(name, name), "") for name in names)],
                rows,
            )
        )
    return shown


def _attempts(results: Results, attribute: str, attacker: str, k: int) -> list[dict[str, Gain]]:
    attempts = [findings.controls(results, system, attribute, attacker, k) for system in results.compared]
    return [gains for gains in attempts if gains]


def _beaten_cell(gains: dict[str, Gain]) -> Cell:
    if not gains:
        return Cell(NOT_RUN, kind="quiet")
    won = [control for control, gain in gains.items() if findings.beats(gain)]
    if not won:
        return Cell("none", kind="quiet")
    return Cell(", ".join(won), kind="found" if "ratings" in won else "")


def _gains(gains: dict[str, Gain]) -> Cell:
    lines = [
        f"{control} {with_interval(gain.mean, gain.low, gain.high)}{mark}"
        for control, gain in gains.items()
        for mark in (" ✓" if findings.beats(gain) else "",)
    ]
    return Cell("", tuple(lines), "stack") if lines else Cell(NOT_RUN, kind="quiet")


def _blurred_cells(results: Results, system: System, attribute: str, attacker: str, k: int) -> list[Cell]:
    true, blurred = f"attribute/{attribute}/{attacker}/f1", f"attribute-blurred/{attribute}/{attacker}/f1"
    left, right = results.paired_values(system, blurred, k, system, true, k)
    if not len(left):
        return [missing_cell(NOT_RUN)] * 3
    gap = summary(left - right)
    return [
        Cell(number(right.mean())),
        Cell(number(left.mean())),
        Cell(format_difference(gap.mean), (f"{number(gap.low)} to {number(gap.high)}",)),
    ]
