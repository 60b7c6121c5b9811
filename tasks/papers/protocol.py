"""What all protocols share: choosing rows, dense ids, links, profiles, and counting what is left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tasks.core.contracts import SPLITS, Feature, RatingScale
from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.privacy.terms import Condition

Range = tuple[float | None, float | None]
"""Lowest and highest value that is kept; None leaves that side open."""


class Options(BaseModel):
    """What params.yaml says about a protocol: no unknown keys and no defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RangeOptions(Options):
    """The same of a protocol that keeps some of the interactions alone."""

    keep: dict[str, Range]
    """Column of the raw interactions -> lowest and highest value that is kept."""


class ListedOptions(Options):
    """The same of a protocol whose users and items may be all that the data set lists."""

    listed: bool = False
    """Whether users and items are those that the data set lists, with interactions or without: both are public then,
    and no ε is conditional on who and what occurs."""


@dataclass(frozen=True)
class Count:
    """What is left after a step of a protocol."""

    step: str
    """An id; its English, with slots for `numbers`, stands in terms.yaml of the pages."""
    users: int
    items: int
    interactions: int
    numbers: dict[str, int] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class NetworkCount(Count):
    """What is left of a network of users, or of the anchors between two (links) and the users that they join."""

    links: int
    posts: int = 0
    words: int = 0
    """Size of the vocabulary."""


@dataclass(frozen=True)
class Prepared:
    """A data set under a protocol, or one network of it.

    tables: name of a processed table -> its rows (`tasks.core.contracts.table_schema` has the columns).
    counts: what each step left, in order; published as counts.json, next to the paper's counts in reports.
    conditions: what of it all users' records decide, and `no-repeats` where a user may have an item several times. All
        else of a user depends on that user's records alone.
    """

    tables: dict[str, pl.DataFrame]
    n_users: int
    n_items: int = 0
    features: tuple[Feature, ...] = ()
    scale: RatingScale | None = None
    repeats: bool = False
    labels: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    n_words: int = 0
    vector_size: int = 0
    counts: list[Count] = field(default_factory=list)
    networks: dict[str, Prepared] = field(default_factory=dict)


def select(interactions: pl.LazyFrame, ranges: dict[str, Range]) -> pl.LazyFrame:
    """The rows whose columns lie in `ranges`, both ends included; a missing value lies in no range.

    Raises:
        DataError: there is no such column, or it does not hold numbers.
    """
    columns = interactions.collect_schema()
    for column, (low, high) in ranges.items():
        if column not in columns or not columns[column].is_numeric():
            numbers = [name for name, kind in columns.items() if kind.is_numeric()]
            raise DataError(
                f"interactions: column {column!r} of `keep` is not there or has no numbers (those that do: {numbers}); "
                "correct params.yaml"
            )
        # NaN counts as larger than any number
        value = pl.col(column).fill_nan(None) if columns[column].is_float() else pl.col(column)
        interactions = interactions.filter(value.is_not_null())
        if low is not None:
            interactions = interactions.filter(value >= low)
        if high is not None:
            interactions = interactions.filter(value <= high)
    return interactions


def ordering(raw: RawTables) -> str | None:
    """The column of interactions that says which came first; None where nothing does."""
    return {"seconds": "timestamp", "order": "position", "none": None}[raw.schema.time]


@dataclass(frozen=True)
class Coded:
    """Interactions with dense ids in the order of the original ones.

    rows: user and item int32, and the other columns; in no particular order.
    user_ids, item_ids: `id` and `original` of all that were published, or listed, be they among the rows or not.
    published: what there was before rows were left out.
    """

    rows: pl.DataFrame
    user_ids: pl.DataFrame
    item_ids: pl.DataFrame
    published: Count

    def draws(self, seed: int) -> Uniforms:
        """What is drawn of users and items."""
        return Uniforms.of(seed, self.user_ids["original"], self.item_ids["original"])


