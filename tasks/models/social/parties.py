"""The parties of PrivSR: users with their ratings and vectors, friends, and the recommender that no one trusts.

Source: Meng et al. (AAAI 2018), Algorithm 1, Eqs. 2, 6, 8, 9 and Theorem 2. Each class holds what its party knows, and
no more. `Users` are all users at once: row i of anything computed there depends on user i's own ratings, on what the
recommender sent and on what friends sent. A user's friends F_i are those whom the user trusts, as the data sets have
it: f sends to i, not i to f. `UntrustedRecommender` has item vectors and what users submitted; no rating and no user's
vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.models.social import passes
from tasks.models.social.messages import Broadcast, FriendMessages, Noises, Submissions
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
            sums += noise.gaussian(self.rng, "sums-of-messages", std * self._rest[:, None], sums.shape, single=True)
            np.add.at(sums, receivers, shares)
        return FriendMessages(sums, watched, mixing)


class Steps(NamedTuple):
    """Gradient descent on J: γ, λ, α, and whether users' vectors stay in the unit ball."""

    learning_rate: float
    regularization: float
    alpha: float = 0.0
    projection: bool = True


class Users:
    """All users.

    sensitive, public: their ratings.
    vectors: (n_users, K) float32 u, changed in place.
    public_vectors: (n_users, K) float32 w, trained on public ratings alone, if submissions and messages to friends are
        computed with those; None if they are computed with u.
    """

    def __init__(
        self,
        sensitive: RatingTable,
        public: RatingTable,
        friends: Friends | None,
        vectors: NDArray[np.float32],
        public_vectors: NDArray[np.float32] | None,
        noises: Noises,
        steps: Steps,
        rng: np.random.Generator,
    ) -> None:
        self.sensitive, self.public, self.friends = sensitive, public, friends
        self.vectors, self.public_vectors = vectors, public_vectors
        self.noises, self.steps, self.rng = noises, steps, rng
        self.watch(np.empty(0, np.intp))
        self.squared_error = 0.0
        """Mean of (uᵀv - r)² over all ratings, of u before the last step; where there is w, of (wᵀv - r)² over public
        ratings alone: it is published, and tells of no sensitive rating what V does not tell."""

    @property
    def shown(self) -> NDArray[np.float32]:
        """The vectors with which submissions and messages are computed."""
        return self.vectors if self.public_vectors is None else self.public_vectors

    def watch(self, positions: NDArray[np.intp]) -> None:
        """Someone looks at single submissions about non-sensitive ratings from now on: (n_watched,) ascending."""
        table = self.public
        self.watched = positions
        left = table.of_item - np.bincount(table.items[positions], minlength=table.shape[1])
        self._rest = np.sqrt(left / np.maximum(table.of_item, 1)).astype(np.float32)

    def submit(self, broadcast: Broadcast) -> Submissions:
        """2 (uᵀv - r) u of every rating, with a share of noise each (Algorithm 1, lines 5-8).

        What is submitted about non-sensitive ratings is added up by item. The noise of what no one watches is drawn as
        one, with the law of the sum of its shares.
        """
        table, vectors = self.sensitive, self.shown
        errors = table.errors(vectors, broadcast.vectors)
        values = (2 * errors)[:, None] * vectors[table.users]
        law = self.noises.sensitive
        if law.law != "none":
            std = np.broadcast_to(law.standard_deviation(broadcast.sensitive_mixing), broadcast.vectors.shape)
            scale = std * law.share(table.of_item)[:, None]
            values += noise.gaussian(self.rng, "submissions", scale[table.items], values.shape, single=True)
        sums, watched = self._submit_public(broadcast)
        return Submissions(self.sensitive.items, values, sums, watched)

    def _submit_public(self, broadcast: Broadcast) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """About non-sensitive ratings: sums by item, (n_items, K), and those that are watched, (n_watched, K)."""
        table, law = self.public, self.noises.public
        items, sums = table.items[self.watched], np.zeros_like(broadcast.vectors)
        watched = np.zeros((len(items), sums.shape[1]), np.float32)
        if law.law != "none":
            assert not law.colluders
            std = np.broadcast_to(law.standard_deviation(broadcast.public_mixing), sums.shape)
            scale = (std * law.share(table.of_item)[:, None])[items]
            watched = noise.gaussian(self.rng, "watched submissions", scale, watched.shape, single=True)
            remainder = std * self._rest[:, None]
            sums = noise.gaussian(self.rng, "sums-of-submissions", remainder, sums.shape, single=True)
        passes.submissions(*table.columns, self.shown, broadcast.vectors, self.watched, watched, sums)
        return sums, watched

    def exchange(self) -> FriendMessages | None:
        """What friends tell each other; None without friends."""
        return None if self.friends is None else self.friends.exchange(self.shown)

    def step(self, items: NDArray[np.float32], messages: FriendMessages | None) -> None:
        """A gradient step of every user on the own part of J, then back into the unit ball (lines 11-14).

        The gradient is that of J in docs/methods.md §5 with friends' vectors held fixed:
        2 Σ (uᵀv - r) v + α (2 Σ S (u - u_f) + Σ q) + 2λu. (The paper prints Eq. 9 without the
        factor of 2 before its first sum.)

        Args:
            items: (n_items, K) v as the recommender shares them.
            messages: of friends, computed before anyone's step.
        """
        shown, n_shown = None, len(self.public)
        if self.public_vectors is not None:
            shown = self._descend(self.public_vectors, [self.public], items, messages)
        squares = self._descend(self.vectors, [self.sensitive, self.public], items, messages)
        if shown is None:
            shown, n_shown = squares, len(self.sensitive) + len(self.public)
        self.squared_error = shown / max(n_shown, 1)

    def _descend(
        self,
        vectors: NDArray[np.float32],
        tables: list[RatingTable],
        items: NDArray[np.float32],
        messages: FriendMessages | None,
    ) -> float:
        """Change `vectors` in place by one step; returns the sum of squared errors before it."""
        steps = self.steps
        gradient = np.float32(2 * steps.regularization) * vectors
        squares = 0.0
        for table in tables:
            squares += passes.descent(*table.columns, vectors, items, gradient)
        if messages is not None and self.friends is not None:
            gradient += steps.alpha * (2 * self.friends.total[:, None] * vectors + messages.sums)
        vectors -= steps.learning_rate * gradient
        if steps.projection:
            into_unit_ball(vectors)
        return squares


