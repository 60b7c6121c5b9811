"""What perturbed networks must hold (DP-CroSUE, docs/methods.md §6), beside the processed ones they are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from tasks import contracts
from tasks.contracts import ProcessedTables, Schema
from tasks.errors import DataError
from tasks.quality.counting import each_run, stack
from tasks.quality.processed import post_rules
from tasks.quality.rules import Table, between, holds, not_blank, not_null, row_count, unique

KEYS = ("setting", "seed")
Release = tuple[str, int]
"""Setting and seed."""
FeatureRules = Callable[[str, float, pl.DataFrame, pl.DataFrame, Schema], list[Table]]
"""(name, budget, table of all releases, their keys, schema) -> the rules."""


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
        releases: (setting, seed) -> its tables; `features.parquet` lies beside them where users have features.
        features_epsilon: setting -> budget of the features.
        features: the rules of those (`tasks.quality.releases`).
        words_per_user: where words were dropped, how many a user may have left.
        before: the processed network.
        prefix: what the names of its tables begin with.

    Raises:
        DataError: the releases are not all of the same tables and words.
    """
    first = next(iter(releases.values())).schema
    for tables in releases.values():
        if tables.schema != first or first.n_users != before.schema.n_users:
            raise DataError(f"{tables.folder}/schema.json: not of the users and tables of others; run perturb again")
    checked = _features(releases, features_epsilon, features, first, prefix) if first.features else []
    if "social" in first.tables:
        checked.append(_social(_scan(releases, "social"), first, f"{prefix}social"))
    if "posts" in first.tables:
        checked.append(_vocabulary(_scan(releases, "vocabulary"), first, len(releases), f"{prefix}vocabulary"))
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
    checked = []
    for epsilon in dict.fromkeys(features_epsilon.values()):
        chosen = {which: tables for which, tables in releases.items() if features_epsilon[which[0]] == epsilon}
        contract = contracts.features_schema(schema.columns)
        read = {which: contracts.read(of.folder / "features.parquet", contract) for which, of in chosen.items()}
        keys = each_run(chosen)
        name = f"{prefix}features epsilon={epsilon:g}"
        checked += features(name, epsilon, stack(read, KEYS), keys, schema)
    return checked


def _social(frame: pl.LazyFrame, schema: Schema, name: str) -> Table:
    last = schema.n_users - 1
    rules = (
        *not_null("source", "target", "relation"),
        between("source", 0, last),
        between("target", 0, last),
        not_blank("relation"),
        holds(("source", "target"), pl.col("source") < pl.col("target"), "must be two users, the smaller id first"),
        unique(*KEYS, "source", "target"),
    )
    return Table(name, frame, rules, ids=(*KEYS, "source", "target"))


def _vocabulary(frame: pl.LazyFrame, schema: Schema, n_releases: int, name: str) -> Table:
    n_rows = schema.n_words * n_releases
    rules = (
        row_count(n_rows, n_rows),
        *not_null("id", "word"),
        between("id", 0, schema.n_words - 1),
        unique(*KEYS, "id"),
        not_blank("word"),
        unique(*KEYS, "word"),
    )
    return Table(name, frame, rules, ids=(*KEYS, "id"))


def _replaced_posts(frame: pl.LazyFrame, schema: Schema, before: ProcessedTables, n_releases: int, name: str) -> Table:
    """Row by row the posts there were, each with as many words."""
    processed = before.scan("posts").with_row_index("row")
    known = processed.select("row", user_before="user", words_before=pl.col("tokens").list.len())
    n_rows = known.select(pl.len()).collect().item() * n_releases
    frame = frame.join(known, on="row", how="left", maintain_order="left")
    same_user = (pl.col("user") == pl.col("user_before")).fill_null(False)
    same_length = pl.col("tokens").list.len() == pl.col("words_before")
    rules = (
        row_count(n_rows, n_rows),
        *post_rules(schema),
        holds("user", same_user, "must be the user who wrote the post"),
        holds("tokens", same_length, "must be as many words as before"),
    )
    return Table(name, frame, rules, ids=(*KEYS, "user"))


def _shortened_posts(
    frame: pl.LazyFrame, schema: Schema, before: ProcessedTables, words_per_user: int, name: str
) -> list[Table]:
    """Posts of which words, or all, were dropped."""

    def per_user(posts: pl.LazyFrame, *keys: str) -> pl.DataFrame:
        words = pl.col("tokens").list.len().sum().cast(pl.Int64)
        return posts.group_by(*keys, "user").agg(posts=pl.len(), words=words).sort(*keys, "user").collect()

    left = per_user(frame, *KEYS)
    known = per_user(before.scan("posts")).rename({"posts": "posts_before", "words": "words_before"})
    left = left.join(known, on="user", how="left", maintain_order="left")
    rules = [between("words", 1, words_per_user)]
    for what in ("posts", "words"):
        fewer = pl.col(what) <= pl.col(f"{what}_before").fill_null(0)
        rules.append(holds(what, fewer, "must not be more than before"))
    return [
        Table(name, frame, (row_count(1), *post_rules(schema)), ids=(*KEYS, "user")),
        Table(f"{name} per user", left, tuple(rules), ids=(*KEYS, "user")),
    ]


def _scan(releases: Mapping[Release, ProcessedTables], table: str) -> pl.LazyFrame:
    """A table of all releases below one another."""
    return stack({which: tables.scan(table) for which, tables in releases.items()}, KEYS)
