"""The generator of replicas of two networks that share users: who is on which, whom they follow, what they write.

Like `tasks.datasets.synthetic.generator` it turns a description into people, whose taste decides their interests, what
they write about, their attributes and, by their communities, whom they follow; the words of a post tell its topic, and
a little of its author's gender and occupation. Words, posts and screen names are invented but for lists of words that a
caller gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.synthetic.homophily import Described, Taste, by_taste, follow_twice, populate
from tasks.datasets.synthetic.skew import Ints, choose, pick, scale_size

BLOCK = 1 << 18
"""Posts that are written at a time."""
N_COMMON, N_TOPIC, N_ATTRIBUTE = 2_000, 400, 40
"""Words that all use, that belong to a topic, to an attribute."""
WORDS = (0.54, 0.41, 0.02, 0.03)
"""Shares of a post's words that tell nothing, its topic, its author's gender and occupation."""
BORROWED = 0.4
"""Share of posts in which words of a gender, or of an occupation, are random: few words give an author away."""
MEAN_WORDS = 11
TASTE = Taste(shared=1.6, individual=1.1)
TASTE_IN_GENDER, TASTE_IN_OCCUPATION, TASTE_IN_INTERESTS = 1.0, 1.5, 1.2
"""Weight of taste against chance in each."""
HAVE_A_SECOND = 0.25
"""Share of people with a second occupation; as in the labels of Foursquare's users, where known."""


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


def vocabulary(blocks: Sequence[tuple[Sequence[str], int]], sounds: Sounds) -> Words:
    """Each block is its real words and then invented ones, up to its size."""
    sizes = np.array([size for _, size in blocks])
    first = np.cumsum(sizes) - sizes
    words = _sound(_parts(np.arange(sizes.sum()), sounds.length), sounds).to_list()
    for start, (real, _) in zip(first, blocks, strict=True):
        words[start : start + len(real)] = real
    return Words(tuple(words), first, sizes)


def write_posts(rng: np.random.Generator, words: Words, blocks: Ints) -> pl.Series:
    """Texts, one per row of `blocks`: words joined by blanks, at least three.

    blocks: (n_posts, 4) numbers of the blocks that a post's words come from, each as often as `WORDS` says; within a
    block word r is chosen in proportion to 1/r.
    """
    length = 3 + rng.poisson(MEAN_WORDS - 3, len(blocks))
    block = blocks[np.repeat(np.arange(len(blocks)), length), pick(rng, WORDS, int(length.sum()))]
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


class PairOptions(ReplicaOptions):
    """How large a replica of two networks is: users, posts and relations grow with the scale."""

    posts: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """1.0: as many posts a user as in the paper. They are nine tenths of the bytes: a network of a million users may
    want fewer."""


class PairDescription(Described):
    """Two networks: numbers at scale 1, and what is invented about them."""

    name: str
    size: int
    """About how many bytes are written."""
    users: tuple[int, int]
    anchors: int
    follows: tuple[int, int]
    reciprocity: tuple[float, float]
    posts: tuple[int, int]
    writers: tuple[float, float]
    """Shares of users who have written anything."""
    labelled: dict[str, float]
    """Share of users of whom gender, occupation and interest are known; what is not named here has no label."""
    interests: tuple[float, ...]
    """Shares of users with one interest, two, ...; no more than there are topics."""
    occupations: tuple[float, ...]
    """Shares of users by main occupation."""
    community_size: int
    topics: dict[str, tuple[str, ...]]
    """Real words of each topic, the commonest topic first."""
    common: tuple[str, ...]
    gendered: tuple[tuple[str, ...], tuple[str, ...]]
    """Real words of any post, and of either gender's; invented ones come after them."""
    sounds: Sounds = LATIN