def into_unit_ball(vectors: NDArray[np.float32]) -> None:
    """Shorten rows of norm above 1 to norm 1, in place: the sensitivity of a submission needs that."""
    norms = np.sqrt(np.einsum("nk,nk->n", vectors, vectors, dtype=np.float64))
    # a little more than 1, so that rounding to single precision never leaves a row outside
    vectors /= np.maximum(norms * (1 + 1e-6), 1)[:, None].astype(np.float32)


class UntrustedRecommender:
    """Draws h and takes the gradient steps of item vectors (Meng et al. 2018, Algorithm 1, lines 3-9, Eq. 8).

    vectors: (n_items, K) float32 v, changed in place.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        noises: Noises,
        steps: Steps,
        sensitive_weight: float,
        rng: np.random.Generator,
    ) -> None:
        self.vectors, self.noises, self.steps = vectors, noises, steps
        self.sensitive_weight, self.rng = sensitive_weight, rng

    def broadcast(self) -> Broadcast:
        """Item vectors and a fresh h for every item; how much is drawn depends on nothing that users did."""
        shape = (len(self.vectors), self.vectors.shape[1])
        sensitive = self.noises.sensitive.mixing(shape, self.rng)
        return Broadcast(self.vectors, sensitive, self.noises.public.mixing(shape, self.rng))

    def receive(self, submissions: Submissions) -> None:
        """One step against the sum of all submissions and 2λv; those about sensitive ratings are weighted."""
        n = len(submissions.items)
        which = csr_array(
            (np.ones(n, np.float32), submissions.items, np.arange(n + 1, dtype=np.int32)), shape=(n, len(self.vectors))
        )
        gradient = submissions.sums + 2 * self.steps.regularization * self.vectors
        gradient += self.sensitive_weight * (which.T @ submissions.values)
        self.vectors -= self.steps.learning_rate * gradient
