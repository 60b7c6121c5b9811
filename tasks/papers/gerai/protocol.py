"""GERAI's protocol (docs/methods.md §2): a random split per user, and user features from training ratings.

Own data may be split otherwise, by the order in time or as their files say.

Of ML-100K these are the paper's 21: 18 numbers about a user's ratings, and gender, age group and occupation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from tasks.core.contracts import SPLITS, Feature, RatingScale
from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.evaluation.splits import TEST, TRAIN, VALID, positions, within_users
from tasks.papers import protocol
from tasks.papers.protocol import Prepared

MOST_LEVELS = 10
"""A finer scale has no count and share per level."""


class Options(protocol.ListedOptions):
    """How interactions are split."""

    split_seed: int = Field(ge=0)
    test_share: float = Field(gt=0, lt=1)
    """Share of each user's interactions that is held out for the test."""
    valid_share: float = Field(gt=0, lt=1)
    """Share of the remaining interactions that selects epochs and hyper-parameters."""
    split: Literal["random", "last", "time", "given"] = "random"
    """Of each user at random; each user's last interaction and the one before it; the last shares of all interactions;
    or what the column `split` says."""
    user_core: int = Field(1, ge=1)
    item_core: int = Field(1, ge=1)
    """Every user, and every item, that is kept has at least so many interactions."""


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and items with an interaction, numbered in the order of their original ids; one interaction per pair.

    Raises:
        DataError: a rating is not on the scale, a feature has the name of a number about ratings,
            nothing is left, or what the split needs is missing.
    """
    published = raw.scan("interactions").collect()
    rows = protocol.keep_latest(published)
    counts = [protocol.count("published", published), protocol.count("one-row-per-pair", rows)]
    if core := max(options.user_core, options.item_core) > 1:
        users, items = (rows[name].rank("dense").cast(pl.Int32).to_numpy() for name in ("user", "item"))
        rows = rows.filter(protocol.k_core(users, items, options.user_core, options.item_core))
        counts.append(protocol.count("users-and-items-with", rows, users=options.user_core, items=options.item_core))
    if options.split in ("time", "given"):
        rows = _parts(raw, rows, options).filter((pl.col("split") == "train").any().over("user"))
        counts.append(protocol.count("users-trained", rows))
    user_ids, item_ids = (protocol.ids_of(raw, rows[kind], options.listed) for kind in ("user", "item"))
    interactions = protocol.renumber(rows, {"user": user_ids, "item": item_ids})
    interactions = interactions.sort("user", "item")
    if options.split in ("random", "last"):
        draws = Uniforms.of(options.split_seed, user_ids["original"], item_ids["original"])
        interactions = interactions.with_columns(protocol.split_names(_codes(raw, interactions, draws, options)))
    interactions = interactions.select("user", "item", "rating", "timestamp", "split")
    published_people, attributes = protocol.profiles(raw, user_ids)
    numbers, features = rating_features(interactions, len(user_ids), raw.schema.scale)
    if taken := {feature.name for feature in features} & {feature.name for feature in attributes}:
        raise DataError(f"users: feature {min(taken)!r} has the name of a number about ratings; give it another name")
    people = numbers.join(published_people, on="user", maintain_order="left")
    table = (people, features + attributes)
    result = protocol.prepared(
        raw, interactions, user_ids, item_ids, counts, people=table, minimum_counts=core, listed=options.listed
    )
    if options.split in ("time", "given"):  # all users decide it, or who published it may have let them
        return replace(result, conditions=("preparation",))
    return result


def _codes(raw: RawTables, rows: pl.DataFrame, draws: Uniforms, options: Options) -> NDArray[np.uint8]:
    """Part of each row, which its user's rows alone decide; rows: sorted by dense user and item."""
    users, items = rows["user"].to_numpy(), rows["item"].to_numpy()
    if options.split == "random":
        return within_users(users, items, draws, test_share=options.test_share, valid_share=options.valid_share)
    order = np.lexsort((draws.of_pairs("tie", users, items), rows[_time(raw)].to_numpy(), users))
    counts = np.bincount(users)
    after = np.repeat(counts, counts) - 1 - positions(counts)
    result = np.full(len(users), TRAIN, np.uint8)
    for part, rank in ((TEST, 0), (VALID, 1)):
        result[order[(after == rank) & (np.repeat(counts, counts) > rank + 1)]] = part
    return result


def _parts(raw: RawTables, rows: pl.DataFrame, options: Options) -> pl.DataFrame:
    """The rows with their part: by one moment for all users, or as published."""
    if options.split == "given":
        if "split" not in rows.columns:
            raise DataError("interactions: no column says the part; name it as `split` under `read` in params.yaml")
        return rows.with_columns(pl.col("split").cast(pl.Enum(SPLITS)))
    moment = rows[_time(raw)]
    ordered = moment.sort()
    first_test = int(len(rows) * (1 - options.test_share))
    first_valid = int(first_test * (1 - options.valid_share))
    codes = pl.Series(moment >= ordered[first_valid], dtype=pl.UInt8) + (moment >= ordered[first_test]).cast(pl.UInt8)
    return rows.with_columns(protocol.split_names(codes.to_numpy()))