def encode(raw: RawTables, keep: dict[str, Range], listed: bool = False) -> Coded:
    """The interactions in the ranges `keep`: their columns of the contract, a few million rows at a time.

    Raises:
        DataError: a column of `keep` is not there, nothing is left, or nothing is listed.
    """
    published = raw.scan("interactions")
    users, items = (published.select(kind).unique().collect(engine="streaming")[kind] for kind in ("user", "item"))
    user_ids, item_ids = (ids_of(raw, column, listed) for column in (users, items))
    rows = select(published, keep)
    for name, ids in (("user", user_ids), ("item", item_ids)):
        rows = rows.join(ids.lazy().rename({"original": name, "id": f"_{name}"}), on=name)
    columns = ["rating", "timestamp", *(["position"] if raw.schema.time == "order" else [])]
    coded_rows = rows.select(*columns, user="_user", item="_item").collect(engine="streaming")
    n_rows = published.select(pl.len()).collect().item()
    if coded_rows.is_empty():
        raise DataError(f"interactions: of {n_rows} none are left with keep = {keep}; correct params.yaml")
    return Coded(coded_rows, user_ids, item_ids, Count("published", len(users), len(items), n_rows))


def renumber_survivors(
    codes: NDArray[np.int32], ids: pl.DataFrame, listed: bool = False
) -> tuple[NDArray[np.int32], pl.DataFrame]:
    """Dense ids without gaps again after rows were left out, in the same order, and the map of those that are left.

    listed: all are left, with rows or without.
    """
    present = np.full(len(ids), listed)
    present[codes] = True
    renumbered = np.cumsum(present, dtype=np.int32) - np.int32(1)
    originals = ids["original"].filter(pl.Series(present))
    return renumbered[codes], pl.DataFrame([pl.Series("id", np.arange(len(originals), dtype=np.int32)), originals])


def split_names(codes: NDArray[np.integer]) -> pl.Series:
    """Codes 0, 1, 2 as the names that `tasks.core.contracts.SPLITS` gives them, one byte each."""
    return pl.Series("split", codes.astype(np.uint8)).cat.to(pl.Enum(SPLITS))


def k_core(users: NDArray[np.int32], items: NDArray[np.int32], k: int, item_k: int | None = None) -> NDArray[np.bool_]:
    """The rows of the largest set in which every user has k rows and every item `item_k` (k) rows or more; (n_rows,).

    Args:
        users, items: (n_rows,) dense ids.
    """
    item_k = k if item_k is None else item_k
    left = np.arange(len(users))
    while True:
        core_users, core_items = users[left], items[left]
        enough = (np.bincount(core_users)[core_users] >= k) & (np.bincount(core_items)[core_items] >= item_k)
        if enough.all():
            break
        left = left[enough]
    result = np.zeros(len(users), dtype=bool)
    result[left] = True
    return result


def keep_latest(interactions: pl.DataFrame) -> pl.DataFrame:
    """One row per user and item, the most recent one; of rows of the same time, the one with the highest rating."""
    order = ["user", "item", "timestamp", *(["position"] if "position" in interactions.columns else []), "rating"]
    return interactions.sort(order, nulls_last=False).unique(["user", "item"], keep="last", maintain_order=True)


def average(interactions: pl.DataFrame) -> pl.DataFrame:
    """One row per user and item with the mean of the ratings: what is left to do where nothing says which was last."""
    rows = interactions.sort("user", "item", "rating")  # so that the sum does not depend on the order of the rows
    return rows.group_by("user", "item", maintain_order=True).agg(
        pl.col("rating").cast(pl.Float64).mean().cast(pl.Float32), pl.lit(None, pl.Int64).alias("timestamp")
    )


def count(step: str, rows: pl.DataFrame, **numbers: int) -> Count:
    """How many users, items and rows there are (DataError: none)."""
    return _some(Count(step, rows["user"].n_unique(), rows["item"].n_unique(), rows.height, numbers=numbers))


def count_coded(step: str, rows: pl.DataFrame, **numbers: int) -> Count:
    """`count` without a hash table, of ids that are small numbers."""
    users, items = (int(np.count_nonzero(np.bincount(rows[name]))) for name in ("user", "item"))
    return _some(Count(step, users, items, rows.height, numbers=numbers))


def _some(left: Count) -> Count:
    if not left.interactions:
        at = ", ".join([left.step, *(f"{name} {number}" for name, number in left.numbers.items())])
        raise DataError(f"interactions: none are left ({at}); correct the options of this data set in params.yaml")
    return left


