"""What the private graph networks' ledgers say of edges and labels (docs/methods.md §9)."""

from __future__ import annotations

import math
from typing import Literal

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import aggregation

READ = (
    "Which items a prefix holds, which of them is the last, and which one comes next are read without noise, and "
    "successive prefixes tell the whole order of a sequence: noise covers the aggregates alone.",
    "Item vectors are learnt from all interactions without noise, and the states that are aggregated come from them.",
    "Epochs are chosen on validation sequences without noise on their labels.",
)
VISIT = "one visit of a user's sequence, with its transitions, the items being known"
LABELS = LedgerEntry(
    protects="label",
    neighbouring="one interaction of one user replaced",
    mechanism="none",
    accounting="published",
    claimed_epsilon=None,
    claimed_delta=0.0,
    accounted_epsilon=None,
    accounted_delta=0.0,
    reason="The next item of every training prefix is itself an interaction, and the loss reads it without noise.",
    events=(Event(kind="non-private"),),
)


def aggregates_entry(
    *,
    accounting: Literal["published", "rigorous", "cached"],
    steps: int,
    clip: float,
    sigma: float,
    epsilon: float,
    delta: float,
    releases: int,
) -> LedgerEntry:
    """Edges under noisy aggregation, DIPSGNN's way.

    Args:
        steps, clip, sigma, epsilon, delta: T, C, σ, ε2 and δ of the paper.
        releases: how often the noise was drawn for the same edges, at most.
    """
    if not steps:
        return LedgerEntry(
            protects="edge",
            neighbouring=VISIT,
            mechanism="no aggregation",
            accounting="published" if accounting == "published" else "rigorous",
            claimed_epsilon=0.0,
            claimed_delta=0.0,
            accounted_epsilon=0.0,
            accounted_delta=0.0,
            reason="Without propagation no edge is aggregated.",
            gaps=READ,
        )
    if accounting == "published":
        return LedgerEntry(
            protects="edge",
            neighbouring="one entry of one adjacency matrix of one user",
            mechanism="Gaussian noise on aggregates, in training",
            accounting="published",
            claimed_epsilon=epsilon,
            claimed_delta=delta,
            accounted_epsilon=None,
            accounted_delta=delta,
            reason="Recommendations are computed from the true graph, without noise.",
            gaps=(
                f"Theorem 4.2 covers one aggregation of one matrix; a run releases both matrices, in {releases} epochs "
                "and for every state of a node.",
                "Removing one interaction changes three entries of each matrix: √10 C, not C.",
                *READ,
            ),
            events=(
                Event(kind="gaussian", parameters={"noise_multiplier": sigma / clip}, count=2 * releases * steps),
                Event(kind="non-private"),
            ),
        )
    events = (aggregation.release_event(sigma, clip, releases),)
    accounted = account(events, delta)
    how = "one for all epochs, of initial vectors" if accounting == "cached" else "one per user and epoch"
    return LedgerEntry(
        protects="edge",
        neighbouring=VISIT,
        mechanism=f"Gaussian noise on aggregates, {how}, and for recommendations",
        accounting="rigorous",
        claimed_epsilon=epsilon,
        claimed_delta=delta,
        accounted_epsilon=accounted.epsilon,
        accounted_delta=accounted.delta,
        reason=accounted.reason or "Of the released aggregates alone: see the gaps and the line of the labels.",
        gaps=READ,
        events=events,
    )


def matrices_entry(*, sigma: float, epsilon: float, delta: float, repeats: bool) -> LedgerEntry:
    """Edges under noise on the adjacency matrices themselves, EdgeRand's way; `repeats`: an item came twice."""
    # One visit's transitions are three entries of each of two matrices.
    events = (Event(kind="gaussian", parameters={"noise_multiplier": sigma / math.sqrt(6)}),)
    accounted = account(events, delta)
    gaps: tuple[str, ...] = (
        "The claim is for one entry of one matrix; removing one interaction changes three entries of both: √6, not 1.",
        *READ,
    )
    if repeats:
        growing = "Items are repeated, so an entry grows from prefix to prefix under the same noise, which cancels."
        accounted = accounted._replace(epsilon=None, reason=growing)
    return LedgerEntry(
        protects="edge",
        neighbouring=VISIT,
        mechanism="Gaussian noise on adjacency matrices, once",
        accounting="published",
        claimed_epsilon=epsilon,
        claimed_delta=delta,
        accounted_epsilon=accounted.epsilon,
        accounted_delta=accounted.delta,
        reason=accounted.reason or "Of the released matrices alone: see the gaps and the line of the labels.",
        gaps=gaps,
        events=events,
    )
