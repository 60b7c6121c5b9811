"""The ways in which two networks are aligned (docs/methods.md §6); who is given which anchors is for others to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.alignment import AlignmentResult, Pairs, similarity_scorer
from tasks.models.alignment.adversarial import AdversarialStart
from tasks.models.alignment.aligner import Aligner
from tasks.models.alignment.csls import mutual
from tasks.models.alignment.procrustes import Refined, procrustes

Vectors = NDArray[np.float32]
NOBODY: Pairs = np.empty((0, 2), np.int64)


def by_attributes(source: Vectors, target: Vectors, tie_seed: int) -> AlignmentResult:
    """Nearest by the dot product of (n_users, n_shared) attributes: of bits as -1 and 1, how many are equal."""
    score = similarity_scorer(source, target, cosine=False)
    pairs, _, nearest = mutual(score, len(source), len(target), tie_seed)
    opposite = target[nearest].astype(np.float64)
    lengths = np.linalg.norm(source, axis=1) * np.linalg.norm(opposite, axis=1)
    cosines = (source * opposite).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    pairs = nonzero(pairs, source, target)
    return AlignmentResult(
        score, pairs, float(cosines.mean()), NOBODY, {"shared_columns": source.shape[1], "matched": [len(pairs)]}
    )


def from_attributes(aligner: Aligner, source: Vectors, target: Vectors, by: AlignmentResult) -> AlignmentResult:
    """A map fitted to the pairs that the attributes found, refined; without a pair the identity, as it is.

    Args:
        source, target: embeddings as they were learned.
    """
    pairs = nonzero(by.pairs, source, target)
    if len(pairs):
        start = procrustes(aligner.source[pairs[:, 0]], aligner.target[pairs[:, 1]])
        alignment = by_map(aligner, aligner.refine(start), source, target)
        return with_history(alignment, {"start": "attributes", "started_from": len(pairs)})
    csls = aligner.csls(np.eye(aligner.source.shape[1]))
    criterion = csls.mutual_neighbours(aligner.config.tie_seed).criterion
    return AlignmentResult(csls.scores, NOBODY, criterion, NOBODY, {"start": "identity", "started_from": 0})


def from_anchors(aligner: Aligner, source: Vectors, target: Vectors, known: Pairs) -> AlignmentResult:
    """A map fitted to known pairs, which refinement keeps."""
    return by_map(aligner, aligner.from_anchors(known), source, target, known)


def from_start(aligner: Aligner, source: Vectors, target: Vectors, start: AdversarialStart) -> AlignmentResult:
    """The map of a trained adversarial start, refined."""
    alignment = by_map(aligner, aligner.refine(start.mapping), source, target)
    return with_history(
        alignment, {"epochs": {"criteria": finite_or_none(start.criteria), "losses": finite_or_none(start.losses)}}
    )


def finite_or_none(values: Sequence[float]) -> list[float | None]:
    """The same with None for each that JSON has no number for: those of a map that diverged."""
    return [value if np.isfinite(value) else None for value in values]


def by_map(
    aligner: Aligner, refined: Refined, source: Vectors, target: Vectors, given: Pairs = NOBODY
) -> AlignmentResult:
    """Nearest by CSLS under a refined map."""
    csls = aligner.csls(refined.mapping)
    pairs = nonzero(csls.mutual_neighbours(aligner.config.tie_seed).pairs, source, target)
    history = {"criteria": refined.criteria, "matched": refined.matched, "iteration": refined.iteration}
    return AlignmentResult(csls.scores, pairs, refined.criterion, given, history | {"given": len(given)})


def with_history(alignment: AlignmentResult, more: dict[str, Any]) -> AlignmentResult:
    """The same with more to remember."""
    return replace(alignment, history=alignment.history | more)


def nonzero(pairs: Pairs, source: Vectors, target: Vectors) -> Pairs:
    """The pairs of users both of whose vectors say something: one of zeros is as near to everyone."""
    return pairs[source[pairs[:, 0]].any(axis=1) & target[pairs[:, 1]].any(axis=1)]
