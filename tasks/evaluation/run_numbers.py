"""How runs are numbered: by their seed and by the split of the data that they are of."""

from __future__ import annotations

APART = 1_000_000
"""A run is numbered by its seed, plus so much for every split of the data before its own."""


def split_of(run: int) -> int:
    """The split of a run, counted from 0."""
    return run // APART


def seed_of(run: int) -> int:
    """The seed of a run, which runs on other splits have, too."""
    return run % APART
