"""What the untrusted recommender keeps of single submissions, and what it expects of averaged ones.

It knows how training goes on: where all vectors start, each V that it sends, and the published ratings. So it can do
users' steps itself with published ratings alone, and know about where each user's vector is in every iteration. This
leaves out how the vector moved by sensitive ratings, by friends, and from where exactly it started. (In PrivSR's
rigorous accounting friends are all that is left out, but for the start.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from tasks.models.replayed import Replayed
from tasks.models.social.messages import Broadcast, Memory, Noises
from tasks.models.social.ratings import RatingTable
from tasks.models.social.users import Steps, Users


class Replay:
    """Users as the recommender expects them, besides what it remembers of submissions about sensitive ratings."""

    def __init__(
        self,
        published: RatingTable,
        targets: RatingTable,
        variance: NDArray[np.float64],
        dimension: int,
        steps: Steps,
        rng: np.random.Generator,
    ) -> None:
        """Start with every user at the common start of all.

        Args:
            published: all published ratings.
            targets: sensitive ratings, in the order of the submissions; their values are not looked at.
            variance: (n,) of the noise in one coordinate of one submission, over h as well.
            dimension: K.
            rng: nothing is drawn.
        """
        n_users, n_items = published.shape
        self.senders, self.items, self.variance = targets.users, targets.items, variance
        ids, start = np.empty(0, np.int32), np.full((n_users, dimension), dimension**-0.5, np.float32)
        unknown = RatingTable(ids, ids, np.empty(0, np.float32), n_users, n_items)
        self._users = Users(unknown, published, None, start, None, Noises(), steps._replace(alpha=0.0), rng)
        self._expected, self._along = (
            Memory(self.senders, self.items, self.items, n_items, variance, dimension) for _ in range(2)
        )
        self.first, self.first_variance, self.first_items = np.zeros((3, len(variance), dimension), np.float32)

    def add(self, values: NDArray[np.float32], broadcast: Broadcast) -> None:
        """Submissions of one iteration about the targets, (n, K), and what they answer."""
        vectors, items = self._users.vectors[self.senders], broadcast.vectors[self.items]
        mixing = broadcast.sensitive_mixing
        if not self._along.count:
            self.first[:], self.first_items[:] = values, items
            self.first_variance[:] = self.variance[:, None] * (1 if mixing is None else mixing[self.items])
        self._expected.add(np.einsum("nk,nk->n", vectors, items)[:, None] * vectors, mixing)
        self._along.add(vectors, mixing)

    def step(self, items: NDArray[np.float32]) -> None:
        """What users would do with (n_items, K) item vectors if published ratings were all."""
        self._users.step(items, None)

    def replayed(self) -> Replayed:
        """So far; zeros before the first message."""
        return Replayed(
            senders=self.senders,
            subjects=self.items,
            first=self.first,
            first_variance=self.first_variance,
            first_items=self.first_items,
            expected=self._expected.averages().weighted,
            along=self._along.averages().weighted,
        )

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint; they share memory with this object."""
        names = ("first", "first_variance", "first_items")
        tensors = {name: from_numpy(getattr(self, name)) for name in names} | {"users": from_numpy(self._users.vectors)}
        for name, memory in (("expected", self._expected), ("along", self._along)):
            tensors |= {f"{name}.{part}": tensor for part, tensor in memory.tensors().items()}
        return tensors
