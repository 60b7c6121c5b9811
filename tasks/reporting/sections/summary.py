"""The first section of a report: what a reader may conclude, as sentences made from the numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

from markupsafe import Markup

from tasks.reporting.core import findings, ledger
from tasks.reporting.core.claim_specs import Claim
from tasks.reporting.core.claims import verdict_counts
from tasks.reporting.core.findings import Difference
from tasks.reporting.core.layout import join_words, with_interval
from tasks.reporting.core.published import ATTACKERS, Quality, Words
from tasks.reporting.core.results import Results, System, unique
from tasks.reporting.core.section import Blocks, Fold, Section, bullets, heading, paragraph
from tasks.reporting.sections import composition, controls, lead, links

NAMED = 4
"""Up to so many systems are named, more are counted."""
LONGEST = 30
"""Words of a sentence here. What has more is a list, and stands with the numbers."""
VECTORS = (
    "“Better” and “worse” are said only where the paired test over seeds is significant at 5 % after Holm's "
    "correction. The correction is for all comparisons on that network and score. An attack gains where the 95 % "
    "interval over seeds lies above zero, uncorrected: naming one leak too many is the safer error."
)
OVERLAPPING = (
    "Each system minus {0}, mean over {1}s and 95 % interval of the paired t-test corrected for the overlap of {1}s. "
    "“Better” and “worse” are said only where the test is significant at 5 % after Holm's correction for all claims on "
    "that metric. Less is better."
)
SEEDS = (
    "Each system minus the popularity lists, mean over seeds and 95 % bootstrap interval. With few seeds such "
    "intervals are too narrow: at five they hold about 84 % of the time. “Better” and “worse” are said only where a "
    "paired test over seeds is significant at 5 % after Holm's correction for all claims on that metric."
)
ATTACKED = (
    "An attack beats a control where the 95 % interval of its gain lies above zero, over the {}attacked users and the "
    "seeds. Nothing is corrected: naming one leak too many is the safer error. Gain is the share of users guessed "
    "right, minus the control's. All for the top {} recommendations."
)
CONTROLS = {
    "the ratings alone": findings.above_ratings,
    "the majority guess": findings.above_chance,
    "shuffled labels": findings.above_random,
}
"""What an attack is compared with."""


TOGETHER = (
    'An ε is of one setting and one seed; <a href="#together">all releases together</a> spend more, '
    "and seeds are public. "
)
GAPS = 'Reasons and gaps are in the <a href="#ledger">ledger</a>.'


def section(results: Results, claims: Sequence[Claim], k: int) -> Section:
    """What a reader may conclude.

    claims: what the suite's paper says, judged.
    """
    spent, lists = budgets(results), list[str]()
    first = _split_off_long(split(lead.lead(results, k)), lists)
    blocks: list[Blocks] = [paragraph("{}", " ".join(first), kind="lead")]
    blocks += _vectors(results, lists) if results.networks else _quality(results, k, lists)
    if inferred := attacks(results, k):
        users = "" if results.n_targets is None else f"{results.n_targets} "
        about = paragraph(ATTACKED, users, k, kind="soft")
        blocks += [heading("Attribute inference"), about, bullets(attempts(results, k))]
        lists += inferred
    if claims:
        where = 'Of {} claims, {}; each stands below <a href="#published">its table or figure</a>.'
        blocks += [heading("The paper's claims"), paragraph(where, len(claims), verdict_counts(claims))]
    total = " ".join(_split_off_long(split(spent[0]), lists))
    blocks += [
        heading("Budgets"),
        paragraph(f"{{}} {TOGETHER * composition.applies(results)}{GAPS}", total),
        Fold(Markup("Every system's budgets"), [bullets(spent[1:])]),
        *([Fold(Markup("The summary in numbers"), [bullets(lists)])] if lists else []),
    ]
    return Section("summary", "Summary", blocks)


def split(text: str) -> list[str]:
    """Sentences of a text."""
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z“])", text) if sentence]


def _split_off_long(sentences: Sequence[str], lists: list[str]) -> list[str]:
    """The short ones; long ones go to `lists`."""
    lists += [sentence for sentence in sentences if len(sentence.split()) > LONGEST]
    return [sentence for sentence in sentences if len(sentence.split()) <= LONGEST]


def _vectors(results: Results, lists: list[str]) -> list[Blocks]:
    """Of users' vectors: what they tell."""
    every = [*controls.sentences(results), *links.sentences(results)]
    texts = [" ".join(_split_off_long(split(text), lists)) for text in every]
    texts = [text for text in texts if text]
    return [heading("What the vectors tell"), *([paragraph(VECTORS, kind="soft")] if texts else []), bullets(texts)]


