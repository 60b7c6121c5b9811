"""Splits of someone's training data, by coins: what each run of their system is trained on, and what is left out.

In every run each user is in with probability 1/2, and each interaction of a user is held back with probability
`HELD_BACK`, whether the user is in or not. Canaries have coins of their own (`tasks.external.canaries`). The coins of a
run follow from the seed and the number of the run alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tasks.external.canaries import draw, write_rows
from tasks.external.reading import Names, text_table

HELD_BACK = 0.25
ITEMS = 4
"""Rare items that a canary shares with its witness."""
TRAIN, HISTORIES, PUBLIC, USERS, CANARIES = "train.csv", "histories.csv", "public.csv", "users.csv", "canaries.csv"


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
        columns = [np.array([row[self._table.columns[role]] for row in self._table.rows]) for role in ("user", "item")]
        self._users, self._owners = np.unique(columns[0], return_inverse=True)
        items, codes = np.unique(columns[1], return_inverse=True)
        self._pairs = np.unique(self._owners * len(items) + codes, return_inverse=True)[1]  # a pair may be repeated
        self._seed = seed
        rng = np.random.default_rng([seed, *b"canaries"])
        self._planted = draw(train, self._table, canaries, ITEMS, 1, rng) if canaries else None

    def write(self, folder: Path, run: int) -> None:
        """Write what a run is made of.

        `TRAIN`: what it is trained on. `HISTORIES`: that, and the same part of those who are out, for lists to be made
        for everyone. `PUBLIC`: what is known and was not trained on: what was held back of those who are in, and the
        histories of those who are out. `USERS` and `CANARIES`: the coins, for the owner alone.
        """
        rng = np.random.default_rng([self._seed, run])
        is_in = rng.random(len(self._users)) < 0.5
        included = is_in[self._owners]
        kept = (rng.random(int(self._pairs.max()) + 1) >= HELD_BACK)[self._pairs]
        new: list[list[str]] = []
        if self._planted is not None:
            coins = rng.random(len(self._planted.items)) < 0.5
            new = self._planted.rows(coins, rng)
            self._planted.write(folder / CANARIES, coins)
        for name, chosen, more in (
            (TRAIN, kept & included, new),
            (HISTORIES, kept, new),
            (PUBLIC, kept != included, []),
        ):
            rows = (self._table.rows[index] for index in np.flatnonzero(chosen))
            write_rows(folder / name, [self._table.header, *rows, *more], self._table.separator)
        coins_of_users = zip(self._users.tolist(), ("01"[int(coin)] for coin in is_in), strict=True)
        write_rows(folder / USERS, [("user", "included"), *coins_of_users])
