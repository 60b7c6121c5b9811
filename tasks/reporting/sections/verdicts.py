"""The first screen of a report: three to five lines in plain words, each with a link to its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from tasks.evaluation.gains import Gain
from tasks.reporting.core import comparison, findings, headline, ledger, units
from tasks.reporting.core.claims import verdict_counts
from tasks.reporting.core.corrections import AS_A_VISIT
from tasks.reporting.core.findings import Refutation, refutations
from tasks.reporting.core.layout import count, join_words, number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.sweeps import NAMES
from tasks.reporting.core.words import wording
from tasks.reporting.sections import alignment, lead, membership, reconstruction, strongest
from tasks.results.claims import Claim

NAMED = 4
"""Up to so many systems are named, more are counted."""
FEWEST, MOST = 3, 5
"""Lines on the first screen."""


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
    made = [_privacy(results), _utility(results, k), *_attacks(results, k), _reproduction(results, claims)]
    lines = [line for line in made if line is not None]
    if len(lines) < FEWEST and all(line.topic != "Guarantee" for line in lines):
        lines.insert(1, _guarantee(results))
    return lines[:MOST]


def _privacy(results: Results) -> Line:
    """What the paper's own method claims, and the claim that an audit exceeds furthest."""
    refuted, n = refutations(results), count(len(results.audit), "audit")
    own = _own_claim(results)
    if not refuted:
        text = f"No audit refutes a claim ({n}), which proves no privacy."
        return Line("Privacy", " ".join(filter(None, [own, text])), "#ledger")
    refuting = sum(audit["verdict"] == headline.REFUTED for audit in results.audit)
    claims = refuted[0].text.replace(" claims ", " claim ", " and " in refuted[0].label)
    furthest = f"{claims}{_where(results, refuted[0])}"
    text = f"{refuting} of {n} refute{'s' * (refuting == 1)} a claim; furthest, {furthest}."
    method = _own_method(results)
    theirs = method is None or any(method.label in re.split(", | and ", of.label) for of in refuted)
    topic = "Privacy claim refuted" if theirs else "Another system's claim refuted"
    return Line(topic, " ".join(filter(None, [own, text])), "#ledger", alarm=True)


def _where(results: Results, refuted: Refutation) -> str:
    """For what, where it was not as claimed, and at which settings a claim is refuted.

    Empty where the setting `base` is among them, or none is known.
    """
    lines = [
        line
        for line in ledger.lines(results)
        if line.audit is not None
        and line.system.experiment in refuted.experiments
        and (line.audit["verdict"], line.audit["epsilon_claimed"], line.audit["audited_epsilon"])
        == (headline.REFUTED, refuted.claimed, refuted.proved)
    ]
    settings = unique([line.setting for line in lines])
    visit = " for a visit" if any(line.entry.neighbouring == AS_A_VISIT for line in lines) else ""
    if not settings or BASE in settings:
        return visit
    return f"{visit} (at {_settings(settings)})"


def _settings(names: Sequence[str]) -> str:
    """One setting as it is told, such as "β = 1 and ε = 0.1"; of several how many there are."""
    if len(names) > 1:
        return f"{len(names)} settings"
    pairs = [part.partition("=") for part in names[0].split(",")]
    return join_words([f"{NAMES.get(key, key)} = {value.removesuffix('.0')}" for key, _, value in pairs])


def _own_method(results: Results) -> System | None:
    """The method of the suite's paper, where it was run."""
    return None if results.paper is None else results.find(results.layout.methods.get(results.layout.name, ""))


def _own_claim(results: Results) -> str:
    """The budgets that the suite's paper claims for its own method, and what follows; empty where not run."""
    own = _own_method(results)
    if own is None:
        return ""
    claimed: dict[tuple[str, str], list[ledger.Line]] = {}
    for line in ledger.lines_at(results, own):
        if line.entry.claimed_epsilon is not None:
            of = ledger.format_budget(line.entry.claimed_epsilon), units.name(line.entry)
            claimed.setdefault(of, []).append(line)
    if not claimed:
        return ""
    said = [f"ε = {budget} for {unit} ({_shown(lines)})" for (budget, unit), lines in claimed.items()]
    total, endless = ledger.total_epsilon(results, own), any(_is_endless(lines) for lines in claimed.values())
    follows = "" if endless else " No finite ε follows for all of it."
    if total is not None:
        follows = f" Accounted in all is {ledger.total(results, own)}."
    return f"{own.label} claims {'. And '.join(said)}.{follows}"


def _is_endless(lines: Sequence[ledger.Line]) -> bool:
    """Whether nothing finite follows outright for a claim."""
    return any(line.entry.accounted_epsilon is None for line in lines)


