"""What the parties of PrivSR say to each other, one class per kind of message, each able to count itself.

Source: Meng et al., "Personalized privacy-preserving social recommendation" (AAAI 2018), Algorithm 1. An object stands
for all messages of its kind in one iteration. Messages that nobody looks at one by one are kept as their sum with the
number of messages in it. A number is a float32; ids, addresses and what never changes (who rated what) are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
