"""What raw tables must hold (`tasks.core.raw`), of any format."""

from __future__ import annotations

import calendar
from collections.abc import Mapping

import polars as pl

from tasks.core.contracts import RatingScale
from tasks.core.errors import DataError
from tasks.core.raw import RAW_COLUMNS, RawSchema, RawTables
from tasks.quality import rules as rule
from tasks.quality.rules import Rule, Table

Types = Mapping[str, pl.DataType]

DAYS = tuple(100 * month + day for month in range(1, 13) for day in range(1, calendar.monthrange(2000, month)[1] + 1))
"""All days of a leap year as mmdd."""

FORMAT_RULES: dict[str, Rule] = {
    "action": rule.in_set("action", range(4), "must be 0 (click), 1 (cart), 2 (buy) or 3 (favourite)"),
    "day": rule.in_set("day", DAYS, "must be a month and a day (mmdd)"),
    "slot": rule.between("slot", 1, 11),
    **{name: rule.between(name, 0, None) for name in ("category", "seller", "brand", "helpfulness")},
}
"""What Tmall, Epinions and Ciao add to interactions and social links; looked at where it is whole numbers."""

USERS = ("user", "source", "target")
"""Columns that name a user."""


def raw_tables(tables: RawTables, prefix: str = "") -> list[Table]:
    """Raw tables, ids as published; a pair of networks is judged network by network, then its anchors.

    Args:
        tables: of a data set, or of one network of a pair.
        prefix: what the names of its tables begin with.

    Raises:
        DataError: users, or items, are numbers in one table and text in another.
    """
    schema = tables.schema
    frames = {name: tables.scan(name) for name in schema.tables}
    types = {name: frame.collect_schema() for name, frame in frames.items()}
    _require_one_kind(types)
    listed = {
        column: frames[table].select(column).collect().to_series()
        for table, column in (("users", "user"), ("items", "item"))
        if table in frames
    }
    checked = []
    for name in (name for name in frames if name != "anchors"):
        ids = tuple(column for column, kind in RAW_COLUMNS[name].items() if kind == "id" or column == "relation")
        rules = tuple(_rules(name, schema, types[name], listed))
        checked.append(Table(f"{prefix}{name}", frames[name], rules, ids=ids))
    for network in schema.networks:
        checked += raw_tables(tables.network(network), f"{prefix}{network}/")
    if "anchors" in frames:
        checked.append(_anchors(tables, frames["anchors"], types["anchors"], prefix))
    return checked


def _rules(name: str, schema: RawSchema, types: Types, listed: Mapping[str, pl.Series]) -> list[Rule]:
    """All rules of one table; `listed` has the ids of the table of users and of the table of items, where they are."""
    rules = [rule.row_count(1), *_ids(name, types)]
    if name != "users" and "user" in listed:
        for column in (column for column in RAW_COLUMNS[name] if column in USERS):
            rules.append(rule.among(column, listed["user"], "must be in the table of users"))
    match name:
        case "interactions":
            if "item" in listed:
                rules.append(rule.among("item", listed["item"], "must be in the table of items"))
            rules += _interactions(schema)
        case "users":
            rules += [rule.unique("user"), *_features(schema, types)]
        case "items":
            rules.append(rule.unique("item"))
        case "social":
            rules += [*rule.not_null("relation"), rule.not_blank("relation")]
        case "posts":
            rules.append(rule.holds("text", pl.col("text").is_not_null(), "must not be missing"))
        case "vectors":
            rules += [rule.unique("user"), *rule.finite_vectors("vector")]
        case "labels":
            rules += [rule.unique("user"), *rule.labels(schema.labels)]
    if name in ("interactions", "social"):
        rules += [added for column, added in FORMAT_RULES.items() if column in types and types[column].is_integer()]
    return rules


def _ids(name: str, types: Types) -> list[Rule]:
    rules = []
    for column, kind in RAW_COLUMNS[name].items():
        if kind == "id":
            rules += rule.not_null(column)
            rules.append(rule.between(column, 0, None) if types[column].is_integer() else rule.not_blank(column))
    return rules


def _interactions(schema: RawSchema) -> list[Rule]:
    rules = []
    if schema.scale is not None:
        rules += [*rule.not_null("rating"), on_scale(schema.scale, schema.unrated)]
    if schema.time == "seconds":
        rules += rule.not_null("timestamp")
    rules.append(rule.seconds("timestamp"))
    if schema.time == "order":
        rules += [*rule.not_null("position"), rule.unique("position")]
    if schema.unique_pairs:
        rules.append(rule.unique("user", "item"))
    return rules


def on_scale(scale: RatingScale, unrated: float | None) -> Rule:
    """Ratings are levels of the scale, or what stands for none."""
    rating = pl.col("rating")
    steps = (rating - scale.low) / scale.step
    level = rating.is_between(scale.low, scale.high) & ((steps - steps.round()).abs() < 1e-4)  # 0.1 is not exact
    words = f"must be from {scale.low:g} to {scale.high:g} in steps of {scale.step:g}"
    if unrated is None:
        return rule.holds("rating", level, words)
    return rule.holds("rating", level | (rating == unrated), f"{words}, or {unrated:g} where none was given")


def _features(schema: RawSchema, types: Types) -> list[Rule]:
    rules = []
    for feature in schema.features:
        if feature.kind == "categorical":
            rules.append(rule.in_set(feature.name, feature.categories))
            if feature.unknown is None:
                rules += rule.not_null(feature.name)
            continue
        if types[feature.name].is_float():
            rules.append(rule.finite(feature.name))
        if feature.low is not None or feature.high is not None:
            rules.append(rule.between(feature.name, feature.low, feature.high))
    return rules


def _anchors(tables: RawTables, anchors: pl.LazyFrame, types: Types, prefix: str) -> Table:
    rules = [rule.row_count(1), *_ids("anchors", types), rule.unique("source"), rule.unique("target")]
    for side, network in zip(("source", "target"), rule.network_pair(tables.schema.networks), strict=True):
        contents = tables.network(network)
        if "users" in contents.schema.tables:
            users = contents.scan("users").select("user").collect().to_series()
            _require_same(f"anchors: {side}", types[side], f"{network}/users: user", users.dtype)
            rules.append(rule.among(side, users, f"must be in the table of users of {network}"))
    return Table(f"{prefix}anchors", anchors, tuple(rules), ids=("source", "target"))


def _require_one_kind(types: Mapping[str, Types]) -> None:
    for names in (USERS, ("item",)):
        kinds = [
            (f"{table}: {column}", types[table][column])
            for table, columns in RAW_COLUMNS.items()
            if table in types and table != "anchors"
            for column in columns
            if column in names
        ]
        for where, kind in kinds[1:]:
            _require_same(where, kind, *kinds[0])


def _require_same(where: str, kind: pl.DataType, other: str, expected: pl.DataType) -> None:
    if kind != expected:
        raise DataError(f"column {where} is {kind}, column {other} is {expected}; ids must be alike: convert again")
