"""Synthetic words, posts and screen names: all invented but for lists of words that a caller gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.datasets.synthetic.skew import Ints


@dataclass(frozen=True)
class Sounds:
    """What invented words are put together from."""

    parts: tuple[str, ...]
    """100 syllables or characters, so that numbers below 100 ** length and words are one to one."""
    length: int
    """Parts of a word."""


LATIN = Sounds(tuple(consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"), 4)
HAN = Sounds(
    tuple(
        "安白北本彩草长晨城春大丹岛东多儿方飞枫冬歌光谷果海禾河红湖花华怀欢惠吉家江娇金晶景静菊可兰蓝乐雷林灵玲岭柳"
        "云龙露洛马麦梅美梦明木南宁鹏平青晴秋泉日荣若山诗石树水松涛天田晚微文西溪夏仙香小心星雪雅阳叶夜"
    ),
    2,
)
_MULTIPLIER = 61_803_399  # odd and no multiple of 5, so numbers and words are one to one


def _parts(number: Ints, length: int) -> Ints:
    """(n, length) numbers of parts; neighbours in number are far apart in sound."""
    code = number % 100**length * _MULTIPLIER % 100**length
    return code[:, None] // 100 ** np.arange(length) % 100


def _sound(parts: Ints, sounds: Sounds) -> pl.Series:
    table = np.array(sounds.parts)
    columns = [pl.Series(f"{place}", table[parts[:, place]]) for place in range(parts.shape[1])]
    return pl.DataFrame(columns).select(pl.concat_str(pl.all()).alias("word"))["word"]


@dataclass(frozen=True)
class Words:
    """A vocabulary in blocks (common words, a topic's, an attribute's): commoner words first in each."""

    words: tuple[str, ...]
    first: Ints
    """(n_blocks,) where each block begins."""
    size: Ints
    """(n_blocks,)"""


def vocabulary(blocks: Sequence[tuple[Sequence[str], int]], sounds: Sounds = LATIN) -> Words:
    """Each block is its given words and then invented ones, up to its size."""
    words: list[str] = []
    for given, size in blocks:
        words += list(given)[:size]
        numbers = np.arange(len(words), len(words) + size - min(len(given), size))
        words += _sound(_parts(numbers, sounds.length), sounds).to_list()
    sizes = np.array([size for _, size in blocks])
    return Words(tuple(words), np.cumsum(sizes) - sizes, sizes)


def write_posts(
    rng: np.random.Generator, words: Words, blocks: Ints, weights: Sequence[float], *, mean_words: float
) -> pl.Series:
    """Texts, one per row of `blocks`: words joined by blanks, at least three.

    Args:
        blocks: (n_posts, n_kinds) numbers of the blocks that a post's words come from.
        weights: (n_kinds,) how often each of them is chosen; within a block word r is chosen in proportion to 1/r.
    """
    length = 3 + rng.poisson(mean_words - 3, len(blocks))
    post = np.repeat(np.arange(len(blocks)), length)
    kind = np.searchsorted(np.cumsum(weights)[:-1] / np.sum(weights), rng.random(len(post)), side="right")
    block = blocks[post, kind]
    size = words.size[block]
    rank = np.minimum(((size + 1.0) ** rng.random(len(post))).astype(np.int64), size) - 1
    chosen = pa.array(words.words).take(pa.array(words.first[block] + rank))
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), chosen)
    return pl.Series("text", pc.binary_join(lists, " "))


def random_mask(rng: np.random.Generator, n: int, share: float) -> pl.Series:
    """(n,) true for this share."""
    return pl.Series(rng.random(n) < share)


def handles(
    rng: np.random.Generator, person: Ints, sounds: Sounds = LATIN, *, change: float = 0.25, unrelated: float = 0.08
) -> pl.Series:
    """Synthetic screen names of these persons, all different: drawn twice, a person has two similar names.

    Args:
        person: distinct numbers below 50 million.
        sounds: every name has four of them.
        change: share of names with one part replaced.
        unrelated: share of names that have nothing to do with the person's other ones.
    """
    parts = _parts(person, 4)
    other = rng.random(len(person))
    changed = np.flatnonzero(other < change)
    parts[changed, rng.integers(0, 4, len(changed))] = rng.integers(0, 100, len(changed))
    apart = np.flatnonzero(other >= 1 - unrelated)
    parts[apart] = _parts(50_000_000 + rng.permutation(person)[apart], 4)
    table = pl.DataFrame(
        {
            "name": _sound(parts, sounds),
            "tail": rng.choice(4, len(person), p=(0.4, 0.3, 0.2, 0.1)),
            "digits": rng.integers(10, 100, len(person)),
            "part": np.array(sounds.parts)[rng.integers(0, 100, len(person))],
            "person": person,
        }
    )
    name, tail = pl.col("name"), pl.col("tail")
    drawn = (
        pl.when(tail == 1).then(name + pl.col("digits").cast(pl.String))
        .when(tail == 2).then(name + "_" + pl.col("part"))
        .when(tail == 3).then(name.str.slice(0, 1).str.to_uppercase() + name.str.slice(1))
        .otherwise(name)
    )  # fmt: skip
    table = table.with_columns(name=drawn)
    taken = name.str.to_lowercase().is_duplicated()
    return table.select(pl.when(taken).then(name + "_" + pl.col("person").cast(pl.String)).otherwise(name))["name"]
