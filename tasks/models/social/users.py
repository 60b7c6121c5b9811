"""The users' side: each user's own ratings and vector, all users at once.

Row i of anything computed here depends on user i's own ratings, on what the recommender sent and on what friends sent.
Source: Meng et al. (AAAI 2018), Algorithm 1, Eqs. 8 and 9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.models.social import passes
from tasks.models.social.friends import Friends
from tasks.models.social.messages import Broadcast, FriendMessages, Noises, Submissions
from tasks.models.social.ratings import RatingTable
from tasks.privacy import noise


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
        return Submissions(self.sensitive.users, self.sensitive.items, values, sums, watched)

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
            sums = noise.gaussian(self.rng, "sums of submissions", remainder, sums.shape, single=True)
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
