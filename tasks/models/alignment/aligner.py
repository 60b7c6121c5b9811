"""Two networks, the map between them, and the ways in which it is found (docs/methods.md §6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tasks.core.errors import DataError
from tasks.evaluation.alignment import AlignmentResult, Pairs, similarity_scorer
from tasks.models.alignment.adversarial import (
    AdversarialConfig,
    AdversarialStart,
    CycleConfig,
    CycleStart,
    codes,
    finite_or_none,
)
from tasks.models.alignment.procrustes import Csls, Normalisation, Refined, mutual, normalise, procrustes, refine
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
        self.config, self.raw = config, (source, target)
        self.source, self.target = (normalise(side, config.normalise) for side in (source, target))
        if self.source.shape[1] != self.target.shape[1]:
            widths = f"{self.source.shape[1]} and {self.target.shape[1]}"
            raise DataError(f"embeddings: widths differ ({widths}); embed both networks alike")

    @property
    def _measured(self) -> dict[str, int]:
        return {"neighbours": self.config.neighbours, "tie_seed": self.config.tie_seed}

    def start(self, rng: np.random.Generator) -> AdversarialStart:
        """An adversarial start, not yet trained, so that a caller can keep its state between epochs."""
        return AdversarialStart(self.config.adversarial, self.source, self.target, rng=rng, **self._measured)

    def coded(self, rng: np.random.Generator) -> Aligner:
        """An aligner of the embeddings' codes, which are not normalised, for a start by `cycle_start`."""
        assert self.config.cycle is not None, "params.yaml has the way `cycle` only with its configuration"
        both = [codes(side, self.config.cycle.coder, rng) for side in self.raw]
        aligner = Aligner(self.config.model_copy(update={"normalise": ()}), *both)
        aligner.raw = self.raw
        return aligner

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


Vectors = NDArray[np.float32]
NOBODY: Pairs = np.empty((0, 2), np.int64)


def by_attributes(source: Vectors, target: Vectors, tie_seed: int) -> AlignmentResult:
    """Nearest by the dot product of (n_users, n_shared) attributes: of bits as -1 and 1, how many are equal."""
    score = similarity_scorer(source, target, cosine=False)
    pairs, nearest = mutual(score, len(source), len(target), tie_seed)
    opposite = target[nearest].astype(np.float64)
    lengths = np.linalg.norm(source, axis=1) * np.linalg.norm(opposite, axis=1)
    cosines = (source * opposite).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    pairs = nonzero(pairs, source, target)
    return AlignmentResult(
        score, pairs, float(cosines.mean()), NOBODY, {"shared_columns": source.shape[1], "matched": [len(pairs)]}
    )


def from_attributes(aligner: Aligner, by: AlignmentResult) -> AlignmentResult:
    """A map fitted to the pairs that the attributes found, refined; without a pair the identity, as it is."""
    pairs = nonzero(by.pairs, *aligner.raw)
    if len(pairs):
        start = procrustes(aligner.source[pairs[:, 0]], aligner.target[pairs[:, 1]])
        more: dict[str, Any] = {"start": "attributes", "started_from": len(pairs)}
        return by_map(aligner, aligner.refine(start), **more)
    csls = aligner.csls(np.eye(aligner.source.shape[1]))
    criterion = csls.mutual_neighbours(aligner.config.tie_seed).criterion
    return AlignmentResult(csls.scores, NOBODY, criterion, NOBODY, {"start": "identity", "started_from": 0})


def from_anchors(aligner: Aligner, known: Pairs) -> AlignmentResult:
    """A map fitted to known pairs, which refinement keeps."""
    return by_map(aligner, aligner.from_anchors(known), known)


def from_start(aligner: Aligner, start: AdversarialStart) -> AlignmentResult:
    """The map of a trained adversarial start, refined."""
    epochs = {"criteria": finite_or_none(start.criteria), "losses": finite_or_none(start.losses)}
    return by_map(aligner, aligner.refine(start.mapping), epochs=epochs)


def by_map(aligner: Aligner, refined: Refined, given: Pairs = NOBODY, **more: object) -> AlignmentResult:
    """Nearest by CSLS under a refined map; `more` is remembered, too."""
    csls = aligner.csls(refined.mapping)
    pairs = nonzero(csls.mutual_neighbours(aligner.config.tie_seed).pairs, *aligner.raw)
    history = {"criteria": refined.criteria, "matched": refined.matched, "iteration": refined.iteration}
    return AlignmentResult(csls.scores, pairs, refined.criterion, given, history | {"given": len(given)} | more)


def nonzero(pairs: Pairs, source: NDArray[np.floating], target: NDArray[np.floating]) -> Pairs:
    """The pairs of users both of whose vectors say something: one of zeros is as near to everyone."""
    return pairs[source[pairs[:, 0]].any(axis=1) & target[pairs[:, 1]].any(axis=1)]