class Pair:
    """All people on either network, and what draws their posts."""

    def __init__(self, described: PairDescription, options: PairOptions) -> None:
        """Draw people, their attributes, and whom they follow."""
        self.described, self.options = described, options
        self.rng = rng = np.random.default_rng(options.seed)
        d, scale = described, options.scale
        first, second = (scale_size(number, scale, minimum=4) for number in d.users)
        anchors = min(scale_size(d.anchors, scale), first, second)
        n, n_topics = first + second - anchors, len(d.topics)
        self.people = people = populate(rng, n, n_topics, TASTE, d.community_size)
        order = rng.permutation(n)
        self.members = rng.permutation(order[:first]), rng.permutation(np.r_[order[:anchors], order[first:]])
        """Row numbers of `people`: user j of network k is person `members[k][j]`. The order says nothing."""
        self.topic_weights = np.exp(people.taste.astype(np.float64)) * 0.93 ** np.arange(n_topics)
        """(n, n_topics) what each person writes about."""
        self.gender = by_taste(rng, people.taste, (1, 1), strength=TASTE_IN_GENDER)
        """(n,) 0 or 1."""
        self.occupation = by_taste(rng, people.taste, d.occupations, strength=TASTE_IN_OCCUPATION)
        """(n,) the main one."""
        self.occupations = np.eye(len(d.occupations), dtype=np.int8)[self.occupation]
        """(n, n_occupations) 0 or 1: the main one, and a second one of few people."""
        more = np.flatnonzero(rng.random(n) < HAVE_A_SECOND)
        self.occupations[more, rng.integers(0, len(d.occupations), len(more))] = 1
        liking = np.round(TASTE_IN_INTERESTS * np.log(self.topic_weights) + rng.gumbel(size=(n, n_topics)), 6)
        rank = np.argsort(np.argsort(-liking, axis=1, kind="stable"), axis=1)
        self.interests = (rank <= pick(rng, d.interests, n)[:, None]).astype(np.int8)
        """(n, n_topics) 0 or 1: the topics that a person likes best."""
        edges = (scale_size(number, scale) for number in d.follows)
        self.links = follow_twice(rng, people, list(zip(self.members, edges, d.reciprocity, strict=True)))
        """Of each network source and target, numbers of its users."""

    def numbers_of_posts(self, k: int) -> Ints:
        """(n_users,) posts of each user of network k; who follows many writes many."""
        d, rng, n = self.described, self.rng, len(self.members[k])
        propensity = np.exp(0.8 * self.people.propensity[self.members[k]] + np.round(rng.standard_normal(n), 6))
        propensity *= rng.random(n) < d.writers[k]
        propensity += 1e-9
        total = scale_size(d.posts[k], self.options.scale * self.options.posts)
        return rng.multinomial(total, propensity / propensity.sum())

    def posts(self, k: int, number: Ints) -> Iterator[tuple[Ints, Ints, pl.Series]]:
        """Posts some at a time, an author's one after the other: their numbers, authors (users of k) and texts.

        number: (n_users,) as `numbers_of_posts`.
        """
        d, rng, n_topics, n_jobs = self.described, self.rng, len(self.described.topics), len(self.described.occupations)
        attributes = ((some, N_ATTRIBUTE) for some in (*d.gendered, *[()] * n_jobs))
        words = vocabulary(
            [(d.common, N_COMMON), *((some, N_TOPIC) for some in d.topics.values()), *attributes], d.sounds
        )
        last = np.cumsum(number)
        for start in range(0, int(last[-1]), BLOCK):
            post = np.arange(start, min(start + BLOCK, last[-1]))
            author = np.searchsorted(last, post, side="right")
            person = self.members[k][author]
            borrowed = rng.random((2, len(post))) < BORROWED
            gender = np.where(borrowed[0], rng.integers(0, 2, len(post)), self.gender[person])
            job = np.where(borrowed[1], rng.integers(0, n_jobs, len(post)), self.occupation[person])
            topic = choose(rng, self.topic_weights, person)
            columns = [0 * post, 1 + topic, 1 + n_topics + gender, 3 + n_topics + job]
            yield post, author, write_posts(rng, words, np.stack(columns, axis=1))

    def favourite(self, k: int) -> Ints:
        """(n_users,) the topic that each user of network k likes best."""
        return self.topic_weights[self.members[k]].argmax(axis=1)

    def degrees(self, k: int) -> tuple[Ints, Ints]:
        """(n_users,) how many each user of network k follows, and by how many the user is followed."""
        source, target = (np.bincount(end, minlength=len(self.members[k])) for end in self.links[k])
        return source, target

    def count(self, base: NDArray[np.integer | np.floating] | float, n: int, share: float = 1.0) -> pl.Series:
        """(n,) whole numbers about `base` with a long tail, null where they are not known."""
        numbers = np.round(base * np.round(self.rng.lognormal(0, 1.3, n), 6)).astype(np.int64)
        return pl.Series(numbers).set(~random_mask(self.rng, n, share), None)

    def labels(self, k: int, users: pl.Series) -> pl.DataFrame:
        """user, and for each kind of label a column (or kind_0, kind_1, ...) of 0 and 1, null where it is not known.

        Args:
            users: ids of the users of network k.
        """
        kinds: dict[str, NDArray[np.generic]] = {
            "gender": self.gender[:, None],
            "occupation": self.occupations,
            "interest": self.interests,
        }
        table, n = pl.DataFrame({"user": users}), len(users)
        for kind, share in self.described.labelled.items():
            values = kinds[kind][self.members[k]].astype(np.int8)
            names = [kind] if values.shape[1] == 1 else [f"{kind}_{number}" for number in range(values.shape[1])]
            labelled = pl.Series(self.rng.permutation(n) < round(share * n))
            table = table.hstack(pl.DataFrame(values, schema=names).select(pl.when(labelled).then(pl.all())))
        return table.filter(pl.any_horizontal(pl.exclude("user").is_not_null()))
