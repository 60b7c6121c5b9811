"""Why we differ: pairs of methods that a paper orders one way and our numbers the other, and what is known of it.

A pair is two methods of one printed column. What is known is declared by a paper as a few reasons; which pairs each
covers is computed, so that no pair is listed by hand. A reversed pair has the kind of the first reason that covers it,
and of none "not decided". A reason that names a reading, that is what we measured besides, covers a pair only where
this reading orders it as printed and the paired test shows so; and a reading that reverses as many pairs as it turns
to the printed order decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.reporting.core import comparison, origins
from tasks.reporting.core.comparison import Entry, Method
from tasks.reporting.core.findings import SIGNIFICANCE, paired_tests
from tasks.reporting.core.results import Results
from tasks.results.claims import KINDS, Claim, Kind, Reading, Reason
from tasks.results.paper import Column, Table

UNDECIDED: Kind = "not decided"
PART: Kind = "our data are a part"
UNSHOWN = "within our spread"
"""What is said of a reversed pair whose order our runs do not show; it is no kind."""
Order = Literal["as printed", "equal", "reversed"]
PAIRS, REVERSED = "pairs", "reversed"
COLUMNS = (PAIRS, REVERSED, *KINDS, UNSHOWN)
"""What is counted."""
Values = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Pair:
    """Two methods of one printed column, ordered as they are printed."""

    table: Table
    column: Column
    better: Entry
    """That which print has as the better one; of a measure of harm the lower one."""
    worse: Entry
    order: Order = "as printed"
    """Of our means."""
    shown: bool = False
    """Whether the paired test shows the order of our means to be the reverse of the printed one."""
    reason: Reason | None = None

    @property
    def kind(self) -> Kind:
        """Why it is reversed."""
        return UNDECIDED if self.reason is None else self.reason.kind

    @property
    def name(self) -> str:
        """Both methods, the better one in print first."""
        return f"{self.better.method.name} before {self.worse.method.name}"

    @property
    def printed(self) -> float:
        """By how much the first exceeds the second in print."""
        assert self.better.printed is not None
        assert self.worse.printed is not None
        return self.better.printed - self.worse.printed

    @property
    def ours(self) -> float:
        """By how much the first exceeds the second in our means."""
        return float(self.better.ours.mean() - self.worse.ours.mean())


def absent(results: Results, reason: Reason) -> list[str]:
    """Labels of systems that a reason's reading needs and that the suite has no results of."""
    wanted = () if reason.reading is None else reason.reading.systems.values()
    return [label for label in wanted if results.find(label) is None]


def pairs(results: Results, reasons: Sequence[Reason]) -> list[Pair]:
    """Every pair that is ordered in print and was run, column by column; none of replicas, or without a paper.

    reasons: of the paper, the one that comes first first.
    """
    if results.reproduced is None:
        return []
    here = [reason for reason in reasons if reason.kind != PART or origins.kind(results) == "part"]
    here = weighed(results, here)
    return [
        pair
        for column in comparison.printed_columns(results)
        for pair in _with_reasons(results, ordered_pairs(column), here)
    ]


def weighed(results: Results, reasons: Sequence[Reason]) -> list[Reason]:
    """The reasons with what their readings do to all pairs of a suite; one that breaks what it turns is not decided."""
    if results.reproduced is None:
        return [*reasons]
    every = [pair for column in comparison.printed_columns(results) for pair in ordered_pairs(column)]
    made = []
    for reason in reasons:
        turned = broken = 0
        for pair in every:
            if reason.reading is None or not changes(reason.reading, pair):
                continue
            first, second = _values(results, pair, reason.reading)
            difference = first.mean() - second.mean() if len(first) else 0.0
            turned += int(pair.order == "reversed" and difference > 0)
            broken += int(pair.order == "as printed" and difference < 0)
        kind = UNDECIDED if broken >= turned and broken else reason.kind
        made.append(replace(reason, kind=kind, turned=turned, broken=broken))
    return made


def reversed_pairs(every: Sequence[Pair]) -> list[Pair]:
    """Those that we order the other way."""
    return [pair for pair in every if pair.order == "reversed"]


def contradicted(results: Results, claims: Sequence[Claim], reasons: Sequence[Reason]) -> dict[Claim, Reason | None]:
    """Each claim that our numbers contradict, with the first reason that covers it; of papers without numbers alone.

    claims: what the paper says, judged.
    """
    if results.reproduced is None or results.layout.tables:
        return {}
    wrong = [claim for claim in claims if claim.verdict == "contradicted"]
    return {
        claim: next((reason for reason in reasons if reason.claims and claim.claim.startswith(reason.claims)), None)
        for claim in wrong
    }


