"""The attacks that reconstruct sensitive ratings, beside what published ratings alone tell of them.

An attack is said to succeed only where its error is below that of the control: where the 95 % interval of the
difference over folds lies below zero, uncorrected, because missing a leak is worse than naming one too many. An attack
that fails against the system without noise, too, shows nothing by failing.
"""

from __future__ import annotations

import polars as pl

from tasks.evaluation.gains import Gain
from tasks.reporting.core import findings
from tasks.reporting.core.chart import WIDE, Chart, Level, Panel
from tasks.reporting.core.figures import marks_of
from tasks.reporting.core.layout import (
    Cell,
    Heading,
    Row,
    Table,
    format_difference,
    join_words,
    missing_cell,
    number,
    with_interval,
)
from tasks.reporting.core.results import BASE, Results, System
from tasks.reporting.core.section import Section, bullets, optional, paragraph

CONTROL = "public"
ATTACKERS = {
    "published": "fits users to item vectors and published ratings, the paper's Eq. 10",
    "tuned": "the same, with the ridge and the share of the control that suit published ratings best",
    "averaged": "also averages what a user submits over all iterations",
    "weighted": "also weighs iterations by the noise, of which the recommender drew a part itself",
    "first": "knows what tuned does, and the first submission with the item vectors that it answers",
    "replayed": "also recalls the item vectors that every submission answers, and has users' vectors follow them",
    "joint": "also uses what is submitted about published ratings, and how a user's vector depends on sensitive ones",
    "friend": "knows what tuned does, and averages what one friend gets",
}
"""Attackers in the order of their tables -> what they do."""
ALONE = "tuned"
"""Knows the released item vectors, and no message."""
LISTENING = ("averaged", "weighted", "first", "replayed", "joint", "friend")
"""Know what it does, and messages."""
COLUMNS = ("experiment", "setting", "attacker", "seeds", "mae", "control", "difference", "low", "high")


def section(results: Results) -> Section:
    """The attacks on sensitive ratings."""
    return Section(
        "reconstruction",
        "Attacks on sensitive ratings",
        [optional(chart(results)), errors, bullets(sentences(results))] if (errors := table(results)) else [],
        link="Attacks",
        about=paragraph(
            "An attacker predicts the ratings that users keep to themselves. Its error is the MAE on those of the "
            "training data: the lower it is, the more the attacker succeeds. The control predicts them from "
            "published ratings alone, by means of users and items: an attacker that is not below it has learnt nothing "
            "from the system. What an attacker does to the method without its noise shows what it can do at all."
        ),
    )


def metric(attacker: str) -> str:
    """Its error on sensitive ratings, in METRICS."""
    return f"reconstruction/{attacker}/mae"


def gain(results: Results, system: System, attacker: str, setting: str = BASE) -> Gain | None:
    """The attacker's error minus the control's, same folds; None where either was not measured."""
    own, control = results.paired_values(system, metric(attacker), 0, system, metric(CONTROL), 0, setting)
    return findings.interval(results, own - control) if len(own) else None


def added_error(results: Results, system: System, attacker: str) -> Gain | None:
    """The error of an attacker that listens minus that of the one that has item vectors alone."""
    if attacker not in LISTENING:
        return None
    own, alone = results.paired_values(system, metric(attacker), 0, system, metric(ALONE), 0)
    return findings.interval(results, own - alone) if len(own) else None


def beats(difference: Gain) -> bool:
    """The rule: an attack succeeds if the whole interval lies below zero."""
    return difference.high < 0


def lead(results: Results) -> str:
    """Which attackers reconstruct what of the systems that protect, and what they do without noise."""
    systems = attacked_systems(results)
    if not systems:
        return ""
    layout = results.layout
    protecting = [results.find(layout.methods[name]) for name in layout.protecting]
    protecting += [results.find(mode.system) for mode in layout.modes]
    mine = [system for system in systems if system in protecting and system.label != layout.unprotected]
    lost = [system.label for system in mine if _successes(results, system)]
    parts = [
        "Protected systems whose sensitive ratings are reconstructed better than published ratings alone allow: "
        f"{join_words(lost) or 'none'}."
    ]
    without = next((system for system in systems if system.label == layout.unprotected), None)
    if without is not None:
        parts.append(f"Without noise these attackers do so: {join_words(_successes(results, without)) or 'none'}.")
    return " ".join(parts) if mine else ""


