"""SR-GNN (Wu et al., AAAI 2019), and APGNN (Zhang et al., TKDE 2020), which adds the user."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from tasks.graph.ops import Block
from tasks.models.sessions.gated import GatedConfig, GatedSessions


class SRGNN(GatedSessions):
    """Adjacency rows are divided by the number of their edges, and nothing is known of a user (Section 3.2)."""

    def edge_weights(self, block: Block) -> Tensor:
        """1 / number of the version's edges; an edge that occurs twice counts twice."""
        return (1.0 / block.indptr.diff().clamp(min=1)).float()[block.centres]


class APGNNConfig(GatedConfig):
    """Configuration of `APGNN`."""

    user_dimension: int = Field(ge=1)
    """Length of user vectors, d' of the papers."""


class APGNN(SRGNN):
    """SR-GNN with a user vector, made of the user's true features, in every node state and in the readout.

    DIPSGNN's authors compare with APGNN as a model of "user profiles". Its attention over a user's earlier sessions is
    left out: a user has one sequence here.
    """

    config: APGNNConfig
    uses_features: ClassVar[bool] = True
