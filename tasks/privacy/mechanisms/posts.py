"""Users' posts, every word of them replaced (`tasks.privacy.mechanisms.words`): tables of posts in and out.

Posts have `user` and `tokens`, ids of words, at least one. Where the vocabulary is public, the words of each user's
posts in random order are released up to so many: processed posts lie in the order of their texts, which would show in
how long they are.

Source: DP-CroSUE (Ren et al., CIKM 2022), section 4.1; docs/methods.md §6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import words


@dataclass(frozen=True)
class Vocabulary:
    """What words of posts may become.

    names: (n_words,), in the order of their ids.
    vectors: (n_words, d).
    diameter: largest distance of two.
    """

    names: list[str]
    vectors: NDArray[np.floating]
    diameter: float

    @classmethod
    def from_vectors(cls, names: list[str], vectors: NDArray[np.floating]) -> Self:
        """With the diameter of the vectors (ValueError: one is not finite)."""
        return cls(names, vectors, words.diameter(vectors))


def perturb(
    posts: pl.DataFrame,
    vocabulary: Vocabulary,
    epsilon: float,
    rng: np.random.Generator,
    n_releases: int,
    words_per_user: int | None = None,
) -> tuple[pl.DataFrame, tuple[LedgerEntry, ...]]:
    """Posts with their words replaced, and what that spent.

    Args:
        posts: one or more, in ids of the vocabulary.
        epsilon: per unit of distance, all words being released; with `words_per_user` of a user's whole text.
        n_releases: how many releases of the same posts lie side by side.
        words_per_user: None where the vocabulary was fitted on the posts (published accounting); of a public one how
            many words of each user are released at most (rigorous).
    """
    if words_per_user is None:
        limit = posts.group_by("user").agg(n=pl.col("tokens").list.len().sum())["n"].max()
        assert isinstance(limit, int)
        entries = words.ledger(epsilon, limit, vocabulary.diameter, "fitted", "published", n_releases)
    else:
        posts = first_words(posts, words_per_user, rng)
        epsilon = words.epsilon_per_distance(epsilon, words_per_user, vocabulary.diameter)
        entries = words.ledger(epsilon, words_per_user, vocabulary.diameter, "public", "rigorous", n_releases)
    lengths, tokens = to_ragged(posts)
    replaced = words.substitute(tokens, vocabulary.vectors, epsilon, rng)
    return rebuilt(posts["user"].to_numpy(), lengths, replaced, np.ones(len(replaced), np.bool_)), entries


def known_words(posts: pl.DataFrame, word_names: pl.Series, public: Vocabulary) -> pl.DataFrame:
    """The posts in ids of public words; other words are dropped, and posts that have none left.

    Args:
        word_names: (n_words,) names of the words of the posts, in the order of their ids.
    """
    public_ids = pl.DataFrame({"word": public.names}).with_row_index("public")
    ids = word_names.rename("word").to_frame().join(public_ids, on="word", how="left", maintain_order="left")["public"]
    lengths, tokens = to_ragged(posts)
    codes = ids.fill_null(len(public.names)).to_numpy().astype(np.int64)[tokens]
    return rebuilt(posts["user"].to_numpy(), lengths, codes, codes < len(public.names))


def first_words(posts: pl.DataFrame, limit: int, rng: np.random.Generator) -> pl.DataFrame:
    """Of each user at most so many words, the first ones of its posts in random order; empty posts are dropped.

    Posts stay in that order, which only the coins decide, so that it shows nothing of their texts.
    """
    coins = noise.uniform(rng, "which-posts-come-first", len(posts))
    posts = posts[np.lexsort((coins, posts["user"].to_numpy()))]
    lengths, tokens = to_ragged(posts)
    users = posts["user"].to_numpy()
    of_tokens = np.repeat(users, lengths)
    before = np.arange(len(tokens)) - np.searchsorted(of_tokens, of_tokens)
    return rebuilt(users, lengths, tokens, before < limit)


def to_ragged(posts: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n_posts,) words of each, none of them 0, and (n_tokens,) all ids one after the other."""
    lengths = posts["tokens"].list.len().to_numpy().astype(np.int64)
    return lengths, posts["tokens"].explode().to_numpy().astype(np.int64)


def rebuilt(
    users: NDArray[np.int32], lengths: NDArray[np.int64], tokens: NDArray[np.int64], kept: NDArray[np.bool_]
) -> pl.DataFrame:
    """`user` and `tokens` of the posts that keep a word, in their order.

    Args:
        users, lengths: (n_posts,).
        tokens, kept: (n_tokens,).
    """
    left = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[kept], minlength=len(lengths))
    bounds = np.append(0, np.cumsum(left[left > 0]))
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(tokens[kept].astype(np.int32)))
    return pl.DataFrame({"user": users[left > 0], "tokens": pl.Series(lists)})