def sentences(results: Results) -> list[str]:
    """Per attacker: against which systems it beats the control, and what its failures are worth."""
    texts = []
    for attacker, does in ATTACKERS.items():
        tried = [
            (system, difference)
            for system in attacked_systems(results)
            if (difference := gain(results, system, attacker))
        ]
        if not tried:
            continue
        won = [
            f"{system.label} ({format_difference(difference.mean)})"
            for system, difference in tried
            if beats(difference)
        ]
        lost = [system.label for system, difference in tried if not beats(difference)]
        parts = [f"beats the control against {join_words(won)}" if won else "beats the control against no system"]
        if won and lost:
            parts.append(f"does not beat it against {join_words(lost)}")
        if results.layout.unprotected in lost:
            parts.append("fails without noise, too, so its failures elsewhere show no protection")
        compared = [(system, more) for system, _ in tried if (more := added_error(results, system, attacker))]
        adding = [f"{system.label} ({format_difference(more.mean)})" for system, more in compared if beats(more)]
        if compared:
            parts.append(f"messages add to what {ALONE} knows against {join_words(adding) or 'no system'}")
        texts.append(f"{attacker.capitalize()} ({does}): {'; '.join(parts)}.")
    return texts


def table(results: Results) -> Table | None:
    """Every system's attackers beside the control; None where nothing was reconstructed."""
    systems = attacked_systems(results)
    if not systems:
        return None
    run = results.word_for_run
    attackers = [name for name in ATTACKERS if any(gain(results, system, name) for system in systems)]
    rows = []
    for system in systems:
        control = results.values(system, metric(CONTROL), 0)
        cells = [Cell(number(float(control.mean()))) if len(control) else missing_cell()]
        cells += [_cell(results, system, attacker) for attacker in attackers]
        name = f"{system.label} (positive control)" if system.label == results.layout.unprotected else system.label
        rows.append(Row(name, cells, "reference" if system.label == results.layout.unprotected else ""))
    return Table(
        f"Error on sensitive ratings: mean over {run}s, and difference from the control with its 95 % interval; bold: "
        "below the control",
        [Heading("System", ""), Heading("control"), *map(Heading, attackers)],
        rows,
    )


def chart(results: Results) -> Chart:
    """Errors of all attackers on all systems beside the control."""
    systems, run = attacked_systems(results), results.word_for_run
    names = [name for name in ATTACKERS if any(gain(results, system, name) for system in systems)]
    series = marks_of(results, systems, [(name, metric(name), 0) for name in names])
    panel = Panel("Error on sensitive ratings", "attacker", "MAE", series, control_levels(results), names, size=WIDE)
    return Chart(
        "chart-reconstruction",
        "Attackers against the control",
        f"Lower: the attacker succeeds. Bars: 95 % intervals over {run}s.",
        [panel] if names else [],
        run=run,
    )


def control_levels(results: Results) -> list[Level]:
    """The error of published ratings alone, averaged over systems; empty where it was not measured."""
    known = [values for system in results.compared if len(values := results.values(system, metric(CONTROL), 0))]
    level = sum(float(values.mean()) for values in known) / len(known) if known else 0.0
    return [Level("published ratings alone (control)", level, "dashdot")] if known else []


def frame(results: Results) -> pl.DataFrame:
    """`attacks.csv` of such a suite, with `COLUMNS`: every attacker on every system and setting, sorted."""
    rows = []
    for system in results.compared:
        for setting in results.settings(system):
            control = results.values(system, metric(CONTROL), 0, setting)
            for attacker in ATTACKERS:
                difference = gain(results, system, attacker, setting)
                own = results.values(system, metric(attacker), 0, setting)
                if difference is not None:
                    about = (system.experiment, setting, attacker, len(own), float(own.mean()), float(control.mean()))
                    rows.append((*about, difference.mean, difference.low, difference.high))
    types = [pl.String] * 3 + [pl.Int64] + [pl.Float64] * 5
    return pl.DataFrame(rows, schema=dict(zip(COLUMNS, types, strict=True)), orient="row").sort(COLUMNS[:3])


def attacked_systems(results: Results) -> list[System]:
    """Systems with any attacker beside the control, the one without noise first."""
    systems = [system for system in results.compared if any(gain(results, system, name) for name in ATTACKERS)]
    return sorted(systems, key=lambda system: system.label != results.layout.unprotected)


def _successes(results: Results, system: System) -> list[str]:
    return [name for name in ATTACKERS if (difference := gain(results, system, name)) is not None and beats(difference)]


def _cell(results: Results, system: System, attacker: str) -> Cell:
    values, difference = results.values(system, metric(attacker), 0), gain(results, system, attacker)
    if difference is None:
        return missing_cell()
    lines = (with_interval(difference.mean, difference.low, difference.high),)
    return Cell(number(float(values.mean())), lines, "number found" if beats(difference) else "number")
