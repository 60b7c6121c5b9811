"""DIPSGNN's protocol (docs/methods.md §3): sequences of events, whose first part is for training.

**The order of the rows is the order of the sequences**: rows are sorted by user, then from the first event to the last.
Events of the same time are in a random order that `tie_seed` decides: the order of rows in the published file means
nothing, except where that order is all there is (`RawSchema.time` is "order"). A model would learn an order by item:
Tmall has days only, so most transitions of a sequence are between events of the same time.

The k-core counts events, not distinct items or users: a user who clicks one item ten times is in the 10-core. Every
sequence keeps at least one event to learn from; a sequence of one event has no other, so it has no test.

The paper validates on a random tenth of its training *examples*. An example is a prefix of a sequence with the next
item, so a validation example's answer would be part of the longer training prefixes of the same user: validation would
measure memory. Here a tenth of the *users* validate: no sequence is on both sides, and such a user's first part
has split "valid" throughout. Its last part has split "test", as that of all users, and is not tested.

An item can be recommended if it is in the first part of any sequence. That is so whichever users validate, so test
events do not depend on the seed; the few items that only validation has are never trained on, and every model misses
them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from tasks.core.errors import DataError
from tasks.core.raw import RawTables
from tasks.evaluation.splits import TEST, by_time, positions
from tasks.papers import protocol
from tasks.papers.protocol import Prepared, RangeOptions


class Options(RangeOptions):
    """Which events are kept and how sequences are split."""

    core: int = Field(ge=1)
    """Every user and every item that is kept has at least so many events."""
    last: int = Field(ge=1)
    """Of each user's sequence, so many of the most recent events are kept."""
    train_share: float = Field(gt=0, lt=1)
    """Share of each sequence, from its beginning, that is not test."""
    valid_share: float = Field(gt=0, lt=1)
    """Share of the users whose first parts select epochs and hyper-parameters."""
    split_seed: int = Field(ge=0)
    """Of the users who validate."""
    tie_seed: int = Field(ge=0)
    """Of the order of events of the same time."""


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and items that are left after all steps, numbered in the order of their original ids.

    Raises:
        DataError: nothing says which event came first; nothing is left.
    """
    time = protocol.ordering(raw)
    if time is None:
        raise DataError(
            "interactions: nothing says which came first (no time stamps), and dipsgnn learns from sequences; take a "
            "data set that has them"
        )
    start = protocol.encode(raw, options.keep)
    rows = start.rows
    counts = [start.published, protocol.count("in-ranges", rows)]

    rows = rows.filter(protocol.k_core(rows["user"].to_numpy(), rows["item"].to_numpy(), options.core))
    counts.append(protocol.count("core", rows, least=options.core))

    rows = rows.sort("user", time, "item", "rating")  # so that the draw does not depend on the order of raw rows
    again = rows.select(pl.int_range(pl.len()).over("user", time, "item")).to_series()
    drawn = (column.to_numpy() for column in (rows["user"], rows["item"], again))
    ties = start.draws(options.tie_seed).of_pairs("tie", *drawn)
    rows = rows.with_columns(_tie=ties).sort("user", time, "_tie").drop("_tie")
    length = np.bincount(rows["user"])
    rows = rows.filter(positions(length) >= np.repeat(length - options.last, length))
    counts.append(protocol.count("last", rows, most=options.last))

    length = np.bincount(rows["user"])
    uniform = start.draws(options.split_seed).of_users("validation")[: len(length)]
    codes = by_time(length, uniform, train_share=options.train_share, valid_share=options.valid_share)
    items = rows["item"].to_numpy()
    trained = np.zeros(len(start.item_ids), dtype=bool)
    trained[items[codes != TEST]] = True
    rows = rows.with_columns(protocol.split_names(codes)).filter(trained[items])
    counts.append(protocol.count("of-trained-items", rows))

    users, user_ids = protocol.renumber_survivors(rows["user"].to_numpy(), start.user_ids)
    items, item_ids = protocol.renumber_survivors(rows["item"].to_numpy(), start.item_ids)
    interactions = rows.select(pl.Series("user", users), pl.Series("item", items), "rating", "timestamp", "split")
    return protocol.prepared(raw, interactions, user_ids, item_ids, counts, repeats=True, minimum_counts=True)
