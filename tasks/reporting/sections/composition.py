"""What all private releases of a suite spend together: every ε of its ledger is of one setting and one seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.evaluation.run_numbers import seed_of, split_of
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.reporting.core import assumptions, ledger, units
from tasks.reporting.core.layout import Cell, Heading, Row, Table, join_words, words
from tasks.reporting.core.results import BASE, Results, Spent, System, unique
from tasks.reporting.core.section import Blocks, heading, paragraph
from tasks.reporting.core.sweeps import PERTURBED, value_at

SHARES = (
    "Settings differ in which ratings are sensitive: what one keeps with its user another publishes, or learns from "
    "without noise. So no finite ε holds for a sensitive rating over all of them."
)
ALL = (
    "An ε of the ledger is of one setting and one seed. Published are all of them, over all settings, seeds and "
    "splits; what they spend together stands here, under composition, for whoever sees them all."
)
UNITS = (
    "A row is for one unit, whatever words the ledger has for it, and counts every release that bounds this unit or a "
    "larger one. Two data sets that differ in one interaction are two steps apart in whole users: such a release "
    "counts with twice its sensitivity."
)
LEFT_OUT = (
    " In brackets stand private releases that spend on this unit without a bound: their ε is ∞, or for a smaller unit "
    "alone. The row's ε is that of the others."
)
DERIVED = (
    " Features with fitted bounds count ratings, reviews or friends: their releases count for interactions and edges, "
    "too. Others, such as gender and age, are taken as functions of neither."
)
TRIALS = " What tuning.csv has of trials on validation data was released without noise and is in no row."
SEEDS = (
    " Seeds are public: these are results of research, to be regenerated, and whoever runs the same again knows the "
    "noise. Do not release a model drawn from a seed that anybody knows: “noise: secure” is for that."
)
SECURE = (
    " The noise of {} is secure: it was drawn from the operating system, and nobody can draw it again. Their gaps say "
    "what remains."
)


@dataclass(frozen=True)
class Together:
    """All private releases that bound one unit."""

    protects: str
    """Kinds of data whose guarantees are for the unit itself, in the plural."""
    neighbouring: str
    """The unit: what neighbouring inputs differ in (`tasks.reporting.core.units`)."""
    observer: str
    releases: int
    left_out: Sequence[Sequence[str]]
    """Private releases that spend on this unit, too, and no bound follows: with a finite ε for a smaller unit alone, or
    with none. Of each the experiments that have it."""
    largest: float
    """The largest ε of those whose own unit this is."""
    epsilon: float | None
    """Of all together; None where no finite one follows."""
    delta: float
    given: str
    """What that takes as fixed: chosen on private data, in any of the releases; empty for nothing."""

    @property
    def counted(self) -> str:
        """How many releases as text, those that are left out in brackets."""
        return f"{self.releases} (+ {len(self.left_out)})" if self.left_out else str(self.releases)

    @property
    def total(self) -> str:
        """ε of all together as text: given what, of how many releases, and whose are left out."""
        if self.epsilon is None:
            return ledger.format_budget(None)
        given = f"given {self.given}" if self.given else ""
        names = join_words(unique([name for release in self.left_out for name in release]))
        every = self.releases + len(self.left_out)
        of = f"of {self.releases} of {every} releases; left out: {names}" if self.left_out else ""
        return ", ".join(filter(None, (ledger.format_budget(self.epsilon, self.delta), given, of)))


@dataclass(frozen=True)
class _Release:
    """An entry with noise or with a claim, with what it was spent on."""

    key: tuple[str, ...]
    """What tells releases apart."""
    source: tuple[str, ...]
    """The same for all entries of one kind of data in one fit, or in what it reads, whatever unit they are for."""
    network: str
    unit: str
    entry: LedgerEntry


def applies(results: Results) -> bool:
    """Whether anything was released with a finite ε."""
    return any(spent.entry.events and spent.entry.accounted_epsilon is not None
               for system in results.systems for spent in system.spent)  # fmt: skip


def compose_releases(*suites: Results) -> list[Together]:
    """For each unit that a finite entry is for: all releases that bound it, composed, be it in so many words or not.

    A guarantee for a larger unit bounds a smaller one, in as many steps as `units.STEPS` says.

    suites: results on the same data; what several of them read of one release is counted once.
    """
    every = [
        (_release(suite, system, spent), spent.entry.accounted_epsilon is not None)
        for suite in suites
        for system in suite.systems
        for spent in system.spent
        if _has_noise_or_claim(spent.entry)
    ]
    releases = [release for release, finite in every if finite]
    unbounded = [release for release, finite in every if not finite]
    same = have_same_sensitive(*suites)
    observers = _observers(releases)
    groups = dict.fromkeys(
        (release.network, release.unit, observer)
        for release in releases
        for observer in ([release.entry.observer] if release.entry.observer else observers[release.network])
    )
    return [_compose(releases, unbounded, group, same=same or group[1] != units.SENSITIVE) for group in groups]


def _has_noise_or_claim(entry: LedgerEntry) -> bool:
    return entry.claimed_epsilon is not None or any(event.kind != "non-private" for event in entry.events)


def have_same_sensitive(*suites: Results) -> bool:
    """Whether all settings of all systems, private or not, call the same ratings sensitive, if they call any so."""
    shares = {
        (system.dataset, share)
        for results in suites
        for system in results.systems
        for setting in results.settings(system)
        if (share := value_at(system, setting, "sensitive_share")) is not None
    }
    return len(shares) <= 1


def _observers(releases: Iterable[_Release]) -> dict[str, list[str]]:
    """Network -> whom its entries name; everybody where none names anybody. An entry that does not is towards all."""
    named: dict[str, list[str]] = {}
    for release in releases:
        named.setdefault(release.network, []).append(release.entry.observer)
    return {network: unique([name for name in names if name]) or [""] for network, names in named.items()}


def _release(results: Results, system: System, spent: Spent) -> _Release:
    """Perturbed data are released once for all systems that read them.

    Networks may be read as what was made of perturbed ones, so that each suite counts its own. A setting of one budget
    releases all that a network holds anew, also what has the same budget as elsewhere.
    """
    entry = spent.entry
    layers = [system.parameters["features"], *system.parameters.get("features_of_splits", ())]
    read = results.suite if spent.network else str(layers[split_of(spent.seed)])
    within = entry.protects in ("interaction", "rating", "session graph")
    fitted = not spent.network and (within or not read.startswith("perturbed/"))
    perturbed = spent.setting if spent.setting.partition("=")[0] in PERTURBED and spent.network else BASE
    of = (system.experiment, spent.setting) if fitted else (read, spent.network, perturbed)
    what = ledger.releases_of(entry) if fitted else entry.model_dump_json()
    source = (str(spent.seed), system.experiment, spent.setting, spent.network, entry.protects)
    seed = spent.seed if fitted else seed_of(spent.seed)  # what several splits read is released once
    return _Release((str(seed), *of, what), source, spent.network, units.unit(entry), entry)


def _compose(
    releases: Sequence[_Release],
    unbounded: Sequence[_Release],
    group: tuple[str, str, str],
    *,
    same: bool,
) -> Together:
    """same: whether all releases mean the same by the unit."""
    network, unit, observer = group
    near, endless = (
        [release for release in some if release.network == network and release.entry.observer in ("", observer)]
        for some in (releases, unbounded)
    )
    every = _bounding(near, unit)
    bounding = list({release.key: release for release in every}.values())
    counts: Counter[str] = Counter()
    for release in bounding:
        steps = units.bounding(unit)[release.unit]
        for event in (units.group_event(event, steps) for event in release.entry.events):
            counts[event.model_copy(update={"count": 1}).model_dump_json()] += event.count
    events = [Event.model_validate_json(text).model_copy(update={"count": count}) for text, count in counts.items()]
    delta = max(release.entry.accounted_delta for release in bounding)
    own = [release for release in near if release.unit == unit]
    known = same and bool(units.steps(unit, unit))
    kinds = unique([release.entry.protects for release in own])
    unbound = [release for release in near if units.steps(release.unit, unit)] + [
        release
        for release in endless
        if units.steps(release.unit, unit) or units.steps(unit, release.unit) or release.entry.protects in kinds
    ]
    protects = join_words([f"{name}s" for name in kinds])
    return Together(
        f"{network}: {protects}" if network else protects,
        unit,
        observer,
        len(bounding),
        _left_out(unbound, {release.source for release in every}),
        max(release.entry.accounted_epsilon or 0.0 for release in own),
        account(events, delta).epsilon if known else None,
        delta,
        assumptions.together(release.entry for release in bounding),
    )


def _bounding(releases: Sequence[_Release], unit: str) -> list[_Release]:
    """Releases that bound a unit, by the entry that is nearest to it; of a unit that is not known, its own.

    What several systems read is there for each of them.
    """
    order = list(units.bounding(unit))
    nearest: dict[tuple[str, ...], int] = {}
    for release in releases:
        if release.unit in order:
            rank = order.index(release.unit)
            nearest[release.source] = min(rank, nearest.get(release.source, rank))
    return [
        release
        for release in releases
        if release.unit in order and nearest[release.source] == order.index(release.unit)
    ]


def _left_out(releases: Iterable[_Release], counted: set[tuple[str, ...]]) -> Sequence[Sequence[str]]:
    """Releases of no source that is counted, each as the experiments that have it; what several read is one."""
    keys: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for release in releases:
        if release.source not in counted:
            keys.setdefault(release.source, set()).add(release.key)
    experiments: dict[frozenset[tuple[str, ...]], list[str]] = {}
    for source, of_source in keys.items():
        experiments.setdefault(frozenset(of_source), []).append(source[1])
    return [*experiments.values()]


def without_noise(results: Results) -> list[str]:
    """Experiments that release something without noise or a claim: that is in no sum."""
    return [
        system.experiment
        for system in results.systems
        if any(spent.entry.accounted_epsilon is None and not _has_noise_or_claim(spent.entry) for spent in system.spent)
    ]


def _noise(results: Results) -> str:
    """Who could draw the noise again."""
    private = [spent.entry for system in results.systems for spent in system.spent
               if spent.entry.accounted_epsilon is not None and spent.entry.events]  # fmt: skip
    secure = [
        results.full_label(system)
        for system in results.systems
        if any(spent.entry.noise == "secure" for spent in system.spent)
    ]
    research = SEEDS if any(entry.noise == "research" for entry in private) else ""
    return research + (SECURE.format(join_words(secure)) if secure else "")


def blocks(results: Results) -> list[Blocks]:
    """A paragraph and a table; nothing where no release is private."""
    if not applies(results):
        return []
    groups = compose_releases(results)
    rows = [
        Row(
            group.protects + (f", towards {group.observer}" if group.observer else ""),
            [
                words(group.neighbouring),
                Cell(group.counted),
                Cell(ledger.format_budget(group.largest)),
                Cell(group.total),
            ],
        )
        for group in groups
    ]
    open_systems = [
        results.full_label(system) for system in results.systems if ledger.total_epsilon(results, system) is None
    ]
    headings = [
        "Protects",
        "neighbouring inputs",
        "private releases",
        "largest ε of one with this unit",
        "ε of all together",
    ]
    kinds = [Heading(text, "number" if place > 1 else "") for place, text in enumerate(headings)]
    bounded = UNITS + LEFT_OUT * any(group.left_out for group in groups)
    bounded += DERIVED * any(group.neighbouring in (units.FEATURES, *units.DERIVED) for group in groups) + TRIALS
    mixed = any(group.neighbouring == units.SENSITIVE for group in groups) and not have_same_sensitive(results)
    also = (
        f" Of {len(results.systems)} systems these have no finite ε, so there is none for everything that is "
        f"published: {join_words(open_systems)}."
    )
    return [
        heading("All releases together", anchor="together"),
        paragraph("{}", f"{ALL}{_noise(results)}{also if open_systems else ''} {assumptions.OF_PREPARED}"),
        *([paragraph("{}", SHARES)] if mixed else []),
        paragraph("{}", bounded),
        Table("All private releases together", kinds, rows),
    ]
