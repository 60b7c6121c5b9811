"""Objective perturbation of matrix factorisation: a random linear term in every item's vector.

Source: Hua, Xia and Zhong, "Differentially private matrix factorization" (IJCAI 2015), after Chaudhuri, Monteleoni and
Sarwate (JMLR 2011); docs/methods.md §2.

With user vectors u_i fixed, ‖u_i‖₂ <= 1, the vector v of an item minimises Σ_i (r_i - u_iᵀv)² + ridge ‖v‖² + ηᵀv. Where
the minimum is, the gradient is zero: η = 2 Σ_i (r_i - u_iᵀv) u_i - 2 ridge v. One cell r_i that changes by Δ moves this
by 2Δu_i, at most 2Δ√d in L1 norm, and the Jacobian of η in v, -2(UᵀU + ridge I), has no cell in it. So components of
η that are Laplace of scale 2Δ√d/ε make v, and with it all items' vectors together, ε-differentially private for one
cell. Protected are the cells r alone: a u_i that was computed from them is not covered.

The minimum is (UᵀU + ridge I)⁻¹ (Uᵀr - η/2): the same as Laplace noise of scale Δ√d/ε on the sums Uᵀr. All of this
holds for real numbers: the low digits of floating-point Laplace noise leak (Mironov, CCS 2012).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.privacy import noise
from tasks.privacy.checks import check_at_least, check_budget, check_finite

ROUNDING = 1e-9
"""How much longer than 1 a user vector may come out of being scaled to length 1."""


def noise_scale(dim: int, epsilon: float, sensitivity: float) -> float:
    """Scale 2Δ√d/ε of the Laplace noise on each component of an item's linear term; 0 for an infinite budget.

    Args:
        dim: d, the length of user and item vectors.
        epsilon: budget for a change of one cell.
        sensitivity: Δ, the most that a cell can change.
    """
    check_at_least(1, dim=dim)
    check_budget(epsilon)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(f"sensitivity must be a positive finite number (is {sensitivity})")
    return 2 * sensitivity * math.sqrt(dim) / epsilon


def draw(n_items: int, dim: int, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The linear terms η of all items, drawn once per run: (n_items, dim) float64."""
    check_at_least(0, n_items=n_items)
    check_at_least(1, dim=dim)
    check_finite(scale=scale)
    return noise.laplace(rng, "linear terms", scale, (n_items, dim))


def perturbed_least_squares(
    users: NDArray[np.float64], cells: csr_array | NDArray[np.float64], eta: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Item vectors that minimise Σ (cell - u_iᵀv_j)² + ridge Σ ‖v_j‖² + Σ η_jᵀv_j, over every cell, zeros included.

    Args:
        users: (n_users, d) user vectors, none longer than 1.
        cells: (n_users, n_items), sparse (scipy) or dense.
        eta: (n_items, d) linear terms η.
        ridge: weight of the squared norms.

    Returns:
        (n_items, d) float64.
    """
    _check_ridge(ridge)
    _check_lengths(users)
    curvature = users.T @ users + ridge * np.eye(users.shape[1])
    # For every item the same positive definite matrix.
    return np.linalg.solve(curvature, (cells.T @ users - eta / 2).T).T


def perturbed_least_squares_of_stored(
    users: NDArray[np.float64], cells: csr_array, eta: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """The same over the stored cells of each item alone, stored zeros included: (n_items, d) float64.

    The noise is made for one stored cell whose value changes. What it costs that a cell is stored or not is another
    matter: the gradient then changes by 2 |r - uᵀv| ‖u‖₁, which grows with v, and its Jacobian by 2uuᵀ.

    Args:
        users: (n_users, d) user vectors, none longer than 1.
        cells: (n_users, n_items).
        eta: (n_items, d) linear terms η.
        ridge: weight of the squared norms.
    """
    _check_lengths(users)
    return least_squares_of_stored(users, cells, ridge, eta)


def least_squares_of_stored(
    factors: NDArray[np.float64], cells: csr_array, ridge: float, linear: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """For each column of `cells` the v with the least Σ (cell - f_iᵀv)² + ridge ‖v‖² + linearᵀv over its stored cells.

    Args:
        factors: (n_rows, d), one for each row of `cells`.
        cells: (n_rows, n_columns); what is stored counts, zeros too.
        ridge: weight of the squared norms.
        linear: (n_columns, d) linear terms.

    Returns:
        (n_columns, d) float64.
    """
    _check_ridge(ridge)
    columns = cells.T.tocsr()
    stored = csr_array((np.ones(columns.nnz), columns.indices, columns.indptr), shape=columns.shape)
    dim = factors.shape[1]
    curvatures = np.empty((columns.shape[0], dim, dim))
    # Row by row of the d x d matrices: all outer products at once would be n_rows x d² numbers.
    for row in range(dim):
        curvatures[:, row] = stored @ (factors * factors[:, row : row + 1])
    curvatures += ridge * np.eye(dim)
    return np.linalg.solve(curvatures, (columns @ factors - linear / 2)[..., None])[..., 0]


def _check_ridge(ridge: float) -> None:
    if not (math.isfinite(ridge) and ridge > 0):
        raise ValueError(f"ridge must be a positive finite number (is {ridge})")


def _check_lengths(users: NDArray[np.float64]) -> None:
    lengths = np.linalg.norm(users, axis=1)
    if wrong := int((~(lengths <= 1 + ROUNDING)).sum()):
        raise ValueError(
            f"{wrong} of {len(users)} user vectors are longer than 1 or NaN; scale them into the unit ball"
        )
