"""What processed tables must hold (`tasks.core.contracts`), under any protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from tasks.core.contracts import SPLITS, ProcessedTables, Schema
from tasks.quality import rules as rule
from tasks.quality.rules import Rule, Table

TRAINING = ("train", "valid")
"""Splits that count as seen: under DIPSGNN's protocol, users who validate have no others before the test."""


def processed_tables(tables: ProcessedTables, prefix: str = "") -> list[Table]:
    """The tables of `schema.tables`; a pair of networks is judged network by network, then its anchors.

    Args:
        tables: those of a data set under a protocol, or of one network of a pair.
        prefix: what the names of its tables begin with.
    """
    checked = []
    for name in tables.schema.tables:
        if name in TABLES:
            checked += TABLES[name](tables, prefix + name)
        elif name != "anchors":
            ids, rules = RULES[name]
            checked.append(Table(prefix + name, tables.scan(name), tuple(rules(tables.schema)), ids=ids))
    for network in tables.schema.networks:
        checked += processed_tables(tables.network(network), f"{prefix}{network}/")
    if "anchors" in tables.schema.tables:
        checked.append(_anchors(tables, prefix))
    return checked


def _interactions(tables: ProcessedTables, name: str) -> list[Table]:
    schema, frame = tables.schema, tables.scan("interactions")
    rules = [
        rule.row_count(1),
        *rule.ids(user=schema.n_users, item=schema.n_items),
        *rule.not_null("split"),
        rule.seconds("timestamp"),
        rule.in_set("split", SPLITS),
    ]
    if schema.scale is not None:
        low, high = schema.scale.low, schema.scale.high
        slack = rule.FLOAT32_SLACK * max(abs(low), abs(high))  # merged ratings are sums
        rules += [rule.between("rating", low - slack, high + slack, rule.range_words(low, high)), rule.finite("rating")]
    training = frame.filter(pl.col("split").is_in(TRAINING))
    if schema.repeats:
        items = training.select(pl.col("item").unique()).collect(engine="streaming").to_series()
        words = "must be in training or validation data too"
        rules.append(rule.among("item", items, words, where=pl.col("split") == "test"))
    if "no-repeats" not in schema.conditions:
        rules.append(rule.unique("user", "item"))
    checked = [Table(name, frame, tuple(rules), ids=("user", "item"))]
    if "folds" not in schema.tables:  # with folds, what a model learns from differs by fold
        rows = training.group_by("user").agg(pl.len().alias("training")).collect(engine="streaming")
        per_user = rule.all_users(schema.n_users).join(rows, on="user", how="left", maintain_order="left")
        per_user = per_user.with_columns(pl.col("training").fill_null(0))
        learns = rule.between("training", 1, None, "must be 1 or more: every user has something to learn from")
        checked.append(Table(f"{name} per user", per_user, (learns,), ids=("user",)))
    return checked


def _users(schema: Schema) -> list[Rule]:
    rules = [
        rule.row_count(schema.n_users, schema.n_users),
        *rule.ids(user=schema.n_users),
        *rule.not_null(*(feature.name for feature in schema.features)),
        rule.unique("user"),
    ]
    for feature in schema.features:
        # columns are float32, and a value at a limit is rounded as the limit is
        low, high = (None if limit is None else float(np.float32(limit)) for limit in (feature.low, feature.high))
        if feature.kind == "categorical":
            rules.append(rule.in_set(feature.name, feature.categories))
        else:
            rules.append(rule.between(feature.name, low, high))
    return rules


def _dense(column: str, n: int) -> list[Rule]:
    return [rule.row_count(n, n), *dense_rules(column, n)]


def dense_rules(column: str, n: int, *keys: str) -> list[Rule]:
    """Within each release (rows with equal `keys`), ids 0..n-1 with a distinct value of `column` each."""
    return [
        *rule.ids(id=n),
        *rule.not_null(column),
        rule.unique(*keys, "id"),
        rule.not_blank(column),
        rule.unique(*keys, column),
    ]


