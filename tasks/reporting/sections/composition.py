"""What all private releases of a suite spend together: every ε of its ledger is of one setting and one seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.reporting.core import ledger
from tasks.reporting.core.layout import Cell, Heading, Row, Table, joined, words
from tasks.reporting.core.results import Results, Spent, System
from tasks.reporting.core.section import Blocks, heading, paragraph

SHARED_NOISE = (
    "In these results, of version 0.1, all fits of one seed shared their noise: the difference of two releases shows "
    "the data without any. So no finite ε holds for several of them together."
)
ALL = (
    "An ε of the ledger is of one setting and one seed. Published are all of them, over all settings, seeds and "
    "splits; what they spend together stands here, under composition, for whoever sees them all."
)
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
    """All private releases of one kind."""

    protects: str
    neighbouring: str
    observer: str
    releases: int
    largest: float
    """The largest ε of one of them."""
    epsilon: float | None
    """Of all together; None where no finite one follows."""
    delta: float


def applies(results: Results) -> bool:
    """Whether anything was released with a finite ε."""
    return any(spent.entry.events and spent.entry.accounted_epsilon is not None
               for system in results.systems for spent in system.spent)  # fmt: skip


def together(*suites: Results) -> list[Together]:
    """Finite entries that protect the same thing under the same neighbouring relation, composed.

    suites: results on the same data; what several of them read of one release is counted once.
    """
    groups: dict[tuple[str, str, str], dict[tuple[str, ...], LedgerEntry]] = {}
    for suite, system in [(results.suite, system) for results in suites for system in results.systems]:
        for spent in system.spent:
            entry = spent.entry
            if entry.accounted_epsilon is None or not entry.events:
                continue
            protects = f"{spent.network}: {entry.protects}" if spent.network else entry.protects
            group = groups.setdefault((protects, entry.neighbouring, entry.observer), {})
            group[_release(suite, system, spent)] = entry
    own_noise = all(results.own_noise for results in suites)
    return [
        _composed(*which, list(entries.values()), independent=own_noise or _apart(entries))
        for which, entries in groups.items()
    ]


def _release(suite: str, system: System, spent: Spent) -> tuple[str, ...]:
    """What tells releases apart; perturbed data are released once for all systems that read them.

    Networks may be read as what was made of perturbed ones, so that each suite counts its own.
    """
    read = suite if spent.network else str(system.parameters["features"])
    fitted = spent.entry.protects in ("interaction", "rating", "session graph")
    if spent.network or (read.startswith("perturbed/") and not fitted):
        return str(spent.seed), f"{read} {spent.entry.model_dump_json()}"
    return str(spent.seed), spent.setting, system.experiment


def _apart(releases: Iterable[tuple[str, ...]]) -> bool:
    """Whether no two fits had the same seed; perturbed data always had noise of their own."""
    seeds = [release[0] for release in releases if len(release) == 3]
    return len(seeds) == len(set(seeds))


def _composed(
    protects: str, neighbouring: str, observer: str, entries: Sequence[LedgerEntry], *, independent: bool
) -> Together:
    counts: Counter[str] = Counter()
    for event in (event for entry in entries for event in entry.events):
        counts[event.model_copy(update={"count": 1}).model_dump_json()] += event.count
    events = [Event.model_validate_json(text).model_copy(update={"count": count}) for text, count in counts.items()]
    delta = max(entry.accounted_delta for entry in entries)
    epsilon = account(events, delta).epsilon if independent else None
    largest = max(entry.accounted_epsilon or 0.0 for entry in entries)
    return Together(protects, neighbouring, observer, len(entries), largest, epsilon, delta)


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
    return research + (SECURE.format(joined(secure)) if secure else "")


def blocks(results: Results) -> list[Blocks]:
    """A paragraph and a table; nothing where no release is private."""
    if not applies(results):
        return []
    rows = [
        Row(
            f"{group.protects}s" + (f", towards {group.observer}" if group.observer else ""),
            [
                words(group.neighbouring),
                Cell(str(group.releases)),
                Cell(ledger.shown(group.largest)),
                Cell(ledger.shown(group.epsilon, group.delta)),
            ],
        )
        for group in together(results)
    ]
    open_systems = [system for system in results.systems if ledger.total_epsilon(results, system) is None]
    headings = ["Protects", "neighbouring inputs", "private releases", "largest ε of one", "ε of all together"]
    kinds = [Heading(text, "number" if place > 1 else "") for place, text in enumerate(headings)]
    also = (
        f" Beside them stand {len(open_systems)} of {len(results.systems)} systems without a finite ε, so there is "
        "none for everything that is published."
    )
    return [
        heading("All releases together", anchor="together"),
        paragraph("{}", ALL + _noise(results) + (also if open_systems else "")),
        *([] if results.own_noise else [paragraph("{}", SHARED_NOISE)]),
        Table("All private releases together", kinds, rows),
    ]
