"""The toy protocol: a random split per user."""

from __future__ import annotations

from pydantic import Field

from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.evaluation.splits import within_users
from tasks.papers.protocol import Options as BaseOptions
from tasks.papers.protocol import Prepared, as_text, count, dense_ids, profiles, renumber, split_names


class Options(BaseOptions):
    """How interactions are split."""

    split_seed: int = Field(ge=0)


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and items with an interaction, numbered in the order of their original ids."""
    published = raw.scan("interactions").collect()
    user_ids, item_ids = dense_ids(published["user"]), dense_ids(published["item"])
    rows = renumber(published, {"user": user_ids, "item": item_ids}).sort("user", "item")
    users, items = (rows[name].to_numpy() for name in ("user", "item"))
    draws = Uniforms.of(options.split_seed, user_ids["original"], item_ids["original"])
    split = within_users(users, items, draws, test_share=0.2, valid_share=0.1)
    people, features = profiles(raw, user_ids)
    return Prepared(
        tables={
            "interactions": rows.with_columns(split=split_names(split)),
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