def _social(schema: Schema) -> list[Rule]:
    return [
        rule.row_count(1),
        *link_rules(schema),
        rule.holds(("source", "target"), pl.col("source") != pl.col("target"), "must be two users"),
        rule.unique("source", "target", "relation"),
    ]


def link_rules(schema: Schema) -> list[Rule]:
    """Users of the network and a relation."""
    return [
        *rule.ids(source=schema.n_users, target=schema.n_users),
        *rule.not_null("relation"),
        rule.not_blank("relation"),
    ]


def post_rules(schema: Schema) -> tuple[Rule, ...]:
    """What posts hold, also those whose words were perturbed: users of the network, and words of the vocabulary."""
    tokens = pl.col("tokens")
    inside = (tokens.list.min() >= 0) & (tokens.list.max() < schema.n_words)
    complete = tokens.list.drop_nulls().list.len() == tokens.list.len()
    return (
        *rule.ids(user=schema.n_users),
        rule.holds("tokens", tokens.is_not_null(), "must not be missing"),
        rule.holds("tokens", tokens.list.len() > 0, "must have one word or more"),
        rule.holds("tokens", inside & complete, f"must be ids of words, from 0 to {schema.n_words - 1}"),
    )


def _known_users(schema: Schema, column: str, rules: Sequence[Rule]) -> list[Rule]:
    """Some users, once each, with what else holds for them."""
    return [rule.row_count(1), *rule.ids(**{column: schema.n_users}), rule.unique(column), *rules]


def _folds(tables: ProcessedTables, name: str) -> list[Table]:
    """One row per interaction; folds are numbered from 0 without gaps."""
    schema, folds = tables.schema, tables.scan("folds")
    pairs = tables.scan("interactions").select("user", "item").collect()
    sensitivity = pl.col("sensitivity")
    rules = (
        rule.row_count(pairs.height, pairs.height),
        *rule.ids(user=schema.n_users, item=schema.n_items),
        *rule.not_null("fold", "sensitivity"),
        rule.between("fold", 0, None),
        rule.unique("user", "item"),
        rule.holds("sensitivity", (sensitivity >= 0) & (sensitivity < 1), "must be 0 or more and less than 1"),
    )
    numbers = folds.select(pl.col("fold").drop_nulls().unique()).collect().sort("fold").with_row_index("expected")
    dense = rule.holds("fold", pl.col("fold") == pl.col("expected"), "must be numbered from 0 without gaps")
    return [
        Table(name, folds, rules, ids=("user", "item")),
        rule.count_table(
            f"{name} per interaction",
            pairs,
            folds.select("user", "item").collect(),
            ["user", "item"],
            rule.between("rows", 1, 1),
        ),
        Table(f"{name} that occur", numbers, (rule.row_count(2), dense)),
    ]


def _anchors(tables: ProcessedTables, prefix: str) -> Table:
    first, second = (tables.network(network).schema.n_users for network in rule.network_pair(tables.schema.networks))
    rules = (
        rule.row_count(1),
        *rule.ids(source=first, target=second),
        rule.unique("source"),
        rule.unique("target"),
    )
    return Table(f"{prefix}anchors", tables.scan("anchors"), rules, ids=("source", "target"))


TABLES = {"interactions": _interactions, "folds": _folds}
"""Tables whose rules need more than the schema -> the tables to check, those derived per user or interaction too."""
RULES: dict[str, tuple[tuple[str, ...], Callable[[Schema], Sequence[Rule]]]] = {
    "users": (("user",), _users),
    "user_ids": (("id",), lambda schema: _dense("original", schema.n_users)),
    "item_ids": (("id",), lambda schema: _dense("original", schema.n_items)),
    "social": (("source", "target"), _social),
    "posts": (("user",), lambda schema: (rule.row_count(1), *post_rules(schema))),
    "vocabulary": (("id",), lambda schema: _dense("word", schema.n_words)),
    "labels": (("user",), lambda schema: _known_users(schema, "user", rule.labels(schema.labels))),
    "vectors": (("node",), lambda schema: _known_users(schema, "node", rule.finite_vectors("vector"))),
}
"""Other tables -> the columns that identify a row in a report, and the rules."""
