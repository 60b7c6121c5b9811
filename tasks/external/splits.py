"""Splits of someone's training data, by coins: what each run of their system is trained on, and what is left out.

In every run each user is in with probability 1/2, and each interaction of a user is held back with probability
`HELD_BACK`, whether the user is in or not. Canaries have coins of their own (`tasks.external.canaries`). The coins of a
run follow from the seed and the number of the run alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tasks.external.canaries import draw
from tasks.external.reading import Names, text_table

HELD_BACK = 0.25
ITEMS = 4
"""Rare items that a canary shares with its witness."""
TRAIN, HISTORIES, PUBLIC, CANARIES = "train.csv", "histories.csv", "public.csv", "canaries.csv"


class Splits:
    """All splits of one table."""

    def __init__(self, train: Path, names: Names, canaries: int, seed: int) -> None:
        """Read the table and draw the canaries.

        Args:
            train: a CSV file of interactions.
            canaries: how many; 0 for none.
            seed: secret, of all coins.

        Raises:
            DataError: see `tasks.external.reading.text_table` and `tasks.external.canaries.draw`.
        """
        self._table = text_table(train, names)
        owner = pl.col(self._table.columns["user"])
        pair = pl.struct(owner, self._table.columns["item"])  # which may be repeated
        self._codes = self._table.rows.select(user=owner.rank("dense") - 1, pair=pair.rank("dense") - 1)
        self._seed = seed
        rng = np.random.default_rng([seed, *b"canaries"])
        self._planted = draw(train, self._table, canaries, ITEMS, 1, rng) if canaries else None

    def write(self, folder: Path, run: int) -> None:
        """Write what a run is made of.

        `TRAIN`: what it is trained on. `HISTORIES`: that, and the same part of those who are out, for lists to be made
        for everyone. `PUBLIC`: what is known and was not trained on: what was held back of those who are in, and the
        histories of those who are out. `CANARIES`: their coins, for the owner alone.
        """
        rng = np.random.default_rng([self._seed, run])
        users, pairs = (self._codes[name].to_numpy() for name in ("user", "pair"))
        included = (rng.random(int(users.max()) + 1) < 0.5)[users]
        kept = (rng.random(int(pairs.max()) + 1) >= HELD_BACK)[pairs]
        new = none = self._table.rows.clear()
        if self._planted is not None:
            coins = rng.random(len(self._planted.coins)) < 0.5
            new = self._planted.rows(coins, rng)
            self._planted.write(folder / CANARIES, coins)
        for name, chosen, more in (
            (TRAIN, kept & included, new),
            (HISTORIES, kept, new),
            (PUBLIC, kept != included, none),
        ):
            self._table.write(folder / name, pl.concat([self._table.rows.filter(chosen), more]))
