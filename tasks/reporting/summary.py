"""The first section of a report: what a reader may conclude, as sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.reporting import findings, ledger
from tasks.reporting.findings import Difference
from tasks.reporting.layout import count, joined, number, signed
from tasks.reporting.published import ATTACKERS
from tasks.reporting.results import YARDSTICKS, Results, System, unique

FEW_SEEDS = 3
"""Below this a paired test hardly ever decides: with two seeds it has one degree of freedom."""
METRIC_NAMES = {findings.FULL_NDCG: "NDCG@{k} (full ranking)", findings.SAMPLED_HIT: "Hit@{k} (sampled-100)"}


def lead(results: Results, k: int) -> str:
    """The first paragraph: ranking, attack and budget in a few sentences."""
    seeds = sorted({len(system.runs[0].record["seeds"]) for system in results.systems})
    runs = count(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    kind = "synthetic data set" if results.synthetic else "data set"
    opening = (
        f"{count(len(results.systems), 'system')} ran on the {kind} {results.dataset} with {runs} each. "
        "Differences are means over seeds with 95 % intervals."
    )
    if seeds[0] < FEW_SEEDS:
        opening += f" {runs.capitalize()} can decide few comparisons of rankings."
    parts = [opening, *_ranking_in_short(results, k), _attack_in_short(results, k), _budget_in_short(results)]
    if results.synthetic:
        parts.append(
            "The data were generated: nothing here says anything about real people or about a published table."
        )
    return " ".join(part for part in parts if part)


def ranking(results: Results, k: int) -> list[str]:
    """One sentence per metric and yardstick, and one per private system that loses to dp-popularity."""
    sentences = []
    for metric in (findings.FULL_NDCG, findings.SAMPLED_HIT):
        differences = findings.beside_yardsticks(results, metric, k)
        for yardstick in unique([difference.other for difference in differences]):
            of_this = [difference for difference in differences if difference.other == yardstick]
            sentences.append(_compared(METRIC_NAMES[metric].format(k=k), yardstick, of_this))
    return sentences


def attacks(results: Results, k: int) -> list[str]:
    """Per attribute: which attackers beat the majority guess, and whether recommendations add to the ratings."""
    sentences = []
    for attribute in results.attributes():
        names = results.attackers(attribute)
        majority = results.majority(attribute)
        chance = "the majority guess" if majority is None else f"the majority guess (F1 {number(majority)})"
        told = _by_attacker([findings.above_chance(results, attribute, name, k) for name in names], names)
        sentences.append(f"{attribute.capitalize()}, beating {chance}: {told}.")
        told = _by_attacker([findings.above_ratings(results, attribute, name, k) for name in names], names)
        if told:
            sentences.append(f"{attribute.capitalize()}, beating the same attacker on the ratings alone: {told}.")
    return sentences + _margin(results, k)


def budgets(results: Results) -> list[str]:
    """One sentence per system: what has a finite accounted epsilon, what has none."""
    sentences = []
    for system in results.systems:
        told = [
            f"{line.entry.protects}s: claimed {ledger.shown(line.entry.claimed_epsilon, line.entry.claimed_delta)}, "
            f"accounted {ledger.shown(line.entry.accounted_epsilon, line.entry.accounted_delta)}, "
            + (f"audited {ledger.shown(line.audit['audited_epsilon'])} or more" if line.audit else "not audited")
            for line in ledger.base_lines(results, system)
        ]
        sentences.append(f"{system.label}: {'; '.join(unique(told)) or 'no entry in its ledger, so no guarantee'}.")
    return sentences


def _ranking_in_short(results: Results, k: int) -> list[str]:
    differences = findings.beside_yardsticks(results, findings.FULL_NDCG, k)
    name = METRIC_NAMES[findings.FULL_NDCG].format(k=k)
    parts = []
    for yardstick in results.yardsticks:
        of_this = [difference for difference in differences if difference.other == yardstick.label]
        if of_this and yardstick.model == YARDSTICKS[0]:
            parts.append(_compared(name, yardstick.label, of_this))
        if yardstick.model == YARDSTICKS[1]:
            losers = [one for one in of_this if one.worse and findings.claims_privacy(one.system)]
            if losers:
                budget = ledger.shown(ledger.largest_epsilon(results, yardstick))
                parts.append(
                    f"{joined([_told(one) for one in losers])} {_verb(losers, 'claims', 'claim')} privacy and yet "
                    f"{_verb(losers, 'ranks', 'rank')} worse than {yardstick.label}, a noisy list of best-sellers "
                    f"(accounted ε {budget})."
                )
    return parts


def _attack_in_short(results: Results, k: int) -> str:
    attributes = results.attributes()
    if not attributes:
        return ""
    chance = {name: findings.above_chance(results, name, "neural", k) for name in attributes}
    alone = {name: findings.above_ratings(results, name, "neural", k) for name in attributes}
    more = (
        f"Beyond what the ratings alone tell it, the recommendations help it {_by_attribute(alone)}."
        if any(one.found for found in alone.values() for one in found)
        else "That the recommendations tell it more than the ratings alone is not shown for any system."
    )
    return (
        f"Given a user's ratings and top {k} recommendations, the neural attacker beats the majority guess "
        f"{_by_attribute(chance)}. {more}"
    )


def _by_attribute(differences: dict[str, list[Difference]]) -> str:
    told = {name: _against(found) for name, found in differences.items()}
    without = [name for name, text in told.items() if not text]
    parts = [f"on {name} against {text}" for name, text in told.items() if text]
    if without:
        parts.append(f"on {joined(without)} against no system")
    return "; ".join(parts)


def _budget_in_short(results: Results) -> str:
    finite = {system.label: ledger.largest_epsilon(results, system) for system in results.systems}
    held = [f"{label} (ε = {ledger.shown(epsilon)})" for label, epsilon in finite.items() if epsilon is not None]
    partly = [
        f"{system.label} ({joined(covered)})"
        for system in results.systems
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
            f"{line.entry.protects}s, ε = {ledger.shown(line.entry.accounted_epsilon, line.entry.accounted_delta)}"
            for line in ledger.base_lines(results, system)
            if line.entry.accounted_epsilon is not None
        ]
    )


def _compared(metric: str, yardstick: str, differences: Sequence[Difference]) -> str:
    better = sorted((one for one in differences if one.better), key=lambda one: -one.mean)
    worse = sorted((one for one in differences if one.worse), key=lambda one: one.mean)
    unclear = [one for one in differences if not one.found]
    parts = []
    if better:
        parts.append(f"{joined([_told(one) for one in better])} {_verb(better, 'ranks better', 'rank better')}")
    if worse:
        parts.append(f"{joined([_told(one) for one in worse])} {_verb(worse, 'ranks worse', 'rank worse')}")
    if unclear:
        parts.append(f"for {joined([_told(one) for one in unclear])} the test does not decide")
    return f"Against {yardstick} on {metric}: {'; '.join(parts)}."


def _told(one: Difference) -> str:
    return f"{one.system.label} {signed(one.mean)} ({number(one.low)} to {number(one.high)})"


def _by_attacker(differences: Sequence[Sequence[Difference]], names: Sequence[str]) -> str:
    told = {ATTACKERS.get(name, name): _against(found) for name, found in zip(names, differences, strict=True) if found}
    without = [name for name, text in told.items() if not text]
    parts = [f"{name} against {text}" for name, text in told.items() if text]
    if without:
        parts.append(f"{joined(without)} against no system")
    return "; ".join(parts)


def _against(differences: Sequence[Difference]) -> str:
    """The systems against which an attacker gains, and the largest gain; empty where there is none."""
    found = [one for one in differences if one.found]
    if not found:
        return ""
    if len(found) == 1:
        return _told(found[0])
    return f"{_named(found, len(differences))}, most against {_told(max(found, key=lambda one: one.mean))}"


def _named(found: Sequence[Difference], of: int) -> str:
    return f"all {of} systems" if len(found) == of > 1 else joined([one.system.label for one in found])


def _margin(results: Results, k: int) -> list[str]:
    """What the choice of attacked users adds to the uncertainty, and which gains are larger than that."""
    shares = {name: share for name in results.attributes() if (share := results.majority(name)) is not None}
    if not results.n_targets or not shares:
        return []
    margins = {name: findings.sampling_margin(share, results.n_targets) for name, share in shares.items()}
    larger = []
    for attribute, margin in margins.items():
        told = []
        for attacker in results.attackers(attribute):
            found = findings.above_chance(results, attribute, attacker, k)
            if beyond := [one for one in found if one.found and one.mean > margin]:
                told.append(f"{ATTACKERS.get(attacker, attacker)} against {_named(beyond, len(found))}")
        if told:
            larger.append(f"on {attribute} ({'; '.join(told)})")
    each = joined([f"{number(margin)} ({name})" for name, margin in margins.items()])
    return [
        f"All these intervals cover the seeds, for the same {results.n_targets} attacked users. Attacking other users "
        f"could move an F1 near the majority guess by up to {each}, at 95 %; a smaller gain over the guess is shown "
        f"for these users alone. Larger gains: {joined(larger) or 'none'}."
    ]


def _verb(items: Sequence[object], singular: str, plural: str) -> str:
    return singular if len(items) == 1 else plural