def counts(every: Sequence[Pair]) -> Counter[str]:
    """`COLUMNS`: how many pairs there are, are reversed, are reversed and of each kind, and are within our spread."""
    turned = reversed_pairs(every)
    numbers = {PAIRS: len(every), REVERSED: len(turned), UNSHOWN: sum(not pair.shown for pair in turned)}
    return Counter[str](pair.kind for pair in turned) + Counter(numbers)


def ordered_pairs(entries: Sequence[Entry]) -> list[Pair]:
    """The pairs of a column that are not printed as equal, untested."""
    made = []
    for first, second in combinations(entries, 2):
        if first.printed is None or second.printed is None or first.printed == second.printed:
            continue
        higher, lower = (first, second) if first.printed > second.printed else (second, first)
        column = first.column
        better, worse = (higher, lower) if column.better == "higher" else (lower, higher)
        sign = 1.0 if column.better == "higher" else -1.0
        difference = sign * float(better.ours.mean() - worse.ours.mean())
        order: Order = "as printed" if difference > 0 else "reversed" if difference < 0 else "equal"
        made.append(Pair(first.table, column, better, worse, order))
    return made


def _with_reasons(results: Results, every: Sequence[Pair], reasons: Sequence[Reason]) -> list[Pair]:
    """The pairs of one column with what tests show of them, and with their reasons.

    Of our order each pair is a claim of its own, tested in both directions, which are corrected together. A reading is
    one claim for all pairs of the column that it is held against: these are corrected together.
    """
    made = [replace(pair, shown=pair.order == "reversed" and _is_shown(results, pair)) for pair in every]
    for reason in reasons:
        at = [n for n, p in enumerate(made) if p.order == "reversed" and p.reason is None and may_cover(reason, p)]
        if reason.reading is not None:
            claims = {str(n): _values(results, made[n], reason.reading) for n in at}
            held = {name for name, p in _corrected(results, claims).items() if p < SIGNIFICANCE}
            at = [n for n in at if str(n) in held]
        for n in at:
            made[n] = replace(made[n], reason=reason)
    return made


def may_cover(reason: Reason, pair: Pair) -> bool:
    """Whether a reason speaks of a pair, whatever its reading says of it."""
    better, worse = pair.better.method.name, pair.worse.method.name
    return (
        not reason.claims
        and (not reason.tables or pair.table.key in reason.tables)
        and (not reason.better or is_row(better, reason.better))
        and not is_row(worse, reason.not_worse)
        and (not reason.rows or bool({better, worse} & {*reason.rows}))
        and (not reason.metrics or pair.column.published.startswith(reason.metrics))
        and (reason.reading is None or changes(reason.reading, pair))
    )


def is_row(row: str, patterns: Sequence[str]) -> bool:
    """Whether a row is one of those that patterns stand for."""
    return any(fnmatchcase(row, pattern) for pattern in patterns)


def changes(reading: Reading, pair: Pair) -> bool:
    """Whether a reading has anything of a pair otherwise."""
    rows = {pair.better.method.name, pair.worse.method.name}
    measured = bool(reading.metric[0]) and reading.metric[0] in pair.column.metric
    measured &= not reading.metric_rows or bool(rows & {*reading.metric_rows})
    return measured or bool(rows & {*reading.settings, *reading.systems})


def _by_seed(results: Results, reading: Reading, entry: Entry) -> dict[int, float]:
    """Seed -> value of one row by a reading; empty where it was not measured."""
    column, name = entry.column, entry.method.name
    system = results.find(reading.systems[name]) if name in reading.systems else entry.method.system
    setting: str | None = entry.method.setting
    if system is not None and name in reading.settings:
        setting = results.find_setting(system, reading.settings[name])
    if setting is None:
        return {}
    if reading.metric[0] and (not reading.metric_rows or name in reading.metric_rows):
        column = replace(column, metric=column.metric.replace(*reading.metric))
    return comparison.measured_by_seed(results, Method(name, system, setting), column)


def _is_shown(results: Results, pair: Pair) -> bool:
    """Whether the reverse of the printed order is significant."""
    values = _values(results, pair, Reading())
    tested = _corrected(results, {"as printed": values, "reversed": values[::-1]})
    return tested.get("reversed", 1.0) < SIGNIFICANCE


def _values(results: Results, pair: Pair, reading: Reading) -> Values:
    """What a reading says of both methods at the seeds that both have, turned so that more is better."""
    first, second = (_by_seed(results, reading, entry) for entry in (pair.better, pair.worse))
    seeds = sorted(first.keys() & second.keys())
    sign = 1.0 if pair.column.better == "higher" else -1.0
    return sign * np.array([first[seed] for seed in seeds]), sign * np.array([second[seed] for seed in seeds])


def _corrected(results: Results, claims: Mapping[str, Values]) -> dict[str, float]:
    """Claim "the first is larger" -> its p by the paired test, corrected for all of them; no claim of a single run."""
    tested = {name: values for name, values in claims.items() if len(values[0]) > 1}
    return {name: test.p_holm for name, test in paired_tests(results, tested).items()}
