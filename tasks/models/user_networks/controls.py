"""What an attacker has without any embedding: attributes as they are, the number of friends, and random vectors.

These are systems like all others, judged and attacked on the same users and pairs: what an embedding gives away beyond
them, it gives away itself.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import ModelConfig
from tasks.models.draws import normal
from tasks.models.user_networks.base import DirectEmbedder, NetworkData
from tasks.privacy.terms import Protected


class Attributes(DirectEmbedder):
    """A user's attributes, encoded; of perturbed ones what was released."""

    config: ModelConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"feature"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        """See `DirectEmbedder.vectors`."""
        if data.features is None:
            raise DataError("network: users have no attributes; choose a model that needs none")
        return data.features


class Degree(DirectEmbedder):
    """A vector of length one: a user's number of friends."""

    config: ModelConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return np.bincount(data.links.ravel(), minlength=data.n_users).astype(np.float32)[:, None]


class RandomConfig(ModelConfig):
    """Configuration of `Random`."""

    dimension: int = Field(default=128, ge=1)
    """Length of the vectors."""


class Random(DirectEmbedder):
    """Standard normal vectors, which know nothing: what they get is the level of chance."""

    config: RandomConfig
    reads: ClassVar[frozenset[Protected]] = frozenset()

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return normal(rng, (data.n_users, self.config.dimension), single=True)
