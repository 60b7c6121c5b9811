"""An audit of the code that made a release: canaries among synthetic users, over as many items as its head has.

Real rows are never read: their lengths are private. `make` is called as it was for the release, with its shares and
with pairs of as many items, or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from tasks.privacy.audits import gaussian_runs, one_run
from tasks.release import rule, sums
from tasks.release.making import Budget, Release, Statistic
from tasks.release.sums import Rows

CONFIDENCE = 0.999
SHARES = (0.02, 0.1, 0.3, 1.0)
"""Of the canaries, those for which guesses are made: all shares are tried, so each has a part of the error alone."""
MOST = 20_000
"""Canaries, at most."""
BASE, LENGTH = 200, 20
"""Synthetic users in addition, and how many items they have on average."""
Bounds = dict[str, float]
Make = Callable[..., Release]
"""`making.make` with the arguments of a release."""


class Kind(NamedTuple):
    """A kind of canary: rows of `length` items, and what they are looked for in."""

    name: str
    length: int
    statistic: Statistic


KINDS = (
    Kind("counts", 4 * rule.COUNTED, "counts"),
    Kind("orthogonal", rule.PAIRED, "pairs"),
    Kind("heavy", 2 * rule.PAIRED, "pairs"),
)


def audit(release: Release, make: Make, budget: Callable[[], Budget], seed: int) -> dict[str, Bounds]:
    """Bounds on ε by each kind of canary that there are enough items for.

    Args:
        release: its shares and its number of items with pairs are those of the audit.
        make: what it was made by.
        budget: gives each kind of canary a new one of the release's ε and δ.
        seed: of synthetic rows, and of which canaries are included.

    Returns:
        kind -> `canaries`, their number; `steinke`, `f_dp` and `gaussian`, lower bounds on ε; `provable`, the largest
        that the first could have been; and `accounted`, ε by the ledger of what the canaries are looked for in.
    """
    rng, size = np.random.default_rng(seed), len(release.head)
    return {
        kind.name: _run(kind, release, make, budget(), rng)
        for kind in KINDS
        if kind.statistic == "counts" or size >= kind.length * (kind.length + 1)
    }


def apart(length: int) -> Rows:
    """(`MOST`, `MOST` × `length`) rows of `length` items, of which no two share one."""
    n = MOST * length
    return csr_array((np.ones(n, np.int8), np.arange(n), np.arange(0, n + 1, length)), (MOST, n))


def canaries(length: int, size: int) -> Rows:
    """(p², size) rows of `length` items, of which any two share one item at most and so no pair; p is prime.

    {i p + (a i + b mod p) : i < length} for a, b < p: two lines over a field of p elements meet in one point or none.

    Raises:
        ValueError: there are too few items: no prime from `length` to `size` / `length`.
    """
    most = min(size // length, math.isqrt(MOST))
    p = max((n for n in range(2, most + 1) if all(n % d for d in range(2, n))), default=0)
    if p < length:
        raise ValueError(f"no canaries of {length} items over {size}")
    a, b, i = np.meshgrid(np.arange(p), np.arange(p), np.arange(length), indexing="ij")
    columns = (i * p + (a * i + b) % p).reshape(-1)
    return csr_array((np.ones(len(columns), np.int8), columns, np.arange(0, len(columns) + 1, length)), (p * p, size))


def exceeds(bounds: dict[str, Bounds]) -> list[str]:
    """Kinds of canary with a lower bound on ε above what the ledger says."""
    proved = ("steinke", "f_dp", "gaussian")
    return [kind for kind, bound in bounds.items() if max(bound[name] for name in proved) > bound["accounted"]]


def _run(kind: Kind, release: Release, make: Make, budget: Budget, rng: np.random.Generator) -> Bounds:
    size = len(release.head) or rule.FEWEST
    rows = apart(kind.length) if kind.statistic == "counts" else canaries(kind.length, size)
    base = csr_array((rng.random((BASE, size)) < min(1.0, LENGTH / size)).astype(np.int8))
    base.resize(BASE, rows.shape[1])
    included = rng.random(rows.shape[0]) < 0.5
    audited = make(vstack([base, rows[included]]).tocsr(), budget, like=release)
    if kind.statistic == "counts":
        scores = rows @ (audited.counts - sums.counts(base, rule.COUNTED))
    else:
        noisy = sums.squared(audited.pairs - sums.pairs(base, rule.PAIRED), size)
        items = rows.indices.reshape(-1, kind.length)
        scores = noisy[items[:, :, None], items[:, None, :]].sum((1, 2))
    accounted = min(budget.epsilon, budget.spent(kind.statistic))
    return _bounds(scores, included, budget.delta) | {"accounted": accounted}


def _bounds(scores: NDArray[np.float64], included: NDArray[np.bool_], delta: float) -> Bounds:
    """See `audit`; of equal scores, those count that speak against the auditor."""
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
