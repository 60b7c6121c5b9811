"""Which users and items are most exposed: aggregates for the page, ids for a file that its owner keeps."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from tasks.attacks.membership import Bools, Floats
from tasks.external.findings import Exposure
from tasks.external.inputs import NOBODY, Inputs, Ints, Pairs

FEWEST = 5
"""Pairs of an item below which it is not named."""
MOST = 200
"""Rows of each kind in the file."""


def exposure(
    inputs: Inputs, pairs: Pairs, is_member: Bools, values: Floats, seed: int
) -> tuple[list[Exposure], pl.DataFrame]:
    """How exposure is distributed, and the most exposed: columns of, id, exposure and pairs.

    Where interactions leak, the exposure of a user is the mean share of all held-back pairs that the user's attacked
    training pairs outrank: over all users, the AUC of that attack, and 1/2 by chance. Elsewhere it is the share of
    listed items that were trained on. That of an item is the same over its pairs.

    Args:
        values: (n,) what the attack that decides says of the pairs; empty where interactions do not leak.
        seed: of the order of those that are equally exposed.
    """
    chance = 0.0
    if len(values):
        usable, chance = is_member & ~np.isnan(values), 0.5
        held_back = np.sort(values[~is_member & ~np.isnan(values)])
        users, items = pairs.users[usable], pairs.items[usable]
        below, up_to = (np.searchsorted(held_back, values[usable], side) for side in ("left", "right"))
        hit: Floats = (below + up_to) / (2 * len(held_back))
    else:
        users, ranks = np.nonzero((inputs.lists != NOBODY) & inputs.is_member[:, None])
        items = inputs.lists[users, ranks]
        hit = np.isin(users * inputs.n_items + items, inputs.trained_keys).astype(np.float64)
    summaries, tables = [], list[pl.DataFrame]()
    kinds: tuple[tuple[Literal["users", "items"], Ints, pl.Series, int], ...] = (
        ("users", users, inputs.user_names, 1),
        ("items", items, inputs.item_names, FEWEST),
    )
    for kind, ids, names, fewest in kinds:
        distinct, index, counts = np.unique(ids, return_inverse=True, return_counts=True)
        kept = counts >= fewest
        shares, distinct, counts = (np.bincount(index, hit, len(distinct)) / counts)[kept], distinct[kept], counts[kept]
        if not len(distinct):
            continue
        p90, p99 = map(float, np.quantile(shares, [0.9, 0.99]))
        mean, highest = float(shares.mean()), float(shares.max())
        summaries.append(Exposure(of=kind, count=len(distinct), mean=mean, p90=p90, p99=p99, most=highest))
        order = np.lexsort((np.random.default_rng([seed, *b"ties"]).random(len(distinct)), -counts, -shares))[:MOST]
        order = order[shares[order] > chance]
        columns = {"id": names.gather(distinct[order]), "exposure": shares[order], "pairs": counts[order]}
        tables.append(pl.DataFrame({"of": [kind] * len(order)} | columns))
    return summaries, pl.concat(tables) if tables else pl.DataFrame()
