"""Friendships under edge differential privacy: the top-m filter, in time and memory linear in the number of edges.

A simple undirected graph of n nodes has N = n(n-1)/2 cells, each an edge or not. The filter adds Laplace noise of scale
1/ε to every cell's 1 or 0 and keeps the cells above a threshold θ, chosen so that about as many pass as there are
edges, a number that is itself noisy (m̃). True edges are filtered one by one; of the others only those that pass are
drawn.

**rigorous**: every cell passes or not by itself, with probability p1 = P[1 + Lap(1/ε) > θ] if it is an edge and
p0 = P[Lap(1/ε) > θ] if not. p1/p0 and (1-p0)/(1-p1) are at most e^ε, θ depends on m̃ alone, and m̃ costs ε_count: one
edge added or removed changes the likelihood of (m̃, graph) by at most e^(ε + ε_count). Nothing more is spent.

**published**: the true edges that pass, n1 of them, are filled up with non-edges to m̃. A graph O of m̃ edges, k of them
true, has probability p1^k (1-p1)^(m-k) / C(N-m, m̃-k) then. If a false edge of O becomes a true one, that changes by the
factor p1 (N-m)/(m̃-k): near p1/p0 for a typical O, but p1 (N-m) at k = m̃-1. So ε is at least ln(p1 (N-m)) - ε_count,
which grows with the number of nodes and has nothing to do with the ε asked for. It is infinite where m̃ is known: if
more than m̃ true edges pass, nothing is filled up, and a graph of more than m̃ edges is impossible if one of them was
none. How probable that is depends on the graph and is not small for few edges, so no δ covers it. The ledger says none.

Source: Nguyen, Imine and Rusinowitch, "Differentially private publication of social graphs at linear cost" (ASONAM
2015); DP-CroSUE, section 4.1; docs/methods.md §6. Their threshold is for θ >= 0, graphs of up to N/(1+e^-ε) edges; that
for denser ones follows from the same equation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import RECORDED, SEED_OF_RELEASE, side_by_side
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry
from tasks.privacy.checks import check_epsilon
from tasks.privacy.mechanisms import laplace
from tasks.privacy.remarks import because, gap

SMALLEST_COUNT_BUDGET = 1e-12
"""With less, the noise of the number of edges would not fit in 64 bits."""
MOST_NODES = 3_000_000_000
"""With more, pairs of nodes could not be numbered in 64 bits."""
MODES = ("published", "rigorous")


class Filtered(NamedTuple):
    """A release and what its threshold came from; all of it is covered by the guarantee.

    How many of the edges are true is deliberately not here: nothing covers that.
    """

    edges: NDArray[np.int64]
    """(n_edges, 2), each once, smaller node first, in order."""
    target: int
    """m̃: the noisy number of edges, cut off at 0 and N."""
    threshold: float
    """θ; infinite at m̃ = 0, minus infinity at m̃ = N."""


def top_m_filter(
    edges: NDArray[np.integer],
    n_nodes: int,
    epsilon: float,
    epsilon_count: float,
    rng: np.random.Generator,
    mode: Accounting,
) -> NDArray[np.int64]:
    """A graph like the given one; in `rigorous` mode (ε + ε_count)-edge-DP (neighbours: one edge added or removed).

    Time and memory are linear in edges in and out. The result does not depend on the order of the edges, or of the
    nodes of an edge.

    Args:
        edges: (n_edges, 2) node ids in 0..n_nodes-1; undirected, each once, no loops.
        n_nodes: how many nodes there are (public).
        epsilon: budget of the cells.
        epsilon_count: budget of the number of edges.
        mode: `published` or `rigorous`; the module says how they differ.

    Returns:
        (n_edges', 2), each edge once, smaller node first, in order.

    Raises:
        ValueError: a budget is not a positive finite number (or that of the count below 1e-12); the mode is unknown;
            the edges are not such (names the column or what is wrong, how many rows, and the first of them).
    """
    return release(edges, n_nodes, epsilon, epsilon_count, rng, mode).edges


def release(
    edges: NDArray[np.integer],
    n_nodes: int,
    epsilon: float,
    epsilon_count: float,
    rng: np.random.Generator,
    mode: Accounting,
) -> Filtered:
    """`top_m_filter`, with its noisy count and threshold."""
    _check_mode(mode)
    check_epsilon(epsilon)
    check_count_budget(epsilon_count)
    keys = _keys(edges, n_nodes)
    # The count is an integer: discrete Laplace noise of the same budget has no low digits that would leak.
    noisy = laplace.noisy_counts(np.array([len(keys)]), epsilon_count, 1, rng)
    target = min(max(int(noisy[0]), 0), n_cells(n_nodes))
    released = _decode_keys(_filter_keys(keys, n_nodes, target, epsilon, rng, mode), n_nodes)
    return Filtered(released, target, threshold(target, n_cells(n_nodes), epsilon))


def filter_towards(
    edges: NDArray[np.integer],
    n_nodes: int,
    target: int,
    epsilon: float,
    rng: np.random.Generator,
    mode: Accounting,
) -> NDArray[np.int64]:
    """`top_m_filter` for a number m̃ of edges that is public: costs ε, or as the module says, and no ε_count."""
    _check_mode(mode)
    check_epsilon(epsilon)
    keys = _keys(edges, n_nodes)
    return _decode_keys(_filter_keys(keys, n_nodes, target, epsilon, rng, mode), n_nodes)


def budgets(epsilon: float, count_share: float, mode: Accounting) -> tuple[float, float]:
    """What the cells and their number cost: next to one another where published, together ε where rigorous.

    Args:
        count_share: what the number costs, in shares of ε.
    """
    count = count_share * epsilon
    return (epsilon, count) if mode == "published" else (epsilon - count, count)


def n_cells(n_nodes: int) -> int:
    """N = n(n-1)/2, how many edges a simple undirected graph can have."""
    return n_nodes * (n_nodes - 1) // 2


def threshold(target: int, cells: int, epsilon: float) -> float:
    """θ such that m̃ p1 + (N - m̃) p0 = m̃, that is, as many cells pass on average as there should be edges.

    With ε_t = ln(N/m̃ - 1): (1/ε) ln(N/(2m̃) + (e^ε - 1)/2), which is 1 or more, where ε <= ε_t; ½ + ε_t/(2ε), in (0, 1),
    where ε > |ε_t|; and 1 minus the threshold for the N - m̃ cells without an edge, 0 or less, where ε <= -ε_t.

    Args:
        target: m̃, in 0..N; infinity at 0, minus infinity at N.
        cells: N.
    """
    check_epsilon(epsilon)
    if not 0 <= target <= cells:
        raise ValueError(f"target must be in 0..{cells} (is {target})")
    if target == 0:
        return math.inf
    if target == cells:
        return -math.inf
    balance = math.log(cells - target) - math.log(target)
    if epsilon <= balance:
        return _sparse(target, cells, epsilon)
    if epsilon <= -balance:
        return 1 - _sparse(cells - target, cells, epsilon)
    return 0.5 + balance / (2 * epsilon)


def _sparse(target: int, cells: int, epsilon: float) -> float:
    # At most ln N here, so that nothing overflows.
    return math.log(cells / (2 * target) + math.expm1(epsilon) / 2) / epsilon


def pass_probabilities(theta: float, epsilon: float) -> tuple[float, float]:
    """p1 and p0: the probabilities that a true edge and that a non-edge passes the threshold."""
    return tail(theta - 1, epsilon), tail(theta, epsilon)


def tail(value: float, epsilon: float) -> float:
    """P[Lap(1/ε) > value]; that a true edge does *not* pass is tail(1 - θ), without a difference that rounds."""
    return math.exp(-epsilon * value) / 2 if value >= 0 else 1 - math.exp(epsilon * value) / 2


def events(epsilon: float, epsilon_count: float, mode: Accounting) -> tuple[Event, ...]:
    """What a release costs (neighbours: one edge added or removed); of `published` cells no accountant knows."""
    _check_mode(mode)
    check_epsilon(epsilon)
    check_count_budget(epsilon_count)
    cells = "pure-local" if mode == "rigorous" else "filled-top-m-filter"
    return laplace.counts_event(epsilon_count, 1), Event(kind=cells, parameters={"epsilon": epsilon})


def ledger(epsilon: float, epsilon_count: float, mode: Accounting, n_releases: int) -> LedgerEntry:
    """What one release spent, and what its guarantee does not cover (docs/methods.md §9).

    Args:
        epsilon, epsilon_count, mode: as in `top_m_filter`.
        n_releases: how many releases an entry of `perturbed` makes of the same graph (budgets of a sweep × seeds).
    """
    published = mode == "published"
    costs = (gap("count-costs", epsilon=epsilon_count),) if published else ()
    why: dict[str, Any] = {"reasons": (because("filled-up"),)} if published else {}
    return accounted_entry(
        events(epsilon, epsilon_count, mode),
        protects="edge",
        unit="edge",
        neighbouring="add-or-remove",
        mechanism="top-m-filter",
        accounting=mode,
        claimed_epsilon=epsilon if published else epsilon + epsilon_count,
        **why,
        gaps=(
            gap("edge-not-user"),
            gap("n-nodes-public"),
            *costs,
            *side_by_side(n_releases),
            RECORDED,
            SEED_OF_RELEASE,
            gap("coins-float"),
        ),
    )


def _filter_keys(
    keys: NDArray[np.int64], n_nodes: int, target: int, epsilon: float, rng: np.random.Generator, mode: Accounting
) -> NDArray[np.int64]:
    """Sorted keys of the released edges."""
    epsilon = noise.budget(rng, epsilon)
    theta = threshold(target, n_cells(n_nodes), epsilon)
    # As a probability of being dropped: that of a draw below q is q rounded up, so no true edge is ever certain.
    kept = keys[noise.uniform(rng, "which-edges-pass", len(keys)) >= tail(1 - theta, epsilon)]
    n_others = n_cells(n_nodes) - len(keys)
    if mode == "rigorous":
        n_false = noise.binomial(rng, "how-many-non-edges-pass", n_others, tail(theta, epsilon))
    else:
        n_false = min(max(target - len(kept), 0), n_others)
    return np.sort(np.concatenate([kept, _non_edges(keys, n_nodes, n_false, rng)]))


def _non_edges(keys: NDArray[np.int64], n_nodes: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` cells that are not among the sorted `keys`, every set of so many equally likely."""
    cells = n_cells(n_nodes)
    if cells <= 2 * (len(keys) + count):  # so dense that draws would often hit; all cells are linear in the edges then
        all_keys = np.sort(_cell_keys(np.arange(cells), n_nodes))
        non_edges = np.delete(all_keys, np.searchsorted(all_keys, keys))
        return noise.subset(rng, "which-non-edges-pass", non_edges, count)
    taken, parts, missing = keys, [], count
    # Never more draws than are missing: what is new is kept whole, so no set is favoured by a choice among too many.
    while missing:
        fresh = np.sort(_cell_keys(noise.integers(rng, "which-non-edges-pass", cells, missing), n_nodes))
        fresh = fresh[np.append(True, fresh[1:] != fresh[:-1])]  # np.unique hashes, which takes ten times as long
        if len(taken):
            position = np.searchsorted(taken, fresh)
            fresh = fresh[taken[np.minimum(position, len(taken) - 1)] != fresh]
        parts.append(fresh)
        missing -= len(fresh)
        if missing:
            taken = np.sort(np.concatenate([taken, fresh]), kind="stable")  # linear: two sorted runs
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _cell_keys(numbers: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """Keys of cells 0..N-1: number (s-1) n + i is the pair of i and i + s modulo n (integers, no rounded root)."""
    step, first = np.divmod(numbers, n_nodes)
    second = (first + step + 1) % n_nodes
    return np.minimum(first, second) * n_nodes + np.maximum(first, second)  # type: ignore[no-any-return]  # numpy's types say Any here


def _keys(edges: NDArray[np.integer], n_nodes: int) -> NDArray[np.int64]:
    """Sorted numbers smaller node × n + larger node, of edges that are in order."""
    if not 0 <= n_nodes <= MOST_NODES:
        raise ValueError(f"n_nodes must be in 0..{MOST_NODES} (is {n_nodes})")
    edges = np.asarray(edges)
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(f"edges must be integers of shape (n, 2) (are {edges.dtype} of shape {edges.shape})")
    for name, column in zip(("source", "target"), edges.T, strict=True):
        _refuse((column < 0) | (column >= n_nodes), f"column {name!r}", f"outside 0..{n_nodes - 1}", edges)
    _refuse(edges[:, 0] == edges[:, 1], "edges", "loops", edges)
    low, high = np.minimum(*edges.T), np.maximum(*edges.T)
    keys = low.astype(np.int64) * n_nodes + high.astype(np.int64)
    ordered = np.sort(keys)
    if (ordered[1:] == ordered[:-1]).any():
        repeated = np.ones(len(keys), dtype=np.bool_)
        repeated[np.unique(keys, return_index=True)[1]] = False
        _refuse(repeated, "edges", "repeated", edges)
    return ordered


def _decode_keys(keys: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    return np.stack(np.divmod(keys, max(n_nodes, 1)), axis=1)


def _refuse(wrong: NDArray[np.bool_], where: str, what: str, edges: NDArray[np.integer]) -> None:
    if count := int(wrong.sum()):
        row = int(wrong.argmax())
        raise ValueError(
            f"{where}: {count} of {len(edges)} rows are {what} (first: row {row}, {edges[row, 0]} - {edges[row, 1]})"
        )


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)} (is {mode!r})")


def check_count_budget(epsilon_count: float) -> None:
    """Refuse a budget of a number of edges whose noise would show it.

    Raises:
        ValueError: it is below `SMALLEST_COUNT_BUDGET`, or none (`check_epsilon`).
    """
    check_epsilon(epsilon_count)
    if epsilon_count < SMALLEST_COUNT_BUDGET:
        raise ValueError(f"epsilon_count must be at least {SMALLEST_COUNT_BUDGET:g} (is {epsilon_count:g})")
