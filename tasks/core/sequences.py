"""Sequences of events as ragged arrays: what next-item recommenders learn from, and what they are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sequences:
    """One sequence of events for each of some users, one after the other.

    users: (n_sequences,) int32, distinct; whose sequence it is.
    indptr: (n_sequences + 1,) int64; the events of sequence s are indptr[s]:indptr[s + 1], first to last, at least one.
    items: (n_events,) int32, the item of each event; a sequence may hold an item several times.
    """

    users: NDArray[np.int32]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]

    @classmethod
    def from_events(cls, users: NDArray[np.int32], items: NDArray[np.int32]) -> Self:
        """Collect events in their order: those of a user lie together, from the first to the last; both (n_events,).

        Raises:
            ValueError: the arrays differ in length, or a user's events do not lie together.
        """
        if len(users) != len(items):
            raise ValueError(f"{len(users)} users next to {len(items)} items")
        starts = np.flatnonzero(np.r_[True, users[1:] != users[:-1]]) if len(users) else np.empty(0, np.int64)
        owners = users[starts]
        if len(np.unique(owners)) < len(owners):
            raise ValueError("the events of a user do not lie together")
        indptr = np.append(starts, len(users)).astype(np.int64)
        return cls(owners.astype(np.int32), indptr, items.astype(np.int32))

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_events(self) -> int:
        """Events of all users."""
        return len(self.items)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(n_sequences,) number of events of each."""
        return np.diff(self.indptr)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """(n_events,) which sequence each event is of: its place in `users`."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """(n_events,) place of each event in its sequence, from 0."""
        return np.arange(self.n_events) - self.indptr[self.owners]

    @cached_property
    def has_next(self) -> NDArray[np.bool_]:
        """(n_events,) whether another event of the same sequence follows: the events that end an example's prefix."""
        following = np.ones(self.n_events, bool)
        following[self.indptr[1:] - 1] = False
        return following

    @property
    def next_items(self) -> NDArray[np.int32]:
        """(n_examples,) the item after each event that has a next one."""
        return self.items[1:][self.has_next[:-1]] if self.n_events else self.items

    def take(self, rows: NDArray[np.integer]) -> Sequences:
        """The sequences at places `rows`, in that order."""
        lengths = self.lengths[rows]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        events = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return Sequences(self.users[rows], indptr, self.items[events])

    def batches(self, size: int) -> Iterator[Sequences]:
        """The same sequences, at most `size` at a time."""
        for start in range(0, len(self), size):
            yield self.take(np.arange(start, min(start + size, len(self))))

    def pad(self, fill: int) -> NDArray[np.int64]:
        """(n_sequences, longest) items, left-aligned; places after a sequence's end hold `fill`."""
        table = np.full((len(self), int(self.lengths.max(initial=0))), fill, np.int64)
        table[self.owners, self.positions] = self.items
        return table

    def without_last(self) -> Sequences:
        """The same without the last event of each; sequences of one event disappear."""
        rows = np.flatnonzero(self.lengths > 1)
        kept = self.take(rows)
        lengths = kept.lengths - 1
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        return Sequences(kept.users, indptr, kept.items[kept.has_next])
