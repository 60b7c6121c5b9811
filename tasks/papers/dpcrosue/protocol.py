"""DP-CroSUE's protocol (docs/methods.md §6): one network of users and what they wrote, or two with their anchors.

A network keeps all its users, those of the table of users or, without one, all that are named anywhere. Friendships
stay as they were published, directed; texts become words of a vocabulary. What is not published stays away: a network
without texts has no posts and no vocabulary, and models tell from `Schema.tables`.

Every network has a vocabulary of its own, since each perturbs its texts before it shares them. Posts of a user are in
the order of their texts: nothing published says which was first.

Of a pair, the networks hold the users, and the pair itself the anchors (its own number of users is 0).
"""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field

from tasks.core.errors import DamagedError, DataError
from tasks.core.raw import RawTables
from tasks.papers import protocol
from tasks.papers.protocol import NetworkCount, Prepared

OF_USERS = {
    "users": ("user",),
    "social": ("source", "target"),
    "posts": ("user",),
    "labels": ("user",),
    "vectors": ("user",),
}
"""Tables that name users, and the columns that do."""

SINGLE = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
TOKENS = {"words": r"\w+", "characters": rf"{SINGLE}|[\w--{SINGLE}]+"}
"""What a token is: a run of letters, marks, digits and underscores; or that, but each character of a script that is
written without blanks alone."""


class Options(protocol.Options):
    """How texts become words."""

    tokenizer: Literal["words", "characters"]
    """`characters`: for Chinese or Japanese that is not split into words by blanks."""
    min_count: int = Field(ge=1)
    """A word of the vocabulary occurs so many times."""
    max_vocabulary: int | None = Field(ge=1)
    """The most frequent words, at most so many; None: all."""


def prepare(raw: RawTables, options: Options) -> Prepared:
    """The network, or each of the two and their anchors.

    Raises:
        DataError: a network has no users; there are posts but no word is frequent enough.
    """
    if not raw.schema.networks:
        return _network(raw, _users(raw), options)
    user_ids = {name: _users(raw.network(name)) for name in raw.schema.networks}
    networks = {name: _network(raw.network(name), ids, options) for name, ids in user_ids.items()}
    if "anchors" not in raw.schema.tables:
        return Prepared(tables={}, n_users=0, networks=networks)
    first, second = user_ids.values()
    published = raw.scan("anchors").select("source", "target").collect()
    inside = protocol.renumber(published, {"source": first, "target": second})
    anchors = inside.unique().sort("source", "target")
    steps = {"published": published, "of-users-kept": inside, "once": anchors}
    counts = [
        NetworkCount(f"anchors-{step}", rows["source"].n_unique() + rows["target"].n_unique(), 0, 0, rows.height)
        for step, rows in steps.items()
    ]
    return Prepared(tables={"anchors": anchors}, n_users=0, counts=list(counts), networks=networks)


def vocabulary(tokens: pl.Series, min_count: int, limit: int | None) -> pl.DataFrame:
    """id int32 and word: the most frequent first, words of the same count in their own order.

    Raises:
        DataError: no word occurs `min_count` times.
    """
    counted = tokens.alias("word").value_counts(name="n").filter(pl.col("n") >= min_count)
    if counted.is_empty():
        raise DataError(f"posts: no word occurs {min_count} times; lower `min_count` in params.yaml")
    words = counted.sort(["n", "word"], descending=[True, False]).head(limit or counted.height)
    return words.select(pl.int_range(pl.len(), dtype=pl.Int32).alias("id"), "word")


def tokenize(posts: pl.DataFrame, tokenizer: str) -> pl.DataFrame:
    """One row per token: post (its row), user, word; in the order of the text.

    Texts are brought to one form first (NFKC: full-width letters are as others, an accent is part of its letter) and to
    lower case.

    Args:
        posts: user and text, which may be missing.
    """
    text = pl.col("text").str.normalize("NFKC").str.to_lowercase()
    return (
        posts.with_row_index("post")
        .select("post", "user", word=text.str.extract_all(TOKENS[tokenizer]))
        .explode("word")
        .drop_nulls("word")
    )


def _users(raw: RawTables) -> pl.DataFrame:
    tables = ["users"] if "users" in raw.schema.tables else [name for name in OF_USERS if name in raw.schema.tables]
    named = [raw.scan(table).select(user=column) for table in tables for column in OF_USERS[table]]
    ids = protocol.dense_ids(pl.concat(named).unique().collect().to_series()) if named else pl.DataFrame()
    if ids.is_empty():
        raise DamagedError(f"{raw.folder}: no table names a user (has {list(raw.schema.tables)}); run convert again")
    return ids


def _network(raw: RawTables, user_ids: pl.DataFrame, options: Options) -> Prepared:
    schema, n_users = raw.schema, len(user_ids)
    people, features = protocol.profiles(raw, user_ids)
    tables = {"users": people, "user_ids": protocol.as_text(user_ids)}
    counts = [NetworkCount("users", n_users, 0, 0, 0)]
    n_words = vector_size = 0
    if "social" in schema.tables:
        tables["social"], steps = protocol.links(raw, user_ids)
        counts += [NetworkCount(step, n_users, 0, 0, n) for step, n in steps]
    if "posts" in schema.tables:
        posts, words, steps = _texts(raw, user_ids, options)
        tables |= {"posts": posts, "vocabulary": words}
        n_words = len(words)
        n_links = counts[-1].links
        counts += [NetworkCount(step, n_users, 0, 0, n_links, n) for step, n in steps[:-1]]
        counts.append(NetworkCount(steps[-1][0], n_users, 0, 0, n_links, steps[-1][1], n_words))
    if "labels" in schema.tables:
        labels = raw.scan("labels").select("user", *schema.labels).collect()
        tables["labels"] = protocol.renumber(labels, {"user": user_ids}).sort("user")
    if "vectors" in schema.tables:
        vectors = raw.scan("vectors").select("user", "vector").collect()
        tables["vectors"] = protocol.renumber(vectors, {"user": user_ids}).rename({"user": "node"}).sort("node")
        vector_size = vectors.schema["vector"].shape[0]  # type: ignore[attr-defined]  # RAW_COLUMNS: of fixed size
    return Prepared(
        tables=tables,
        n_users=n_users,
        features=features,
        labels=schema.labels,
        conditions=() if "users" in schema.tables else ("catalogue",),
        n_words=n_words,
        vector_size=vector_size,
        counts=list(counts),
    )


def _texts(
    raw: RawTables, user_ids: pl.DataFrame, options: Options
) -> tuple[pl.DataFrame, pl.DataFrame, list[tuple[str, int]]]:
    """Posts of users and ids of words, the vocabulary, and how many posts each step left."""
    published = raw.scan("posts").select("user", "text").collect()
    posts = protocol.renumber(published, {"user": user_ids}).sort("user", "text")
    tokens = tokenize(posts, options.tokenizer)
    words = vocabulary(tokens["word"], options.min_count, options.max_vocabulary)
    coded = tokens.join(words, on="word", how="inner", maintain_order="left")
    texts = coded.group_by("post", "user", maintain_order=True).agg(tokens="id")
    steps = {"published": published, "of-users-kept": posts, "with-known-words": texts}
    return texts.select("user", "tokens"), words, [(f"posts-{step}", rows.height) for step, rows in steps.items()]
