"""The untrusted recommender, and what the parties of PrivSR say to each other and remember of it.

Source: Meng et al., "Personalized privacy-preserving social recommendation" (AAAI 2018), Algorithm 1. A message stands
for all of its kind in one iteration, and counts itself. Those that nobody looks at one by one are kept as their sum
with the number of messages in it. A number is a float32; ids, addresses and what never changes (who rated what) are not
counted. Receivers remember averages over iterations, plain and by inverse variance. The recommender holds item vectors,
and what users submitted; no rating and no user's vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from tasks.models.base import Received
from tasks.privacy.mechanisms.shared_noise import SharedNoise


class Memory:
    """Averages of messages that come again in every iteration.

    Given h of Lemma 1 the variance of a coordinate's noise is proportional to h, which the receiver drew, so the best
    average of an unchanging signal weights with 1/h.
    """

    def __init__(
        self,
        senders: NDArray[np.int32],
        subjects: NDArray[np.int32],
        mixed_by: NDArray[np.int32],
        n_mixed: int,
        variance: NDArray[np.float64],
        dimension: int,
    ) -> None:
        """Start with no message.

        senders, subjects: see `Received`; mixed_by: (n,) row of h that is a message's; variance: (n,) of the noise
        in one coordinate of one message, over h as well.
        """
        self.senders, self.subjects, self.mixed_by, self.variance = senders, subjects, mixed_by, variance
        self.plain = np.zeros((len(senders), dimension), np.float32)
        self.weighted = np.zeros((len(senders), dimension), np.float32)
        self.weights = np.zeros((n_mixed, dimension), np.float32)
        self.count = np.zeros(1, np.int64)

    def add(self, values: NDArray[np.float32], mixing: NDArray[np.float32] | None) -> None:
        """Messages of one iteration, (n, K), and h of the noise in them, (n_mixed, K) or None for noise without."""
        self.plain += values
        self.count += 1
        if mixing is None:
            self.weighted += values
            self.weights += 1
        else:
            inverse = 1 / np.maximum(mixing, np.finfo(np.float32).tiny)
            self.weighted += values * inverse[self.mixed_by]
            self.weights += inverse

    def averages(self) -> Received:
        """The averages so far; zeros before the first message."""
        count = max(int(self.count[0]), 1)
        weights = np.maximum(self.weights, np.finfo(np.float32).tiny)[self.mixed_by]
        return Received(
            senders=self.senders,
            subjects=self.subjects,
            mean=self.plain / np.float32(count),
            mean_variance=(self.variance / count).astype(np.float32),
            weighted=(self.weighted / weights).astype(np.float32),
            weighted_variance=(self.variance[:, None] / weights).astype(np.float32),
        )

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint; they share memory with this object."""
        names = ("plain", "weighted", "weights", "count")
        return {name: torch.from_numpy(getattr(self, name)) for name in names}


BYTES = 4


class Traffic(NamedTuple):
    """How much was said."""

    messages: int
    bytes: int

    def plus(self, other: Traffic) -> Traffic:
        """Both together."""
        return Traffic(self.messages + other.messages, self.bytes + other.bytes)


@dataclass(frozen=True)
class Broadcast:
    """From the recommender to users: vectors of the items that they rated, and h of those that need noise.

    vectors: (n_items, K) float32.
    sensitive_mixing, public_mixing: (n_items, K), h_j of the noise on submissions about sensitive and non-sensitive
        ratings; None where that noise needs none.
    """

    vectors: NDArray[np.float32]
    sensitive_mixing: NDArray[np.float32] | None = None
    public_mixing: NDArray[np.float32] | None = None

    def traffic(self, receivers: int, sensitive: int, public: int) -> Traffic:
        """One message to each of `receivers` users, who have so many sensitive and non-sensitive ratings in all."""
        vectors = sensitive * (1 + (self.sensitive_mixing is not None)) + public * (
            1 + (self.public_mixing is not None)
        )
        return Traffic(receivers, vectors * self.vectors.shape[1] * BYTES)


@dataclass(frozen=True)
class Submissions:
    """From users to the recommender: 2 (uᵀv - r) u and noise, of every rating.

    senders, items: (n_sensitive,) int32, of submissions about sensitive ratings.
    values: (n_sensitive, K) float32, each of them.
    sums: (n_items, K) float32, all submissions about non-sensitive ratings of an item added up.
    counts: (n_items,) how many those are.
    """

    senders: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    sums: NDArray[np.float32]
    counts: NDArray[np.int64]

    def traffic(self) -> Traffic:
        """One message of K numbers per rating."""
        messages = len(self.values) + int(self.counts.sum())
        return Traffic(messages, messages * self.values.shape[1] * BYTES)


@dataclass(frozen=True)
class FriendMessages:
    """Between friends: what user i got of all friends f, q_if - 2 S_if u_f, and the h_i that i had sent them for q.

    sums: (n_users, K) float32, all messages that a user got, added up.
    counts: (n_users,) how many those are.
    watched: (n_watched, K) float32, single messages: one of every user who sends to somebody similar.
    mixing: (n_users, K), h_i; None where the noise needs none.
    """

    sums: NDArray[np.float32]
    counts: NDArray[np.int64]
    watched: NDArray[np.float32]
    mixing: NDArray[np.float32] | None = None

    def traffic(self) -> Traffic:
        """One message of K numbers per link, and one back where there is an h."""
        messages = int(self.counts.sum()) * (1 + (self.mixing is not None))
        return Traffic(messages, messages * self.sums.shape[1] * BYTES)


class UntrustedRecommender:
    """Draws h and takes the gradient steps of item vectors (Meng et al. 2018, Algorithm 1, lines 3-9, Eq. 8).

    vectors: (n_items, K) float32 v, changed in place.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        *,
        sensitive_noise: SharedNoise,
        public_noise: SharedNoise,
        learning_rate: float,
        regularization: float,
        sensitive_weight: float,
        rng: np.random.Generator,
    ) -> None:
        self.vectors = vectors
        self.sensitive_noise, self.public_noise = sensitive_noise, public_noise
        self.learning_rate, self.regularization = learning_rate, regularization
        self.sensitive_weight = sensitive_weight
        self.rng = rng

    def broadcast(self) -> Broadcast:
        """Item vectors and a fresh h for every item; how much is drawn depends on nothing that users did."""
        shape = (len(self.vectors), self.vectors.shape[1])
        sensitive = self.sensitive_noise.mixing(shape, self.rng)
        return Broadcast(self.vectors, sensitive, self.public_noise.mixing(shape, self.rng))

    def receive(self, submissions: Submissions) -> None:
        """One step against the sum of all submissions and 2λv; those about sensitive ratings are weighted."""
        n = len(submissions.items)
        which = csr_array(
            (np.ones(n, np.float32), submissions.items, np.arange(n + 1, dtype=np.int32)), shape=(n, len(self.vectors))
        )
        gradient = submissions.sums + 2 * self.regularization * self.vectors
        gradient += self.sensitive_weight * (which.T @ submissions.values)
        self.vectors -= self.learning_rate * gradient
