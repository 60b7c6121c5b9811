"""Re-identification: whose account in one network is whose in another, found from what both released.

Source: docs/methods.md §6 and §7. DP-CroSUE finds the accounts of a person in two networks, to learn from both. Anyone
who holds both releases can do the same to find out who a pseudonym is, so the precision of an alignment is here the
success of an attack. An attacker need not name everyone: it names those of whom it is sure. How many users those are
when nine names of ten are right is `Confident`; a mean over all users hides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.evaluation.alignment import AlignmentResult, Anchors, PairScorer, chance, precision
from tasks.evaluation.detection import Rate
from tasks.evaluation.metrics import Record, record
from tasks.evaluation.statistics import clopper_pearson

WANTED = 0.9
BATCH = 512


@dataclass(frozen=True)
class Confident:
    """The attacker that names only those of whom it is sure.

    share: right names over all anchors, with an exact 95 % interval.
    precision: right names over names; None where it names no one. It may fall below what was wanted: the threshold was
        chosen on other users.
    names: how many it gives.
    """

    share: Rate
    precision: float | None
    names: int


@dataclass(frozen=True)
class Reidentified:
    """How many accounts an attacker names rightly.

    at: cut-off k -> share of anchors whose account is among the k nearest, with an exact 95 % interval for other
        anchors (of m equally near accounts for the last places each counts its share).
    chance: cut-off k -> the same of a guess.
    confident: see there.
    """

    at: dict[int, Rate]
    chance: dict[int, float]
    confident: Confident


@dataclass(frozen=True)
class Matches:
    """The nearest account of every source user.

    right: (n_sources,) whether it is their own; never for those who have none.
    confidence: how sure the attacker can be, name -> (n_sources,): `nearest` (the score) and `margin` (how far ahead
        of the second).
    """

    right: NDArray[np.bool_]
    confidence: dict[str, NDArray[np.float64]]


def reidentify(
    score: PairScorer,
    anchors: NDArray[np.integer],
    n_sources: int,
    *,
    seed: int,
    ks: Sequence[int] = (1, 10),
    wanted: float = WANTED,
) -> Reidentified:
    """Attack by nearest accounts; all targets are candidates, and all source users may be named.

    Args:
        score: see `tasks.evaluation.alignment`; `similarity_scorer` there makes one of vectors, or of attributes.
        anchors: (n, 2) source and target of a person, each user once. They judge, and half of them calibrate: an
            attacker knows some people.
        n_sources: how many source users there are; those without an account in the other network can only be named
            wrongly.
        seed: of halves and ties.
        wanted: precision of the confident attacker.

    Raises:
        DataError: no anchors, a user is in two of them or is none of the network, or a score is not a number.
        ValueError: a cut-off is below 1.
    """
    for column, name in enumerate(("source", "target")):
        users, counts = np.unique(anchors[:, column], return_counts=True)
        if (counts > 1).any():
            raise DataError(f"anchors: {name} user {users[counts > 1][0]} is in several; keep one")
    if len(anchors) and not 0 <= anchors[:, 0].min() <= anchors[:, 0].max() < n_sources:
        raise DataError(f"anchors: a source user is none of the {n_sources} there are")
    precisions = precision(score, anchors, ks, batch=BATCH)
    n = len(anchors)
    at = {k: _interval(share * n, n) for k, share in precisions.at.items()}
    rng = np.random.default_rng(seed)
    named = nearest_accounts(score, anchors, n_sources, rng)
    return Reidentified(at, precisions.chance, name_confidently(named, n, wanted, rng))


def reidentify_tested(
    score: PairScorer, anchors: Anchors, n_sources: int, *, seed: int, ks: Sequence[int], wanted: float = WANTED
) -> Reidentified:
    """As `reidentify`, judged on the tested anchors, all targets being candidates.

    Anyone may be named but the source users of other anchors: whoever was given these, or trained on vectors that
    were trained on them, knows them already, and they would count as wrong names.
    """
    trained = np.setdiff1d(anchors.true[:, 0], anchors.test[:, 0])
    candidates = np.setdiff1d(np.arange(n_sources), trained)
    renumbered = np.stack([np.searchsorted(candidates, anchors.test[:, 0]), anchors.test[:, 1]], axis=1)
    return reidentify(
        lambda users: score(candidates[users]), renumbered, len(candidates), seed=seed, ks=ks, wanted=wanted
    )


def evaluate(
    way: str, alignment: AlignmentResult, anchors: Anchors, sizes: tuple[int, int], ks: Sequence[int], seed: int
) -> list[Record]:
    """The metrics of a way, `alignment/<way>/...`.

    `precision` is that of CSLS, or of the attributes, at each k, over the judging anchors among all targets.
    `confident/...` is what an attacker gets who names only those of whom it is sure (`reidentify_tested`).
    `found/precision` is the share of true anchors among the pairs found, those left out of whose users a given anchor
    has one.

    Args:
        sizes: users of the two networks.
        seed: of ties and of halves.
    """
    n_sources, n_targets = sizes
    result = reidentify_tested(alignment.score, anchors, n_sources, seed=seed, ks=ks)
    name = f"alignment/{way}"
    rows = [record(f"{name}/precision", share.value, k) for k, share in result.at.items()]
    rows.append(record(f"{name}/confident/share", result.confident.share.value))
    if result.confident.precision is not None:
        rows.append(record(f"{name}/confident/precision", result.confident.precision))
    new = ~(
        np.isin(alignment.pairs[:, 0], alignment.given[:, 0]) | np.isin(alignment.pairs[:, 1], alignment.given[:, 1])
    )
    named = alignment.pairs[new] @ (n_targets, 1)
    rows.append(record(f"{name}/found", len(alignment.pairs)))
    if len(named):
        rows.append(record(f"{name}/found/precision", np.isin(named, anchors.true @ (n_targets, 1)).mean()))
    return [*rows, record(f"{name}/criterion", alignment.criterion)]


def chance_records(ks: Sequence[int], n_targets: int) -> list[Record]:
    """What guessing gives."""
    return [record("alignment/chance", chance(k, n_targets), k) for k in ks]


def nearest_accounts(
    score: PairScorer, anchors: NDArray[np.integer], n_sources: int, rng: np.random.Generator
) -> Matches:
    """Of every source user the nearest target, a random one of equally near ones.

    Raises:
        DataError: a score is not a number.
    """
    accounts = np.full(n_sources, -1)
    accounts[anchors[:, 0]] = anchors[:, 1]
    right = np.zeros(n_sources, bool)
    nearest, margin = np.zeros(n_sources), np.zeros(n_sources)
    for start in range(0, n_sources, BATCH):
        users = np.arange(start, min(start + BATCH, n_sources))
        scores = score(users)
        if np.isnan(scores).any():
            raise DataError(f"scores of source users {users[0]} to {users[-1]} are not all numbers; the map diverged")
        order = rng.permutation(scores.shape[1])  # argmax takes the first of equals: in a random order, a random one
        best = order[scores[:, order].argmax(axis=1)]
        right[users] = best == accounts[users]
        top = scores[np.arange(len(users)), best]
        nearest[users] = top
        if scores.shape[1] > 1:
            margin[users] = top - np.partition(scores, -2, axis=1)[:, -2]
    return Matches(right, {"nearest": nearest, "margin": margin})


def name_confidently(named: Matches, n_anchors: int, wanted: float, rng: np.random.Generator) -> Confident:
    """Name those of whom the attacker is surer than its threshold, which it chooses on the other half of the users.

    On that half it also chooses what to go by: the score, or how far it is ahead.
    """
    half = np.zeros(len(named.right), bool)
    half[rng.permutation(len(half))[: len(half) // 2]] = True
    named_mask = np.zeros(len(half), bool)
    for calibration in (half, ~half):
        best = 0
        for confidence in named.confidence.values():
            threshold, right = choose(confidence[calibration], named.right[calibration], wanted)
            if right > best:
                best = right
                named_mask[~calibration] = confidence[~calibration] >= threshold
    right = int(named.right[named_mask].sum())
    names = int(named_mask.sum())
    return Confident(_interval(right, n_anchors), right / names if names else None, names)


def choose(confidence: NDArray[np.floating], right: NDArray[np.bool_], wanted: float) -> tuple[float, int]:
    """The lowest threshold above which names are right with at least the precision `wanted`, and how many are.

    Users of equal confidence are named together, or not at all; (inf, 0) if no threshold will do.
    """
    if not len(confidence):
        return float("inf"), 0
    order = np.argsort(-confidence, kind="stable")
    descending, n_right = confidence[order], right[order].cumsum()
    fine = (
        np.append(descending[1:] != descending[:-1], True)
        & (n_right >= wanted * np.arange(1, len(descending) + 1))
        & (n_right > 0)
    )
    if not fine.any():
        return float("inf"), 0
    last = int(np.flatnonzero(fine)[-1])
    return float(descending[last]), int(n_right[last])


def _interval(right: float, n: int) -> Rate:
    """Of a share; a fraction of a success, from ties, counts down for the lower end and up for the upper."""
    value = right / n
    low, _ = clopper_pearson(int(np.floor(right + 1e-9)), n)
    _, high = clopper_pearson(min(int(np.ceil(right - 1e-9)), n), n)
    return Rate(value, low, high)