def _shown(lines: Sequence[ledger.Line]) -> str:
    """What is accounted for a claim outright, and the most that an audit proves, rounded down, and shows of it."""
    budgets = [ledger.format_budget(line.entry.accounted_epsilon) + ledger.condition(line.entry) for line in lines]
    accounted = "accounted ∞" if _is_endless(lines) else f"accounted {' or '.join(unique(budgets))}"
    audits = [line.audit for line in lines if line.audit is not None]
    if not audits:
        return f"{accounted}; not audited"
    audit = max(audits, key=lambda record: (record["verdict"] == headline.REFUTED, record["audited_epsilon"]))
    return f"{accounted}; proved ≥ {number(floor(100 * audit['audited_epsilon']) / 100, 2)}, {audit['verdict']}"


def _utility(results: Results, k: int) -> Line | None:
    """How the private systems stand against the private yardstick, and which of the better have a finite ε.

    It is an alarm where every one of them is tested to be no better.
    """
    quality, yardstick = results.layout.utility, results.find(results.layout.private_yardstick)
    if not lead.private_systems(results):
        return _best(results, k)
    if yardstick is None:
        return _guarantee(results)
    mine = [
        difference
        for difference in findings.yardstick_differences(
            results, quality.metric, quality.cutoff(k), lower=quality.lower
        )
        if difference.other == yardstick.label and difference.system in lead.private_systems(results)
    ]
    if not mine:
        return None
    better = [difference.system for difference in mine if difference.better]
    worse, open_ = sum(of.worse for of in mine), sum(not of.significant for of in mine)
    ways = {"better": len(better), "worse": worse, "undecided": open_}
    own = {"better" if of.better else "worse" if of.worse else "undecided": of.system.label for of in mine
           if of.system == _own_method(results)}  # fmt: skip
    counts = join_words([f"{n} {way}{_with(own.get(way, ''), n)}" for way, n in ways.items() if n])
    private = lead.counted(results, len(mine))
    text = f"{private} against {yardstick.label}, {wording(results.layout).yardstick}: {counts}"
    if open_ and min(len(difference.system.seeds) for difference in mine) < lead.FEW_SEEDS:
        text += f" (fewer than {lead.FEW_SEEDS} {results.word_for_run}s decide little)"
    if better:
        finite = [system for system in better if ledger.total_epsilon(results, system) is not None]
        text += f". With a finite accounted ε: {len(finite)} of the better{_held(results, finite)}"
    return Line("Utility", f"{text}.", "#comparisons", alarm=not better and not open_)


def _with(label: str, n: int) -> str:
    """The paper's own method among n systems; empty where it is none of them."""
    return f" ({'with ' * (n > 1)}{label})" if label else ""


def _guarantee(results: Results) -> Line:
    """Which private systems have a finite ε."""
    private = lead.private_systems(results)
    finite = [system for system in private if ledger.total_epsilon(results, system) is not None]
    text = f"Finite accounted ε: {len(finite)} of {lead.counted(results, len(private))}{_held(results, finite)}."
    return Line("Guarantee", text if private else "No system claims a budget.", "#headline")


def _best(results: Results, k: int) -> Line | None:
    """The system with the best utility."""
    quality, every = results.layout.utility, headline.standings(results, k)
    if not every or every[0].utility is None:
        return None
    value = number(every[0].utility, quality.digits)
    of = f"{every[0].system.label} has the best {quality.at(k)} ({quality.spoken}) of {count(len(every), 'system')}"
    return Line("Utility", f"{of}: {value}.", "#headline")


def _attacks(results: Results, k: int) -> Iterator[Line]:
    """What the attacks show, one line per kind."""
    tried = [
        difference
        for attribute in results.attributes()
        for attacker in results.attackers(attribute)
        for difference in findings.above_ratings(results, attribute, attacker, k)
    ]
    if tried:
        won, chance = sum(difference.significant for difference in tried), round(findings.ONE_SIDED * len(tried))
        text = f"The top {k} leak beyond the ratings in {won} of {len(tried)} attribute attacks"
        gains = [Gain(difference.mean, difference.low, difference.high) for difference in tried]
        leaking = unique([difference.system.label for difference in tried if difference.significant])
        alarm = findings.any_beats(gains)
        most = f", by up to {number(max(gain.mean for gain in gains), 2)}" if alarm else ""
        of = f" ({join_words(leaking)}{most})" if 0 < len(leaking) <= NAMED else most
        yield Line("Attacks", f"{text}{of}; chance alone gives about {chance} small ones.", "#attacks", alarm=alarm)
    if results.edges is not None and results.edges.height:
        rows = results.edges.filter(results.edges["epsilon"].is_not_null())
        seen = rows.filter(rows["low"] > 0).height
        top = rows.sort("advantage").tail(1).to_dicts()
        most = f" (advantage up to {number(top[0]['advantage'], 2)})" if top else ""
        text = f"{seen} of {rows.height} attacks detect a single interaction{most}."
        yield Line("Attacks", text, "#edges", alarm=seen > 0)
    for target in membership.TARGETS:
        if said := membership.verdict(results, target):
            yield Line("Membership", said[0], "#membership", alarm=said[1])
    if systems := reconstruction.attacked_systems(results):
        yield _reconstruction_line(results, systems)
    if linked := strongest.lead(results):
        yield Line("Link stealing", linked, "#links", alarm=strongest.leaks(results))
    if results.networks and (matched := alignment.lead(results)):
        text = matched.partition(". ")[0].removesuffix(".") + "."
        yield Line("Re-identification", text, "#alignment", alarm=_matches_blindly(results))


