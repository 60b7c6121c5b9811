"""The toy protocol: a random split per user."""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from tasks.evaluation.splits import per_user
from tasks.papers.protocol import Options as BaseOptions
from tasks.papers.protocol import Prepared, as_text, count, dense_ids, profiles, renumber
from tasks.raw import RawTables


class Options(BaseOptions):
    """How interactions are split."""

    split_seed: int = Field(ge=0)


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and items with an interaction, numbered in the order of their original ids."""
    published = raw.scan("interactions").collect()
    user_ids, item_ids = dense_ids(published["user"]), dense_ids(published["item"])
    rows = renumber(published, {"user": user_ids, "item": item_ids}).sort("user", "item")
    users, items = (rows[name].to_numpy() for name in ("user", "item"))
    split = per_user(users, items, test_share=0.2, valid_share=0.1, rng=np.random.default_rng(options.split_seed))
    people, features = profiles(raw, user_ids)
    return Prepared(
        tables={
            "interactions": rows.with_columns(split=pl.Series(split)),
            "users": people,
            "user_ids": as_text(user_ids),
            "item_ids": as_text(item_ids),
        },
        n_users=len(user_ids),
        n_items=len(item_ids),
        features=features,
        scale=raw.schema.scale,
        counts=[count("published", published)],
    )
