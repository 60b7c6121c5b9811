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

Kind = Literal["published", "released", "rigorous", "cached"]
"""Accountings of DIPSGNN: see `tasks.models.sessions.dipsgnn`."""
READ = (
    "Which items a prefix holds, which of them is the last, and which one comes next are read without noise, and "
    "successive prefixes tell the whole order of a sequence."
)
LEARNT = (
    "Noise covers the aggregates alone.",
    "Item vectors are learnt from all interactions without noise, and the states that are aggregated come from them.",
)
"""Where aggregates of learnt vectors are noisy."""
INITIAL = ("Noise covers the aggregates alone, of initial vectors; all that is learnt later is learnt without noise.",)
MATRICES = ("Noise covers the adjacency matrices alone; vectors of items are learnt from all interactions without it.",)
VISIT = "one visit of a user's sequence, with its transitions, the items being known"
OF_STEPS = "of every step, the item vectors and the map of users' features"
"""What states are computed from, and labels teach without noise: aggregates of every epoch hold given this alone."""
VISIT_GIVEN = f"{VISIT}, given, {OF_STEPS}"
GIVEN_LEARNT = f"the configuration, the epoch and, {OF_STEPS}"
LISTS = "one visit of a user's sequence removed, towards whoever sees a list"
GRAPH_ALONE = "Of {what} of the session graph alone, not of the lists: they have a line of their own, which says none."
MOVING = (
    " Item vectors and the map of users' features are learnt from labels without noise: from the second step on, a "
    "visit also moves what aggregates of other users are computed from. Unless both are given, of every step, no "
    "finite ε follows for the epochs together."
)
IN_CLEAR = (
    "Lists are computed from the items of a prefix, their order and the last of them, which are read without noise: "
    "the list after an event tells that event."
)
LABELS = unbounded_entry(
    "label",
    "one interaction of one user replaced",
    "none",
    "The next item of every training prefix is itself an interaction, and the loss reads it without noise.",
)


