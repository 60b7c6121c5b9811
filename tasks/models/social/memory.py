"""What receivers of messages remember of them: averages over iterations, plain and by inverse variance."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.models.base import Received


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
