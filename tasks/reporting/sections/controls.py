"""What embeddings say of users beside what no embedding says: interests as utility, gender and occupation as risk.

Two rules. Interests are predicted better or worse than by a control only where the paired test over seeds stays
significant at 5 % after Holm's correction for all comparisons of that network and score. An attack is said to gain over
a control where the 95 % interval of the difference over seeds (of the paired t-test) lies above zero, uncorrected,
because missing a leak is worse than naming one too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.evaluation.statistics import PairedTest
from tasks.reporting.core import comparison, findings
from tasks.reporting.core.chart import Chart, Heat, Square, share_scale
from tasks.reporting.core.figures import sample_of
from tasks.reporting.core.layout import (
    Cell,
    Heading,
    Row,
    Table,
    join_words,
    missing_cell,
    number,
    plain_cell,
    with_interval,
)
from tasks.reporting.core.results import Network, Results, System
from tasks.reporting.core.section import Section, optional, paragraph
from tasks.reporting.core.words import EVERYTHING, MAJORITY, SCORES, inference, interests

RANDOM = "random"
"""Label of the system that knows nothing."""
NOT_RUN = "not run"
NAMED = 6
"""Up to so many systems are named, more are counted."""


@dataclass(frozen=True)
class Against:
    """A system minus one control."""

    system: System
    control: str
    mean: float
    low: float
    high: float
    better: bool
    """Significantly above it, after Holm's correction."""
    worse: bool
    """Significantly below it."""

    @property
    def gains(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.low > 0

    @property
    def text(self) -> str:
        """The control, and the difference from it with its interval."""
        return f"{self.control} {with_interval(self.mean, self.low, self.high)}"

    @property
    def verdict(self) -> str:
        """For a prediction of interests."""
        return "better" if self.better else "worse" if self.worse else "undecided"


def interests_section(results: Results) -> Section:
    """Utility."""
    return Section(
        "interests",
        "Interests against baselines without an embedding",
        [utility(results)],
        link="",
        about=paragraph(
            "An embedding is worth something where it is above vectors that say nothing (random), above the most "
            "frequent interests for everybody (majority) and above every interest for everybody (everything). The "
            "released code exchanges guess and truth, so that its precision (“swapped”) is the micro recall, of which "
            "everything has 1. Both are shown."
        ),
    )


def attacks_section(results: Results) -> Section:
    """Attacks on attributes."""
    blind = results.layout.attribute_free
    return Section(
        "inferred",
        "Attacks on gender and occupation",
        [optional(chart(results)), attacks(results)],
        link="Attacks on attributes",
        about=paragraph(
            "What an attacker gains over guessing the most frequent class (majority) and over the same attack on "
            "random vectors (random).{} Only what is above random is a leak.",
            f" A third control is the same network without its attributes ({blind})." if blind else "",
        ),
    )


def compare_with_controls(
    results: Results,
    metric: str,
    *,
    own: Mapping[str, str] | None = None,
    systems: Iterable[str] = (),
) -> dict[tuple[str, str], Against]:
    """(experiment, control) -> every system minus every control, paired by seed; all tests are corrected together.

    Args:
        results: what the suite's runs produced.
        metric: what is compared, without a cut-off.
        own: control -> its metric, where it was measured of the same system.
        systems: labels of systems that are controls; none is compared with itself.
    """
    pairs: list[tuple[System, str, dict[int, float], dict[int, float]]] = []
    others = [of for name in systems if (of := results.find(name)) is not None and of.label == name]
    for system in results.compared:
        mine = results.by_seed(system, metric, 0)
        pairs += [(system, name, mine, results.by_seed(system, its, 0)) for name, its in (own or {}).items()]
        pairs += [(system, of.label, mine, results.by_seed(of, metric, 0)) for of in others if of is not system]
    tests, known = {}, {}
    for system, control, left, right in pairs:
        seeds = sorted(left.keys() & right.keys())
        if not seeds:
            continue
        first, other = (np.array([values[seed] for seed in seeds]) for values in (left, right))
        key = (system.experiment, control)
        known[key] = (system, control, float((first - other).mean()))
        if len(seeds) > 1:
            tests[f"{key} above"], tests[f"{key} below"] = (first, other), (other, first)
    tested = findings.paired_tests(results, tests)
    return {
        key: _comparison(*about, tested.get(f"{key} above"), tested.get(f"{key} below")) for key, about in known.items()
    }


def sentences(results: Results) -> list[str]:
    """How interests stand beside giving everybody every interest, and attacks beside random vectors."""
    parts = []
    for network in _labelled_networks(results):
        metric, everything = interests(network.name), f"{network.name}/interests/{EVERYTHING}/precision"
        known = level(results, everything)
        if known is None:
            continue
        differences = list(compare_with_controls(results, metric, own={EVERYTHING: everything}).values())
        groups = [
            f"{verdict} in precision: {name_systems([pair.system.label for pair in same], len(differences))}"
            for verdict in ("better", "worse", "undecided")
            if (same := [difference for difference in differences if difference.verdict == verdict])
        ]
        parts.append(
            f"Interests on {network.title}: every interest for everybody has precision {number(known)} and recall 1; "
            f"{'; '.join(groups)}.{_printed_comparison(results, network)}"
        )
    for network, attribute in _attacked_attributes(results):
        differences = [
            difference
            for difference in _compare_inference(results, network, attribute).values()
            if difference.control == RANDOM
        ]
        if differences:
            leaking = [difference.system.label for difference in differences if difference.gains]
            what = f"{attribute.capitalize()} on {network.title} is told better than by random vectors"
            parts.append(
                f"{what} by those of {name_systems(leaking, len(differences))}."
                if leaking
                else f"{what} by no system's."
            )
    return parts


def utility(results: Results) -> list[Table]:
    """Per network: every system's interests under all scores, beside its controls."""
    shown = []
    for network in _labelled_networks(results):
        by_score = {
            score: compare_with_controls(
                results,
                interests(network.name, score),
                own={name: f"{network.name}/interests/{name}/{score}" for name in (MAJORITY, EVERYTHING)},
                systems=(RANDOM,),
            )
            for score in SCORES
        }
        controls = (MAJORITY, EVERYTHING, RANDOM)
        rows = [
            Row(name, [plain_cell(level(results, f"{network.name}/interests/{name}/{score}")) for score in SCORES],
                "reference")
            for name in (MAJORITY, EVERYTHING)
        ]  # fmt: skip
        for system in results.compared:
            cells = [
                _cell(results, system, interests(network.name, score), [
                    f"{difference.text}, {difference.verdict}"
                    for control in controls if (difference := by_score[score].get((system.experiment, control)))
                ])
                for score in SCORES
            ]  # fmt: skip
            if any(cell.lines for cell in cells):
                rows.append(Row(system.label, cells))
        shown.append(
            Table(
                f"Interests on {network.title}: mean over seeds, and difference from each control with its 95 % "
                "interval",
                [Heading("System", ""), *(Heading(label) for label in SCORES.values())],
                rows,
            )
        )
    return shown


def chart(results: Results) -> Chart:
    """What every attack on an attribute gains over each control, a heat map per network and attribute."""
    panels, n, won = [], 0, 0
    for network, attribute in _attacked_attributes(results):
        cells = [
            Square(of.system.label, of.control, of.mean, f"{of.system.label}, over {of.text}", of.gains)
            for of in _compare_inference(results, network, attribute).values()
        ]
        panels += [Heat(f"{network.title}, {attribute}", "", "", cells)] if cells else []
        over = [cell for cell in cells if cell.column == RANDOM]
        n, won = n + len(over), won + sum(cell.marked for cell in over)
    return Chart(
        "chart-attacks",
        "Attributes inferred from vectors",
        "Precision (mean over classes) of the attack on a system's vectors, minus that of each control. Bold: the 95 % "
        "interval over seeds lies above zero, uncorrected. Only what is above random is a leak.",
        share_scale(panels),
        finding=f"{won} of {n} attacks leak beyond random vectors",
        sample=sample_of(results, [cell.row for panel in panels for cell in panel.cells]),
    )


def attacks(results: Results) -> list[Table]:
    """Per network: every system's attacks on gender and occupation beside their controls."""
    shown = [_attack(results, network) for network in results.networks if network.friendships and network.sensitive]
    return [table for table in shown if len(table.rows) > 1]


def _attack(results: Results, of: Network) -> Table:
    columns = [(network, attribute) for network, attribute in _attacked_attributes(results) if network == of]
    inferred = [_compare_inference(results, network, attribute) for network, attribute in columns]
    rows = [
        Row(
            "majority guess",
            [plain_cell(level(results, inference(column.name, f"{name}/{MAJORITY}"))) for column, name in columns],
            "reference",
        )
    ]
    for system in results.compared:
        cells = []
        for (network, attribute), differences in zip(columns, inferred, strict=True):
            mine = [
                difference for (experiment, _), difference in differences.items() if experiment == system.experiment
            ]
            lines = [f"{difference.text}{' ✓' * difference.gains}" for difference in mine]
            leaks = any(difference.gains and difference.control == RANDOM for difference in mine)
            cells.append(_cell(results, system, inference(network.name, attribute), lines, bold=leaks))
        if any(cell.lines for cell in cells):
            rows.append(Row(system.label, cells))
    return Table(
        f"Attacks on {of.title}: precision (mean over classes), mean over seeds, and gain over each control with its "
        "95 % interval; ✓ marks a gain, bold one over random",
        [Heading("System", ""), *(Heading(attribute) for _, attribute in columns)],
        rows,
    )


def _compare_inference(results: Results, network: Network, attribute: str) -> dict[tuple[str, str], Against]:
    return compare_with_controls(
        results,
        inference(network.name, attribute),
        own={MAJORITY: inference(network.name, f"{attribute}/{MAJORITY}")},
        systems=(RANDOM, results.layout.attribute_free),
    )


def _printed_comparison(results: Results, network: Network) -> str:
    """How every interest for everybody stands beside the best micro-F1 that the paper prints of the network."""
    paper, ours = results.reproduced, level(results, f"{network.name}/interests/{EVERYTHING}/micro-f1")
    numbers = [] if paper is None else comparison.printed_values(results, paper, network.name).items()
    best = max((value for (*_, metric), value in numbers if metric == "interest_micro_f1"), default=None)
    if best is None or ours is None:
        return ""
    place = "above" if ours > best else "not above"
    return f" Its micro-F1 is {number(ours)}, {place} every method's that the paper prints (at most {number(best)})."


def _labelled_networks(results: Results) -> list[Network]:
    return [network for network in results.networks if network.friendships and network.labelled]


def _attacked_attributes(results: Results) -> list[tuple[Network, str]]:
    return [(network, name) for network in results.networks if network.friendships for name in network.sensitive]


def _comparison(
    system: System, control: str, mean: float, above: PairedTest | None, below: PairedTest | None
) -> Against:
    if above is None or below is None:
        return Against(system, control, mean, float("-inf"), float("inf"), False, False)
    better, worse = (test.p_holm < findings.SIGNIFICANCE for test in (above, below))
    return Against(system, control, mean, above.low, above.high, better, worse)


def level(results: Results, metric: str) -> float | None:
    """A control's value, averaged over systems and seeds."""
    values = [float(value) for system in results.compared for value in results.values(system, metric, 0)]
    return sum(values) / len(values) if values else None


def _cell(results: Results, system: System, metric: str, lines: Sequence[str], *, bold: bool = False) -> Cell:
    values = results.values(system, metric, 0)
    if not len(values):
        return missing_cell(NOT_RUN)
    return Cell(number(float(values.mean())), tuple(lines), "number found" if bold else "number")


def name_systems(labels: Sequence[str], of: int) -> str:
    """Systems by name, or how many of how many where they are too many."""
    return join_words(labels) if len(labels) <= NAMED else f"{len(labels)} of {of} systems"
