"""What a system releases must hold: lists, predictions, embeddings, pairs of an alignment, and word vectors.

Rules that span rows or tables (a user's number of rows, items of the training data) become columns computed here with
polars; the rule is then a plain one about that column. A second table, with a row for each that there must be, finds
what is *absent* or repeated, which no rule about the rows that exist can.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tasks.core.contracts import Schema
from tasks.core.errors import DamagedError
from tasks.quality import rules as rule
from tasks.quality.processed import TRAINING
from tasks.quality.rules import KEYS, Rule, Table

Released = Mapping[tuple[str, int], pl.DataFrame]
"""(setting, seed) -> a table."""


def recommendations(lists: Released, interactions: pl.DataFrame, schema: Schema, k: int) -> list[Table]:
    """Released top-K lists (RECOMMENDATIONS) of one experiment, all settings and seeds in one table.

    Every user gets exactly K unique items with ranks 1..K and finite scores, none of which the user had in training
    or validation.

    Args:
        lists: (setting, seed) -> user, rank, item, score.
        interactions: the processed interactions the experiment was trained on.
        schema: of those data.
        k: K, the length of every list.
    """
    frame = rule.stack(lists)
    training = interactions.filter(pl.col("split").is_in(TRAINING)).select("user", "item").unique()
    new = rule.rows_of(frame, training, ["user", "item"]) == 0
    unseen = rule.holds("item", pl.col("new"), "must not be in the user's training or validation data")
    expected = rule.each_run(lists, rule.all_users(schema.n_users))
    return _lists("recommendations", frame.with_columns(new=new), schema, k, (unseen,), "user", expected)


def _lists(
    name: str, frame: pl.DataFrame, schema: Schema, k: int, rules: tuple[Rule, ...], per: str, expected: pl.DataFrame
) -> list[Table]:
    """Lists of K items, one per row of `expected`."""
    keys = expected.columns
    rules = (
        rule.row_count(1),
        *rule.ids(user=schema.n_users, item=schema.n_items),
        *rule.not_null("rank", *(key for key in keys if key not in (*KEYS, "user"))),
        rule.between("rank", 1, k),
        rule.finite("score"),
        *rules,
        rule.unique(*keys, "rank"),
        rule.unique(*keys, "item"),
    )
    counted = rule.row_count(1), rule.between("rows", k, k, f"must be {k}: every {per} gets {k} items")
    return [
        Table(name, frame, rules, ids=(*keys, "rank", "item")),
        rule.count_table(f"{name} per {per}", expected, frame, keys, *counted),
    ]


def _examples(interactions: pl.DataFrame) -> pl.DataFrame:
    """User and position of every test event of a trained user that another one follows, in order."""
    split, tested = pl.col("split"), pl.col("tested")
    users = interactions.group_by("user").agg(trained=(split == "train").any(), tested=(split == "test").sum())
    followed = users.filter("trained", tested > 1)
    positions = followed.select("user", position=pl.int_ranges(0, tested - 1, dtype=pl.Int32))
    return positions.explode("position").sort("user", "position")


def next_items(ranked: Released, interactions: pl.DataFrame, schema: Schema, k: int) -> list[Table]:
    """Released next items (NEXT_ITEMS) of one experiment, all settings and seeds in one table.

    Every example has K unique items with ranks 1..K and finite scores, none higher than that of the rank before. An
    example is a test event that another one of its user follows; its user also has training events.

    Args:
        ranked: (setting, seed) -> user, position, rank, item, score.
        interactions: the processed interactions the experiment was trained on; those of the test are in their order.
        schema: of those data.
        k: K, the number of items of every example.
    """
    example = ["user", "position"]
    examples = _examples(interactions)
    frame = rule.stack(ranked)
    frame = frame.with_columns(
        is_example=rule.rows_of(frame, examples, example) > 0,
        before=pl.col("score").shift(1).over([*KEYS, *example], order_by="rank"),
    )
    score, before = pl.col("score"), pl.col("before")
    both = score.is_finite() & before.is_finite()  # what is not finite breaks another rule
    frame = frame.with_columns(descending=pl.when(both).then(score <= before))
    rules = (
        rule.holds("score", pl.col("descending"), "must not exceed the score of the rank before"),
        rule.holds("position", pl.col("is_example"), "must be that of a test event with a next one, of a trained user"),
    )
    return _lists("next items", frame, schema, k, rules, "example", rule.each_run(ranked, examples))


def predictions(predicted: Released, folds: pl.DataFrame, schema: Schema) -> list[Table]:
    """Released predictions of ratings (PREDICTIONS) of one experiment, all settings and folds in one table.

    Every rating of the fold that is tested is predicted once, by a finite number, and no other rating.

    Args:
        predicted: (setting, fold) -> user, item, rating, prediction.
        folds: FOLDS of the data that the experiment was trained on.
        schema: of those data, whose ratings have a scale.
    """
    pair = ["user", "item"]
    frame = rule.stack(predicted)
    tested = folds.select(*pair, seed=pl.col("fold").cast(pl.Int64))
    frame = frame.with_columns(tested=rule.rows_of(frame, tested, [*pair, "seed"]) > 0)
    expected = rule.each_run(predicted).join(tested, on="seed", how="inner")
    assert schema.scale is not None, "ratings have a scale"
    rules = (
        rule.row_count(1),
        *rule.ids(user=schema.n_users, item=schema.n_items),
        *rule.not_null("rating"),
        rule.between("rating", schema.scale.low, schema.scale.high),
        rule.finite("prediction"),
        rule.holds("item", pl.col("tested"), "must be one that the user rated in the fold that is tested"),
        rule.unique(*KEYS, *pair),
    )
    counted = rule.row_count(1), rule.between("rows", 1, 1, "must be 1: every rating of the fold is predicted once")
    return [
        Table("predictions", frame, rules, ids=(*KEYS, *pair)),
        rule.count_table("predictions per rating", expected, frame, [*KEYS, *pair], *counted),
    ]


def embedding_releases(
    released: Mapping[tuple[str, int], pl.LazyFrame | pl.DataFrame], schema: Schema, prefix: str
) -> list[Table]:
    """Embeddings of one network that one experiment released, all settings and seeds in one table.

    Every user has one row of finite numbers, and within a setting all rows are equally long. Vectors are not kept: of
    each row the table has its `width` and how many numbers are not finite (`infinite`).

    Args:
        released: (setting, seed) -> node and vector (`contracts.embeddings_schema`), scanned or in memory.
        schema: of the network, whose users are the nodes.
        prefix: what the names of its tables begin with, such as `foursquare/`.

    Raises:
        DataError: a table does not have just these columns, or vectors that are no arrays of 32-bit numbers.
    """
    frame = pl.concat(_summed_up(table.lazy(), which) for which, table in released.items()).collect(engine="streaming")
    widths = frame.group_by("setting").agg(pl.col("width").first().alias("first_width"))
    frame = frame.join(widths, on="setting", how="left", maintain_order="left")
    per_user = rule.each_run(released, rule.all_users(schema.n_users)).rename({"user": "node"})
    name = f"{prefix}embeddings"
    rules = (
        rule.row_count(1),
        *rule.ids(node=schema.n_users),
        *rule.not_null("infinite"),
        rule.between("infinite", 0, 0, "must be 0: all numbers of a vector are finite"),
        rule.between("width", 1, None, "must be 1 or more: a vector has numbers"),
        rule.holds("width", pl.col("width") == pl.col("first_width"), "must be the same in all rows of a setting"),
        rule.unique(*KEYS, "node"),
    )
    counted = rule.row_count(1), rule.between("rows", 1, 1, "must be 1: every user has one vector")
    return [
        Table(name, frame, rules, ids=(*KEYS, "node")),
        rule.count_table(f"{name} per user", per_user, frame, [*KEYS, "node"], *counted),
    ]


def _summed_up(table: pl.LazyFrame, which: tuple[str, int]) -> pl.LazyFrame:
    """Row number, setting, seed, node, and of each vector its width and how many of its numbers are not finite."""
    setting, seed = which
    kinds = table.collect_schema()
    kind = kinds.get("vector")
    if kinds.names() != ["node", "vector"] or not isinstance(kind, pl.Array) or kind.inner != pl.Float32:
        raise DamagedError(
            f"embeddings of {setting} seed {seed}: columns {dict(kinds)} are not nodes and arrays of 32-bit numbers; "
            "run train again"
        )
    finite = pl.element().is_finite().fill_null(False)
    infinite = pl.col("vector").arr.eval(~finite).arr.sum().cast(pl.Int64) if kind.size else pl.lit(0, pl.Int64)
    return table.with_row_index("row").select(
        "row",
        "node",
        setting=pl.lit(setting),
        seed=pl.lit(seed, dtype=pl.Int64),
        width=pl.lit(kind.size, dtype=pl.Int64),
        infinite=infinite,
    )


def word_tables(frame: pl.DataFrame, schema: Schema) -> list[Table]:
    """Attributes as word vectors (docs/methods.md §4), `contracts.features_schema`: every number is within [0, 1]."""
    numbers = [column for column in frame.columns if column != "user"]
    rules = (
        *rule.ids(user=schema.n_users),
        *rule.not_null(*numbers),
        *(rule.between(column, 0, 1) for column in numbers),
    )
    return [
        Table("features", frame, rules, ids=("user",)),
        rule.count_table(
            "features per user", rule.all_users(schema.n_users), frame, ["user"], rule.between("rows", 1, 1)
        ),
    ]
