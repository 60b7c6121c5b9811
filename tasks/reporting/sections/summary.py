"""The first section of a report: what a reader may conclude, as sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.reporting.core import findings
from tasks.reporting.core.findings import Difference
from tasks.reporting.core.layout import joined, number, signed
from tasks.reporting.core.published import ATTACKERS, Quality, Words
from tasks.reporting.core.results import Results, System, unique
from tasks.reporting.sections import ledger

NAMED = 4
"""Up to so many systems are named, more are counted."""


def ranking(results: Results, k: int) -> list[str]:
    """One sentence per metric and yardstick, and one per private system that loses to dp-popularity."""
    sentences = []
    layout = results.layout
    for quality in (layout.utility, *(one for one in layout.qualities if one != layout.utility)):
        differences = findings.beside_yardsticks(results, quality.metric, quality.cutoff(k), lower=quality.lower)
        for yardstick in unique([difference.other for difference in differences]):
            of_this = [difference for difference in differences if difference.other == yardstick]
            sentences.append(_compared(quality, k, yardstick, of_this, layout.words))
    return sentences


def attacks(results: Results, k: int) -> list[str]:
    """Per attribute: which attackers beat the ratings alone, the majority guess and shuffled attributes."""
    asked = {
        "the ratings alone": findings.above_ratings,
        "the majority guess": findings.above_chance,
        "shuffled attributes": findings.above_random,
    }
    sentences = []
    for attribute in results.attributes():
        names = results.attackers(attribute)
        beaten = {
            control: [compare(results, attribute, name, k) for name in names] for control, compare in asked.items()
        }
        told = [f"beating {control}, {_by_attacker(found, names)}" for control, found in beaten.items() if any(found)]
        if told:
            sentences.append(f"{attribute.capitalize()}: {'; '.join(told)}.")
    return sentences


def budgets(results: Results) -> list[str]:
    """Who has a finite accounted epsilon, then one sentence per system: what is covered, and what is not."""
    sentences = [_budget_in_short(results)]
    for system in results.systems:
        told = [
            f"{one.what}: claimed {one.claimed}, accounted {one.accounted}, "
            + (f"audited {one.audited} or more" if one.audited else "not audited")
            for one in ledger.told(ledger.base_lines(results, system), "s")
        ]
        sentences.append(
            f"{results.told(system)}: {'; '.join(unique(told)) or 'no entry in its ledger, so no guarantee'}."
        )
    return sentences


def _budget_in_short(results: Results) -> str:
    finite = {system.label: ledger.total_epsilon(results, system) for system in results.compared}
    held = [f"{label} (ε = {ledger.shown(epsilon)})" for label, epsilon in finite.items() if epsilon is not None]
    partly = [
        f"{system.label} ({joined(covered)})"
        for system in results.compared
        if finite[system.label] is None and (covered := _covered(results, system))
    ]
    text = (
        f"A finite accounted ε for everything it learns from holds for {joined(held)}."
        if held
        else "No system has a finite accounted ε for everything it learns from."
    )
    return f"{text} For a part only: {joined(partly)}." if partly else text


def _covered(results: Results, system: System) -> list[str]:
    return unique(
        [
            f"{line.protects}s, ε = {ledger.shown(line.entry.accounted_epsilon, line.entry.accounted_delta)}"
            for line in ledger.base_lines(results, system)
            if line.entry.accounted_epsilon is not None
        ]
    )


def _compared(quality: Quality, k: int, yardstick: str, differences: Sequence[Difference], words: Words) -> str:
    digits, sign = quality.digits, quality.sign
    better = sorted((one for one in differences if one.better), key=lambda one: -sign * one.mean)
    worse = sorted((one for one in differences if one.worse), key=lambda one: sign * one.mean)
    unclear = [one for one in differences if not one.found]
    parts = []
    if better:
        parts.append(f"{joined([_told(one, digits) for one in better])} {_verb(better, *words.better)}")
    if worse:
        parts.append(f"{joined([_told(one, digits) for one in worse])} {_verb(worse, *words.worse)}")
    if unclear:
        parts.append(f"for {joined([_told(one, digits) for one in unclear])} the test does not decide")
    return f"Against {yardstick} on {quality.at(k)} ({quality.spoken}): {'; '.join(parts)}."


def _told(one: Difference, digits: int = 3) -> str:
    low, high = number(one.low, digits), number(one.high, digits)
    return f"{one.system.label} {signed(one.mean, digits)} ({low} to {high})"


def _by_attacker(differences: Sequence[Sequence[Difference]], names: Sequence[str]) -> str:
    told = [
        f"{ATTACKERS.get(name, name)} against {text}"
        for name, found in zip(names, differences, strict=True)
        if (text := _against(found))
    ]
    return joined(told) or "no attacker against any system"


def _against(differences: Sequence[Difference]) -> str:
    """The systems against which an attacker gains, and the largest gain; empty where there is none."""
    found = [one for one in differences if one.found]
    if not found:
        return ""
    if len(found) == 1:
        return _told(found[0])
    return f"{_named(found, len(differences))}, most against {_told(max(found, key=lambda one: one.mean))}"


def _named(found: Sequence[Difference], of: int) -> str:
    if len(found) > NAMED:
        return f"all {of} systems" if len(found) == of else f"{len(found)} of {of} systems"
    return joined([one.system.label for one in found])


def _verb(items: Sequence[object], singular: str, plural: str) -> str:
    return singular if len(items) == 1 else plural
