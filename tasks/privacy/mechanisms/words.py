"""Texts under metric differential privacy: every word is replaced by a random one, more likely by a near one.

Word x becomes y, of the whole vocabulary V, with probability exp(-½ε d(x, y)) / Σ_z exp(-½ε d(x, z)), d the Euclidean
distance of the vectors φ (equation 5 of DP-CroSUE, after Yue et al., "Differential privacy for text analytics via
natural text sanitization", Findings of ACL 2021; docs/methods.md §6).

**What holds.** For words x, x' and any y, |d(x, y) - d(x', y)| <= d(x, x') changes the numerator, and every term of the
denominator and so the denominator, by at most e^(½ε d(x, x')) each: together e^(ε d(x, x')), which is what ½ is for.

- One word replaced by another at distance d costs ε d: ε is per unit of distance and meaningless without φ's scale.
- One word replaced by any other costs at most ε D, D the diameter of the vectors (`diameter`): a pure ε.
- A text of n words replaced by any other of n words costs at most n ε D (`epsilon_total`), since words are drawn
  independently. A user's texts together are one such text. `epsilon_per_distance` gives the ε for a total.

**What does not.** How many words a text has shows. All of it supposes vocabulary and vectors that were chosen without
looking at the texts: where they are counted and fitted on the texts themselves (the paper's Word2Vec), replacing one
word moves all vectors, the law of every word with them, and no finite ε follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import RECORDED, SEED_OF_RELEASE, side_by_side
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry
from tasks.privacy.checks import check_epsilon
from tasks.privacy.remarks import because, gap
from tasks.privacy.terms import Unit

BLOCK = 1 << 22
"""Most numbers in a block of distances (32 MiB), unless one word's own are more."""
Vectors = Literal["public", "fitted"]
"""Where vocabulary and vectors are from: chosen without looking at the texts, or counted and fitted on them."""


