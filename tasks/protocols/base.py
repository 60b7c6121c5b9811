"""What all protocols share: choosing rows, dense ids, profiles, and counting what is left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from tasks.contracts import Feature, RatingScale
from tasks.errors import DataError
from tasks.raw import RawTables

Range = tuple[float | None, float | None]
"""Lowest and highest value that is kept; None leaves that side open."""


class Options(BaseModel):
    """What params.yaml says about a protocol: no unknown keys and no defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Count:
    """What is left after a step of a protocol."""

    step: str
    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Prepared:
    """A data set under a protocol, or one network of it.

    tables: name of a processed table -> its rows (`tasks.contracts.table_schema` has the columns).
    counts: what each step left, in order; published as counts.json, beside the paper's own counts in reports.
    """

    tables: dict[str, pl.DataFrame]
    n_users: int
    n_items: int = 0
    features: tuple[Feature, ...] = ()
    scale: RatingScale | None = None
    repeats: bool = False
    labels: tuple[str, ...] = ()
    n_words: int = 0
    vector_size: int = 0
    counts: list[Count] = field(default_factory=list)
    networks: dict[str, Prepared] = field(default_factory=dict)


def kept(interactions: pl.LazyFrame, ranges: dict[str, Range]) -> pl.LazyFrame:
    """The rows whose columns lie in `ranges`, both ends included; a missing value lies in no range.

    Raises:
        DataError: there is no such column.
    """
    names = interactions.collect_schema().names()
    for column, (low, high) in ranges.items():
        if column not in names:
            raise DataError(
                f"interactions: column {column!r} of `keep` is not there (has {names}); correct params.yaml"
            )
        if low is not None:
            interactions = interactions.filter(pl.col(column) >= low)
        if high is not None:
            interactions = interactions.filter(pl.col(column) <= high)
    return interactions


def latest(interactions: pl.DataFrame) -> pl.DataFrame:
    """One row per user and item, the most recent one; of rows of the same time, the one with the highest rating."""
    order = ["user", "item", "timestamp", *(["position"] if "position" in interactions.columns else []), "rating"]
    return interactions.sort(order, nulls_last=False).unique(["user", "item"], keep="last", maintain_order=True)


def counted(step: str, interactions: pl.DataFrame) -> Count:
    """How many users, items and rows there are."""
    return Count(step, interactions["user"].n_unique(), interactions["item"].n_unique(), interactions.height)


def dense(originals: pl.Series) -> pl.DataFrame:
    """Ids 0..n-1 (`id`, int32) of the n values that occur (`original`), in their own order."""
    unique = originals.unique().sort().alias("original")
    return pl.DataFrame([pl.Series("id", np.arange(len(unique), dtype=np.int32)), unique])


def renumbered(frame: pl.DataFrame, columns: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """The same rows with dense ids: column -> its map (`id`, `original`). Rows of unknown ids are dropped."""
    for column, ids in columns.items():
        frame = frame.join(
            ids.rename({"original": column, "id": "_id"}), on=column, how="inner", maintain_order="left"
        ).with_columns(pl.col("_id").alias(column))
        frame = frame.drop("_id")
    return frame


def as_text(ids: pl.DataFrame) -> pl.DataFrame:
    """An id map as the contract has it (ID_MAP)."""
    return ids.with_columns(pl.col("original").cast(pl.String))


def profiles(raw: RawTables, user_ids: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Feature, ...]]:
    """The users' published features, in user order, and their description.

    A missing category becomes the feature's `unknown` one, a missing number 0. Numbers without declared bounds get
    the data's own minimum and maximum, marked `fitted`: a leak that the ledger names.

    Args:
        user_ids: `id` and `original` of the users that are kept.

    Raises:
        DataError: a category is missing and the feature has none that stands for it; a user has no profile.
    """
    features = raw.schema.features
    if not features:
        return user_ids.select(user="id"), ()
    names = [feature.name for feature in features]
    people = raw.scan("users").select("user", *names).collect()
    table = user_ids.join(people, left_on="original", right_on="user", how="left", maintain_order="left")
    if len(strangers := user_ids.join(people, left_on="original", right_on="user", how="anti")):
        raise DataError(f"interactions: user {strangers['original'][0]} has no row in the table of users")
    columns, described = [pl.col("id").alias("user")], []
    for feature in features:
        column = pl.col(feature.name)
        if feature.kind == "numeric":
            column = column.cast(pl.Float32).fill_nan(None).fill_null(0)
            if feature.low is None or feature.high is None:
                low, high = table.select(low=column.min(), high=column.max()).row(0)
                feature = feature.model_copy(update={"low": low, "high": high, "bounds": "fitted"})
        elif feature.unknown is not None:
            column = column.fill_null(feature.unknown)
        elif missing := table[feature.name].null_count():
            raise DataError(
                f"users: column {feature.name!r}: {missing} values are missing and no category stands for a missing one"
            )
        columns.append(column.alias(feature.name))
        described.append(feature)
    return table.select(columns), tuple(described)