def _quality(results: Results, k: int, lists: list[str]) -> list[Blocks]:
    """Of systems that rank or predict: how well they do."""
    words, overlapping = results.layout.words, results.layout.overlap is not None
    about = (
        paragraph(OVERLAPPING, words.yardsticks, words.run, kind="soft")
        if overlapping
        else paragraph(SEEDS, kind="soft")
    )
    lists += ranking(results, k)
    texts, where = standing(results, k), 'Every difference is <a href="#comparisons">drawn</a> with its interval.'
    return [heading("{}", words.quality), about, bullets(texts), *([paragraph(where)] if texts else [])]


def standing(results: Results, k: int) -> list[str]:
    """How many systems are better, worse and undecided, per metric and yardstick."""
    layout, texts = results.layout, []
    for quality in (layout.utility, *(other for other in layout.qualities if other != layout.utility)):
        differences = findings.yardstick_differences(results, quality.metric, quality.cutoff(k), lower=quality.lower)
        for yardstick in unique([difference.other for difference in differences]):
            mine = [difference for difference in differences if difference.other == yardstick]
            better, worse = (sum(getattr(of, how) for of in mine) for how in ("better", "worse"))
            open_ = sum(not of.significant for of in mine)
            name = f"{quality.at(k)} ({quality.spoken}) against {yardstick}"
            texts.append(f"{name}: {better} of {len(mine)} better, {worse} worse, {open_} undecided.")
    return texts


def attempts(results: Results, k: int) -> list[str]:
    """How many attacks beat each control, per attribute."""
    texts = []
    for attribute in results.attributes():
        tried = {
            control: [of for name in results.attackers(attribute) for of in compare(results, attribute, name, k)]
            for control, compare in CONTROLS.items()
        }
        won = [
            f"{sum(of.significant for of in each)} of {len(each)} beat {name}" for name, each in tried.items() if each
        ]
        texts += [f"{attribute.capitalize()}: {join_words(won)}."] if won else []
    return texts


def ranking(results: Results, k: int) -> list[str]:
    """One sentence per metric and yardstick, and one per private system that loses to dp-popularity."""
    sentences = []
    layout = results.layout
    for quality in (layout.utility, *(other for other in layout.qualities if other != layout.utility)):
        differences = findings.yardstick_differences(results, quality.metric, quality.cutoff(k), lower=quality.lower)
        for yardstick in unique([difference.other for difference in differences]):
            of_this = [difference for difference in differences if difference.other == yardstick]
            sentences.append(_comparison(quality, k, yardstick, of_this, layout.words))
    return sentences


def attacks(results: Results, k: int) -> list[str]:
    """Per attribute: which attackers beat the ratings alone, the majority guess and shuffled labels."""
    sentences = []
    for attribute in results.attributes():
        names = results.attackers(attribute)
        beaten = {
            control: [compare(results, attribute, name, k) for name in names] for control, compare in CONTROLS.items()
        }
        texts = [f"beating {control}, {_by_attacker(gains, names)}" for control, gains in beaten.items() if any(gains)]
        if texts:
            sentences.append(f"{attribute.capitalize()}: {'; '.join(texts)}.")
    return sentences


