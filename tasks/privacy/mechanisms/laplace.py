"""Noisy counts with user-level privacy: bounded contributions, then discrete Laplace noise.

Source: Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009), for the
two-sided geometric distribution; docs/methods.md §8 (`dp-popularity`). Laplace noise in floating point leaks through
the low digits of its output (Mironov, "On significance of the least significant bits", CCS 2012); counts are integers
and integer noise has no low digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.checks import check_at_least, check_epsilon


def cap(
    users: NDArray[np.integer], items: NDArray[np.integer], contribution: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Choose at most `contribution` distinct items of every user, uniformly at random.

    Args:
        users, items: (n_interactions,) ids from 0; of a repeated pair the first one may be chosen.
        contribution: most items that one user may add to.

    Returns:
        (n_interactions,) mask of the chosen interactions.

    Raises:
        ValueError: contribution is below 1, or the arrays differ in length.
    """
    check_at_least(1, contribution=contribution)
    if len(users) != len(items):
        raise ValueError(f"users and items differ in length ({len(users)} and {len(items)})")
    kept = np.zeros(len(users), dtype=np.bool_)
    if not len(users):
        return kept
    pairs = users.astype(np.int64) * (int(items.max()) + 1) + items
    _, distinct = np.unique(pairs, return_index=True)
    order = distinct[np.lexsort((noise.uniform(rng, "which-interactions-count", len(distinct)), users[distinct]))]
    owners = users[order]
    first = np.searchsorted(owners, owners)  # where each interaction's user begins
    kept[order[np.arange(len(order)) - first < contribution]] = True
    return kept


def noisy_counts(
    counts: NDArray[np.integer], epsilon: float, contribution: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Counts with discrete Laplace noise, P[noise = k] proportional to exp(-ε|k|/contribution): pure ε-DP.

    Neighbouring inputs: all interactions of one user added or removed, where each user adds at most 1 to at most
    `contribution` counts (see `cap`); `counts_event` is what that costs. The list of items is public.

    Args:
        counts: any shape, integers.

    Returns:
        int64 of the same shape; may be negative.

    Raises:
        ValueError: epsilon is not a positive finite number, contribution is below 1, or counts are not integers.
    """
    noise_parameter = _noise_parameter(epsilon, contribution)
    counts = np.asarray(counts)
    if not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"counts must be integers (are {counts.dtype})")
    return counts + noise.discrete_laplace(rng, "item counts", noise_parameter, counts.shape)


def counts_event(epsilon: float, contribution: int) -> Event:
    """What one release of `noisy_counts` costs (ValueError: as there)."""
    noise_parameter = _noise_parameter(epsilon, contribution)
    parameters = {"noise_parameter": noise_parameter, "sensitivity": float(contribution)}
    return Event(kind="discrete-laplace", parameters=parameters)


def _noise_parameter(epsilon: float, contribution: int) -> float:
    check_epsilon(epsilon)
    check_at_least(1, contribution=contribution)
    return epsilon / contribution
