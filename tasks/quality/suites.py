"""What the tables of each contract must hold: one function per contract, giving its tables with their rules.

Rules that span rows or tables (a user's number of rows, items seen in training) become columns computed here with
polars; the rule is then a plain one about that column. Such a table per user or per expected row also finds what is
*absent*, which no rule about the rows that exist can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl

from tasks.contracts import SPLITS, Feature, ProcessedTables, Schema
from tasks.privacy.multidimensional import bound, sampled_features
from tasks.quality.rules import (
    Table,
    between,
    holds,
    in_set,
    not_null,
    null,
    row_count,
    unique,
)
from tasks.raw import RawSchema, RawTables

TIMESTAMPS = (631_152_000, 4_102_444_800)
"""1990 to 2100 in seconds since 1970: milliseconds, or days, fall far outside."""

RANGES = {"hit": (0, 1), "ndcg": (0, 1), "recall": (0, 1), "mrr": (0, 1), "f1": (0, 1), "advantage": (-1, 1)}
"""Range of a metric by the last part of its name (METHODS §8; advantage = F1 - majority, §7)."""

BITS = (0.0, 1.0)

FLOAT32_SLACK = 1e-6
"""Relative: bounds are computed in double precision, what they bound is stored in single."""


def files(problems: Mapping[str, str | None]) -> Table:
    """The files of a check: file -> why it cannot be used, or None."""
    frame = pl.DataFrame(
        {"file": list(problems), "problem": list(problems.values())}, schema={"file": pl.String, "problem": pl.String}
    )
    return Table(
        "files", frame, (null("problem", "must be empty: every file is there and can be read"),), ids=("file",)
    )


def raw(tables: RawTables) -> list[Table]:
    """Raw tables, ids as published; a pair of networks is judged network by network, then its anchors."""
    schema = tables.schema
    found = {name: tables.scan(name).collect() for name in schema.tables}
    judged = []
    if "interactions" in found:
        judged.append(_raw_interactions(found, schema))
    if "users" in found:
        judged.append(_raw_users(found["users"], schema))
    if "items" in found:
        judged.append(Table("items", found["items"], (row_count(1), *not_null("item"), unique("item")), ids=("item",)))
    return judged


def _raw_interactions(found: Mapping[str, pl.DataFrame], schema: RawSchema) -> Table:
    frame = found["interactions"]
    rules = [row_count(1), *not_null("user", "item")]
    if schema.scale:
        rules += [*not_null("rating"), between("rating", schema.scale.low, schema.scale.high)]
    if schema.time == "seconds":
        words = "must be seconds since 1970, between 1990 and 2100"
        rules += [*not_null("timestamp"), between("timestamp", *TIMESTAMPS, words=words)]
    for column in ("user", "item"):
        if (table := f"{column}s") in found:
            frame = frame.with_columns(_known(frame[column], found[table][column]).alias(f"{column}_known"))
            rules.append(holds(f"{column}_known", f"must be true: the {column} is in the table of {table}"))
    return Table("interactions", frame, tuple(rules), ids=("user", "item"))


def _raw_users(users: pl.DataFrame, schema: RawSchema) -> Table:
    rules = [row_count(1), *not_null("user"), unique("user")]
    for feature in schema.features:
        if feature.kind == "categorical":
            rules.append(in_set(feature.name, feature.categories))
            if feature.unknown is None:
                rules += not_null(feature.name)
        elif feature.low is not None or feature.high is not None:
            rules.append(between(feature.name, feature.low, feature.high))
    return Table("users", users, tuple(rules), ids=("user",))


def processed(tables: ProcessedTables) -> list[Table]:
    """Interactions (INTERACTIONS), users (users_schema) and the maps from dense to original ids (ID_MAP)."""
    schema = tables.schema
    found = {name: tables.scan(name).collect() for name in schema.tables}
    interactions, users = found["interactions"], found["users"]
    id_maps = {name: found[name] for name in ("user_ids", "item_ids")}
    trained = interactions.filter(pl.col("split") == "train")
    users = users.with_columns(train_interactions=_rows_of(users, trained, ["user"]))
    numbers = [feature for feature in schema.features if feature.kind == "numeric"]
    names = [feature for feature in schema.features if feature.kind == "categorical"]
    counts = {"user_ids": schema.n_users, "item_ids": schema.n_items}
    return [
        Table(
            "interactions",
            interactions,
            (
                row_count(1),
                *not_null("user", "item", "split"),
                between("user", 0, schema.n_users - 1),
                between("item", 0, schema.n_items - 1),
                *([between("rating", schema.scale.low, schema.scale.high)] if schema.scale else []),
                between("timestamp", *TIMESTAMPS, words="must be seconds since 1970, between 1990 and 2100"),
                in_set("split", SPLITS),
                *([] if schema.repeats else [unique("user", "item")]),
            ),
            ids=("user", "item"),
        ),
        Table(
            "users",
            users,
            (
                row_count(schema.n_users, schema.n_users),
                *not_null("user", *(feature.name for feature in schema.features)),
                between("user", 0, schema.n_users - 1),
                unique("user"),
                *(between(feature.name, *_declared(feature)) for feature in numbers),
                *(in_set(feature.name, feature.categories) for feature in names),
                between("train_interactions", 1, None, "must be 1 or more: every user has something to learn from"),
            ),
            ids=("user",),
        ),
        *(
            Table(
                name,
                table,
                (
                    row_count(counts[name], counts[name]),
                    *not_null("id", "original"),
                    between("id", 0, counts[name] - 1),
                    unique("id"),
                    unique("original"),
                ),
                ids=("id",),
            )
            for name, table in id_maps.items()
        ),
    ]


def perturbed(tables: Mapping[tuple[float, int], pl.DataFrame], schema: Schema) -> list[Table]:
    """Features under the multidimensional mechanism (METHODS §1): one table per epsilon, all seeds in it.

    Numeric columns lie within ±C·d'/ζ with C of ε/ζ, categorical bits are 0 or 1, and at most ζ features of a user
    are not zero. A second table has one row per seed and user, and finds users that are absent or repeated.

    Args:
        tables: (epsilon, seed) -> user and encoded columns.
        schema: of the processed data; it names the columns of each feature.
    """
    result = []
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in tables):
        of_epsilon = {(seed,): table for (other, seed), table in tables.items() if other == epsilon}
        result += _perturbed(epsilon, _stack(of_epsilon, ("seed",)), [seed for (seed,) in of_epsilon], schema)
    return result


def _perturbed(epsilon: float, frame: pl.DataFrame, seeds: list[int], schema: Schema) -> list[Table]:
    n_features = len(schema.features)
    sampled = sampled_features(epsilon, n_features)
    limit = bound(epsilon, n_features) * (1 + FLOAT32_SLACK)
    numbers = [feature.name for feature in schema.features if feature.kind == "numeric"]
    bits = [column for feature in schema.features if feature.kind == "categorical" for column in feature.columns]
    released = [pl.any_horizontal(pl.col(feature.columns) != 0) for feature in schema.features]
    frame = frame.with_columns(features_released=pl.sum_horizontal(released))
    per_user = pl.DataFrame({"seed": seeds}).join(_everyone(schema.n_users), how="cross")
    per_user = per_user.with_columns(rows=_rows_of(per_user, frame, ["seed", "user"]))
    return [
        Table(
            f"epsilon={epsilon:g}",
            frame,
            (
                *not_null("user", *schema.columns),
                between("user", 0, schema.n_users - 1),
                *(between(column, -limit, limit) for column in numbers),
                *(in_set(column, BITS, "must be 0 or 1") for column in bits),
                between("features_released", 0, sampled, f"must be {sampled} or less"),
            ),
            ids=("seed", "user"),
        ),
        Table(f"epsilon={epsilon:g} per user", per_user, (between("rows", 1, 1),), ids=("seed", "user")),
    ]


def recommendations(
    lists: Mapping[tuple[str, int], pl.DataFrame], interactions: pl.DataFrame, schema: Schema, k: int
) -> list[Table]:
    """Released top-K lists (RECOMMENDATIONS) of one experiment, all settings and seeds in one table.

    Every user gets exactly K unique items with ranks 1..K and finite scores, none of which the user had in training
    or validation. A second table has one row per setting, seed and user, and finds users with too few or no items.

    Args:
        lists: (setting, seed) -> user, rank, item, score.
        interactions: the processed interactions the experiment learnt from.
        schema: of those data.
        k: K, the length of every list.
    """
    keys = ["setting", "seed"]
    frame = _stack(lists, keys)
    seen = interactions.filter(pl.col("split").is_in(["train", "valid"])).select("user", "item").unique()
    frame = frame.with_columns(
        unseen=_rows_of(frame, seen, ["user", "item"]) == 0, score_finite=pl.col("score").is_finite()
    )
    settings = pl.DataFrame(list(lists), schema={"setting": pl.String, "seed": pl.Int64}, orient="row")
    per_user = settings.join(_everyone(schema.n_users), how="cross")
    per_user = per_user.with_columns(rows=_rows_of(per_user, frame, [*keys, "user"]))
    return [
        Table(
            "recommendations",
            frame,
            (
                row_count(1),
                *not_null("user", "rank", "item"),
                between("user", 0, schema.n_users - 1),
                between("item", 0, schema.n_items - 1),
                between("rank", 1, k),
                holds("score_finite", "must be true: the score is a finite number"),
                holds("unseen", "must be true: the item is not in the user's training or validation data"),
                unique(*keys, "user", "rank"),
                unique(*keys, "user", "item"),
            ),
            ids=(*keys, "user", "rank", "item"),
        ),
        Table(
            "recommendations per user",
            per_user,
            (between("rows", k, k, f"must be {k}: every user gets {k} items"),),
            ids=(*keys, "user"),
        ),
    ]


def metrics(frame: pl.DataFrame, expected: pl.DataFrame) -> list[Table]:
    """All metrics of a suite (METRICS): each in the range of its kind, none missing, none repeated.

    Args:
        frame: METRICS of all experiments.
        expected: experiment, setting, seed, metric, k of everything that had to be measured (see `measurements`).
    """
    keys = ["experiment", "setting", "seed", "metric", "k"]
    kind = pl.col("metric").str.split("/").list.last()
    rates = [name for name, limits in RANGES.items() if limits == (0, 1)]
    frame = frame.with_columns(
        kind=kind,
        rate=pl.when(kind.is_in(rates)).then("value"),
        advantage=pl.when(kind == "advantage").then("value"),
    )
    expected = expected.with_columns(rows=_rows_of(expected, frame, keys))
    return [
        Table(
            "metrics",
            frame,
            (
                row_count(1),
                *not_null("value"),
                in_set("kind", RANGES),
                between("rate", 0, 1),
                between("advantage", -1, 1),
                unique(*keys),
            ),
            ids=tuple(keys),
        ),
        Table(
            "metrics expected",
            expected,
            (row_count(1), between("rows", 1, None, "must be 1 or more: the metric was measured")),
            ids=tuple(keys),
        ),
    ]


def measurements(
    experiment: str, settings: Iterable[str], seeds: Iterable[int], names: Iterable[tuple[str, int]]
) -> pl.DataFrame:
    """Every combination of settings, seeds and (metric, k) of one experiment, as `metrics` expects them."""
    rows = [(experiment, *which) for which in product(settings, seeds, names)]
    flat = [(experiment, setting, seed, *name) for experiment, setting, seed, name in rows]
    types = {"experiment": pl.String, "setting": pl.String, "seed": pl.Int64, "metric": pl.String, "k": pl.Int32}
    return pl.DataFrame(flat, schema=types, orient="row")


def ranking_metrics(ks: Sequence[int], negatives: int) -> list[tuple[str, int]]:
    """(metric, k) of everything that training measures (METHODS §8)."""
    names = [f"sampled-{negatives}/{kind}" for kind in ("hit", "ndcg", "mrr")]
    names += [f"full/{kind}" for kind in ("hit", "ndcg", "recall", "mrr")]
    return list(product(names, ks))


def attack_metrics(ks: Sequence[int], attributes: Iterable[str], attackers: Sequence[str]) -> list[tuple[str, int]]:
    """(metric, k) of everything that attribute inference measures (METHODS §7); k = 0 is the ratings-only attacker."""
    result = []
    for attribute in attributes:
        result.append((f"attribute/{attribute}/majority/f1", 0))
        names = [f"attribute/{attribute}/{attacker}/{kind}" for attacker in attackers for kind in ("f1", "advantage")]
        result += list(product(names, [0, *ks]))
    return result


def _everyone(n_users: int) -> pl.DataFrame:
    return pl.DataFrame({"user": pl.int_range(n_users, dtype=pl.Int32, eager=True)})


def _known(values: pl.Series, known: pl.Series) -> pl.Series:
    return values.is_in(known.drop_nulls().unique().implode())


def _stack(tables: Mapping[tuple, pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """All tables below one another, with their key in columns `names` and the row number within each in `row`."""
    return pl.concat(
        table.with_row_index("row").with_columns(
            pl.lit(value, dtype=pl.String if isinstance(value, str) else pl.Int64).alias(name)
            for name, value in zip(names, key, strict=True)
        )
        for key, table in tables.items()
    )


def _rows_of(frame: pl.DataFrame, rows: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """For each row of `frame`, how many of `rows` have the same `keys`: (n_rows,) uint32."""
    counts = rows.group_by(keys).len("rows")
    found = frame.select(keys).join(counts, on=keys, how="left", maintain_order="left", nulls_equal=True)
    return found["rows"].fill_null(0)


def _declared(feature: Feature) -> tuple[float | None, float | None]:
    """Declared bounds, rounded as float32 columns round what lies within them."""
    low, high = (None if limit is None else float(np.float32(limit)) for limit in (feature.low, feature.high))
    return low, high