def budgets(results: Results) -> list[str]:
    """Who has a finite accounted epsilon, then one sentence per system: what is covered, and what is not."""
    sentences = [_budget_in_short(results)]
    for system in results.systems:
        texts = [
            f"{budget.what}: claimed {budget.claimed}, accounted {budget.accounted}, "
            + (f"audited {budget.audited}" if "≥" in budget.audited else "not audited")
            for budget in ledger.budgets(ledger.lines_at(results, system), "s")
        ]
        sentences.append(
            f"{results.full_label(system)}: {'; '.join(unique(texts)) or 'no entry in its ledger, so no guarantee'}."
        )
    return sentences


def _budget_in_short(results: Results) -> str:
    finite = {system.label: ledger.total_epsilon(results, system) for system in results.compared}
    held = [
        (f"{system.label} (ε = {ledger.of_units(results, system)})", ledger.fixed_conditions(results, system))
        for system in results.compared
        if finite[system.label] is not None
    ]
    partly = [
        f"{system.label} ({join_words(covered)})"
        for system in results.compared
        if finite[system.label] is None and (covered := _coverage(results, system))
    ]
    text = (
        f"A finite accounted ε for everything it learns from holds for {ledger.together(held)}."
        if held
        else "No system has a finite accounted ε for everything it learns from."
    )
    return f"{text} For a part only: {join_words(partly)}." if partly else text


def _coverage(results: Results, system: System) -> list[str]:
    return unique(
        [
            f"{line.protects}s, ε = {ledger.accounted_budget(line.entry)}"
            for line in ledger.lines_at(results, system)
            if line.entry.accounted_epsilon is not None
        ]
    )


def _comparison(quality: Quality, k: int, yardstick: str, differences: Sequence[Difference], words: Words) -> str:
    digits, sign = quality.digits, quality.sign
    better = sorted(
        (difference for difference in differences if difference.better), key=lambda difference: -sign * difference.mean
    )
    worse = sorted(
        (difference for difference in differences if difference.worse), key=lambda difference: sign * difference.mean
    )
    unclear = [difference for difference in differences if not difference.significant]
    parts = []
    if better:
        parts.append(
            f"{join_words([_gain_text(difference, digits) for difference in better])} {_verb(better, *words.better)}"
        )
    if worse:
        parts.append(
            f"{join_words([_gain_text(difference, digits) for difference in worse])} {_verb(worse, *words.worse)}"
        )
    if unclear:
        parts.append(
            f"for {join_words([_gain_text(difference, digits) for difference in unclear])} the test does not decide"
        )
    return f"Against {yardstick} on {quality.at(k)} ({quality.spoken}): {'; '.join(parts)}."


def _gain_text(difference: Difference, digits: int = 3) -> str:
    return f"{difference.system.label} {with_interval(difference.mean, difference.low, difference.high, digits)}"


def _by_attacker(differences: Sequence[Sequence[Difference]], names: Sequence[str]) -> str:
    texts = [
        f"{ATTACKERS.get(name, name)} against {text}"
        for name, gains in zip(names, differences, strict=True)
        if (text := _gain_over(gains))
    ]
    return join_words(texts) or "no attacker against any system"


def _gain_over(differences: Sequence[Difference]) -> str:
    """The systems against which an attacker gains, and the largest gain; empty where there is none."""
    gaining = [difference for difference in differences if difference.significant]
    if not gaining:
        return ""
    if len(gaining) == 1:
        return _gain_text(gaining[0])
    return (
        f"{_name_systems(gaining, len(differences))}, most against {_gain_text(max(gaining, key=attrgetter('mean')))}"
    )


def _name_systems(gaining: Sequence[Difference], of: int) -> str:
    if len(gaining) > NAMED:
        return f"all {of} systems" if len(gaining) == of else f"{len(gaining)} of {of} systems"
    return join_words([difference.system.label for difference in gaining])


def _verb(items: Sequence[object], singular: str, plural: str) -> str:
    return singular if len(items) == 1 else plural