def lists_entry(
    *,
    mechanism: str,
    accounting: Accounting,
    claimed: tuple[float, float] | None,
    reason: str,
    covered: tuple[str, ...] = (),
) -> LedgerEntry:
    """The lists that a system releases: no finite ε follows.

    Args:
        claimed: (ε, δ) that the paper claims for the system; None where nobody claims any.
        reason: why none follows.
        covered: what noise does cover, and what it does not.
    """
    gaps = (READ, *covered, EPOCH)
    return unbounded_entry(
        "edge", LISTS, mechanism, reason, accounting=accounting, claimed=claimed or (None, 0.0), gaps=gaps
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
        nothing = "Without propagation nothing is aggregated, and nothing is hidden. " + IN_CLEAR
        return [lists_entry(mechanism="no aggregation", accounting=kind, claimed=None, reason=nothing)]
    if kind == "published":
        return [_published_aggregates(steps, sigma / clip, epsilon, delta, releases)]
    if kind == "released":
        return _released_aggregates(steps, clip, sigma, epsilon, delta, releases)
    how = "one for all epochs, of initial vectors" if accounting == "cached" else "one per user and epoch"
    events, covered = (aggregation.release_event(sigma, clip, releases),), INITIAL if accounting == "cached" else LEARNT
    mechanism = f"Gaussian noise on aggregates, {how}, and for recommendations"
    lists = f"lists beside {mechanism}"
    return [
        lists_entry(mechanism=lists, accounting=kind, claimed=None, reason=IN_CLEAR, covered=covered),
        _graph_entry(
            "the aggregates", mechanism, kind, (epsilon, delta), events, covered, moving=accounting != "cached"
        ),
    ]


def matrices_entries(*, sigma: float, epsilon: float, delta: float, repeats: bool) -> list[LedgerEntry]:
    """Edges under noise on the adjacency matrices themselves, EdgeRand's way; `repeats`: an item came twice."""
    # One visit's transitions are three entries of each of two matrices.
    events = (Event(kind="gaussian", parameters={"noise_multiplier": sigma / math.sqrt(6)}),)
    entries = (
        "The claim is for one entry of one matrix; removing one interaction changes three entries of both: √6, not 1."
    )
    growing = "Items are repeated, so an entry grows from prefix to prefix under the same noise, which cancels."
    claimed, mechanism = (epsilon, delta), "Gaussian noise on adjacency matrices, once"
    lists, gaps = f"lists beside {mechanism}", (entries, *MATRICES)
    return [
        lists_entry(mechanism=lists, accounting="published", claimed=claimed, reason=IN_CLEAR, covered=MATRICES),
        _graph_entry("the matrices", mechanism, "published", claimed, events, gaps, growing if repeats else ""),
    ]


def _graph_entry(
    what: str,
    mechanism: str,
    accounting: Literal["published", "rigorous"],
    claimed: tuple[float, float],
    events: tuple[Event, ...],
    gaps: tuple[str, ...],
    refusal: str = "",
    *,
    moving: bool = False,
) -> LedgerEntry:
    """What the noise covers, without the lists.

    Args:
        refusal: why no finite ε follows, if none does.
        moving: item vectors that are learnt without noise change between the releases.
    """
    accounted = account(events, claimed[1])
    if refusal:
        accounted = accounted._replace(epsilon=None, reason=refusal)
    return LedgerEntry(
        protects="session graph",
        neighbouring=VISIT_GIVEN if moving else VISIT,
        mechanism=mechanism,
        accounting=accounting,
        claimed_epsilon=claimed[0],
        claimed_delta=claimed[1],
        accounted_epsilon=accounted.epsilon,
        accounted_delta=accounted.delta,
        given=GIVEN_LEARNT if moving else GIVEN_EPOCH,
        reason=accounted.reason or GRAPH_ALONE.format(what=what) + MOVING * moving,
        gaps=(*gaps, READ, *BY_EPOCHS, FLOATS),
        events=events,
    )


def _released_aggregates(
    steps: int, clip: float, sigma: float, epsilon: float, delta: float, releases: int
) -> list[LedgerEntry]:
    """The claim for the system, as printed, and what the theorem gives for the aggregates at the noise of the code."""
    mechanism = "Gaussian noise on aggregates in training, of standard deviation σ²"
    lists = "Lists, and those of the test that choose epochs, are computed from the true graph, without noise."
    published = _published_aggregates(steps, sigma / clip, epsilon, delta, releases)
    return [
        lists_entry(
            mechanism=f"lists beside {mechanism}",
            accounting="released",
            claimed=(epsilon, delta),
            reason=lists,
            covered=LEARNT,
        ),
        published.model_copy(
            update={
                "protects": "session graph",
                "mechanism": mechanism,
                "accounting": "released",
                "claimed_epsilon": aggregation.epsilon(steps, clip, sigma, delta),
                "reason": f"{GRAPH_ALONE.format(what='the aggregates')} What is claimed is Theorem 4.2 at the noise "
                "that is drawn, of one aggregation of one matrix; for all releases of a run no bound was derived.",
                "events": published.events[:1],
            }
        ),
    ]


def _published_aggregates(steps: int, noise_ratio: float, epsilon: float, delta: float, releases: int) -> LedgerEntry:
    """The paper's claim for the whole system; noise_ratio: σ / C."""
    return unbounded_entry(
        "edge",
        "one entry of one adjacency matrix of one user",
        "Gaussian noise on aggregates, in training",
        "Recommendations are computed from the true graph, without noise.",
        claimed=(epsilon, delta),
        gaps=(
            f"Theorem 4.2 covers one aggregation of one matrix; a run releases both matrices, in at most {releases} "
            "epochs and for every state of a node.",
            "Removing one interaction changes three entries of each matrix: √10 C, not C.",
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
        "Of the weights and of all lists, after every event, towards whoever sees them.",
        protects="interaction",
        neighbouring="one visit of one user replaced by a visit of another item",
        mechanism="Gaussian noise on every visit's state and on the statistic of labels",
        claimed_epsilon=epsilon,
        given=GIVEN,
        gaps=(
            "How many visits each user has, and the catalogue of items, are taken as public.",
            "Of each user one sequence is to be asked about, of visits that were not learnt from: another one would "
            "release visits again, or share noise where both begin alike.",
            "Lists that leave out what a user had before read those items without noise; others do not.",
            "User features enter as they were perturbed; they have a line of their own.",
            *ONCE,
            FLOATS,
        ),
    )
