"""Which users and items are most exposed: aggregates for the page, ids for a file that its owner keeps."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.external.findings import Exposure
from tasks.external.inputs import NOBODY, Inputs, Ints, Pairs
from tasks.external.signals import Floats

FEWEST = 5
"""Pairs of an item below which it is not named."""
MOST = 200
"""Rows of each kind in the file."""


def exposure(
    inputs: Inputs, pairs: Pairs, is_member: NDArray[np.bool_], values: Floats, seed: int
) -> tuple[list[Exposure], pl.DataFrame]:
    """How exposure is distributed, and the most exposed: columns of, id, exposure and pairs.

    Where interactions leak, the exposure of a user is the mean share of all held-back pairs that the user's attacked
    training pairs outrank: over all users, the AUC of that attack, and 1/2 by chance. Elsewhere it is the share of
    listed items that were trained on. That of an item is the same over its pairs.

    Args:
        values: (n,) what the attack that decides says of the pairs; empty where interactions do not leak.
        seed: of the order of those that are equally exposed.
    """
    chance = 0.5 if len(values) else 0.0
    hit: Floats
    if len(values):
        usable = is_member & ~np.isnan(values)
        others = np.sort(values[~is_member & ~np.isnan(values)])
        users, items = pairs.users[usable], pairs.items[usable]
        below, up_to = (np.searchsorted(others, values[usable], side) for side in ("left", "right"))
        hit = (below + up_to) / (2 * len(others))
    else:
        rows, places = np.nonzero((inputs.lists != NOBODY) & inputs.is_member[:, None])
        users, items = rows, inputs.lists[rows, places]
        hit = np.isin(users * inputs.n_items + items, inputs.trained_keys).astype(np.float64)
    shown, tables = [], []
    kinds: tuple[tuple[Literal["users", "items"], Ints, pl.Series, int], ...] = (
        ("users", users, inputs.user_names, 1),
        ("items", items, inputs.item_names, FEWEST),
    )
    for of, ids, names, least in kinds:
        known, place, counts = np.unique(ids, return_inverse=True, return_counts=True)
        shares = np.bincount(place, hit, len(known)) / np.maximum(counts, 1)
        kept = counts >= least
        known, shares, counts = known[kept], shares[kept], counts[kept]
        if not len(known):
            continue
        p90, p99 = np.quantile(shares, [0.9, 0.99])
        mean, most = float(shares.mean()), float(shares.max())
        shown.append(Exposure(of=of, count=len(known), mean=mean, p90=float(p90), p99=float(p99), most=most))
        order = np.lexsort((np.random.default_rng([seed, *b"ties"]).random(len(known)), -counts, -shares))[:MOST]
        order = order[shares[order] > chance]
        tables.append(
            pl.DataFrame(
                {
                    "of": [of] * len(order),
                    "id": names.gather(known[order]),
                    "exposure": shares[order].astype(np.float64),
                    "pairs": counts[order].astype(np.int64),
                }
            )
        )
    return shown, pl.concat(tables) if tables else pl.DataFrame()
