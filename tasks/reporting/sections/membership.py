"""The attack on membership: whether released models tell who, and which interactions, they were trained on."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.errors import DataError
from tasks.evaluation.gains import Gain
from tasks.reporting.core import findings, roc
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, missing_cell, number
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.section import Section, optional, paragraph

TARGETS = {"user": "one user", "interaction": "one interaction"}
SEEN = {"scores": "scores of all items", "lists": "lists", "nothing": "nothing: control"}
ORDER = ("system", "target", "seen", "attack")


def frame(results: Results) -> pl.DataFrame:
    """`attacks.parquet` of a suite with this attack (`tasks.attacks.shadows.COLUMNS`), sorted.

    Raises:
        DataError: the results have no such attack.
    """
    if results.membership is None:
        raise DataError(f"{results.suite}: membership was not attacked")
    return results.membership.sort(*ORDER)


def section(results: Results) -> Section:
    """The attack on membership."""
    return Section(
        "membership",
        "Attack on membership",
        [
            optional(*(_table(results, target) for target in TARGETS)),
            optional(*(_curves(results, target) for target in TARGETS)),
        ],
        link="Membership",
        about=paragraph(
            "An attacker who can train the system on other parts of the data tells who was trained on: by a threshold "
            "on one signal, by the likelihood ratio of shadow runs (LiRA), or by RMIA. Members and others are served "
            "from the same history by the same rule. AUC 0.5 is chance; an interval above it is bold. Where an ε is "
            "accounted for, the rate that it allows stands beside what was found. Below the ε that the guesses prove "
            "stands the most that they could: where that is little, or an attack is weak, even a system without noise "
            "is not refuted."
        ),
    )


def verdict(results: Results, target: str) -> tuple[str, bool] | None:
    """One sentence on all attacks on a kind of target, and whether it is an alarm; None where it was not attacked.

    An alarm needs one attack that all of them together do not explain (`findings.any_beats`).
    """
    if results.membership is None:
        return None
    tried = results.membership.filter((pl.col("target") == target) & (pl.col("seen") != "nothing"))
    if tried.is_empty():
        return None
    won, chance = tried.filter(pl.col("auc_low") > 0.5), findings.ONE_SIDED * tried.height
    each = [Gain(*row) for row in tried.select("auc", "auc_low", "auc_high").iter_rows()]
    text = (
        f"{won.height} of {tried.height} attacks tell whether {TARGETS[target]} was trained on; chance gives about "
        f"{chance:.0f}"
    )
    if most := won.sort("tpr1", nulls_last=False).tail(1).to_dicts():
        labels = {system.experiment: system.label for system in results.systems}
        text += (
            f". Most: {labels[most[0]['system']]} (AUC {number(most[0]['auc'], 2)}, true positives "
            f"{number(most[0]['tpr1'], 2)} at 1 % false ones)"
        )
    return f"{text}.", findings.any_beats(each, 0.5)


def _table(results: Results, target: str) -> Table | None:
    """Attacks on one kind of target beside their controls; None where it was not attacked."""
    if results.membership is None:
        return None
    labels: dict[str, System] = {system.experiment: system for system in results.systems}
    rows = [row for row in results.membership.iter_rows(named=True) if row["target"] == target]
    if unknown := {row["system"] for row in rows} - set(labels):
        raise DataError(f"membership.parquet: {sorted(unknown)[0]} is no experiment of suite {results.suite}")
    order = list(labels)
    rows.sort(key=lambda row: (order.index(row["system"]), list(SEEN).index(row["seen"])))
    headings = [
        "System",
        "attack",
        "attacker sees",
        "shadow runs",
        "AUC",
        "TPR at 1 % FPR",
        "at 0.1 %",
        "allowed at 1 %",
    ]
    headings += ["ε accounted", "ε proved"]
    return Table(
        f"Membership of {TARGETS[target]}: attacks and controls, with 95 % intervals",
        [Heading(text, NUMBER if place > 2 else "") for place, text in enumerate(headings)],
        [_row(labels[row["system"]].label, row) for row in rows],
    )


def _curves(results: Results, target: str) -> Chart | None:
    """The ROC curves of LiRA, one of each system, by what the attacker sees; None where it was not attacked."""
    if results.membership is None:
        return None
    labels = {system.experiment: system.label for system in results.systems}
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in results.membership.sort(*ORDER).iter_rows(named=True):
        if (row["target"], row["attack"]) == (target, "LiRA") and row["fpr"]:
            curve = list(zip(row["fpr"], row["tpr"], strict=True))
            panels.setdefault(SEEN[row["seen"]], {})[labels[row["system"]]] = curve
    return roc.chart(f"roc-{target}", f"LiRA on {TARGETS[target]}", panels, of="system")


def _row(label: str, row: dict[str, Any]) -> Row:
    above = row["seen"] != "nothing" and row["auc_low"] > 0.5
    auc = Cell(
        number(row["auc"]), (f"{number(row['auc_low'])} to {number(row['auc_high'])}",), NUMBER + " found" * above
    )
    return Row(
        label,
        [
            Cell(row["attack"], kind=""),
            Cell(SEEN[row["seen"]], kind=""),
            Cell(str(row["shadows"])),
            auc,
            *(_rate(row, name) for name in ("tpr1", "tpr01")),
            *(missing_cell() if row[name] is None else Cell(number(row[name])) for name in ("allowed", "epsilon")),
            missing_cell()
            if row["proved"] is None
            else Cell(
                number(row["proved"]), (f"at most {number(row['provable'])}",), NUMBER + " found" * bool(row["refuted"])
            ),
        ],
    )


def _rate(row: dict[str, Any], name: str) -> Cell:
    if row[name] is None:
        return missing_cell()
    return Cell(number(row[name]), (f"{number(row[f'{name}_low'])} to {number(row[f'{name}_high'])}",))
