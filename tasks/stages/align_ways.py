"""The ways in which two networks are aligned, and how each is judged (docs/methods.md §6 and §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.attacks.embeddings.anchors import reidentify, similar
from tasks.evaluation.alignment import PairScorer, chance
from tasks.models.alignment.adversarial import AdversarialStart
from tasks.models.alignment.aligner import Aligner
from tasks.models.alignment.csls import mutual
from tasks.models.alignment.procrustes import Refined, procrustes
from tasks.stages.align_inputs import Anchors, Vectors

Pairs = NDArray[np.int64]
NOBODY: Pairs = np.empty((0, 2), np.int64)
Row = dict[str, Any]
"""metric, k and value."""


@dataclass(frozen=True)
class Found:
    """What one way found.

    score: of every pair of users, higher is nearer.
    pairs: (n, 2) the users who are each other's nearest, none of whose vectors is zero.
    criterion: mean cosine of every source user with the nearest target.
    given: (n_given, 2) the anchors that the way was given.
    history: how it got there.
    """

    score: PairScorer
    pairs: Pairs
    criterion: float
    given: Pairs
    history: dict[str, Any]


def by_attributes(source: Vectors, target: Vectors, tie_seed: int) -> Found:
    """Nearest by the dot product of (n_users, n_shared) attributes: of bits as -1 and 1, how many are equal."""
    score = similar(source, target, cosine=False)
    pairs, _, nearest = mutual(score, len(source), len(target), tie_seed)
    opposite = target[nearest].astype(np.float64)
    lengths = np.linalg.norm(source, axis=1) * np.linalg.norm(opposite, axis=1)
    cosines = (source * opposite).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    pairs = nonzero(pairs, source, target)
    return Found(
        score, pairs, float(cosines.mean()), NOBODY, {"shared_columns": source.shape[1], "matched": [len(pairs)]}
    )


def from_attributes(aligner: Aligner, source: Vectors, target: Vectors, by: Found) -> Found:
    """A map fitted to the pairs that the attributes found, refined; without a pair the identity, as it is.

    Args:
        source, target: embeddings as they were learnt.
    """
    pairs = nonzero(by.pairs, source, target)
    if len(pairs):
        start = procrustes(aligner.source[pairs[:, 0]], aligner.target[pairs[:, 1]])
        found = by_map(aligner, aligner.refined(start), source, target)
        return with_history(found, {"start": "attributes", "started_from": len(pairs)})
    csls = aligner.csls(np.eye(aligner.source.shape[1]))
    criterion = csls.mutual_neighbours(aligner.config.tie_seed).criterion
    return Found(csls.scores, NOBODY, criterion, NOBODY, {"start": "identity", "started_from": 0})


def from_anchors(aligner: Aligner, source: Vectors, target: Vectors, known: Pairs) -> Found:
    """A map fitted to known pairs, which refinement keeps."""
    return by_map(aligner, aligner.from_anchors(known), source, target, known)


def from_start(aligner: Aligner, source: Vectors, target: Vectors, start: AdversarialStart) -> Found:
    """The map of a trained adversarial start, refined."""
    found = by_map(aligner, aligner.refined(start.mapping), source, target)
    return with_history(found, {"epochs": {"criteria": finite(start.criteria), "losses": finite(start.losses)}})


def finite(values: Sequence[float]) -> list[float | None]:
    """The same with None for each that JSON has no number for: those of a map that diverged."""
    return [value if np.isfinite(value) else None for value in values]


def by_map(aligner: Aligner, refined: Refined, source: Vectors, target: Vectors, given: Pairs = NOBODY) -> Found:
    """Nearest by CSLS under a refined map."""
    csls = aligner.csls(refined.mapping)
    pairs = nonzero(csls.mutual_neighbours(aligner.config.tie_seed).pairs, source, target)
    history = {"criteria": refined.criteria, "matched": refined.matched, "iteration": refined.iteration}
    return Found(csls.scores, pairs, refined.criterion, given, history | {"given": len(given)})


def with_history(found: Found, more: dict[str, Any]) -> Found:
    """The same with more to remember."""
    return Found(found.score, found.pairs, found.criterion, found.given, found.history | more)


def nonzero(pairs: Pairs, source: Vectors, target: Vectors) -> Pairs:
    """The pairs of users both of whose vectors say something: one of zeros is as near to everybody."""
    return pairs[source[pairs[:, 0]].any(axis=1) & target[pairs[:, 1]].any(axis=1)]


def judged(way: str, found: Found, anchors: Anchors, sizes: tuple[int, int], ks: Sequence[int], seed: int) -> list[Row]:
    """The metrics of a way, `alignment/<way>/...`.

    `precision` is that of CSLS, or of the attributes, at each k, over the judging anchors among all targets.
    `confident/...` is what an attacker gets who names only those of whom it is sure; it may name everybody but the
    source users of other anchors, whom some ways were given: those would count as wrong names. `found/precision` is the
    share of true anchors among the pairs found, those left out of whose users a given anchor has one.

    Args:
        sizes: users of the two networks.
        seed: of ties and of halves.
    """
    n_sources, n_targets = sizes
    others = np.setdiff1d(anchors.true[:, 0], anchors.judged[:, 0])
    asked = np.setdiff1d(np.arange(n_sources), others)
    renumbered = np.stack([np.searchsorted(asked, anchors.judged[:, 0]), anchors.judged[:, 1]], axis=1)
    result = reidentify(lambda users: found.score(asked[users]), renumbered, len(asked), seed=seed, ks=ks)
    name = f"alignment/{way}"
    rows = [row(f"{name}/precision", share.value, k) for k, share in result.at.items()]
    rows.append(row(f"{name}/confident/share", result.confident.share.value))
    if result.confident.precision is not None:
        rows.append(row(f"{name}/confident/precision", result.confident.precision))
    new = ~(np.isin(found.pairs[:, 0], found.given[:, 0]) | np.isin(found.pairs[:, 1], found.given[:, 1]))
    named = found.pairs[new] @ (n_targets, 1)
    rows.append(row(f"{name}/found", float(len(found.pairs))))
    if len(named):
        rows.append(row(f"{name}/found/precision", float(np.isin(named, anchors.true @ (n_targets, 1)).mean())))
    return [*rows, row(f"{name}/criterion", found.criterion)]


def guessed(ks: Sequence[int], n_targets: int) -> list[Row]:
    """What guessing gives."""
    return [row("alignment/chance", chance(k, n_targets), k) for k in ks]


def row(metric: str, value: float, k: int | None = None) -> Row:
    """A row of METRICS but for what it is about."""
    return {"metric": metric, "k": k, "value": value}