def _matches_blindly(results: Results) -> bool:
    """Whether some way that knows no anchor matches more accounts than chance does, at any seed."""
    free = [way for way in alignment.ways(results) if not way.name.startswith("anchors-")]
    return any(len(way.failed) < len(way.precision.get(1, {})) for way in free)


def _reconstruction_line(results: Results, systems: Sequence[System]) -> Line:
    """Of how many systems some attacker reconstructs sensitive ratings."""
    attacked = [system for system in systems if system.label != results.layout.unprotected]
    lost = [system for system in attacked if _reconstructs(results, system, BASE)]
    elsewhere = {
        system.label: [at for at in results.settings(system) if _reconstructs(results, system, at)]
        for system in attacked
        if system not in lost
    }
    also = [f"{label} at {_settings(at)}" for label, at in elsewhere.items() if at]
    n = count(len(attacked), "system")
    text = f"Sensitive ratings of {len(lost)} of {n} are reconstructed better than public ones allow"
    further = f". At other settings, too: {join_words(also)}" if also else ""
    return Line("Attacks", f"{text}{_name_systems(lost)}{further}.", "#reconstruction", alarm=bool(lost or also))


def _reconstructs(results: Results, system: System, setting: str) -> bool:
    """Whether some attacker reads sensitive ratings better at a setting than public ones allow."""
    gains = [reconstruction.gain(results, system, name, setting) for name in reconstruction.ATTACKERS]
    return any(gain is not None and reconstruction.beats(gain) for gain in gains)


def _reproduction(results: Results, claims: Sequence[Claim]) -> Line | None:
    """How many published numbers and claims hold here."""
    if results.reproduced is None:
        return None
    numbers, parts = headline.reproduction_counts(results), []
    if numbers["run"]:
        share = headline.agreement(results)
        order = "" if share is None else f"; {100 * share:.0f} % of pairs of methods are ordered alike"
        near = f"{numbers['within_10_percent']} of {numbers['run']} published numbers within 10 %"
        parts.append(f"{near}{_missed(results)}{order}.")
    if claims:
        parts.append(f"{count(len(claims), 'claim')}: {verdict_counts(claims)}.")
    return Line("Reproduction", " ".join(parts), "#published") if parts else None


def _missed(results: Results) -> str:
    """Tables of several of which no number is near, in brackets."""
    printed = [entry for entry in comparison.entries(headline.first_scores(results)) if entry.printed is not None]
    by_table: dict[str, list[bool]] = {}
    for entry in printed:
        if len(entry.ours):
            by_table.setdefault(entry.table.name, []).append(comparison.is_near(entry))
    none = [f"none of {len(near)} in {name}" for name, near in by_table.items() if not any(near)]
    return f" ({join_words(none)})" if none and len(by_table) > 1 else ""


def _held(results: Results, systems: Sequence[System]) -> str:
    """Systems with a finite ε, the units that it is for, its δ, and what it takes as fixed."""
    entries = [line.entry for system in systems for line in ledger.lines_at(results, system)]
    given, delta = ledger.conditions(entries), max((entry.accounted_delta for entry in entries), default=0.0)
    limit = f", δ up to {delta:g}" if delta else ""
    protected = unique([ledger.units_of(results, system) for system in systems])
    named = [name for name in protected if not any(name.startswith(f"{other} ") for other in protected)]
    unit = f", for {join_words(named)}" if named else ""
    return _name_systems(systems) + unit + limit + (f", given {given}" if given else "")


def _name_systems(systems: Sequence[System]) -> str:
    return f" ({join_words([system.label for system in systems])})" if 0 < len(systems) <= NAMED else ""
