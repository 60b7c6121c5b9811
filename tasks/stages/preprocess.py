"""Stage `preprocess`: a raw data set under a protocol: dense ids, a split per user, user features.

Writes data/processed/<name>/: interactions.parquet, users.parquet, schema.json, user_ids.parquet, item_ids.parquet,
and source.json with what later stages say about the origin.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import polars as pl

from tasks import contracts
from tasks.datasets import FORMATS
from tasks.datasets.features import user_features
from tasks.errors import ConfigurationError
from tasks.evaluation.splits import per_user
from tasks.stages.common import PROCESSED, RAW, read_json, require_passed, run_stage, whole, write_json
from tasks.stages.params import load

ORIGIN = ("dataset", "address", "synthetic", "licence")


def main(name: str) -> None:
    """Process data set `name`: only users and items with a rating, numbered in the order of their original ids."""
    known = load().processed
    if name not in known:
        raise ConfigurationError(f"processed.{name} is not in params.yaml; known: {', '.join(sorted(known))}")
    processed = known[name]
    require_passed("raw", processed.dataset)
    raw = import_module(FORMATS[processed.format]).read(RAW / processed.dataset)
    source = read_json(RAW / processed.dataset / "source.json")

    user_ids, item_ids = dense(raw.ratings["user"]), dense(raw.ratings["item"])
    interactions = (
        raw.ratings.join(user_ids.select(user="original", user_id="id"), on="user")
        .join(item_ids.select(item="original", item_id="id"), on="item")
        .select(pl.col("user_id").alias("user"), pl.col("item_id").alias("item"), "rating", "timestamp")
        .sort("user", "item")
    )
    split = per_user(
        interactions["user"].to_numpy(),
        interactions["item"].to_numpy(),
        test_share=processed.test_share,
        valid_share=processed.valid_share,
        rng=np.random.default_rng(processed.split_seed),
    )
    interactions = interactions.with_columns(split=pl.Series(split))
    people = raw.users.join(user_ids.select(user="original", id="id"), on="user").with_columns(user="id")
    users, features = user_features(interactions, people, raw.occupations)
    schema = contracts.Schema(
        dataset=processed.dataset,
        protocol=processed.protocol,
        synthetic=source["synthetic"],
        n_users=len(user_ids),
        n_items=len(item_ids),
        features=features,
    )
    with whole(PROCESSED / name) as place:
        place.mkdir()
        contracts.write(interactions, place / "interactions.parquet", contracts.INTERACTIONS)
        contracts.write(users, place / "users.parquet", contracts.users_schema(features))
        for ids, file in ((user_ids, "user_ids"), (item_ids, "item_ids")):
            as_text = ids.with_columns(pl.col("original").cast(pl.String))
            contracts.write(as_text, place / f"{file}.parquet", contracts.ID_MAP)
        write_json(place / "schema.json", schema.model_dump(mode="json"))
        write_json(place / "source.json", {key: source[key] for key in ORIGIN})


def dense(originals: pl.Series) -> pl.DataFrame:
    """Ids 0..n-1 (`id`, int32) of the n values that occur (`original`), in their numeric order."""
    unique = originals.unique().sort().alias("original")
    return pl.DataFrame([pl.Series("id", np.arange(len(unique), dtype=np.int32)), unique])


if __name__ == "__main__":
    run_stage(main)
