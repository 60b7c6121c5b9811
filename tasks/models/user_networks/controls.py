"""What an attacker has without any embedding: attributes as they are, the number of friends, and random vectors.

These are systems like all others, judged and attacked on the same users and pairs: what an embedding gives away beyond
them, it gives away itself.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.draws import normal
from tasks.models.user_networks.base import NetworkData, UserEmbedder, raw_inputs
from tasks.privacy.terms import Protected


class Control(UserEmbedder):
    """An embedding that nothing is learnt for."""

    config: ModelConfig

    @abstractmethod
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        """(n_users, d)."""

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        self._entries = tuple(raw_inputs([data], self.reads))
        self._embeddings = {"users": torch.from_numpy(self.vectors(data, rng))}
        return self


class Attributes(Control):
    """A user's attributes, encoded; of perturbed ones what was released."""

    reads: ClassVar[frozenset[Protected]] = frozenset({"feature"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        """See `Control.vectors`.

        Raises:
            DataError: users have no attributes.
        """
        if data.features is None:
            raise DataError("network: users have no attributes; choose a model that needs none")
        return data.features


class Degree(Control):
    """A vector of length one: a user's number of friends."""

    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return np.bincount(data.links.ravel(), minlength=data.n_users).astype(np.float32)[:, None]


class RandomConfig(ModelConfig):
    """Configuration of `Random`."""

    dimension: int = Field(default=128, ge=1)
    """Length of the vectors."""


class Random(Control):
    """Standard normal vectors, which know nothing: what they get is the level of chance."""

    config: RandomConfig
    reads: ClassVar[frozenset[Protected]] = frozenset()

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return normal(rng, (data.n_users, self.config.dimension), single=True)
