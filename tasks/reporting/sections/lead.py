"""The first paragraph of a report: what a reader may conclude, in few words."""

from __future__ import annotations

from tasks.reporting.core import findings, ledger
from tasks.reporting.core.findings import Difference
from tasks.reporting.core.layout import count, format_difference, join_words, name_some, number, with_interval
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.words import wording
from tasks.reporting.sections import alignment, means, reconstruction

FEW_SEEDS = 3
"""Below this a paired test hardly ever decides: with two seeds it has one degree of freedom."""


def lead(results: Results, k: int) -> str:
    """Which system resists which attack, what that costs in ranking, and how it stands beside dp-popularity."""
    seeds = sorted({len(system.seeds) for system in results.compared})
    run = results.word_for_run
    runs = count(seeds[0], run) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} {run}s"
    each = f" ({seeds_each(results)} seeds on each of {results.n_splits} splits)" if results.n_splits > 1 else ""
    kind = "synthetic data set" if results.synthetic else "data set"
    parts = [
        f"{count(len(results.compared), 'system')}, {kind} {results.dataset}, {runs} each{each}; intervals are 95 %."
    ]
    if seeds[-1] == 1:
        parts.append("A single one decides no comparison of rankings.")
    elif seeds[0] < FEW_SEEDS:
        parts.append(f"{runs.capitalize()} can decide few comparisons of rankings.")
    protecting = _protecting_systems(results)
    parts += [means.lead(results, k), *_attack_sentences(results, protecting, k), reconstruction.lead(results)]
    parts += [alignment.lead(results)] if results.networks else []
    parts += [_cost(results, protecting, k), _yardstick(results, k)]
    if results.synthetic:
        parts.append("The data were generated: this says nothing about real people or about a published table.")
    return " ".join(part for part in parts if part)


def seeds_each(results: Results) -> int:
    """Seeds of a system on one split, where there are several; all systems have as many there."""
    return max(len(system.seeds) for system in results.compared) // results.n_splits


def private_systems(results: Results) -> list[System]:
    """Those that claim a budget, but for noisy constants."""
    return [system for system in results.compared if findings.claims_privacy(system) and not system.is_yardstick]


def counted(results: Results, n: int) -> str:
    """So many private systems, and whether others run with the noise of their authors' code."""
    released = any(findings.is_released_code(system) for system in results.compared)
    return count(n, "private system") + " besides released code" * released


def _protecting_systems(results: Results) -> list[System]:
    """What the paper says protects somebody, and whatever else has a finite budget for all it learns from."""
    layout = results.layout
    named = [results.find(layout.methods[name]) for name in layout.protecting]
    return [
        system
        for system in results.compared
        if system in named or (not system.is_yardstick and ledger.total_epsilon(results, system) is not None)
    ]


def _attack_sentences(results: Results, protecting: list[System], k: int) -> list[str]:
    attributes = results.attributes()
    if not attributes:
        return []
    tried = [
        (attribute, difference)
        for attribute in attributes
        for attacker in results.attackers(attribute)
        for difference in findings.above_ratings(results, attribute, attacker, k)
    ]
    gaining = [(attribute, difference) for attribute, difference in tried if difference.significant]
    if not gaining:
        text = (
            f"No attacker is shown to guess {join_words(attributes)} better from a user's ratings and top {k} "
            "recommendations than from the ratings alone"
        )
        return [f"{text}: so no protection can be shown to help." if protecting else f"{text}."]
    texts = []
    for attribute in attributes:
        here = [difference for name, difference in gaining if name == attribute]
        if here:
            most = max(here, key=lambda difference: difference.mean)
            models = len({difference.system.experiment for difference in here})
            texts.append(
                f"On {attribute} against {models} of {len(results.compared)} systems, most {_gain_text(most)}."
            )
    by_chance = round(findings.ONE_SIDED * len(tried))
    sentences = [
        f"The top {k} recommendations leak beyond the ratings alone in {len(gaining)} of "
        f"{count(len(tried), 'attack')}, where chance would give about {by_chance}.",
        *texts,
    ]
    resisting = [
        system.label
        for system in protecting
        if all(difference.system.experiment != system.experiment for _, difference in gaining)
    ]
    if protecting:
        sentences.append(f"Protected systems with which none of them gains: {join_words(resisting) or 'none'}.")
    return sentences


def _cost(results: Results, protecting: list[System], k: int) -> str:
    """Ranking of every protected system minus that of the better of the systems without protection."""
    layout = results.layout
    metric, digits, sign = layout.utility.metric, layout.utility.digits, layout.utility.sign
    known = [
        (float(values.mean()), system)
        for system in map(results.find, layout.open)
        if system is not None and len(values := results.values(system, metric, k))
    ]
    if not known:
        return ""
    level, reference = max(known, key=lambda pair: sign * pair[0])
    gaps = []
    for system in protecting:
        left, right = results.paired_values(system, metric, k, reference, metric, k)
        if len(left):
            gap = findings.interval(results, left - right)
            gaps.append((gap.mean, system.label, with_interval(gap.mean, gap.low, gap.high, digits)))
    if not gaps:
        return ""
    (low, first, alone), (high, last, _) = min(gaps), max(gaps)
    span = f"from {format_difference(low, digits)} ({first}) to {format_difference(high, digits)} ({last})"
    name = f"{layout.utility.at(k)} ({layout.utility.spoken})"
    minus = span if len(gaps) > 1 else f"{first} {alone}"
    best = f"{reference.label} has {name} {number(level, digits)} and protects nobody."
    return f"{best} Protected systems minus that: {minus}."


def _yardstick(results: Results, k: int) -> str:
    """How every private system ranks beside the private list of best-sellers, and for what accounted budget."""
    layout = results.layout
    yardstick, words = results.find(layout.private_yardstick), wording(layout)
    if yardstick is None:
        return ""
    differences = [
        difference
        for difference in findings.yardstick_differences(results, layout.utility.metric, k, lower=layout.utility.lower)
        if difference.other == yardstick.label and difference.system in private_systems(results)
    ]
    texts = [
        f"{verb}: {name_some([difference.system.label for difference in group])}"
        for verb, group in (
            (words.participles[0], [difference for difference in differences if difference.better]),
            (words.participles[1], [difference for difference in differences if difference.worse]),
            ("undecided", [difference for difference in differences if not difference.significant]),
        )
        if group
    ]
    if not texts:
        return ""
    own = ledger.total(results, yardstick)
    finite = [of.system.label for of in differences if ledger.total_epsilon(results, of.system) is not None]
    budgets = (
        f"With a finite accounted ε for all they learn from: {name_some(finite)}."
        if finite
        else "No finite accounted ε covers all they learn from."
    )
    return f"Beside {yardstick.label}, {words.yardstick} (accounted ε {own}), {'; '.join(texts)}. {budgets}"


def _gain_text(difference: Difference) -> str:
    span = f"{number(difference.low)} to {number(difference.high)}"
    return f"{difference.system.label} ({format_difference(difference.mean)}, {span})"
