"""What a recommender of the next item is worth: Recall@K and MRR@K over all prefixes of held-out sequences.

An example is a prefix of a held-out sequence and the item that came next (docs/methods.md §3). Two protocols:

`next`: every item is a candidate, as the paper has it, the items of the prefix and of training among them.
`next-new`: left out are the items that the user had before, in training or in the prefix, and the examples whose next
item is one of them. Where no one takes an item twice (ratings), those can never be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.core.sequences import Sequences
from tasks.evaluation.metrics import Values, sampled_values
from tasks.evaluation.ranking import Seen, top_k

Scorer = Callable[[Sequences], torch.Tensor]
"""Sequences -> (n_events, n_items) float32 scores of what follows each event, higher is better."""
BATCH = 64
"""Sequences scored at a time."""


@dataclass(frozen=True)
class NextItems:
    """The best items after every event that has a next one, in the order of the sequences.

    users: (n_examples,) int32; positions: (n_examples,) int32, index of the prefix's last event in its sequence;
    items: (n_examples, K) int32, best first; scores: (n_examples, K) float32, descending;
    targets: (n_examples,) int32, the item that came next;
    counted: (n_examples,) whether the protocol asks about this example.
    """

    users: NDArray[np.int32]
    positions: NDArray[np.int32]
    items: NDArray[np.int32]
    scores: NDArray[np.float32]
    targets: NDArray[np.int32]
    counted: NDArray[np.bool_]


def next_items(
    score: Scorer, sequences: Sequences, k: int, tie_order: NDArray[np.int64], before: Seen | None = None
) -> NextItems:
    """Rank all items after every event that has a next one.

    Args:
        sequences: one or more.
        k: length of each ranking.
        tie_order: (n_items,) see `ranking.tie_order`.
        before: items of every user before these sequences; with it, what a user had before is left out (`next-new`).
    """
    parts = [_part(score, batch, k, tie_order, before) for batch in sequences.batches(BATCH)]
    return NextItems(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _part(
    score: Scorer, sequences: Sequences, k: int, tie_order: NDArray[np.int64], before: Seen | None
) -> tuple[NDArray[np.generic], ...]:
    ends = np.flatnonzero(sequences.has_next)
    users = sequences.users[sequences.owners[ends]]
    targets = sequences.next_items
    seen = Seen.none(len(ends))
    counted = np.ones(len(ends), bool)
    if before is not None:
        seen = _seen_before(sequences, ends, users, before)
        counted = ~seen.contains(np.arange(len(ends)), targets)
    scored = score(sequences)[torch.from_numpy(ends)]
    items, scores = top_k(
        lambda rows: scored[torch.from_numpy(rows)], np.arange(len(ends), dtype=np.int32), seen, k, tie_order
    )
    return users, sequences.positions[ends].astype(np.int32), items, scores, targets, counted


def _seen_before(sequences: Sequences, ends: NDArray[np.int64], users: NDArray[np.int32], before: Seen) -> Seen:
    """The items that each example's user had: before these sequences, and in the prefix."""
    old_example, old_items = before.pairs(users)
    lengths = sequences.positions[ends] + 1
    example = np.repeat(np.arange(len(ends)), lengths)
    first = np.repeat(ends - lengths + 1 - (np.cumsum(lengths) - lengths), lengths)
    items = sequences.items[np.arange(len(example)) + first]
    return Seen.from_pairs(np.concatenate([old_example, example]), np.concatenate([old_items, items]), len(ends))


def next_values(ranked: NextItems, ks: Sequence[int]) -> tuple[NDArray[np.int32], Values]:
    """Recall and MRR at each cut-off: (n,) users of the examples that count, and (n,) values of each metric.

    With one right item per example, mean recall is the share of examples that have it among the first k.

    Raises:
        ValueError: there is no cut-off, or one outside 1..K.
    """
    length = ranked.items.shape[1]
    if not ks or min(ks) < 1 or max(ks) > length:
        raise ValueError(f"cut-offs must lie in 1..{length}, not {list(ks)}")
    hits = ranked.items[ranked.counted] == ranked.targets[ranked.counted, None]
    ranks = np.where(hits.any(axis=1), hits.argmax(axis=1), length)
    values = sampled_values(ranks, ks)
    return ranked.users[ranked.counted], {"recall": values["hit"], "mrr": values["mrr"]}
