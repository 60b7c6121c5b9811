"""An audit of the code that made a release: canaries among synthetic users, over as many items as its head has.

Real rows are never read: their lengths are private. What is audited is `making.make`, as it was called for the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from tasks.privacy.audits import gaussian_runs, one_run
from tasks.release import making, rule, sums
from tasks.release.making import Budget, Release
from tasks.release.sums import Rows

CONFIDENCE = 0.99
SHARES = (0.02, 0.1, 0.3, 1.0)
"""Of canaries, for how many there are guesses: fixed, and the error is divided by their number."""
MOST = 20_000
"""Canaries."""
BASE = 200
"""Synthetic users besides, of 20 items."""
Bounds = dict[str, float]


class Kind(NamedTuple):
    """A kind of canary: rows of `length` items, and which block they are looked for in."""

    name: str
    length: int
    in_pairs: bool


KINDS = (
    Kind("counts", 1, in_pairs=False),
    Kind("orthogonal", rule.PAIRED, in_pairs=True),
    Kind("heavy", 2 * rule.PAIRED, in_pairs=True),
)


def audit(
    size: int, users: int, budget: Callable[[], Budget], seed: int, make: Callable[..., Release] = making.make
) -> dict[str, Bounds]:
    """Bounds on ε by each kind of canary.

    Args:
        size: items of the head; 0: counts alone, over `rule.FEWEST` items.
        users: as the release had them, which decides shares.
        budget: a new one of the release's ε and δ, for each kind.
        make: what is audited.
    """
    rng = np.random.default_rng(seed)
    return {
        kind.name: _run(kind, size or rule.FEWEST, users, budget(), rng, make)
        for kind in KINDS
        if not kind.in_pairs or size >= kind.length * (kind.length + 1)
    }


def canaries(length: int, size: int) -> Rows:
    """Rows of `length` items of which any two share one item at most, so no pair: p² with p prime; of one, `size`.

    {i p + (a i + b mod p) : i < length} for a, b < p: two lines over a field of p elements meet in one point or none.
    """
    if length == 1:
        return csr_array(np.eye(size, dtype=np.int8))
    p = max(n for n in range(2, min(size // length, math.isqrt(MOST)) + 1) if all(n % d for d in range(2, n)))
    if p < length:
        raise ValueError(f"no canaries of {length} items over {size}")
    a, b, i = np.meshgrid(np.arange(p), np.arange(p), np.arange(length), indexing="ij")
    columns = (i * p + (a * i + b) % p).reshape(-1)
    return csr_array((np.ones(len(columns), np.int8), columns, np.arange(0, len(columns) + 1, length)), (p * p, size))


def exceeds(bounds: dict[str, Bounds], epsilon: float) -> list[str]:
    """Kinds of canary by which ε is larger than was said."""
    return [kind for kind, of in bounds.items() if max(of["steinke"], of["f_dp"], of["gaussian"]) > epsilon]


def _run(
    kind: Kind, size: int, users: int, budget: Budget, rng: np.random.Generator, make: Callable[..., Release]
) -> Bounds:
    rows = canaries(kind.length, size)
    base = csr_array((rng.random((BASE, size)) < min(1.0, 20 / size)).astype(np.int8))
    included = rng.random(rows.shape[0]) < 0.5
    release = make(vstack([base, rows[included]]).tocsr(), budget, users=users, head=size)
    if kind.in_pairs:
        noisy = sums.squared(release.pairs - sums.pairs(base, rule.PAIRED), size)
        items = rows.indices.reshape(-1, kind.length)
        scores = noisy[items[:, :, None], items[:, None, :]].sum((1, 2)) / 2 / release.pairs_scale
        scores /= math.sqrt(kind.length * (kind.length - 1) / 2)
    else:
        scores = rows @ (release.counts - sums.counts(base, rule.COUNTED)) / release.counts_scale
    return _bounds(scores, included, budget.delta)


def _bounds(scores: NDArray[np.float64], included: NDArray[np.bool_], delta: float) -> Bounds:
    """Three bounds, ties against the auditor, and what the first could have proved at most."""
    m, confidence = len(scores), 1 - (1 - CONFIDENCE) / len(SHARES)
    steinke, mu, provable = 0.0, 0.0, 0.0
    for share in SHARES:
        r = max(2, round(share * m))
        correct = one_run.count_correct(scores, included, (r + 1) // 2, r // 2)
        steinke = max(steinke, one_run.lower_bound(m, r, correct, delta, confidence))
        provable = max(provable, one_run.lower_bound(m, r, r, delta, confidence))
        mu = max(mu, gaussian_runs.f_dp(m, r, correct, confidence))
    distance = gaussian_runs.separation(scores, included, CONFIDENCE)
    proved = {"steinke": steinke, "f_dp": gaussian_runs.epsilon_of(mu, delta)}
    return {"canaries": m, **proved, "gaussian": gaussian_runs.epsilon_of(distance, delta), "provable": provable}
