"""What the parties of PrivSR send each other, one class per kind of message, and what receivers average of it.

Source: Meng et al., "Personalized privacy-preserving social recommendation" (AAAI 2018), Algorithm 1. An object stands
for all messages of its kind in one iteration. Messages that are not looked at one by one are kept as their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.models.base import Received
from tasks.privacy.mechanisms.shared_noise import SharedNoise


class Noises(NamedTuple):
    """Noise on what users send: to an item's sums, of sensitive and of other ratings, and to a friend."""

    sensitive: SharedNoise = SharedNoise()
    public: SharedNoise = SharedNoise()
    friends: SharedNoise = SharedNoise()


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


@dataclass(frozen=True)
class Submissions:
    """From users to the recommender: 2 (uᵀv - r) u and noise, of every rating.

    items: (n_sensitive,) int32, of submissions about sensitive ratings.
    values: (n_sensitive, K) float32, each of them.
    sums: (n_items, K) float32, all submissions about non-sensitive ratings of an item added up.
    watched: (n_watched, K) float32, those of them that are looked at one by one.
    """

    items: NDArray[np.int32]
    values: NDArray[np.float32]
    sums: NDArray[np.float32]
    watched: NDArray[np.float32]


@dataclass(frozen=True)
class FriendMessages:
    """Between friends: what user i got of all friends f, q_if - 2 S_if u_f, and the h_i that i had sent them for q.

    sums: (n_users, K) float32, all messages that a user got, added up.
    watched: (n_watched, K) float32, single messages: one of every user who sends to someone similar.
    mixing: (n_users, K), h_i; None where the noise needs none.
    """

    sums: NDArray[np.float32]
    watched: NDArray[np.float32]
    mixing: NDArray[np.float32] | None = None


class Memory:
    """Averages of messages that are sent again in every iteration.

    Conditional on h of Lemma 1, the variance of a coordinate's noise is proportional to h, which the receiver drew, so
    the best average of an unchanging signal has weights 1/h.
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

        Args:
            senders, subjects: (n,) see `Received`.
            mixed_by: (n,) each message's row of h.
            n_mixed: rows of h.
            variance: (n,) of the noise in one coordinate of one message, over h as well.
            dimension: K, length of a message.
        """
        self.senders, self.subjects, self.mixed_by, self.variance = senders, subjects, mixed_by, variance
        self.plain = np.zeros((len(senders), dimension), np.float32)
        self.weighted = np.zeros((len(senders), dimension), np.float32)
        self.weights = np.zeros((n_mixed, dimension), np.float32)
        self.count = np.zeros(1, np.int64)

    def add(self, values: NDArray[np.float32], mixing: NDArray[np.float32] | None) -> None:
        """Add messages of one iteration, (n, K), with h of their noise, (n_mixed, K); None: noise that needs no h."""
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
