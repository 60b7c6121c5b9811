"""What perturbed features and networks must hold, compared with the processed ones that they are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from tasks.core import contracts
from tasks.core.contracts import ProcessedTables, Schema
from tasks.core.errors import DamagedError
from tasks.privacy.mechanisms import as_released, piecewise
from tasks.privacy.mechanisms.multidimensional import bound, sampled_features
from tasks.quality import rules as rule
from tasks.quality.processed import dense_rules, link_rules, post_rules
from tasks.quality.rules import KEYS, Rule, Table

BITS = (0.0, 1.0)
Release = tuple[str, int]
"""Setting and seed of a release."""
FeatureRules = Callable[[str, float, pl.DataFrame, pl.DataFrame, Schema], list[Table]]
"""(name, budget, table of all releases, their keys, schema) -> the rules."""


def perturbed_tables(tables: Mapping[tuple[float, int], pl.DataFrame], schema: Schema) -> list[Table]:
    """Features under the multidimensional mechanism (docs/methods.md §1): one table per epsilon, all seeds in it.

    Numeric columns lie within ±C·d'/ζ with C of ε/ζ, categorical bits are 0 or 1, and at most ζ features of a user
    are not zero.

    Args:
        tables: (epsilon, seed) -> user and encoded columns.
        schema: of the processed data; it names the columns of each feature.
    """
    checked = []
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in tables):
        seeds = {(seed,): table for (other, seed), table in tables.items() if other == epsilon}
        releases = pl.DataFrame({"seed": [seed for (seed,) in seeds]})
        checked += perturbed_features(f"epsilon={epsilon:g}", epsilon, rule.stack(seeds, ("seed",)), releases, schema)
    return checked


def perturbed_features(
    name: str, epsilon: float, frame: pl.DataFrame, releases: pl.DataFrame, schema: Schema
) -> list[Table]:
    """The rules of `perturbed_tables` for the releases of one budget.

    Args:
        frame: user and encoded columns, and the columns of `releases`.
        releases: one row per release.
    """
    n_features = len(schema.features)
    sampled = sampled_features(epsilon, n_features)
    limit = bound(epsilon, n_features) * (1 + rule.FLOAT32_SLACK)
    numbers = [feature.name for feature in schema.features if feature.kind == "numeric"]
    bits = [column for feature in schema.features if feature.kind == "categorical" for column in feature.columns]
    released = [pl.any_horizontal(pl.col(feature.columns) != 0) for feature in schema.features]
    frame = frame.with_columns(features_released=pl.sum_horizontal(released))
    rules = (
        *(rule.between(column, -limit, limit) for column in numbers),
        *(rule.in_set(column, BITS, "must be 0 or 1") for column in bits),
        rule.between("features_released", 0, sampled, f"must be {sampled} or less"),
    )
    return _features_of_users(name, frame, releases, schema, rules)


def released_features(
    name: str, epsilon: float, frame: pl.DataFrame, releases: pl.DataFrame, schema: Schema
) -> list[Table]:
    """The rules of features as the authors' code of DP-CroSUE perturbs them, for the releases of one budget.

    Every column lies within what an equal part of the budget gives; `RAW` is 0 or 1, and no category says that a
    value is unknown.

    frame, releases: as in `perturbed_features`.
    """
    limit = piecewise.bound(epsilon / as_released.n_perturbed(schema.features)) * (1 + rule.FLOAT32_SLACK)
    raw = [column for feature in schema.features if feature.name == as_released.RAW for column in feature.columns]
    unknown = [f"{feature.name}={feature.unknown}" for feature in schema.features if feature.unknown is not None]
    rules = (
        *(rule.between(column, -limit, limit) for column in schema.columns),
        *(rule.in_set(column, BITS, "must be 0 or 1") for column in raw),
        *(rule.in_set(column, (0.0,), "must be 0") for column in unknown),
    )
    return _features_of_users(name, frame, releases, schema, rules)


def _features_of_users(
    name: str, frame: pl.DataFrame, releases: pl.DataFrame, schema: Schema, rules: tuple[Rule, ...]
) -> list[Table]:
    keys = [*releases.columns, "user"]
    rules = (*rule.ids(user=schema.n_users), *rule.not_null(*schema.columns), *rules)
    per_user = releases.join(rule.all_users(schema.n_users), how="cross")
    return [
        Table(name, frame, rules, ids=tuple(keys)),
        rule.count_table(f"{name} per user", per_user, frame, keys, rule.between("rows", 1, 1)),
    ]


def perturbed_network(
    releases: Mapping[Release, ProcessedTables],
    features_epsilon: Mapping[str, float],
    features: FeatureRules,
    words_per_user: int | None,
    before: ProcessedTables,
    prefix: str,
) -> list[Table]:
    """All releases of one network, each kind of table with all settings and seeds in it.

    Features lie within what their mechanism gives (a table per budget). A graph is simple: users of the network, no
    loop, each friendship once with the smaller id first. Posts have words of the vocabulary; without `words_per_user`
    every post is there with as many words as before, with it no user has more words than before, and at most so many.

    Args:
        releases: (setting, seed) -> its tables; `features.parquet` lies next to them where users have features.
        features_epsilon: setting -> budget of the features.
        features: the rules of perturbed features (`tasks.quality.releases`).
        words_per_user: where words were dropped, how many a user may have left.
        before: the processed network.
        prefix: what the names of its tables begin with.

    Raises:
        DamagedError: the releases are not all of the same tables and words, or not of the users of `before`.
    """
    first = next(iter(releases.values())).schema
    for tables in releases.values():
        if tables.schema != first or first.n_users != before.schema.n_users:
            raise DamagedError(f"{tables.folder}/schema.json: not of the users and tables of others; run perturb again")
    rules: tuple[Rule, ...]
    checked = _features(releases, features_epsilon, features, first, prefix) if first.features else []
    if "social" in first.tables:
        ascending = pl.col("source") < pl.col("target")
        rules = (
            *link_rules(first),
            rule.holds(("source", "target"), ascending, "must be two users, the smaller id first"),
            rule.unique(*KEYS, "source", "target"),
        )
        checked.append(Table(f"{prefix}social", _scan(releases, "social"), rules, ids=(*KEYS, "source", "target")))
    if "posts" in first.tables:
        n_rows = first.n_words * len(releases)
        rules = (rule.row_count(n_rows, n_rows), *dense_rules("word", first.n_words, *KEYS))
        checked.append(Table(f"{prefix}vocabulary", _scan(releases, "vocabulary"), rules, ids=(*KEYS, "id")))
        posts = _scan(releases, "posts")
        if words_per_user is None:
            checked.append(_replaced_posts(posts, first, before, len(releases), f"{prefix}posts"))
        else:
            checked += _shortened_posts(posts, first, before, words_per_user, f"{prefix}posts")
    return checked


def _features(
    releases: Mapping[Release, ProcessedTables],
    features_epsilon: Mapping[str, float],
    features: FeatureRules,
    schema: Schema,
    prefix: str,
) -> list[Table]:
    checked, contract = [], contracts.features_schema(schema.columns)
    for epsilon in dict.fromkeys(features_epsilon.values()):
        chosen = {which: tables for which, tables in releases.items() if features_epsilon[which[0]] == epsilon}
        read = {which: contracts.read(tables.folder / "features.parquet", contract) for which, tables in chosen.items()}
        name = f"{prefix}features epsilon={epsilon:g}"
        checked += features(name, epsilon, rule.stack(read), rule.each_run(chosen), schema)
    return checked


def _replaced_posts(frame: pl.LazyFrame, schema: Schema, before: ProcessedTables, n_releases: int, name: str) -> Table:
    """Every post is there, in its row, by its user and with as many words as before."""
    processed = before.scan("posts").with_row_index("row")
    original = processed.select("row", user_before="user", words_before=pl.col("tokens").list.len())
    n_rows = original.select(pl.len()).collect().item() * n_releases
    frame = frame.join(original, on="row", how="left", maintain_order="left")
    same_user = (pl.col("user") == pl.col("user_before")).fill_null(False)
    same_length = pl.col("tokens").list.len() == pl.col("words_before")
    rules = (
        rule.row_count(n_rows, n_rows),
        *post_rules(schema),
        rule.holds("user", same_user, "must be the user who wrote the post"),
        rule.holds("tokens", same_length, "must be as many words as before"),
    )
    return Table(name, frame, rules, ids=(*KEYS, "user"))


def _shortened_posts(
    frame: pl.LazyFrame, schema: Schema, before: ProcessedTables, words_per_user: int, name: str
) -> list[Table]:
    """Posts that lost words, or were dropped as a whole."""

    def per_user(posts: pl.LazyFrame, *keys: str) -> pl.DataFrame:
        words = pl.col("tokens").list.len().sum().cast(pl.Int64)
        return posts.group_by(*keys, "user").agg(posts=pl.len(), words=words).sort(*keys, "user").collect()

    left = per_user(frame, *KEYS)
    original = per_user(before.scan("posts")).rename({"posts": "posts_before", "words": "words_before"})
    left = left.join(original, on="user", how="left", maintain_order="left")
    rules = [rule.between("words", 1, words_per_user)]
    for what in ("posts", "words"):
        fewer = pl.col(what) <= pl.col(f"{what}_before").fill_null(0)
        rules.append(rule.holds(what, fewer, "must not be more than before"))
    return [
        Table(name, frame, (rule.row_count(1), *post_rules(schema)), ids=(*KEYS, "user")),
        Table(f"{name} per user", left, tuple(rules), ids=(*KEYS, "user")),
    ]


def _scan(releases: Mapping[Release, ProcessedTables], table: str) -> pl.LazyFrame:
    """A table of all releases below one another."""
    return rule.stack({which: tables.scan(table) for which, tables in releases.items()})
