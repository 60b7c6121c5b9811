"""What someone who got messages again and again recalls of each, next to their averages (`tasks.models.base.Received`).

Apart from the base, so that what no model of this kind decides does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Replayed:
    """What an untrusted recommender keeps of single submissions, and what it expects of their averages.

    It expects w of a user's vector: what the user's steps on published ratings alone would make of it.

    senders, subjects: (n,) int32 users and items, as in `Received`.
    first: (n, K) float32, the submission of the first iteration.
    first_variance: (n, K) float32, variance of the noise in it, given what the recommender drew; 0 without noise.
    first_items: (n, K) float32, the item's vector in that iteration.
    expected: (n, K) float32, (wᵀv) w of all iterations, averaged as `Received.weighted` is.
    along: (n, K) float32, w of all iterations, averaged likewise.
    """

    senders: NDArray[np.int32]
    subjects: NDArray[np.int32]
    first: NDArray[np.float32]
    first_variance: NDArray[np.float32]
    first_items: NDArray[np.float32]
    expected: NDArray[np.float32]
    along: NDArray[np.float32]


@runtime_checkable
class Replaying(Protocol):
    """A model whose recommender does so."""

    def replayed(self) -> Replayed | None:
        """Of the submissions of the last `fit`; None where nothing is submitted, and for a loaded model."""


@dataclass(frozen=True)
class Information:
    """What all submissions of a user together say of the user's sensitive ratings r: G = H (r - g) and noise N(0, H).

    senders, subjects: (n,) int32 users and items, sorted by both.
    guess: (n,) g, what published ratings make expect.
    gradient: (n,) G.
    matrix: (Σ n_i²,) H, of every user i in turn the n_i x n_i entries, row by row.
    """

    senders: NDArray[np.int32]
    subjects: NDArray[np.int32]
    guess: NDArray[np.float64]
    gradient: NDArray[np.float64]
    matrix: NDArray[np.float64]


@runtime_checkable
class Informing(Protocol):
    """A model whose recommender adds that up."""

    def information(self) -> Information | None:
        """Of the last `fit`; None where messages depend on no trained sensitive rating, and for a loaded model."""
