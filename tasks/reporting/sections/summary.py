"""The first section of a report: what a reader may conclude, as sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.reporting.core import findings, ledger
from tasks.reporting.core.claims import verdict_counts
from tasks.reporting.core.layout import DASH, Cell, Heading, Row, Table, join_words, words
from tasks.reporting.core.results import Results, unique
from tasks.reporting.core.section import Blocks, Section, bullets, heading, paragraph
from tasks.reporting.core.words import wording
from tasks.reporting.sections import composition, controls, lead, reconstruction, strongest
from tasks.results.claims import Claim

VECTORS = (
    "“Better” and “worse” are said only where the paired test over seeds is significant at 5 % after Holm's "
    "correction. The correction is for all comparisons on that network and score. An attack gains where the 95 % "
    "interval over seeds lies above zero, uncorrected: naming one leak too many is the safer error."
)
OVERLAPPING = (
    "Each system minus {0}, mean over {1}s and 95 % interval of the paired t-test corrected for the overlap of {1}s. "
    "“Better” and “worse” are said only where the test is significant at 5 % after Holm's correction for all pairs on "
    "that metric, each in both directions. Less is better."
)
SEEDS = (
    "Each system minus the popularity lists, mean over seeds and 95 % bootstrap interval. With few seeds such "
    "intervals are too narrow: at five they hold about 84 % of the time. “Better” and “worse” are said only where a "
    "paired test over seeds is significant at 5 % after Holm's correction for all pairs on that metric, each in both "
    "directions."
)
SINGLE = (
    "Each system minus the popularity lists, of one seed. That has no interval and decides nothing; what is called an "
    "interval over seeds on this page is a single value."
)
CROSSED = (
    "Each system minus the popularity lists, mean over {0} splits of the data with {1} seeds on each; a run draws its "
    "random numbers anew on every split. Of the paired t-tests over splits and over seeds the larger p and the wider "
    "interval are taken. "
    "“Better” and “worse” are said only where it is significant at 5 % after Holm's correction for all pairs on that "
    "metric, each in both directions. Sweep points and attacks are of the first split alone."
)
VARIATION = (
    "An interval covers {}, neither other data nor another kind of processor. Where a suite was run on two, that moved "
    "means of graph systems of gerai by up to 0.044 (docs/choices-gerai.md). Means of DIPSGNN on the replica of Tmall "
    "moved by up to 0.025 (docs/choices-dipsgnn.md). Single seeds of NetMF and UDMF in dpcrosue moved by up to 0.054 "
    "(docs/choices-dpcrosue.md)."
)
ATTACKED = (
    "An attack beats a control where the 95 % interval of its gain lies above zero, over the {} attacked users and the "
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
    blocks: list[Blocks] = [paragraph("{}", lead.lead(results, k), kind="lead")]
    blocks += _vectors(results) if results.networks else _quality(results, k)
    if tried := attempts(results, k):
        about = paragraph(ATTACKED, results.n_targets, k, kind="soft")
        blocks += [heading("Attribute inference"), about, bullets(tried)]
    if claims:
        where = 'Of {} claims, {}; each stands below <a href="#published">its table or figure</a>.'
        blocks += [heading("The paper's claims"), paragraph(where, len(claims), verdict_counts(claims))]
    finite = sum(ledger.total_epsilon(results, system) is not None for system in results.compared)
    held = f"Systems with a finite accounted ε for {_protected(results)}: {finite} of {len(results.compared)}."
    where = f"{{}} {TOGETHER * composition.applies(results)}{GAPS}"
    return Section("summary", "Summary", [*blocks, heading("Budgets"), paragraph(where, held), budgets(results)])


def _protected(results: Results) -> str:
    """What a finite ε of a whole system is for."""
    if reconstruction.attacked_systems(results):
        return "sensitive ratings (published ratings and links have no guarantee)"
    return "everything they learn from"


def _vectors(results: Results) -> list[Blocks]:
    """Of users' vectors: what they tell."""
    texts = [*controls.sentences(results), *strongest.sentences(results)]
    about = paragraph("{}", f"{VECTORS} {VARIATION.format(_variation(results))}", kind="soft")
    return [heading("What the vectors reveal"), *([about] if texts else []), bullets(texts)]


def _quality(results: Results, k: int) -> list[Blocks]:
    """Of systems that rank or predict: how well they do."""
    spoken = wording(results.layout)
    about = [paragraph("{}", f"{_about(results)} {VARIATION.format(_variation(results))}", kind="soft")]
    texts, where = standing(results, k), 'Every difference is <a href="#comparisons">drawn</a> with its interval.'
    return [heading("{}", spoken.quality), *about, bullets(texts), *([paragraph(where)] if texts else [])]


def _about(results: Results) -> str:
    """How differences are tested."""
    spoken = wording(results.layout)
    if results.layout.overlap is not None:
        return OVERLAPPING.format(spoken.yardsticks, spoken.run)
    if results.n_splits > 1:
        return CROSSED.format(results.n_splits, lead.seeds_each(results))
    return SINGLE if lead.seeds_each(results) == 1 else SEEDS


def _variation(results: Results) -> str:
    """What varies between the runs of a system."""
    if results.n_splits == 1 and lead.seeds_each(results) == 1:
        return "no other seed"
    if results.networks:
        return "other seeds, and with them other splits of the users and of pairs"
    if results.layout.overlap is not None:
        return f"the {results.word_for_run}s of one cross-validation"
    return f"other seeds and {wording(results.layout).splits}" if results.n_splits > 1 else "other seeds on this split"


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


def budgets(results: Results) -> Table | None:
    """Every system with a finite accounted epsilon, for everything that it learns from or for a part of it."""
    rows = []
    for system in results.compared:
        lines = [line for line in ledger.lines_at(results, system) if line.entry.accounted_epsilon is not None]
        covered = ledger.total_epsilon(results, system) is not None
        parts = unique(
            [
                f"{line.protects}: {ledger.format_budget(line.entry.accounted_epsilon, line.entry.accounted_delta)}"
                for line in lines
            ]
        )
        part = Cell(DASH, kind="budget") if covered else Cell("", tuple(parts), "stack")
        given = ledger.conditions([line.entry for line in lines])
        if lines:
            total = Cell(ledger.of_units(results, system), kind="budget")
            rows.append(Row(system.label, [total, part, words(given or DASH)]))
    every = "sensitive ratings" if reconstruction.attacked_systems(results) else "all it learns from"
    headings = [Heading("System", ""), *(Heading(text, "") for text in (every, "a part of it", "given"))]
    return Table("Finite accounted ε of one run", headings, rows) if rows else None