def ids_of(raw: RawTables, occurring: pl.Series, listed: bool) -> pl.DataFrame:
    """Dense ids of users or items: of those that occur, or of all that are listed.

    Args:
        occurring: named `user` or `item`.

    Raises:
        DataError: the data set lists none.
    """
    if not listed:
        return dense_ids(occurring)
    if f"{occurring.name}s" not in raw.schema.tables:
        raise DataError(f"listed: this data set lists no {occurring.name}s; leave it out of the options in params.yaml")
    return dense_ids(raw.scan(f"{occurring.name}s").select(occurring.name).collect().to_series())


def dense_ids(originals: pl.Series) -> pl.DataFrame:
    """Ids 0..n-1 (`id`, int32) of the n values that occur (`original`), in their own order."""
    unique = originals.unique().sort().alias("original")
    return pl.DataFrame([pl.Series("id", np.arange(len(unique), dtype=np.int32)), unique])


def renumber(frame: pl.DataFrame, columns: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """The same rows with dense ids: column -> its map (`id`, `original`). Rows of unknown ids are dropped."""
    for column, ids in columns.items():
        frame = frame.join(
            ids.rename({"original": column, "id": "_id"}), on=column, how="inner", maintain_order="left"
        ).with_columns(pl.col("_id").alias(column))
        frame = frame.drop("_id")
    return frame


def links(raw: RawTables, user_ids: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[str, int]]]:
    """The social links between users that are kept, as published (directed), each once and none to oneself.

    Returns:
        source, target, relation, in this order; and how many links each step left.
    """
    published = raw.scan("social").select("source", "target", "relation").collect()
    inside = renumber(published, {"source": user_ids, "target": user_ids})
    distinct = inside.filter(pl.col("source") != pl.col("target"))
    once = distinct.unique().sort("source", "target", "relation")
    steps = {"published": published, "of-users-kept": inside, "not-to-oneself": distinct, "once": once}
    return once, [(f"links-{step}", rows.height) for step, rows in steps.items()]


def prepared(
    raw: RawTables,
    interactions: pl.DataFrame,
    user_ids: pl.DataFrame,
    item_ids: pl.DataFrame,
    counts: list[Count],
    *,
    people: tuple[pl.DataFrame, tuple[Feature, ...]] | None = None,
    repeats: bool = False,
    minimum_counts: bool = False,
    listed: bool = False,
    **more: pl.DataFrame,
) -> Prepared:
    """A data set of users who have items.

    Args:
        people: their features in user order, and the description of these; None: as published (`profiles`).
        minimum_counts: whether who else has an item decides whether it is kept.
        listed: whether users and items are all that the data set lists, and not those that occur.
        more: other tables.
    """
    conditions: dict[Condition, bool] = {
        "catalogue": not listed,
        "minimum-counts": minimum_counts,
        "no-repeats": repeats and not raw.schema.unique_pairs,
    }
    users, features = people or profiles(raw, user_ids)
    ids = {"user_ids": as_text(user_ids), "item_ids": as_text(item_ids)}
    return Prepared(
        tables={"interactions": interactions, **more, "users": users, **ids},
        n_users=len(user_ids),
        n_items=len(item_ids),
        features=features,
        scale=raw.schema.scale,
        repeats=repeats,
        conditions=tuple(name for name, applies in conditions.items() if applies),
        counts=counts,
    )


def as_text(ids: pl.DataFrame) -> pl.DataFrame:
    """An id map as the contract has it (ID_MAP)."""
    return ids.with_columns(pl.col("original").cast(pl.String))


def profiles(raw: RawTables, user_ids: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Feature, ...]]:
    """The users' published features, in user order, and their description.

    A missing category becomes the feature's `unknown` one, a missing number 0. Numbers without declared bounds get
    the data's own minimum and maximum, marked `fitted`: a leak that the ledger names.

    Args:
        user_ids: `id` and `original` of the users that are kept; all have a profile (check-raw).
    """
    features = raw.schema.features
    if not features:
        return user_ids.select(user="id"), ()
    names = [feature.name for feature in features]
    people = raw.scan("users").select("user", *names).collect()
    table = user_ids.join(people, left_on="original", right_on="user", how="left", maintain_order="left")
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
        columns.append(column.alias(feature.name))
        described.append(feature)
    return table.select(columns), tuple(described)
