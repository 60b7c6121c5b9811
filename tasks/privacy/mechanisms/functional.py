"""Functional mechanism: Laplace noise on the coefficients of a loss that is a polynomial in the model's last weights.

Source: Zhang et al., "Functional mechanism" (VLDB 2012); section 4.2, Algorithm 3 and Lemma 4.3 of GERAI;
docs/methods.md §2.

GERAI's loss per triple is log 2 - ½ hᵀq̄ + ⅛ (hᵀq̄)² with q̄ = q_uv - q_uv' in (-1, 1)^d. As a polynomial in h its
coefficients are -q̄_m/2 (d of them) and q̄_m q̄_n/8 (d² ordered pairs, or half as many monomials with twice as much), at
most d/2 + d²/8 in L1 norm, so replacing one triple changes their sum by at most Δ = d + d²/4. Protected is one triple's
contribution to these coefficients, and only that: q̄ itself comes from other parameters and from the graph, and what
those reveal is not covered.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.checks import check_at_least, check_budget, check_finite


def sensitivity(dim: int) -> float:
    """Δ = d + d²/4, the L1 sensitivity of the summed coefficients to replacing one triple (Lemma 4.3)."""
    check_at_least(1, dim=dim)
    return dim + dim * dim / 4


def noise_scale(dim: int, epsilon: float, n_triples: int) -> float:
    """Scale Δ/(ε|D|) of the Laplace noise on each coefficient of the mean loss; 0 for an infinite budget.

    Args:
        dim: d, the length of h.
        epsilon: budget for replacing one triple, spent once however long the noisy loss is optimised.
        n_triples: |D|, the number of training triples in the mean (public).

    Raises:
        ValueError: dim or n_triples is below 1, or epsilon is not a positive number.
    """
    check_budget(epsilon)
    check_at_least(1, n_triples=n_triples)
    return sensitivity(dim) / (epsilon * n_triples)


Draws = Literal["monomial", "pair"]


def draw(
    dim: int, scale: float, rng: np.random.Generator, draws: Draws = "monomial"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The noise of one run: η on the linear and N on the quadratic coefficients of h.

    Args:
        draws: what gets independent noise: each monomial h_m h_n, as in Algorithm 3, or each of the d² ordered pairs,
            so that a cross term h_m h_n has twice the variance.

    Returns:
        η (d,) and N (d, d), symmetric; float64. hᵀN h is the noise of the quadratic form.
    """
    check_at_least(1, dim=dim)
    check_finite(scale=scale)
    linear = noise.laplace(rng, "linear coefficients", scale, dim)
    quadratic = noise.laplace(rng, "quadratic coefficients", scale, (dim, dim))
    if draws == "monomial":
        quadratic = np.triu(quadratic)
    return linear, (quadratic + quadratic.T) / 2
