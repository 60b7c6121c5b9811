"""The 21 user features of GERAI (METHODS section 2), computed from training ratings alone."""

from __future__ import annotations

import math

import polars as pl

from tasks.contracts import Feature
from tasks.errors import DataError

LEVELS = (1, 2, 3, 4, 5)
"""Levels of the rating scale."""
HIGH, LOW = 4, 2
"""Ratings from HIGH up count as liked, ratings up to LOW as disliked."""
GENDERS = ("F", "M")
AGES = ("under-35", "35-45", "over-45")
NO_RATING = 3.0
"""Median, minimum, maximum and mean of a user without training ratings: the middle of the scale."""

_COUNTS = ("n_ratings", *(f"count_{level}" for level in LEVELS))
_SHARES = (*(f"ratio_{level}" for level in LEVELS), "ratio_high", "ratio_low")
_SUMMARIES = ("median_rating", "min_rating", "max_rating", "mean_rating")


def user_features(
    interactions: pl.DataFrame, people: pl.DataFrame, occupations: tuple[str, ...]
) -> tuple[pl.DataFrame, tuple[Feature, ...]]:
    """Compute the users table and the description of its columns.

    18 numbers (how many ratings, of each level, their shares, entropy in nats, and summaries) and three attributes
    that attackers want: gender, age group (under 35, 35 to 45, over 45) and occupation. Only rows whose split is
    "train" are looked at. A user without any gets 0 for counts, shares and entropy, and `NO_RATING` for summaries.

    Shares, entropy and summaries have public bounds. Counts have none smaller than the catalogue, so theirs are the
    data's own minimum and maximum, as in the paper: a leak, marked `fitted`, that the ledger names.

    Args:
        interactions: interactions table with ratings 1..5.
        people: one row per user: user (dense from 0, as in `interactions`), age in years, gender, occupation.
        occupations: all occupations there are, in the order of their one-hot block.

    Returns:
        The users table, in user order (`contracts.users_schema` of the features), and the features.

    Raises:
        DataError: a rating is not one of `LEVELS`, or a user of `interactions` is not in `people`.
    """
    train = interactions.filter(pl.col("split") == "train")
    wrong = train.filter(
        pl.col("rating").is_null() | ~pl.col("rating").cast(pl.Float64).is_in([float(level) for level in LEVELS])
    )
    if len(wrong):
        user, item, rating = wrong.select("user", "item", "rating").row(0)
        raise DataError(f"interactions: user {user}, item {item}: rating is {rating}, not one of {LEVELS}")
    strangers = interactions.join(people, on="user", how="anti")
    if len(strangers):
        raise DataError(f"interactions: user {strangers['user'][0]} has no row in the table of people")

    table = (
        people.sort("user")
        .select(
            pl.col("user").cast(pl.Int32),
            "gender",
            pl.when(pl.col("age") < 35)
            .then(pl.lit(AGES[0]))
            .when(pl.col("age") <= 45)
            .then(pl.lit(AGES[1]))
            .otherwise(pl.lit(AGES[2]))
            .alias("age"),
            "occupation",
        )
        .join(_numbers(train), on="user", how="left", maintain_order="left")
        .with_columns(pl.col(*_COUNTS, *_SHARES, "entropy").fill_null(0), pl.col(_SUMMARIES).fill_null(NO_RATING))
    )
    features = _describe(table, occupations)
    numeric = [feature.name for feature in features if feature.kind == "numeric"]
    return table.select("user", pl.col(numeric).cast(pl.Float32), "gender", "age", "occupation"), features


def _numbers(train: pl.DataFrame) -> pl.DataFrame:
    """The 18 numbers of every user who has training ratings."""
    rating, n = pl.col("rating"), pl.col("n_ratings")
    levels = {level: pl.col(f"ratio_{level}") for level in LEVELS}
    return (
        train.group_by("user")
        .agg(
            pl.len().alias("n_ratings"),
            *((rating == level).sum().alias(f"count_{level}") for level in LEVELS),
            (rating >= HIGH).mean().alias("ratio_high"),
            (rating <= LOW).mean().alias("ratio_low"),
            rating.median().alias("median_rating"),
            rating.min().alias("min_rating"),
            rating.max().alias("max_rating"),
            rating.cast(pl.Float64).mean().alias("mean_rating"),
        )
        .with_columns(pl.col(f"count_{level}").truediv(n).alias(f"ratio_{level}") for level in LEVELS)
        .with_columns(
            # max(p, tiny): 0 log 0 is 0
            pl.sum_horizontal(-p * p.clip(lower_bound=1e-300).log() for p in levels.values()).alias("entropy")
        )
    )


def _describe(table: pl.DataFrame, occupations: tuple[str, ...]) -> tuple[Feature, ...]:
    lowest, highest = (table.select(end).row(0) for end in (pl.col(_COUNTS).min(), pl.col(_COUNTS).max()))
    fitted = tuple(
        Feature(name=name, kind="numeric", low=low, high=high, bounds="fitted")
        for name, low, high in zip(_COUNTS, lowest, highest, strict=True)
    )
    public = {
        **dict.fromkeys(_SHARES, (0.0, 1.0)),
        "entropy": (0.0, math.log(len(LEVELS))),
        **dict.fromkeys(_SUMMARIES, (float(LEVELS[0]), float(LEVELS[-1]))),
    }
    attributes = {"gender": GENDERS, "age": AGES, "occupation": occupations}
    return (
        *fitted,
        *(Feature(name=name, kind="numeric", low=low, high=high) for name, (low, high) in public.items()),
        *(
            Feature(name=name, kind="categorical", categories=categories, sensitive=True)
            for name, categories in attributes.items()
        ),
    )
