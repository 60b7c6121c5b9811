"""The neighbouring inputs that are hardest to hide, for each mechanism: samples that an audit judges.

Each function runs the mechanism `n` times on either input and returns the log-likelihood ratio of every output, the
statistic that distinguishes the two inputs best. docs/methods.md §9.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.contracts import Feature
from tasks.privacy.checks import check_epsilon
from tasks.privacy.mechanisms import edges, multidimensional, piecewise, unary

Samples = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(n,) statistics of outputs for input a, and (n,) for input b."""
ROUNDING = 1e-9
"""Relative error, or more, of a float64 output. Without it, an input that comes out unchanged (at 1 or -1, where the
pieces meet) would look like noise, and a mechanism whose noise is off like a private one."""


def piecewise_samples(epsilon: float, n: int, rng: np.random.Generator) -> Samples:
    """The two ends, 1 and -1.

    Raises:
        ValueError: epsilon is not a positive finite number.
    """

    def outputs(x: float) -> NDArray[np.float64]:
        perturbed = piecewise.perturb(np.full(n, x), epsilon, rng)
        first, second = (piecewise.log_density(perturbed, end, epsilon, ROUNDING) for end in (1, -1))
        return first - second

    return outputs(1.0), outputs(-1.0)


def unary_samples(epsilon: float, n_categories: int, n: int, rng: np.random.Generator) -> Samples:
    """Two different categories out of `n_categories`.

    Raises:
        ValueError: epsilon is not a positive finite number.
    """

    def outputs(category: int) -> NDArray[np.float64]:
        onehot = np.zeros((n, n_categories), dtype=np.float32)
        onehot[:, category] = 1
        perturbed = unary.perturb(onehot, epsilon, rng)
        return unary.log_probability(perturbed, 0, epsilon) - unary.log_probability(perturbed, 1, epsilon)

    return outputs(0), outputs(1)


def multidimensional_samples(features: Sequence[Feature], epsilon: float, n: int, rng: np.random.Generator) -> Samples:
    """Two users who differ in every feature: numbers at opposite ends, first against last category.

    Raises:
        ValueError: epsilon is not a positive finite number.
    """
    ends = []
    for number, category in ((1, 0), (-1, -1)):
        user: list[float] = []
        for feature in features:
            block = [float(number)] if feature.kind == "numeric" else [0.0] * len(feature.columns)
            if feature.kind == "categorical":
                block[category] = 1.0
            user += block
        ends.append(np.array(user, dtype=np.float32))

    def outputs(user: NDArray[np.float32]) -> NDArray[np.float64]:
        perturbed = multidimensional.perturb(np.broadcast_to(user, (n, len(user))), features, epsilon, rng)
        return multidimensional.log_likelihood_ratio(perturbed, ends[0], ends[1], features, epsilon)

    return outputs(ends[0]), outputs(ends[1])


def cells_samples(epsilon: float, n: int, rng: np.random.Generator) -> Samples:
    """A cell of a graph that is an edge, and one that is none, through the top-m filter towards a public number.

    The graph is so sparse that the threshold is 1 or more, where the likelihoods differ most. Cells pass or not by
    themselves, so one release has many samples: n edges, and n cells without one.

    Raises:
        ValueError: epsilon is not a positive finite number, or so large that no graph of 64-bit pairs is sparse enough.
    """
    check_epsilon(epsilon)
    log_pairs = np.log(2 * n) + np.logaddexp(epsilon, np.log(2))
    if log_pairs > np.log(2.0**62):
        raise ValueError(f"epsilon: no graph of 64-bit pairs is sparse enough for {epsilon:g}")
    n_nodes = int(np.ceil(np.sqrt(2 * n * (np.exp(epsilon) + 2)))) + 1
    step, first = np.divmod(np.arange(2 * n, dtype=np.int64), n_nodes)
    second = (first + step + 1) % n_nodes
    cells = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)
    true, others = cells[:n], cells[n:]
    released = edges.filter_towards(true, n_nodes, n, epsilon, rng, "rigorous")
    theta = edges.threshold(n, edges.n_cells(n_nodes), epsilon)
    passes, false = edges.pass_probabilities(theta, epsilon)
    ratio = np.log([(1 - passes) / (1 - false), passes / false])
    keys = released @ np.array([n_nodes, 1])
    passed, added = (np.isin(asked @ np.array([n_nodes, 1]), keys).astype(np.int64) for asked in (true, others))
    return ratio[passed], ratio[added]