def _time(raw: RawTables) -> str:
    time = protocol.ordering(raw)
    if time is None:
        raise DataError(
            "interactions: nothing says which came first; take `split: random`, or name the column of times"
        )
    return time


def rating_features(
    interactions: pl.DataFrame, n_users: int, scale: RatingScale | None
) -> tuple[pl.DataFrame, tuple[Feature, ...]]:
    """What each user's training ratings look like, as numbers, and the description of the columns.

    How many ratings, how many of each level, their shares, entropy in nats, and summaries: 18 numbers on a scale of
    five levels. Only rows whose split is "train" are looked at. A user without any gets 0 for counts, shares and
    entropy, and the middle of the scale for summaries. A rating counts as liked in the upper quarter of the scale and
    as disliked in the lower one (on 1 to 5: from 4 up, up to 2). Without ratings, the number of interactions is all.

    Shares, entropy and summaries have public bounds. Counts have none smaller than the catalogue, so theirs are the
    data's own minimum and maximum, as in the paper: a leak, marked `fitted`, that the ledger names.

    Args:
        interactions: interactions table, with ratings of `scale` if there is one.

    Returns:
        user int32 (0..n_users-1, in order) and one float32 column per feature, and the features.

    Raises:
        DataError: a rating is not on the scale.
    """
    train = interactions.filter(pl.col("split") == "train")
    rating, counts = pl.col("rating"), {"n_ratings": pl.len()}
    shares, entropy, summaries = dict[str, pl.Expr](), dict[str, pl.Expr](), dict[str, pl.Expr]()
    public: dict[str, tuple[float, float]] = {}
    if scale is not None:
        _require_on_scale(train, scale)
        quarter = (scale.high - scale.low) / 4
        if len(scale.levels) <= MOST_LEVELS:
            levels = {f"{level:g}": rating == level for level in scale.levels}
            counts |= {f"count_{level}": has.sum() for level, has in levels.items()}
            shares = {f"ratio_{level}": has.mean() for level, has in levels.items()}
            entropy = {"entropy": _entropy(shares.values())}
        shares |= {
            "ratio_high": (rating >= scale.high - quarter).mean(),
            "ratio_low": (rating <= scale.low + quarter).mean(),
        }
        summaries = {
            "median_rating": rating.median(),
            "min_rating": rating.min(),
            "max_rating": rating.max(),
            "mean_rating": rating.cast(pl.Float64).mean(),
        }
        public = dict.fromkeys(shares, (0.0, 1.0)) | dict.fromkeys(entropy, (0.0, math.log(len(scale.levels))))
        public |= dict.fromkeys(summaries, (scale.low, scale.high))
    table = train.group_by("user").agg(**counts, **shares, **entropy, **summaries)
    all_users = pl.DataFrame({"user": pl.int_range(n_users, dtype=pl.Int32, eager=True)})
    table = all_users.join(table, on="user", how="left", maintain_order="left")
    table = table.with_columns(pl.col(*counts, *shares, *entropy).fill_null(0))
    if scale is not None:
        table = table.with_columns(pl.col(*summaries).fill_null((scale.low + scale.high) / 2))
    features = _features(table, list(counts), public)
    return table.select("user", pl.col([feature.name for feature in features]).cast(pl.Float32)), features


def _entropy(shares: Iterable[pl.Expr]) -> pl.Expr:
    """In nats; max(p, tiny): 0 log 0 is 0."""
    return pl.sum_horizontal(-p * p.clip(lower_bound=1e-300).log() for p in shares)


def _features(table: pl.DataFrame, counts: list[str], public: dict[str, tuple[float, float]]) -> tuple[Feature, ...]:
    """Counts as features, between the least and the most that the data have, and those with public bounds."""
    lowest, highest = (table.select(end).row(0) for end in (pl.col(counts).min(), pl.col(counts).max()))
    fitted = tuple(
        Feature(name=name, kind="numeric", low=low, high=high, bounds="fitted")
        for name, low, high in zip(counts, lowest, highest, strict=True)
    )
    bounded = (Feature(name=name, kind="numeric", low=low, high=high) for name, (low, high) in public.items())
    return (*fitted, *bounded)


def _require_on_scale(train: pl.DataFrame, scale: RatingScale) -> None:
    levels = pl.Series(scale.levels, dtype=pl.Float32)
    wrong = train.filter(pl.col("rating").is_null() | ~pl.col("rating").cast(pl.Float32).is_in(levels.implode()))
    if len(wrong):
        user, item, rating = wrong.select("user", "item", "rating").row(0)
        low, high, step = scale.low, scale.high, scale.step
        raise DataError(
            f"interactions: user {user}, item {item}: rating is {rating}, not {low:g} to {high:g} in steps of {step:g}"
        )
