"""The privacy ledger of a suite: claimed, accounted and audited budgets side by side, and why one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import polars as pl

from tasks.privacy.accounting.gaps import SEED, SEED_OF_RELEASE
from tasks.privacy.accounting.ledger import LedgerEntry, show_epsilon
from tasks.reporting.core import audits, origins, units
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import BASE, Results, System, unique

UNCLAIMED, UNAUDITED = "–", "not audited"
NO_MECHANISM = "none"
"""`mechanism` of an entry that says that nothing protects this."""

COLUMNS = (
    "suite",
    origins.COLUMN,
    "experiment",
    "model",
    "setting",
    "seeds",
    "protects",
    "neighbouring",
    "mechanism",
    "accounting",
    "noise",
    "claimed_epsilon",
    "claimed_delta",
    "accounted_epsilon",
    "accounted_delta",
    "given",
    "audited_epsilon",
    "audited_confidence",
    "largest_provable_epsilon",
    *(f"control_{control}_epsilon" for control in audits.CONTROLS),
    "verdict",
    "claimed_note",
    "accounted_note",
    "audited_note",
    "gaps",
)
OF_SEEDS = frozenset({SEED, SEED_OF_RELEASE})
REMEDY = (
    "“noise: secure”, in the experiment or the entry of “perturbed”, draws it from the operating system, for those "
    "that docs/guarantees.md lists."
)


@dataclass(frozen=True)
class Line:
    """One protected thing of one system at one setting; seeds that spent the same share a line."""

    system: System
    setting: str
    seeds: tuple[int, ...]
    entry: LedgerEntry
    audit: dict[str, Any] | None
    """The audit that says that it is of this line, if there is one."""
    network: str = ""
    """Whose users it was spent on, of a pair of networks."""
    unaudited: str = ""
    """Why there is no audit, if a reason is known."""

    @property
    def protects(self) -> str:
        """What is protected, with its network where there are two."""
        return f"{self.network}: {self.entry.protects}" if self.network else self.entry.protects

    @property
    def claimed_note(self) -> str:
        """Why no budget is claimed; empty where one is."""
        if self.entry.claimed_epsilon is not None:
            return ""
        if self.entry.mechanism == NO_MECHANISM:
            return "No mechanism protects this, and no guarantee is claimed for it."
        return "No budget is claimed for this setting."

    @property
    def unjoined(self) -> str:
        """What stands for the bound where there is no audit."""
        return "not audited" if audits.is_private(self.entry) else UNCLAIMED

    @property
    def audited_note(self) -> str:
        """What the audit means, or why there is none."""
        if self.audit is None:
            if self.entry.mechanism == NO_MECHANISM:
                return "There is no mechanism to audit."
            return f"Not audited: {self.unaudited}." if self.unaudited else "This was not audited."
        samples = audits.saturation_note(self.audit) or f"{self.audit['samples']:,} samples"
        delta = self.audit["delta"]
        if delta and delta != self.entry.accounted_delta:
            samples = f"at δ = {delta:g}; {samples}"
        about = f"{samples}; {100 * self.audit['confidence']:.6g} % confidence; {self.audit['verdict']}"
        return f"{about}; proved with half of the noise, and with none: {audits.format_controls(self.audit)}"


def lines(results: Results) -> list[Line]:
    """All entries in order of system, setting (`base` first) and first seed."""
    return [line for system in results.systems for line in lines_of(results, system)]


def lines_of(results: Results, system: System) -> list[Line]:
    """The entries of one system in order of setting (`base` first) and first seed."""
    grouped: dict[tuple[str, str, str], tuple[LedgerEntry, list[int]]] = {}
    for spent in system.spent:
        key = (spent.setting, spent.network, spent.entry.model_dump_json())
        grouped.setdefault(key, (spent.entry, []))[1].append(spent.seed)
    lines = [
        Line(
            system,
            setting,
            tuple(sorted(seeds)),
            entry,
            audits.audit_of(results, system, setting, entry, network),
            network,
            audits.reason(entry) if audits.is_private(entry) else "",
        )
        for (setting, network, _), (entry, seeds) in grouped.items()
    ]
    return sorted(
        lines, key=lambda line: (line.setting != BASE, line.setting, line.network, line.entry.protects, line.seeds)
    )


def lines_at(results: Results, system: System, setting: str = BASE) -> list[Line]:
    """The lines of a system at one setting."""
    return [line for line in lines_of(results, system) if line.setting == setting]


def total_epsilon(results: Results, system: System, setting: str = BASE) -> float | None:
    """The accounted budget of everything the system learns from, per run: budgets of different things add up.

    What was spent on features and on interactions was spent on the same users (basic composition), and somebody may be
    in both networks of a pair and then pays in both, but entries of the
    same releases under the same neighbouring relation are one guarantee, for both together. Where observers differ in
    what they see, it is the budget towards the one who sees most. The largest of all seeds. None where some part has no
    finite guarantee, or where the ledger names nothing that is protected.
    """
    spent = _spent(results, system, setting)
    return None if spent is None else sum(epsilon for epsilon, _ in spent)


def _spent(results: Results, system: System, setting: str) -> list[tuple[float, str]] | None:
    """What `total_epsilon` adds up: each budget with the name of its unit, of the seed and observer with most."""
    budgets: dict[tuple[int, str], dict[tuple[str, str], tuple[float, str]]] = {}
    lines = lines_at(results, system, setting)
    observers = {line.entry.observer for line in lines}
    for line in lines:
        entry = line.entry
        if entry.accounted_epsilon is None:
            return None
        releases = releases_of(entry)
        towards = [entry.observer] if entry.observer else observers
        for seed, observer in product(line.seeds, towards):
            of = entry.accounted_epsilon, units.name(entry)
            budgets.setdefault((seed, observer), {})[line.network, releases] = of
    every = (list(of_seed.values()) for of_seed in budgets.values())
    return max(every, key=lambda spent: sum(epsilon for epsilon, _ in spent), default=None)


def units_of(results: Results, system: System) -> str:
    """The units that `total_epsilon` is for, as text: "a user"; empty where it is not finite."""
    return join_words(unique([unit for _, unit in _spent(results, system, BASE) or []]))


def of_units(results: Results, system: System) -> str:
    """`total_epsilon` as text, with its unit: "1 for a user"; of several units, with what is spent on each."""
    spent = _spent(results, system, BASE)
    if spent is None:
        return format_budget(None)
    by_unit: dict[str, float] = {}
    for epsilon, unit in spent:
        by_unit[unit] = by_unit.get(unit, 0.0) + epsilon
    parts = join_words([f"{format_budget(epsilon)} for {unit}" for unit, epsilon in by_unit.items()])
    return parts if len(by_unit) == 1 else f"{format_budget(sum(by_unit.values()))}: {parts}"


def releases_of(entry: LedgerEntry) -> str:
    """What an entry was spent on: the same for entries of the same releases under the same neighbouring relation."""
    return entry.model_dump_json(include={"neighbouring", "events"} if entry.events else {"protects"})


def protected_things(lines: Sequence[Line], line: Line, plural: str = "") -> str:
    """What one of `lines` protects, and whatever else the same finite guarantee covers: it is for all of it together.

    plural: what every name ends with.
    """
    covered = [
        other.entry.protects
        for other in lines
        if line.entry.accounted_epsilon is not None
        and (other.setting, other.network, other.entry.accounted_epsilon, other.entry.observer)
        == (line.setting, line.network, line.entry.accounted_epsilon, line.entry.observer)
        and not set(other.seeds).isdisjoint(line.seeds)
        and releases_of(other.entry) == releases_of(line.entry)
    ]
    names = unique([f"{name}{plural}" for name in covered or [line.entry.protects]])
    what = f"{join_words(names)} together" if len(names) > 1 else names[0]
    return f"{line.network}: {what}" if line.network else what


@dataclass(frozen=True)
class Budget:
    """What a system spent on one protected thing towards one observer, as text; runs that spent unequally together."""

    what: str
    claimed: str
    accounted: str
    audited: str


def budgets(lines: Sequence[Line], plural: str = "") -> list[Budget]:
    """Each of `lines`, those that differ in nothing but the accounted budget as one: from the smallest to the largest.

    plural: what the name of every protected thing ends with.
    """
    grouped: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        if line.network and _budgeted_elsewhere(line, lines):
            continue
        entry = line.entry
        what = protected_things(lines, line, plural) + (f", towards {entry.observer}" if entry.observer else "")
        audited = audits.format_bound(line.audit) if line.audit else line.unjoined
        key = (
            what,
            claimed_budget(entry),
            audited,
            entry.neighbouring,
            entry.mechanism,
            entry.reason,
            condition(entry),
        )
        grouped.setdefault(key, []).append(line)
    return unique(
        [
            Budget(key[0], key[1], _range([line.entry for line in same]) + key[-1], key[2])
            for key, same in grouped.items()
        ]
    )


def _budgeted_elsewhere(line: Line, lines: Sequence[Line]) -> bool:
    """Whether neither a claim nor a guarantee is in a line, and another about the same thing has either.

    Words are counted under several neighbouring relations; the ledger's own table has them all.
    """

    def has_budget(other: Line) -> bool:
        return other.entry.claimed_epsilon is not None or other.entry.accounted_epsilon is not None

    about = (line.setting, line.network, line.entry.protects, line.entry.observer)
    return not has_budget(line) and any(
        has_budget(other)
        for other in lines
        if (other.setting, other.network, other.entry.protects, other.entry.observer) == about
    )


def condition(entry: LedgerEntry) -> str:
    """What a finite guarantee takes as fixed, as text that follows it."""
    return f", given {entry.given}" if entry.given and entry.accounted_epsilon is not None else ""


def accounted_budget(entry: LedgerEntry) -> str:
    """The accounted budget of an entry, as text, with what it takes as fixed."""
    return format_budget(entry.accounted_epsilon, entry.accounted_delta) + condition(entry)


def fixed_conditions(results: Results, system: System) -> str:
    """What the guarantees of a system take as fixed, as text: "given the configuration"; empty for nothing."""
    named = conditions([line.entry for line in lines_at(results, system)])
    return f"given {named}" if named else ""


def conditions(entries: Iterable[LedgerEntry]) -> str:
    """What any finite guarantee of some entries takes as fixed; what another text includes is not said again."""
    named = unique([entry.given for entry in entries if entry.given and entry.accounted_epsilon is not None])
    return join_words([text for text in named if not any(text in other for other in named if other != text)])


def total(results: Results, system: System) -> str:
    """`total_epsilon` as text, with its unit and what it takes as fixed where it is finite."""
    epsilon = total_epsilon(results, system)
    return ", ".join(
        filter(
            None,
            (
                of_units(results, system),
                fixed_conditions(results, system) if epsilon is not None else "",
            ),
        )
    )


def _range(entries: Sequence[LedgerEntry]) -> str:
    """Their accounted budgets: one, or the smallest and the largest."""
    budgets = sorted(
        {(entry.accounted_epsilon, entry.accounted_delta) for entry in entries if entry.accounted_epsilon is not None}
    )
    if not budgets:
        return format_budget(None)
    (low, _), (high, delta) = budgets[0], budgets[-1]
    first, last = format_budget(low), format_budget(high, delta)
    return last if last.startswith(first) else f"{first} to {last}"


def format_budget(epsilon: float | None, delta: float = 0.0) -> str:
    """A budget as text: "20", "1.5, δ = 1e-05", or "∞"."""
    text = show_epsilon(epsilon)
    return f"{text}, δ = {delta:g}" if epsilon is not None and delta > 0 else text


def claimed_budget(entry: LedgerEntry) -> str:
    """What an entry claims, as text: a budget, or "–"."""
    return UNCLAIMED if entry.claimed_epsilon is None else format_budget(entry.claimed_epsilon, entry.claimed_delta)


def noise(entry: LedgerEntry) -> str:
    """Where the noise of a mechanism came from: "public seed", "secure", or nothing where none is drawn."""
    if entry.noise == "secure":
        return "secure"
    drawn = any(event.kind != "non-private" for event in entry.events) or OF_SEEDS & {*entry.gaps}
    return "public seed" if drawn else ""


def gaps(entry: LedgerEntry) -> tuple[str, ...]:
    """Known gaps between guarantee and run, with the remedy of those that have one."""
    return tuple(f"{gap} {REMEDY}" if gap in OF_SEEDS else gap for gap in entry.gaps)


def frame(results: Results) -> pl.DataFrame:
    """`ledger.csv` with `COLUMNS`, all as text: "∞" is no finite guarantee, "–" no claim; the note says why.

    `given` is what a finite ε takes as fixed. `noise` says who could draw it again: with a "public seed" everybody,
    with "secure" noise nobody; empty where there is none. `gaps` counts the known gaps, which ledger.json names.

    Of a pair of networks each line says its network, in a column `network` after `protects`.
    """
    rows = []
    named = any(line.network for line in lines(results))
    place = COLUMNS.index("neighbouring")
    columns = (*COLUMNS[:place], *(["network"] if named else []), *COLUMNS[place:])
    for line in lines(results):
        entry, audit = line.entry, line.audit
        rows.append(
            (
                results.suite,
                origins.kind(results),
                line.system.experiment,
                line.system.name,
                line.setting,
                " ".join(str(seed) for seed in line.seeds),
                entry.protects,
                *([line.network] if named else []),
                entry.neighbouring,
                entry.mechanism,
                entry.accounting,
                noise(entry),
                UNCLAIMED if entry.claimed_epsilon is None else _fixed(entry.claimed_epsilon),
                "" if entry.claimed_epsilon is None else f"{entry.claimed_delta:g}",
                _fixed(entry.accounted_epsilon),
                "" if entry.accounted_epsilon is None else f"{entry.accounted_delta:g}",
                "" if entry.accounted_epsilon is None else entry.given,
                _fixed(audit["audited_epsilon"]) if audit else UNAUDITED,
                f"{audit['confidence']:g}" if audit else "",
                _fixed(audit["provable"]) if audit else "",
                *(_fixed(audit["controls"][of]) if audit and audit["controls"] else "" for of in audits.CONTROLS),
                audit["verdict"] if audit else "",
                line.claimed_note,
                entry.reason,
                line.audited_note,
                str(len(entry.gaps)),
            )
        )
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").sort(columns)


def _fixed(epsilon: float | None) -> str:
    return "∞" if epsilon is None else f"{epsilon:.6f}"
