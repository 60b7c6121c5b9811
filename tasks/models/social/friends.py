"""Friends: how similar they are by what they published, and what they tell each other of their vectors.

Source: Meng et al. (AAAI 2018), Eqs. 2, 6 and Theorem 2. A user's friends F_i are those whom the user trusts, as the
data sets have it: f sends to i, not i to f.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.models.social.messages import FriendMessages
from tasks.models.social.ratings import RatingTable
from tasks.privacy import noise
from tasks.privacy.mechanisms.shared_noise import SharedNoise

BLOCK = 8192  # links at a time


def similarities(public: RatingTable, links: NDArray[np.int32]) -> NDArray[np.float32]:
    """S_if, the cosine of two users' ratings over the items that both published a rating of (0 without any).

    Args:
        public: non-sensitive ratings; nothing else enters.
        links: (n_links, 2) user ids.

    Returns:
        (n_links,) float32; a negative cosine (possible on scales with negative ratings) counts as 0.
    """
    values = public.matrix(public.values)
    squares, rated = public.matrix(public.values**2), public.matrix(np.ones_like(public.values))
    cosines = np.zeros(len(links), np.float32)
    for start in range(0, len(links), BLOCK):
        receiver, other = links[start : start + BLOCK].T
        product = (values[receiver] * values[other]).sum(axis=1)
        norms = (squares[receiver] * rated[other]).sum(axis=1) * (rated[receiver] * squares[other]).sum(axis=1)
        cosine = product / np.sqrt(np.where(norms > 0, norms, 1))
        cosines[start : start + BLOCK] = np.clip(cosine, 0, 1)
    return cosines


class Friends:
    """The exchange among all users at once.

    receivers, senders: (n_links,) int32: i, and f in F_i; no one is a friend of oneself.
    similarity: (n_links,) float32, S_if.
    watched: (n_watched,) positions in these: of every user who sends to someone similar, the one with the lowest id.
    """

    def __init__(
        self, public: RatingTable, links: NDArray[np.int32], noise: SharedNoise, rng: np.random.Generator
    ) -> None:
        """public: non-sensitive ratings; links: (n_links, 2), a user and a friend of that user."""
        links = np.unique(links[links[:, 0] != links[:, 1]].reshape(-1, 2), axis=0)
        self.receivers, self.senders = links[:, 0], links[:, 1]
        self.similarity = similarities(public, links)
        self.noise = noise
        self.rng = rng
        n_users = public.shape[0]
        self.counts: NDArray[np.int64] = np.bincount(self.receivers, minlength=n_users)
        rows = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int32)
        self._weights = csr_array((self.similarity, self.senders, rows), shape=(n_users, n_users))
        self.total: NDArray[np.float32] = self._weights.sum(axis=1).astype(np.float32)
        similar = np.flatnonzero(self.similarity > 0)
        order = similar[np.lexsort((self.receivers[similar], self.senders[similar]))]
        self.watched = order[np.unique(self.senders[order], return_index=True)[1]]
        watched_here = np.bincount(self.receivers[self.watched], minlength=n_users)
        share = 1 - watched_here / np.maximum(self.counts, 1)
        self._rest = np.sqrt(np.where(self.counts > 0, share, 0)).astype(np.float32)

    def exchange(self, vectors: NDArray[np.float32]) -> FriendMessages:
        """Every friend's message 2 S_if u_f with fresh noise, the sign as in Algorithm 1: q_if - 2 S_if u_f.

        The noise of messages that no one watches is drawn as one sum, with the law of the sum of their shares.

        Args:
            vectors: (n_users, K) u, of which a message contains its sender's row alone.
        """
        sums = -2 * (self._weights @ vectors)
        receivers, senders = self.receivers[self.watched], self.senders[self.watched]
        watched = -2 * self.similarity[self.watched, None] * vectors[senders]
        mixing = self.noise.mixing(vectors.shape, self.rng)
        if self.noise.law != "none":
            std = np.broadcast_to(self.noise.standard_deviation(mixing), vectors.shape)
            scale = std[receivers] * self.noise.share(self.counts[receivers])[:, None]
            shares = noise.gaussian(self.rng, "messages", scale, watched.shape, single=True)
            watched += shares
            sums += noise.gaussian(self.rng, "sums of messages", std * self._rest[:, None], sums.shape, single=True)
            np.add.at(sums, receivers, shares)
        return FriendMessages(sums, watched, mixing)
