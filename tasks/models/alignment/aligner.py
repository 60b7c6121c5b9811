"""Two networks, the map between them, and how it is found: with no, few or many anchors (docs/methods.md §6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tasks.errors import DataError
from tasks.models.alignment.adversarial import AdversarialConfig, AdversarialStart
from tasks.models.alignment.csls import Csls, Normalisation, normalise
from tasks.models.alignment.cycle import CycleConfig, CycleStart, codes
from tasks.models.alignment.procrustes import Refined, procrustes, refine
from tasks.models.base import ModelConfig


class AlignmentConfig(ModelConfig):
    """Configuration of `Aligner`."""

    normalise: tuple[Normalisation, ...]
    """What is done to each network's embeddings first, in this order."""
    neighbours: int = Field(default=10, ge=1)
    """k of CSLS."""
    refinements: int = Field(ge=0)
    """Iterations of Procrustes on mutual nearest neighbours; 0 leaves the start as it is."""
    tie_seed: int = Field(default=0, ge=0)
    """Of the fixed random order that decides between users who are equally near."""
    adversarial: AdversarialConfig
    """How the start without anchors is found."""
    cycle: CycleConfig | None = None
    """How that of the authors' code is; None where it is not asked for."""


class Aligner:
    """Embeddings of two networks' users, (n_sources, d) and (n_targets, d) normalised float64, and their maps."""

    def __init__(self, config: AlignmentConfig, source: NDArray[np.floating], target: NDArray[np.floating]) -> None:
        """Take the embeddings, (n_sources, d) and (n_targets, d), as they were learned."""
        self.config = config
        self.source, self.target = (normalise(side, config.normalise) for side in (source, target))
        if self.source.shape[1] != self.target.shape[1]:
            widths = f"{self.source.shape[1]} and {self.target.shape[1]}"
            raise DataError(f"embeddings: widths differ ({widths}); embed both networks alike")

    @property
    def _measured(self) -> dict[str, int]:
        """How maps are judged."""
        return {"neighbours": self.config.neighbours, "tie_seed": self.config.tie_seed}

    def start(self, rng: np.random.Generator) -> AdversarialStart:
        """An adversarial start, not yet trained, so that a caller can keep its state between epochs."""
        return AdversarialStart(self.config.adversarial, self.source, self.target, rng=rng, **self._measured)

    def coded(self, source: NDArray[np.floating], target: NDArray[np.floating], rng: np.random.Generator) -> Aligner:
        """An aligner of the embeddings' codes, which are not normalised, for a start by `cycle_start`.

        Args:
            source, target: (n_sources, d) and (n_targets, d) embeddings as they were learned.
        """
        assert self.config.cycle is not None, "params.yaml has the way `cycle` only with its configuration"
        both = [codes(side, self.config.cycle.coder, rng) for side in (source, target)]
        return Aligner(self.config.model_copy(update={"normalise": ()}), *both)

    def cycle_start(self, rng: np.random.Generator) -> CycleStart:
        """As `start`, of the authors' code; the vectors are codes."""
        assert self.config.cycle is not None, "as in `coded`"
        return CycleStart(self.config.cycle, self.source, self.target, rng=rng, **self._measured)

    def from_anchors(self, anchors: NDArray[np.integer]) -> Refined:
        """The map of (n_anchors, 2) known pairs, which refinement keeps."""
        for side, users, name in zip(
            anchors.T, (len(self.source), len(self.target)), ("source", "target"), strict=True
        ):
            if wrong := int(((side < 0) | (side >= users)).sum()):
                raise DataError(f"anchors: {wrong} name a {name} user outside 0..{users - 1}")
        start = procrustes(self.source[anchors[:, 0]], self.target[anchors[:, 1]])
        return self.refine(start, anchors)

    def refine(self, mapping: NDArray[np.floating], anchors: NDArray[np.integer] | None = None) -> Refined:
        """Refine a (d, d) map as configured; see `refine`."""
        iterations = self.config.refinements
        return refine(self.source, self.target, mapping, iterations=iterations, anchors=anchors, **self._measured)

    def csls(self, mapping: NDArray[np.floating]) -> Csls:
        """Scores of all pairs of users under a (d, d) map; its `mutual_neighbours` are the anchors found."""
        return Csls.from_vectors(self.source @ mapping, self.target, self.config.neighbours)
