"""The answer of a suite in ten lines, and in a dozen numbers: what `dprec run` ends with and DVC compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from tasks.reporting.core import comparison, differences, figures, findings, ledger
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import BASE, Results, System
from tasks.results.claims import Claim, Verdict
from tasks.results.paper import Column, Part, Table

LINES = 10
"""Systems that a terminal shows."""
REFUTED = "refuted"


@dataclass(frozen=True)
class Standing:
    """One system at setting `base`."""

    system: System
    utility: float | None
    """Mean over seeds of the metric that privacy is weighed against; None where it was not measured."""
    accounted: float | None
    """ε of everything that it learns from; None: no finite guarantee."""
    given: str
    """What that takes as fixed: `ledger.fixed_conditions`; empty for nothing, or where ε is not finite."""
    unit: str
    """What neighbouring inputs differ in: `ledger.units_of`; empty where ε is not finite."""
    proved: float | None
    """The largest ε that an audit of it proves; None where nothing was audited."""
    verdict: str
    refuted: bool
    """Whether an audit proves more than is claimed."""

    @property
    def budget(self) -> str:
        """The accounted ε as text, with its unit and what it takes as fixed."""
        unit = f"for {self.unit}" if self.unit else ""
        return ", ".join(
            filter(None, (" ".join(filter(None, (ledger.format_budget(self.accounted), unit))), self.given))
        )


def standings(results: Results, k: int) -> list[Standing]:
    """Every system on the suite's own data, best first.

    k: the cut-off of the utility.
    """
    utility = results.layout.utility
    differences = {
        difference.system.experiment: difference
        for difference in findings.yardstick_differences(
            results, utility.metric, utility.cutoff(k), lower=utility.lower
        )
        if (yardstick := results.find(results.layout.private_yardstick)) and difference.other == yardstick.label
    }

    def verdict(system: System, refuted: list[dict[str, Any]]) -> str:
        if refuted:
            return f"claimed ε = {ledger.format_budget(max(audit['epsilon_claimed'] for audit in refuted))} is refuted"
        if system.is_yardstick or (difference := differences.get(system.experiment)) is None:
            return ""
        word = "better than" if difference.better else "worse than" if difference.worse else "undecided beside"
        return f"{word} {results.layout.private_yardstick}"

    every = []
    for system in results.compared:
        values = results.values(system, utility.metric, utility.cutoff(k))
        audits = [line.audit for line in ledger.lines_at(results, system) if line.audit]
        refuted = [audit for audit in audits if audit["verdict"] == REFUTED]
        every.append(
            Standing(
                system,
                float(values.mean()) if len(values) else None,
                (epsilon := ledger.total_epsilon(results, system)),
                "" if epsilon is None else ledger.fixed_conditions(results, system),
                "" if epsilon is None else ledger.units_of(results, system),
                max((float(audit["audited_epsilon"]) for audit in audits), default=None),
                verdict(system, refuted),
                bool(refuted),
            )
        )
    return sorted(
        every,
        key=lambda standing: float("inf") if standing.utility is None else -utility.sign * standing.utility,
    )


def select_lines(every: Sequence[Standing]) -> list[Standing]:
    """At most `LINES` of them, in their order: yardsticks, the best of all, refuted claims, other private systems."""

    def rank(standing: Standing) -> int:
        if standing.system.is_yardstick or standing is every[0]:
            return 0
        return 1 if standing.refuted else 2 if is_private(standing) else 3

    chosen = sorted(every, key=rank)[:LINES]
    return [standing for standing in every if standing in chosen]


def is_private(standing: Standing) -> bool:
    """Whether a budget is claimed, or accounted for all that the system learns from."""
    return bool(standing.accounted) or findings.claims_privacy(standing.system)


def summary(results: Results, claims: Sequence[Claim], k: int) -> dict[str, Any]:
    """`summary.json`: the same keys in every suite; None where a suite has no such number.

    Args:
        results: of the suite.
        claims: what its paper says, judged.
        k: the cut-off of the utility.
    """
    utility, every = results.layout.utility, standings(results, k)
    plain = [standing for standing in every if not standing.system.is_yardstick and standing.utility is not None]
    private = next((standing for standing in plain if standing.accounted), None)
    without = next((standing for standing in plain if standing.accounted is None), None)
    lines = [line for line in ledger.lines(results) if line.entry.mechanism != ledger.NO_MECHANISM]
    verdicts = [claim.verdict for claim in claims]

    def level(label: str) -> float | None:
        return next((standing.utility for standing in every if standing.system.label == label), None)

    return {
        "utility": {
            "metric": utility.at(k),
            "best_without_guarantee": None if without is None else _round(without.utility),
            "best_private": None if private is None else _round(private.utility),
            "best_private_epsilon": None if private is None else _round(private.accounted),
            "best_private_given": None if private is None else private.given.removeprefix("given "),
            "best_private_unit": None if private is None else private.unit,
        }
        | {label: _round(level(name)) for label, name in _yardsticks(results).items()},
        "ledger": {
            "private": len(lines),
            "finite": sum(line.entry.accounted_epsilon is not None for line in lines),
            "audited": sum(line.audit is not None for line in lines),
            "refuted": sum(line.audit is not None and line.audit["verdict"] == REFUTED for line in lines),
        },
        "claims": {verdict.replace(" ", "_"): verdicts.count(verdict) for verdict in get_args(Verdict)},
        "published": reproduction_counts(results) | {"ordering_agreement": agreement(results)},
    }


def _yardsticks(results: Results) -> dict[str, str]:
    """Name in `summary.json` -> label."""
    private = results.layout.private_yardstick
    return {"noisy_popularity": private, "popularity": private.removeprefix("dp-")}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def first_scores(results: Results) -> Results:
    """The results with each printed number once: of several scores of it the first that any row of it has.

    A column that the paper does not print stays.
    """
    known = comparison.entries(results)
    measured = {(entry.table.key, entry.column) for entry in known if entry.printed is not None and len(entry.ours)}
    first: dict[tuple[str, str, str, str], Column] = {}
    for entry in sorted(known, key=lambda entry: (entry.table.key, entry.column) not in measured):
        if entry.printed is not None:
            column = entry.column
            first.setdefault((entry.table.key, column.data, column.published, column.setting), column)

    def part(table: Table, of: Part) -> Part:
        kept = [c for c in of.columns if first.get((table.key, c.data, c.published, c.setting), c) == c]
        return replace(of, columns=tuple(kept))

    tables = tuple(replace(of, parts=tuple(part(of, each) for each in of.parts)) for of in results.layout.tables)
    return replace(results, layout=replace(results.layout, tables=tables))


def reproduction_counts(results: Results) -> dict[str, Any]:
    """How many numbers are printed, how many of them were run, and how many of these are near; each counts once.

    What is counted or set and not measured, such as statistics of the data, is left out.
    """
    printed = [entry for entry in comparison.entries(first_scores(results)) if entry.printed is not None]
    return {
        "cells": len(printed),
        "run": sum(len(entry.ours) > 0 for entry in printed),
        "within_10_percent": sum(map(comparison.is_near, printed)),
    }


def agreement(results: Results) -> float | None:
    """Share of the pairs of methods of all printed columns that our means order as printed; None without pairs.

    It is of the same pairs as why we differ (`differences`): versions of methods are methods, and of several scores of
    a printed number the first counts. A pair that is equal here counts one half, as below a column.
    """
    orders = [
        pair.order for column in comparison.printed_columns(results) for pair in differences.ordered_pairs(column)
    ]
    return round((orders.count("as printed") + orders.count("equal") / 2) / len(orders), 6) if orders else None


def frontier(results: Results, k: int) -> Chart:
    """The first figure, of the setting `base` alone; systems of which the ledger has no entry are named below it.

    A claim that is refuted at other settings only is no claim of what stands there.
    """
    absent = [system for system in results.compared if not ledger.lines_at(results, system)]
    systems = tuple(
        replace(system, spent=tuple(spent for spent in system.spent if spent.setting == BASE))
        for system in results.systems
        if system not in absent
    )
    drawn = figures.frontier(replace(results, systems=systems), k)
    if not absent or not drawn.panels:
        return drawn
    names = join_words([system.label for system in absent])
    return replace(drawn, caption=f"{drawn.caption} Not in the ledger, so not here: {names}.")
