"""What all releases together spend: every ε of a ledger is of one setting and one seed, and all of them are published.

Each unit that a finite entry is for is composed over every release that bounds it or a larger unit
(`tasks.privacy.units`). A data set that several suites read is composed over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.evaluation.run_numbers import seed_of, split_of
from tasks.privacy import units
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.terms import Observer, Protected, Unit
from tasks.results.facts import BASE, System, Together, layer_of
from tasks.results.load import Line, Results
from tasks.results.settings import PERTURBED

FITTED: tuple[Protected, ...] = ("interaction", "rating", "session graph")
"""What each fit releases for itself, whatever data it reads."""
SENSITIVE: Unit = "sensitive-rating"
SHARE = "sensitive_share"
"""The key that says which ratings are sensitive: where it differs, so does the unit."""


@dataclass(frozen=True)
class _Release:
    key: tuple[str, ...]
    """What distinguishes releases."""
    source: tuple[str, ...]
    """The same for all entries of one kind of data in one fit, or in what it reads, whatever unit they are for."""
    network: str
    entry: LedgerEntry


Spender = tuple[Results, Sequence[System]]
"""Results of a suite, and those of its systems that count."""


def applies(spenders: Iterable[Spender]) -> bool:
    """Whether anything was released with a finite ε."""
    return any(line.entry.events and line.entry.accounted_epsilon is not None for _, line in _lines(spenders))


def compose(spenders: Sequence[Spender]) -> list[Together]:
    """For each unit that a finite entry is for: all releases that bound it, composed.

    A guarantee for a larger unit bounds a smaller one, in as many steps as `units.STEPS` says. What several systems or
    suites read of one release is counted once.

    spenders: all on the same data.
    """
    releases, unbounded = list[_Release](), list[_Release]()
    for (results, system), line in _lines(spenders):
        if _has_noise_or_claim(line.entry):
            finite = line.entry.accounted_epsilon is not None
            (releases if finite else unbounded).extend(_releases(results, system, line))
    same = have_same_sensitive(spenders)
    observers: dict[str, dict[Observer, None]] = {}  # by network, that entries name: one without is towards all of them
    for release in releases:
        if release.entry.observer:
            observers.setdefault(release.network, {})[release.entry.observer] = None
    anyone: dict[Observer, None] = {"": None}
    groups = dict.fromkeys(
        (release.network, release.entry.unit, observer)
        for release in releases
        for observer in ([release.entry.observer] if release.entry.observer else observers.get(release.network, anyone))
    )
    return [_compose(releases, unbounded, group, same=same or group[1] != SENSITIVE) for group in groups]


def without_noise(spenders: Iterable[Spender]) -> list[str]:
    """Experiments that release something without noise or a claim: that is in no sum."""
    open_lines = (line for _, line in _lines(spenders) if line.entry.accounted_epsilon is None)
    return list(dict.fromkeys(line.experiment for line in open_lines if not _has_noise_or_claim(line.entry)))


def have_same_sensitive(spenders: Iterable[Spender]) -> bool:
    """Whether all settings of all systems, private or not, call the same ratings sensitive, if they call any so."""
    shares = {
        (system.dataset, share)
        for results, systems in spenders
        for system in systems
        for setting in results.settings(system.experiment)
        if (share := (system.config | system.settings()[setting]).get(SHARE)) is not None
    }
    return len(shares) <= 1


def _lines(spenders: Iterable[Spender]) -> Iterator[tuple[tuple[Results, System], Line]]:
    for results, systems in spenders:
        by_experiment = {system.experiment: system for system in systems}
        for line in results.lines:
            if line.experiment in by_experiment:
                yield (results, by_experiment[line.experiment]), line


def _has_noise_or_claim(entry: LedgerEntry) -> bool:
    return entry.claimed_epsilon is not None or any(event.kind != "non-private" for event in entry.events)


def _releases(results: Results, system: System, line: Line) -> Iterator[_Release]:
    """A line's release of each seed. Perturbed data are released once for all systems that read them.

    Networks may be read as what was made of perturbed ones, so that each suite counts its own. A setting of a budget of
    perturbed data releases all that a network holds again, also what has the same budget as elsewhere.
    """
    entry = line.entry
    layers = [system.parameters["features"], *system.parameters.get("features_of_splits", ())]
    anew = line.setting if {*system.settings()[line.setting]} & {*PERTURBED} and line.network else BASE
    if entry.events:
        what = entry.model_dump_json(include={"unit", "neighbouring", "events"})
    else:
        what = entry.model_dump_json(include={"protects"})
    for seed in line.seeds:
        layer, name = ("", results.suite.suite) if line.network else layer_of(layers[split_of(seed)])
        fitted = not line.network and (entry.protects in FITTED or layer != "perturbed")
        origin = (line.experiment, line.setting) if fitted else (name, line.network, anew)
        number = str(seed if fitted else seed_of(seed))  # what several splits read is released once
        key = (number, *origin, what if fitted else entry.model_dump_json())
        yield _Release(
            key, (str(seed), line.experiment, line.setting, line.network, entry.protects), line.network, entry
        )


def _compose(
    releases: Sequence[_Release], unbounded: Sequence[_Release], group: tuple[str, Unit, Observer], *, same: bool
) -> Together:
    """same: whether all releases mean the same by the unit."""
    network, unit, observer = group
    near, endless = (
        [release for release in some if release.network == network and release.entry.observer in ("", observer)]
        for some in (releases, unbounded)
    )
    counted = _bounding(near, unit)
    bounding = list({release.key: release for release in counted}.values())
    counts: Counter[str] = Counter()
    for release in bounding:
        steps = units.bounding(unit)[release.entry.unit]
        for event in (units.group_event(event, steps) for event in release.entry.events):
            counts[event.model_copy(update={"count": 1}).model_dump_json()] += event.count
    events = [Event.model_validate_json(text).model_copy(update={"count": count}) for text, count in counts.items()]
    delta = max(release.entry.accounted_delta for release in bounding)
    same_unit = [release.entry for release in near if release.entry.unit == unit]
    kinds = tuple(dict.fromkeys(entry.protects for entry in same_unit))
    unbound = [release for release in near if units.steps(release.entry.unit, unit)] + [
        release
        for release in endless
        if units.steps(release.entry.unit, unit)
        or units.steps(unit, release.entry.unit)
        or release.entry.protects in kinds
    ]
    return Together(
        network=network,
        unit=unit,
        observer=observer,
        protects=kinds,
        releases=len(bounding),
        left_out=_left_out(unbound, {release.source for release in counted}),
        largest=max(entry.accounted_epsilon or 0.0 for entry in same_unit),
        epsilon=account(events, delta).epsilon if same and units.steps(unit, unit) else None,
        delta=delta,
        given=tuple(dict.fromkeys(condition for release in bounding for condition in release.entry.given)),
    )


def _bounding(releases: Sequence[_Release], unit: Unit) -> list[_Release]:
    """Releases that bound a unit, by the entry that is nearest to it.

    What several systems read is there for each of them.
    """
    order = list(units.bounding(unit))
    nearest: dict[tuple[str, ...], int] = {}
    for release in releases:
        if release.entry.unit in order:
            rank = order.index(release.entry.unit)
            nearest[release.source] = min(rank, nearest.get(release.source, rank))
    return [
        release
        for release in releases
        if release.entry.unit in order and nearest[release.source] == order.index(release.entry.unit)
    ]


def _left_out(releases: Iterable[_Release], counted: set[tuple[str, ...]]) -> int:
    """How many releases are of no source that is counted; what several experiments read is one."""
    keys: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for release in releases:
        if release.source not in counted:
            keys.setdefault(release.source, set()).add(release.key)
    return len(set(map(frozenset, keys.values())))
