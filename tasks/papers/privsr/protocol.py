"""PrivSR's protocol (docs/methods.md §5): ratings in folds, some of them sensitive, and who trusts whom.

Which users and products the paper left out is not published. Here products need `min_item_raters` users, then users
`min_user_ratings` products, each once and in this order, so a product may end up with fewer (docs/choices-data.md
compares what is left with Table 1).

A repeated rating is the latest one; where nothing says which that is, the mean of all: neither depends on the order of
the file.

Trust is kept as published, directed, between users who have ratings. Every rating belongs to the test of one fold;
split "test" is fold 0, so that what needs one split has the first of the cross-validation, and of the other ratings
those that validate, each with probability `valid_share`, are "valid". Folds are drawn over ratings, as the paper says:
a user of few ratings may have none to learn from. Sensitivity is nested: the ratings that are sensitive at 10 % are so
at 20 %.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.evaluation.splits import of_fold
from tasks.papers import protocol
from tasks.papers.protocol import Count, NetworkCount, Prepared, RangeOptions

BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))
"""The largest number of single precision below 1."""


class Options(RangeOptions):
    """Which ratings are kept and how they are split."""

    min_item_raters: int = Field(ge=1)
    """A product needs so many users who rated it."""
    min_user_ratings: int = Field(ge=1)
    """Then a user needs so many products."""
    folds: int = Field(ge=2)
    """Parts of the cross-validation."""
    valid_share: float = Field(gt=0, lt=1)
    """Of the ratings that are not tested, the share that selects epochs and hyper-parameters."""
    split_seed: int = Field(ge=0)
    """Of folds, sensitivity and validation."""


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and products that are left after all steps, numbered in the order of their original ids; one row per pair.

    folds: for each row of interactions, user, item, fold (from 0), sensitivity (in [0, 1): the rating is sensitive at
    every larger share) and validates. social: links between these users, as published.

    Raises:
        DataError: nothing is left.
    """
    start = protocol.encode(raw, options.keep)
    rows = start.rows
    counts: list[Count] = [start.published, protocol.count("in-ranges", rows)]
    rows = protocol.average(rows) if protocol.ordering(raw) is None else protocol.keep_latest(rows)
    counts.append(protocol.count("one-row-per-pair", rows))
    for name, minimum in (("item", options.min_item_raters), ("user", options.min_user_ratings)):
        ids = rows[name].to_numpy()
        rows = rows.filter(pl.Series((np.bincount(ids) >= minimum)[ids]))
        counts.append(protocol.count(f"{name}s-with", rows, least=minimum))
    users, user_ids = protocol.renumber_survivors(rows["user"].to_numpy(), start.user_ids)
    items, item_ids = protocol.renumber_survivors(rows["item"].to_numpy(), start.item_ids)
    rows = rows.with_columns(pl.Series("user", users), pl.Series("item", items)).sort("user", "item")

    draws = Uniforms.of(options.split_seed, user_ids["original"], item_ids["original"])
    users, items = rows["user"].to_numpy(), rows["item"].to_numpy()
    fold = (draws.of_pairs("fold", users, items) * options.folds).astype(np.int32)
    validates = draws.of_pairs("validation", users, items) < options.valid_share
    sensitivity = np.minimum(draws.of_pairs("sensitivity", users, items), BELOW_ONE).astype(np.float32)
    social, steps = protocol.links(raw, user_ids)
    counts += [NetworkCount(step, len(user_ids), len(item_ids), rows.height, n) for step, n in steps]
    interactions = rows.select("user", "item", "rating", "timestamp", protocol.split_names(of_fold(fold, 0, validates)))
    drawn = {"fold": fold, "sensitivity": sensitivity, "validates": validates}
    fold_table = rows.select("user", "item", **{name: pl.Series(values) for name, values in drawn.items()})
    return protocol.prepared(
        raw, interactions, user_ids, item_ids, counts, minimum_counts=True, folds=fold_table, social=social
    )
