"""The untrusted recommender: it holds item vectors, and what users submitted; no rating and no user's vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.models.social.messages import Broadcast, Noises, Submissions
from tasks.models.social.users import Steps


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
