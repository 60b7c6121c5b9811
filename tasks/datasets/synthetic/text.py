"""Synthetic words, posts and screen names: all invented but for lists of words that a caller gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.datasets.synthetic.skew import Ints, pick


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
    columns = pl.DataFrame(np.array(sounds.parts)[parts], schema=[f"{number}" for number in range(parts.shape[1])])
    return columns.select(word=pl.concat_str(pl.all()))["word"]


@dataclass(frozen=True)
class Words:
    """A vocabulary in blocks (common words, a topic's, an attribute's): commoner words first in each."""

    words: tuple[str, ...]
    first: Ints
    """(n_blocks,) where each block begins."""
    size: Ints
    """(n_blocks,)"""


def vocabulary(blocks: Sequence[tuple[Sequence[str], int]], sounds: Sounds = LATIN) -> Words:
    """Each block is its real words and then invented ones, up to its size."""
    sizes = np.array([size for _, size in blocks])
    first = np.cumsum(sizes) - sizes
    words = _sound(_parts(np.arange(sizes.sum()), sounds.length), sounds).to_list()
    for start, (real, _) in zip(first, blocks, strict=True):
        words[start : start + len(real)] = real
    return Words(tuple(words), first, sizes)


def write_posts(
    rng: np.random.Generator, words: Words, blocks: Ints, weights: Sequence[float], *, mean_words: float
) -> pl.Series:
    """Texts, one per row of `blocks`: words joined by blanks, at least three.

    Args:
        blocks: (n_posts, n_kinds) numbers of the blocks that a post's words come from.
        weights: (n_kinds,) how often each of them is chosen; within a block word r is chosen in proportion to 1/r.
    """
    length = 3 + rng.poisson(mean_words - 3, len(blocks))
    block = blocks[np.repeat(np.arange(len(blocks)), length), pick(rng, weights, int(length.sum()))]
    size = words.size[block]
    rank = np.minimum(((size + 1.0) ** rng.random(len(block))).astype(np.int64), size) - 1
    chosen = pa.array(words.words).take(pa.array(words.first[block] + rank))
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    return pl.Series("text", pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), chosen), " "))


def random_mask(rng: np.random.Generator, n: int, share: float) -> pl.Series:
    """(n,) true for this share."""
    return pl.Series(rng.random(n) < share)


def handles(rng: np.random.Generator, person: Ints, sounds: Sounds = LATIN, *, unrelated: float = 0.08) -> pl.Series:
    """Synthetic screen names of these persons, all different: drawn twice, a person has two similar names.

    Args:
        person: distinct numbers below 50 million.
        sounds: every name has four of them; of a quarter of the names one part is replaced.
        unrelated: share of names that have nothing to do with the person's other ones.
    """
    parts, n = _parts(person, 4), len(person)
    changed = np.flatnonzero(rng.random(n) < 0.25)
    parts[changed, rng.integers(0, 4, len(changed))] = rng.integers(0, 100, len(changed))
    apart = np.flatnonzero(rng.random(n) < unrelated)
    parts[apart] = _parts(50_000_000 + rng.permutation(person)[apart], 4)
    tails = np.array(["", "_", *map(str, range(10, 100))])
    names = _sound(parts, sounds) + pl.Series(tails[rng.integers(0, len(tails), n) * (rng.random(n) < 0.7)])
    table = pl.DataFrame({"name": names, "person": person})
    taken = pl.col("name").is_duplicated()
    return table.select(
        pl.col("name") + pl.when(taken).then("_" + pl.col("person").cast(pl.String)).otherwise(pl.lit(""))
    )["name"]
