"""What the private graph networks' ledgers say of lists, of the session graph alone and of labels (docs/methods.md §9).

A guarantee is of what is released. The systems release lists, for which no finite ε follows: that line comes first.
What the noise does cover, aggregates or matrices, has a line of its own that is named so.
"""

from __future__ import annotations

import math
from typing import Literal

from tasks.privacy.accounting.account import account, accounted_entry
from tasks.privacy.accounting.gaps import BY_EPOCHS, EPOCH, FLOATS, GIVEN, GIVEN_EPOCH, ONCE
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry, unbounded_entry
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.terms import Condition, Explanation, KnownGap, Mechanism, Unit, because, gap

Kind = Literal["published", "released", "rigorous", "cached"]
"""Accountings of DIPSGNN: see `tasks.models.sessions.dipsgnn`."""
READ = gap("prefixes-exact")
LEARNT = (gap("covers-aggregates"), gap("item-vectors-exact"))
"""Where aggregates of learnt vectors are noisy."""
INITIAL = (gap("covers-initial"),)
MATRICES = (gap("covers-matrices"),)
LABELS = unbounded_entry("label", "interaction", "none", because("labels-read"))


def lists_entry(
    mechanism: Mechanism,
    *reasons: Explanation,
    accounting: Accounting,
    claimed: tuple[float, float] | None = None,
    covered: tuple[KnownGap, ...] = (),
) -> LedgerEntry:
    """The lists that a system releases: no finite ε follows.

    Args:
        reasons: why none follows.
        claimed: (ε, δ) that the paper claims for the system; None where nobody claims any.
        covered: what noise does cover, and what it does not.
    """
    return unbounded_entry(
        "edge",
        "visit",
        mechanism,
        *reasons,
        neighbouring="add-or-remove",
        accounting=accounting,
        claimed=claimed or (None, 0.0),
        gaps=(READ, *covered, EPOCH),
    )


def aggregates_entries(
    *,
    accounting: Kind,
    steps: int,
    clip: float,
    sigma: float,
    epsilon: float,
    delta: float,
    releases: int,
) -> list[LedgerEntry]:
    """Edges under noisy aggregation, DIPSGNN's way: the lists, and what is accounted of the aggregates alone.

    Args:
        steps, clip, sigma, epsilon, delta: T, C, σ, ε2 and δ of the paper.
        releases: how often the noise was drawn for the same edges, at most.
    """
    kind: Accounting = "rigorous" if accounting == "cached" else accounting
    if not steps:
        nothing = because("nothing-aggregated"), because("lists-of-prefixes")
        return [lists_entry("no-aggregation", *nothing, accounting=kind)]
    if kind == "published":
        return [_published_aggregates(steps, sigma / clip, epsilon, delta, releases)]
    if kind == "released":
        return _released_aggregates(steps, clip, sigma, epsilon, delta, releases)
    events = (aggregation.release_event(sigma, clip, releases),)
    cached, claimed, of_aggregates = accounting == "cached", (epsilon, delta), because("aggregates-alone")
    covered = INITIAL if cached else LEARNT
    lists = lists_entry("noiseless-lists", because("lists-of-prefixes"), accounting=kind, covered=covered)
    if cached:
        of_graph = _graph_entry("aggregates-once", of_aggregates, kind, claimed, events, covered, ("visit-counts",))
        return [lists, of_graph]
    # Item vectors that are learnt without noise change between the releases.
    given: tuple[Condition, ...] = ("states", "visit-counts")
    covered = (*covered, gap("dropout-seed"))
    entry = _graph_entry(
        "aggregates-per-epoch", of_aggregates, kind, claimed, events, covered, given, unit="visit-given-states"
    )
    return [lists, entry.model_copy(update={"reasons": (*entry.reasons, because("states-learnt"))})]


