"""What perturbed features and recommendations must hold: what leaves the users, and what a system releases.

Rules that span rows or tables (a user's number of rows, items seen in training) become columns computed here with
polars; the rule is then a plain one about that column. Such a table per user also finds what is *absent*, which no
rule about the rows that exist can.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tasks.contracts import Schema
from tasks.privacy.mechanisms import as_released, piecewise
from tasks.privacy.mechanisms.multidimensional import bound, sampled_features
from tasks.quality.counting import all_users, count_table, each_run, rows_of, stack
from tasks.quality.rules import Rule, Table, between, finite, holds, in_set, not_null, row_count, unique
from tasks.quality.values import FLOAT32_SLACK

BITS = (0.0, 1.0)


def perturbed_tables(tables: Mapping[tuple[float, int], pl.DataFrame], schema: Schema) -> list[Table]:
    """Features under the multidimensional mechanism (docs/methods.md §1): one table per epsilon, all seeds in it.

    Numeric columns lie within ±C·d'/ζ with C of ε/ζ, categorical bits are 0 or 1, and at most ζ features of a user
    are not zero. A second table has one row per seed and user, and finds users that are absent or repeated.

    Args:
        tables: (epsilon, seed) -> user and encoded columns.
        schema: of the processed data; it names the columns of each feature.
    """
    result = []
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in tables):
        of_epsilon = {(seed,): table for (other, seed), table in tables.items() if other == epsilon}
        releases = pl.DataFrame({"seed": [seed for (seed,) in of_epsilon]})
        result += perturbed_features(f"epsilon={epsilon:g}", epsilon, stack(of_epsilon, ("seed",)), releases, schema)
    return result


def perturbed_features(
    name: str, epsilon: float, frame: pl.DataFrame, releases: pl.DataFrame, schema: Schema
) -> list[Table]:
    """The rules of `perturbed_tables` for the releases of one budget.

    Args:
        frame: user and encoded columns, and the columns of `releases`.
        releases: one row per release.
    """
    keys = releases.columns
    n_features = len(schema.features)
    sampled = sampled_features(epsilon, n_features)
    limit = bound(epsilon, n_features) * (1 + FLOAT32_SLACK)
    numbers = [feature.name for feature in schema.features if feature.kind == "numeric"]
    bits = [column for feature in schema.features if feature.kind == "categorical" for column in feature.columns]
    released = [pl.any_horizontal(pl.col(feature.columns) != 0) for feature in schema.features]
    frame = frame.with_columns(features_released=pl.sum_horizontal(released))
    per_user = releases.join(all_users(schema.n_users), how="cross")
    return [
        Table(
            name,
            frame,
            (
                *not_null("user", *schema.columns),
                between("user", 0, schema.n_users - 1),
                *(between(column, -limit, limit) for column in numbers),
                *(in_set(column, BITS, "must be 0 or 1") for column in bits),
                between("features_released", 0, sampled, f"must be {sampled} or less"),
            ),
            ids=(*keys, "user"),
        ),
        count_table(f"{name} per user", per_user, frame, [*keys, "user"], between("rows", 1, 1)),
    ]


def released_features(
    name: str, epsilon: float, frame: pl.DataFrame, releases: pl.DataFrame, schema: Schema
) -> list[Table]:
    """The rules of features as the authors' code of DP-CroSUE perturbs them, of one budget.

    Every column lies within what an equal part of the budget gives; `RAW` is 0 or 1, and no category says that a
    value is unknown.

    Args:
        frame, releases: as in `perturbed_features`.
    """
    limit = piecewise.bound(epsilon / as_released.n_perturbed(schema.features)) * (1 + FLOAT32_SLACK)
    raw = [column for feature in schema.features if feature.name == as_released.RAW for column in feature.columns]
    unknown = [f"{feature.name}={feature.unknown}" for feature in schema.features if feature.unknown is not None]
    rules = (
        *not_null("user", *schema.columns),
        between("user", 0, schema.n_users - 1),
        *(between(column, -limit, limit) for column in schema.columns),
        *(in_set(column, BITS, "must be 0 or 1") for column in raw),
        *(in_set(column, (0.0,), "must be 0") for column in unknown),
    )
    per_user = releases.join(all_users(schema.n_users), how="cross")
    return [
        Table(name, frame, rules, ids=(*releases.columns, "user")),
        count_table(f"{name} per user", per_user, frame, [*releases.columns, "user"], between("rows", 1, 1)),
    ]


def recommendations(
    lists: Mapping[tuple[str, int], pl.DataFrame], interactions: pl.DataFrame | pl.LazyFrame, schema: Schema, k: int
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
    frame = stack(lists, keys)
    learnt = interactions.lazy().filter(pl.col("split").is_in(["train", "valid"])).select("user", "item").unique()
    seen = learnt.collect(engine="streaming")
    frame = frame.with_columns(unseen=rows_of(frame, seen, ["user", "item"]) == 0)
    per_user = each_run(lists, all_users(schema.n_users))
    return [
        Table(
            "recommendations",
            frame,
            (
                *_list_rules(schema, k, "user", "rank", "item"),
                holds("item", pl.col("unseen"), "must not be in the user's training or validation data"),
                unique(*keys, "user", "rank"),
                unique(*keys, "user", "item"),
            ),
            ids=(*keys, "user", "rank", "item"),
        ),
        count_table(
            "recommendations per user",
            per_user,
            frame,
            [*keys, "user"],
            between("rows", k, k, f"must be {k}: every user gets {k} items"),
        ),
    ]


def _list_rules(schema: Schema, k: int, *required: str) -> tuple[Rule, ...]:
    """What rows of lists of K items must be, whatever the lists are for."""
    return (
        row_count(1),
        *not_null(*required),
        between("user", 0, schema.n_users - 1),
        between("item", 0, schema.n_items - 1),
        between("rank", 1, k),
        finite("score"),
    )


def _examples(interactions: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """User and position of every test event of a trained user that another one follows, in order."""
    example = ["user", "position"]
    known = (
        interactions.lazy()
        .group_by("user")
        .agg(trained=(pl.col("split") == "train").any(), tested=(pl.col("split") == "test").sum())
    )
    return (
        known.filter(pl.col("trained") & (pl.col("tested") > 1))
        .with_columns(position=pl.int_ranges(0, pl.col("tested") - 1, dtype=pl.Int32))
        .explode("position")
        .select(example)
        .sort(example)
        .collect(engine="streaming")
    )


def next_items(
    ranked: Mapping[tuple[str, int], pl.DataFrame], interactions: pl.DataFrame | pl.LazyFrame, schema: Schema, k: int
) -> list[Table]:
    """Released next items (NEXT_ITEMS) of one experiment, all settings and seeds in one table.

    Every example has K unique items with ranks 1..K and finite scores, none higher than that of the rank before. An
    example is a test event that another one of its user follows; its user also has training events. A second table has
    one row per setting, seed and example, and finds examples with too few or no items; rows of no example are found by
    `asked`.

    Args:
        ranked: (setting, seed) -> user, position, rank, item, score.
        interactions: the processed interactions the experiment learnt from; those of the test are in their order.
        schema: of those data.
        k: K, the number of items of every example.
    """
    keys, example = ["setting", "seed"], ["user", "position"]
    examples = _examples(interactions)
    frame = stack(ranked, keys)
    frame = frame.with_columns(
        asked=rows_of(frame, examples, example) > 0,
        before=pl.col("score").shift(1).over([*keys, *example], order_by="rank"),
    )
    score, before = pl.col("score"), pl.col("before")
    both = score.is_finite() & before.is_finite()  # what is not finite breaks another rule
    frame = frame.with_columns(descending=pl.when(both).then(score <= before))
    per_example = each_run(ranked, examples)
    return [
        Table(
            "next items",
            frame,
            (
                *_list_rules(schema, k, *example, "rank", "item"),
                holds("score", pl.col("descending"), "must not exceed the score of the rank before"),
                holds("position", pl.col("asked"), "must be that of a test event with a next one, of a trained user"),
                unique(*keys, *example, "rank"),
                unique(*keys, *example, "item"),
            ),
            ids=(*keys, *example, "rank", "item"),
        ),
        count_table(
            "next items per example",
            per_example,
            frame,
            [*keys, *example],
            row_count(1),
            between("rows", k, k, f"must be {k}: every example gets {k} items"),
        ),
    ]


def predictions(predicted: Mapping[tuple[str, int], pl.DataFrame], folds: pl.DataFrame, schema: Schema) -> list[Table]:
    """Released predictions of ratings (PREDICTIONS) of one experiment, all settings and folds in one table.

    Every rating of the fold that is tested is predicted once, by a finite number, and no other rating. A second table
    has one row per setting and rating of its fold, and finds ratings that are not predicted.

    Args:
        predicted: (setting, fold) -> user, item, rating, prediction.
        folds: FOLDS of the data that the experiment learnt from.
        schema: of those data, whose ratings have a scale.
    """
    keys, pair = ["setting", "seed"], ["user", "item"]
    frame = stack(predicted, keys)
    tested = folds.select(*pair, seed=pl.col("fold").cast(pl.Int64))
    frame = frame.with_columns(tested=rows_of(frame, tested, [*pair, "seed"]) > 0)
    expected = each_run(predicted).join(tested, on="seed", how="inner")
    assert schema.scale is not None, "ratings have a scale"
    return [
        Table(
            "predictions",
            frame,
            (
                row_count(1),
                *not_null(*pair, "rating"),
                between("user", 0, schema.n_users - 1),
                between("item", 0, schema.n_items - 1),
                between("rating", schema.scale.low, schema.scale.high),
                finite("prediction"),
                holds("item", pl.col("tested"), "must be one that the user rated in the fold that is tested"),
                unique(*keys, *pair),
            ),
            ids=(*keys, *pair),
        ),
        count_table(
            "predictions per rating",
            expected,
            frame,
            [*keys, *pair],
            row_count(1),
            between("rows", 1, 1, "must be 1: every rating of the fold is predicted once"),
        ),
    ]
