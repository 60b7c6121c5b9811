"""The first screen of a report: three to five lines in plain words, each with a link to its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.reporting.core import comparison, findings, headline, ledger
from tasks.reporting.core.claim_specs import Claim
from tasks.reporting.core.claims import verdict_counts
from tasks.reporting.core.findings import refutations
from tasks.reporting.core.layout import count, join_words, number
from tasks.reporting.core.results import Results, System
from tasks.reporting.sections import alignment, links, reconstruction

NAMED = 4
"""Up to so many systems are named, more are counted."""
MOST = 5
"""Lines on the first screen."""
ONE_SIDED = 0.025
"""Share of attacks whose 95 % interval lies above zero although nothing is gained."""


@dataclass(frozen=True)
class Line:
    """A verdict: what it is about, what it says, where its evidence is, and whether it is an alarm."""

    topic: str
    text: str
    href: str
    alarm: bool = False


def verdicts(results: Results, claims: Sequence[Claim], k: int) -> list[Line]:
    """What a reader may conclude, the most important first.

    claims: what the suite's paper says, tested.
    """
    lines = [_privacy(results), _utility(results, k), *_attacks(results, k), _reproduction(results, claims)]
    return [line for line in lines if line is not None][:MOST]


def _privacy(results: Results) -> Line:
    """Which claimed budgets an audit refutes."""
    if results.audit is None:
        return Line("Privacy", "No audit was recorded with these results.", "#ledger")
    refuted, n = refutations(results), count(len(results.audit), "audited claim")
    if not refuted:
        return Line("Privacy", f"No audit refutes a claim ({n}). That is no proof of privacy.", "#ledger")
    return Line("Privacy claim refuted", f"{refuted[0].text}. Refuted: {len(refuted)} of {n}.", "#ledger", alarm=True)


def _utility(results: Results, k: int) -> Line | None:
    """Which private systems do better than the private yardstick, and which of them have a finite ε."""
    layout = results.layout
    private = [system for system in results.compared if findings.claims_privacy(system) and not system.is_yardstick]
    finite = [system for system in private if ledger.total_epsilon(results, system) is not None]
    yardstick = results.find(layout.private_yardstick)
    if not private:
        return None
    if yardstick is None:
        text = f"{len(finite)} of {count(len(private), 'private system')} have a finite accounted ε"
        return Line("Guarantee", f"{text}{_held(results, finite)}.", "#headline")
    metric, cutoff = layout.utility.metric, layout.utility.cutoff(k)
    better = [
        difference.system
        for difference in findings.yardstick_differences(results, metric, cutoff, lower=layout.utility.lower)
        if difference.other == yardstick.label and difference.better and difference.system in private
    ]
    both = [system for system in better if system in finite]
    if not better:
        text = f"None of {count(len(private), 'private system')} does better than {yardstick.label}"
        return Line("Utility", f"{text}, {layout.words.yardstick}.", "#comparisons", alarm=True)
    first = f"{len(better)} of {count(len(private), 'private system')} do better than {yardstick.label}"
    return Line(
        "Utility", f"{first}; {len(both)} of them with a finite accounted ε{_held(results, both)}.", "#comparisons"
    )


def _attacks(results: Results, k: int) -> Iterator[Line]:
    """What the attacks show, one line per kind."""
    tried = [
        difference
        for attribute in results.attributes()
        for attacker in results.attackers(attribute)
        for difference in findings.above_ratings(results, attribute, attacker, k)
    ]
    if tried:
        won, chance = sum(difference.significant for difference in tried), round(ONE_SIDED * len(tried))
        text = f"The top {k} leak beyond the ratings in {won} of {len(tried)} attribute attacks; chance gives about"
        yield Line("Attacks", f"{text} {chance}.", "#attacks", alarm=won > 2 * chance)
    if results.edges is not None and results.edges.height:
        rows = results.edges.filter(results.edges["epsilon"].is_not_null())
        seen = rows.filter(rows["low"] > 0).height
        top = rows.sort("advantage").tail(1).to_dicts()
        most = f" (advantage up to {number(top[0]['advantage'], 2)})" if top else ""
        text = f"{seen} of {rows.height} attacks detect a single interaction{most}."
        yield Line("Attacks", text, "#edges", alarm=seen > 0)
    if systems := reconstruction.attacked_systems(results):
        yield _reconstruction_line(results, systems)
    if linked := links.strongest_attack(results):
        yield Line("Link stealing", linked, "#links")
    if results.networks and (matched := alignment.lead(results)):
        yield Line("Re-identification", matched.partition(". ")[0].removesuffix(".") + ".", "#alignment")


def _reconstruction_line(results: Results, systems: Sequence[System]) -> Line:
    """Of how many systems some attacker reconstructs sensitive ratings."""
    lost = [
        system
        for system in systems
        if system.label != results.layout.unprotected
        and any(
            (gain := reconstruction.gain(results, system, name)) is not None and reconstruction.beats(gain)
            for name in reconstruction.ATTACKERS
        )
    ]
    n = sum(system.label != results.layout.unprotected for system in systems)
    text = f"Sensitive ratings of {len(lost)} of {count(n, 'system')} are reconstructed better than public ones allow"
    return Line("Attacks", f"{text}{_name_systems(lost)}.", "#reconstruction", alarm=bool(lost))


def _reproduction(results: Results, claims: Sequence[Claim]) -> Line | None:
    """How many published numbers and claims hold here."""
    if results.reproduced is None:
        return None
    numbers, parts = headline.reproduction_counts(comparison.frame(results)), []
    if numbers["run"]:
        share = numbers["ordering_agreement"]
        order = "" if share is None else f"; {100 * share:.0f} % of pairs of methods are ordered alike"
        parts.append(f"{numbers['within_10_percent']} of {numbers['run']} published numbers within 10 %{order}.")
    if claims:
        parts.append(f"{count(len(claims), 'claim')}: {verdict_counts(claims)}.")
    return Line("Reproduction", " ".join(parts), "#published") if parts else None


def _held(results: Results, systems: Sequence[System]) -> str:
    """Systems with a finite ε, and what that takes as fixed."""
    given = ledger.conditions([line.entry for system in systems for line in ledger.lines_at(results, system)])
    return _name_systems(systems) + (f", given {given}" if given else "")


def _name_systems(systems: Sequence[System]) -> str:
    return f" ({join_words([system.label for system in systems])})" if 0 < len(systems) <= NAMED else ""