def matrices_entries(*, sigma: float, epsilon: float, delta: float, repeats: bool) -> list[LedgerEntry]:
    """Edges under noise on the adjacency matrices themselves, EdgeRand's way; `repeats`: an item came twice."""
    # One visit's transitions are three entries of each of two matrices.
    events = (Event(kind="gaussian", parameters={"noise_multiplier": sigma / math.sqrt(6)}),)
    claimed, gaps = (epsilon, delta), (gap("claim-for-one-entry"), *MATRICES)
    in_clear, alone = because("lists-of-prefixes"), because("matrices-alone")
    lists = lists_entry("noiseless-lists", in_clear, accounting="published", claimed=claimed, covered=MATRICES)
    graph = _graph_entry("matrices-once", alone, "published", claimed, events, gaps, ("no-repeats",))
    if repeats:
        fixed = {"accounted_epsilon": None, "given": GIVEN_EPOCH, "reasons": (because("repeated-items"),)}
        graph = graph.model_copy(update=fixed)
    return [lists, graph]


def _graph_entry(
    mechanism: Mechanism,
    alone: Explanation,
    accounting: Literal["published", "rigorous"],
    claimed: tuple[float, float],
    events: tuple[Event, ...],
    gaps: tuple[KnownGap, ...],
    given: tuple[Condition, ...],
    unit: Unit = "visit-of-known-items",
) -> LedgerEntry:
    """What the noise covers, without the lists.

    Args:
        alone: that it is of the aggregates or matrices alone.
        given: what the guarantee takes as fixed besides the configuration and the epoch.
    """
    accounted = account(events, claimed[1])
    return LedgerEntry(
        protects="session graph",
        unit=unit,
        neighbouring="add-or-remove",
        mechanism=mechanism,
        accounting=accounting,
        claimed_epsilon=claimed[0],
        claimed_delta=claimed[1],
        accounted_epsilon=accounted.epsilon,
        accounted_delta=accounted.delta,
        given=(*GIVEN_EPOCH, *given),
        reasons=(alone if accounted.epsilon is not None else because("not-accounted"),),
        gaps=(*gaps, READ, *BY_EPOCHS, FLOATS),
        events=events,
    )


def _released_aggregates(
    steps: int, clip: float, sigma: float, epsilon: float, delta: float, releases: int
) -> list[LedgerEntry]:
    """The claim for the system, as printed, and what the theorem gives for the aggregates at the noise of the code."""
    published = _published_aggregates(steps, sigma / clip, epsilon, delta, releases)
    return [
        lists_entry(
            "noiseless-lists",
            because("lists-of-true-graph"),
            accounting="released",
            claimed=(epsilon, delta),
            covered=LEARNT,
        ),
        published.model_copy(
            update={
                "protects": "session graph",
                "mechanism": "aggregates-training-squared",
                "accounting": "released",
                "claimed_epsilon": aggregation.epsilon(steps, clip, sigma, delta),
                "reasons": (because("aggregates-alone"), because("claim-at-drawn-noise")),
                "events": published.events[:1],
            }
        ),
    ]


def _published_aggregates(steps: int, noise_ratio: float, epsilon: float, delta: float, releases: int) -> LedgerEntry:
    """The paper's claim for the whole system; noise_ratio: σ / C."""
    return unbounded_entry(
        "edge",
        "matrix-entry",
        "aggregates-training",
        because("recommendations-of-true-graph"),
        claimed=(epsilon, delta),
        gaps=(
            gap("audited-as-visit"),
            gap("claim-for-one-aggregation", releases=releases),
            gap("sensitivity-three-entries"),
            READ,
            *LEARNT,
            EPOCH,
        ),
        events=(
            Event(kind="gaussian", parameters={"noise_multiplier": noise_ratio}, count=2 * releases * steps),
            Event(kind="non-private"),
        ),
    )


def released_entry(*, multipliers: tuple[float, float], epsilon: float, delta: float) -> LedgerEntry:
    """A visit of which only a noisy state and a noisy label statistic are read (`tasks.models.sessions.released`).

    Args:
        multipliers: noise multipliers of the two.
    """
    events = tuple(Event(kind="gaussian", parameters={"noise_multiplier": multiplier}) for multiplier in multipliers)
    return accounted_entry(
        events,
        delta,
        (because("weights-and-lists"),),
        protects="interaction",
        unit="visit",
        neighbouring="replace",
        mechanism="visits-gaussian",
        claimed_epsilon=epsilon,
        given=GIVEN,
        gaps=(
            gap("visits-public"),
            gap("one-sequence"),
            gap("lists-read-history"),
            gap("features-apart"),
            *ONCE,
            FLOATS,
        ),
    )
