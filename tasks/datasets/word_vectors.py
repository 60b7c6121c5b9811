"""Vectors in [0, 1]^K of words: reduced from published ones, or hashed from their spelling (docs/methods.md §4).

**Published vectors** are reduced to K numbers by principal components of their whole vocabulary, and each number is
scaled to [0, 1] between its least and greatest value in that vocabulary. The vocabulary is public, so neither the
components nor the scale tell anything about the users, as those of the words in use would.

**A word that has no vector** gets the mean of words it is made of or shares its stem with (`sub_words`); where there
are none, one hashed from its spelling with the vocabulary's own mean and spread.

**Hashed vectors** need no file: every sequence of 3 to 6 letters of a word (Bojanowski et al., TACL 2017), and the
word itself, has a Gaussian vector that a hash function gives; a word's is their sum, so words spelt alike have vectors
alike. They know nothing of what words mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from tasks.core.errors import DataError

GRAMS = range(3, 7)
"""Lengths of the sequences of letters that are hashed."""
SHORTEST_PART, SHORTEST_STEM = 3, 4
"""Letters of a word that is one of the two in a compound, and of a stem that two words share."""
RELATED = 5
"""Most words of one stem whose mean is taken: the most frequent ones."""


@dataclass(frozen=True)
class Vocabulary:
    """Words whose vectors are known."""

    rows: Mapping[str, int]
    """Word -> row, the most frequent word first."""
    vectors: NDArray[np.float64]
    """(n_words, K) in [0, 1]."""
    kept: float
    """Share of the published vectors' variance that K components keep."""


@dataclass(frozen=True)
class WordVector:
    """The vector of a word and where it is from."""

    how: Literal["vocabulary", "sub-words", "hashed"]
    parts: tuple[str, ...]
    """Words of the vocabulary whose mean it is."""
    vector: NDArray[np.float64]
    """(K,) in [0, 1]."""


def vocabulary(words: Sequence[str], vectors: NDArray[np.float64], dimension: int) -> Vocabulary:
    """Reduce published vectors to `dimension` numbers in [0, 1].

    Args:
        words: each once, the most frequent first.
        vectors: (n_words, width).

    Raises:
        DataError: the vectors do not vary in `dimension` directions.
    """
    centred = vectors - vectors.mean(axis=0)
    # The right singular vectors of a tall matrix are those of R in its QR decomposition, which is small.
    _, lengths, components = np.linalg.svd(np.linalg.qr(centred, mode="r"))
    rank = int((lengths > lengths[0] * max(vectors.shape) * np.finfo(np.float64).eps).sum())
    if dimension > rank:
        raise DataError(
            f"the vectors of {len(words)} words vary in {rank} directions, not in {dimension}: take a file with more "
            "words, or a smaller dimension"
        )
    chosen = components[:dimension]
    largest = np.abs(chosen).argmax(axis=1)
    chosen *= np.sign(chosen[np.arange(dimension), largest])[:, None]  # a component's sign is arbitrary
    coordinates = centred @ chosen.T
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    kept = float((lengths[:dimension] ** 2).sum() / (lengths**2).sum())
    return Vocabulary({word: row for row, word in enumerate(words)}, (coordinates - low) / (high - low), kept)


def look_up(words: Iterable[str], published: Vocabulary | None, dimension: int, seed: int) -> dict[str, WordVector]:
    """The vector of every word.

    Args:
        published: None where all vectors are hashed.
        dimension: K.
        seed: of hashed vectors.
    """
    return {word: _word_vector(word, published, dimension, seed) for word in words}


def _word_vector(word: str, published: Vocabulary | None, dimension: int, seed: int) -> WordVector:
    if published is None:
        return WordVector("hashed", (), ndtr(gaussian(word, dimension, seed)))
    if word in published.rows:
        return WordVector("vocabulary", (word,), published.vectors[published.rows[word]])
    if parts := sub_words(word, published.rows):
        return WordVector("sub-words", parts, published.vectors[[published.rows[part] for part in parts]].mean(axis=0))
    centre, std = published.vectors.mean(axis=0), published.vectors.std(axis=0)
    return WordVector("hashed", (), np.clip(centre + std * gaussian(word, dimension, seed), 0, 1))


def sub_words(word: str, published: Mapping[str, int]) -> tuple[str, ...]:
    """Known words that stand for an unknown one; empty where there are none.

    The first of: the two words that it is a compound of (home + maker; the most even of several cuts); words that
    share its beginning, as long a one as possible (educator: education, educated, educational); the longest word that
    it ends in (unemployed: employed). Beginning and end have `SHORTEST_STEM` letters and half the word at least.

    Args:
        published: its keys are words, the most frequent first.
    """
    cuts = [(word[:at], word[at:]) for at in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)]
    if compounds := [pair for pair in cuts if all(word in published for word in pair)]:
        return max(compounds, key=lambda pair: min(map(len, pair)))
    shortest = max(SHORTEST_STEM, (len(word) + 1) // 2)
    for length in range(len(word), shortest - 1, -1):
        if related := [other for other in published if other.startswith(word[:length])]:
            return tuple(related[:RELATED])
    ends = [word[-length:] for length in range(len(word) - 1, shortest - 1, -1)]
    return tuple([end for end in ends if end in published][:1])


def gaussian(word: str, dimension: int, seed: int) -> NDArray[np.float64]:
    """(dimension,) numbers from a word's spelling, each N(0, 1) over seeds; the same on every machine."""
    marked = f"<{word}>"
    grams = {marked} | {marked[at : at + n] for n in GRAMS for at in range(len(marked) - n + 1)}
    summed = np.sum([_draw_normal(gram, dimension, seed) for gram in sorted(grams)], axis=0)
    return summed / np.sqrt(len(grams))


def _draw_normal(gram: str, dimension: int, seed: int) -> NDArray[np.float64]:
    digest = hashlib.shake_256(f"{seed} {gram}".encode()).digest(4 * dimension)
    uniform = (np.frombuffer(digest, dtype="<u4") + 0.5) / 2**32  # never 0 or 1
    return ndtri(uniform)


def value_vectors(words: Iterable[Iterable[str]], vectors: Mapping[str, WordVector]) -> NDArray[np.float32]:
    """(n_values, K) in [0, 1]: of every value of an attribute, the mean of its words' vectors."""
    return np.array([np.mean([vectors[word].vector for word in value], axis=0) for value in words], dtype=np.float32)