def substitute(
    word_ids: NDArray[np.integer], vectors: NDArray[np.floating], epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Replace every word by one that is drawn for it alone; ε d(x, x')-metric-DP per word (the module says more).

    A word's distances are computed once for all its occurrences, a block of words at a time: 2 × distinct words × |V| ×
    d operations in float64, and memory for a block, the vectors twice and the words. Which word an occurrence becomes
    depends on the generator, the word and how many come before it, not on the blocks.

    Args:
        word_ids: (n_tokens,) in 0..|V|-1; words outside the vocabulary are dropped or mapped before.
        vectors: (|V|, d) finite.
        epsilon: budget per unit of distance.

    Returns:
        (n_tokens,) ids.

    Raises:
        ValueError: epsilon is not a positive finite number, a vector is not finite (names the component and row), or an
            id is outside the vocabulary (says how many, and the first).
    """
    check_epsilon(epsilon)
    epsilon = noise.budget(rng, epsilon)
    centred = _centre(vectors)
    word_ids = _check(word_ids, len(centred))
    uniform = noise.uniform(rng, "which word", len(word_ids))
    order = np.argsort(word_ids, kind="stable")
    counts = np.bincount(word_ids, minlength=len(centred))
    result, done = np.empty(len(word_ids), np.int64), 0
    for words, weights in _weights(np.flatnonzero(counts), centred, epsilon):
        tokens = order[done : done + counts[words].sum()]
        done += len(tokens)
        np.cumsum(weights, axis=1, out=weights)
        rows = np.repeat(np.arange(len(words)), counts[words])
        result[tokens] = _invert_cumulative(weights, rows, uniform[tokens])
    return result


def diameter(vectors: NDArray[np.floating]) -> float:
    """D, the largest distance of two words, 0 without words; takes as long as replacing every word once.

    Args:
        vectors: (|V|, d) finite.

    Raises:
        ValueError: a vector is not finite.
    """
    centred = _centre(vectors)
    blocks = _distances(np.arange(len(centred)), centred)
    return max((float(distances.max()) for _, distances in blocks), default=0.0)


def epsilon_total(n_words: int, epsilon: float, diameter: float) -> float:
    """n ε D: a pure budget that covers replacing all of n words by any others (n = 1: one word by any other).

    Raises:
        ValueError: epsilon is not positive and finite, or n or D is negative or infinite.
    """
    check_epsilon(epsilon)
    _check_extent(n_words, diameter)
    return n_words * epsilon * diameter


def epsilon_per_distance(total: float, n_words: int, diameter: float) -> float:
    """The ε for `substitute` with which replacing all of n words by any others costs `total`.

    Raises:
        ValueError: an argument is not positive and finite.
    """
    check_epsilon(total)
    _check_extent(n_words, diameter)
    if n_words * diameter == 0:
        raise ValueError(f"n_words and diameter must be positive (are {n_words} and {diameter})")
    return total / (n_words * diameter)


def ledger(
    epsilon: float, n_words: int, diameter: float, vectors: Vectors, accounting: Accounting, n_releases: int
) -> tuple[LedgerEntry, ...]:
    """What one release of substituted texts spent: on a word at distance 1, on any word, and on a user's whole text.

    The paper claims the first alone. In `rigorous` accounting the last is claimed too, for ε is then calibrated to it.

    Args:
        epsilon: per unit of distance.
        n_words: most words that one user has, in all its texts together.
        diameter: of the vectors.
        vectors: `fitted`: nothing finite follows.
        n_releases: how many releases an entry of `perturbed` makes of the same texts (budgets of a sweep × seeds).

    Raises:
        ValueError: epsilon, n_words or diameter is not positive and finite.
    """
    total = epsilon_total(n_words, epsilon, diameter)
    if not total:
        raise ValueError(f"n_words and diameter must be positive (are {n_words} and {diameter})")
    at_distance_1 = Event(kind="pure-local", parameters={"epsilon": epsilon})
    any_word = Event(kind="pure-local", parameters={"epsilon": epsilon * diameter})
    rigorous = accounting == "rigorous"
    covered: tuple[tuple[Unit, Event, float | None], ...] = (
        ("near-word", at_distance_1, epsilon),
        ("word", any_word, None),
        ("texts", any_word.model_copy(update={"count": n_words}), total if rigorous else None),
    )
    gaps = (gap("text-counts"), *side_by_side(n_releases), RECORDED, SEED_OF_RELEASE, gap("words-float"))
    fitted = vectors == "fitted"
    kind = {"kind": "metric-exponential-on-fitted-vectors"} if fitted else {}
    why: dict[str, Any] = {"reasons": (because("fitted-vectors"),)} if fitted else {}
    return tuple(
        accounted_entry(
            [event.model_copy(update=kind)],
            protects="text",
            unit=unit,
            neighbouring="replace",
            mechanism="exponential-words",
            accounting=accounting,
            claimed_epsilon=claimed,
            given=() if fitted else ("vocabulary",),
            gaps=gaps,
            **why,
        )
        for unit, event, claimed in covered
    )


def _weights(
    words: NDArray[np.int64], centred: NDArray[np.float64], epsilon: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Words in blocks with exp(-½ε d) to every word: a word's own is 1, so no sum underflows however large ε is."""
    for chosen, distances in _distances(words, centred):
        distances *= -epsilon / 2
        np.exp(distances, out=distances)
        yield chosen, distances


def _distances(
    words: NDArray[np.int64], centred: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Words in blocks with their distances to every word: (words of the block, |V|), overwritten by the next block."""
    n_words, dimension = centred.shape
    squared = np.einsum("ij,ij->i", centred, centred)
    n_rows = max(1, BLOCK // max(n_words, 1))
    memory = np.empty((min(n_rows, len(words)), n_words))
    # |a|² + |b|² - 2ab of equal vectors is off by less than this times |a|².
    rounding = 4 * (dimension + 4) * np.finfo(np.float64).eps
    for start in range(0, len(words), n_rows):
        chosen = words[start : start + n_rows]
        distances = memory[: len(chosen)]
        np.matmul(-2 * centred[chosen], centred.T, out=distances)
        squared_own = squared[chosen, None]
        distances += squared
        distances += squared_own
        distances[distances <= rounding * squared_own] = 0
        distances[np.arange(len(chosen)), chosen] = 0
        yield chosen, np.sqrt(distances, out=distances)


def _invert_cumulative(
    cumulative: NDArray[np.float64], rows: NDArray[np.int64], uniform: NDArray[np.float64]
) -> NDArray[np.int64]:
    """For each draw the first column of its row whose sum exceeds `uniform` × the row's total, by bisection.

    Args:
        cumulative: (n_rows, n_columns) sums from the left, totals above 0.
        rows: (n_draws,).
        uniform: (n_draws,) in [0, 1).
    """
    n_columns = cumulative.shape[1]
    # A product that rounds up to the total would fit no column.
    goal = np.minimum(uniform * cumulative[rows, -1], np.nextafter(cumulative[rows, -1], 0))
    low, high = np.zeros(len(rows), np.int64), np.full(len(rows), n_columns - 1)
    for _ in range(int(n_columns - 1).bit_length()):
        middle = (low + high) // 2
        exceeds = cumulative[rows, middle] > goal
        high = np.where(exceeds, middle, high)
        low = np.where(exceeds, low, middle + 1)
    return low


def _centre(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Less their mean, which changes no distance and makes products smaller, so that they round less."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2:
        raise ValueError(f"vectors must have shape (n_words, dimension) (have {vectors.shape})")
    wrong = ~np.isfinite(vectors)
    if wrong.any():
        component = int(wrong.any(axis=0).argmax())
        rows = wrong[:, component]
        raise ValueError(
            f"vectors: component {component} of {int(rows.sum())} of {len(vectors)} rows is not finite "
            f"(first: row {int(rows.argmax())})"
        )
    if not len(vectors):
        return vectors.astype(np.float64)
    centred: NDArray[np.float64] = vectors - vectors.mean(axis=0, dtype=np.float64)
    if centred.size and np.abs(centred).max() > np.sqrt(np.finfo(np.float64).max / (4 * centred.shape[1])):
        raise ValueError("vectors: distances do not fit in float64; scale the vectors")
    return centred


def _check(word_ids: NDArray[np.integer], n_words: int) -> NDArray[np.int64]:
    word_ids = np.asarray(word_ids)
    if word_ids.ndim != 1 or not np.issubdtype(word_ids.dtype, np.integer):
        raise ValueError(f"word_ids must be integers of shape (n,) (are {word_ids.dtype} of shape {word_ids.shape})")
    wrong = (word_ids < 0) | (word_ids >= n_words)
    if count := int(wrong.sum()):
        row = int(wrong.argmax())
        raise ValueError(
            f"word_ids: {count} of {len(word_ids)} rows are outside 0..{n_words - 1} "
            f"(first: row {row}, value {word_ids[row]})"
        )
    return word_ids.astype(np.int64)


def _check_extent(n_words: int, diameter: float) -> None:
    if n_words < 0 or not 0 <= diameter < np.inf:
        raise ValueError(f"n_words and diameter must be finite and not negative (are {n_words} and {diameter})")
