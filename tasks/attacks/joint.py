"""Reconstruction of a user's sensitive ratings together, from all that the user submits (docs/methods.md §5 and §7).

The untrusted recommender of Meng et al. (AAAI 2018) gets submissions about published ratings, too. They depend on the
user's vector, which was trained on sensitive ratings, and may carry far less noise. All of them together are, to first
order, a measurement G = H (r - g) + noise of the user's sensitive ratings r, noise ~ N(0, H) (`Information`).

What is expanded to first order, and friends left out, is off besides. So noise is taken to be N(0, τH), for all users
the τ of a grid with which G is likeliest, given guesses N(m, D) of the ratings: generalised least squares with
over-dispersion (McCullagh and Nelder, "Generalized Linear Models", 1989, §4.5 and §9.2). So G - H (m - g) is N(0, τH +
HDH), and the estimate is m + (H + τD⁻¹)⁻¹ (G - H (m - g)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.attacks.measurements import Floats
from tasks.attacks.reconstruction import SMALLEST, Published

INFLATIONS = tuple(10.0**power for power in range(13))
"""What the variance of the noise is multiplied by: what τ is chosen from."""


@dataclass(frozen=True)
class Measured:
    """What was measured of each user's targets.

    guess, gradient: (n_targets,) g and G, in order of users.
    matrices: H of every user with targets in turn, (n_i, n_i).
    """

    guess: Floats
    gradient: Floats
    matrices: list[Floats]


@dataclass(frozen=True)
class Turned:
    """A user's guesses, turned so that what was measured is independent in each direction.

    off: (n,) measured less guessed, in these directions; values: (n,) of D^½ H D^½ = Q diag(values) Qᵀ.
    back: (n, n) D^½ Q, a direction's part in each rating.
    """

    off: Floats
    values: Floats
    back: Floats

    @classmethod
    def of(cls, gradient: Floats, matrix: Floats, missed: Floats, doubt: Floats) -> Turned:
        """missed: m - g; doubt: the diagonal of D."""
        deviation = np.sqrt(doubt)
        values, directions = np.linalg.eigh(deviation[:, None] * matrix * deviation)
        back = deviation[:, None] * directions
        return cls(back.T @ (gradient - matrix @ missed), np.maximum(values, 0), back)


def from_information(
    published: Published,
    guess: tuple[Floats, Floats],
    measured: Measured,
    inflations: tuple[float, ...] = INFLATIONS,
) -> Floats:
    """What all submissions tell of the targets: (n_targets,). Nothing measured (G = 0, H = 0) leaves the guess.

    Args:
        guess: (n_targets,) each, estimates from elsewhere and their variances: m and the diagonal of D.
        measured: of the same targets.
        inflations: τ, to choose from.

    Raises:
        ValueError: an inflation is not positive, or there is none.
    """
    if not inflations or not min(inflations) > 0:
        raise ValueError(f"inflations must be positive, not {inflations}")
    means, doubts = guess[0], np.maximum(guess[1], SMALLEST)
    users, at = [], 0
    for matrix in measured.matrices:
        part = slice(at, at + len(matrix))
        missed = (means - measured.guess)[part]
        users.append(Turned.of(measured.gradient[part], matrix, missed, doubts[part]))
        at = part.stop
    off, values = (np.concatenate([getattr(user, name) for user in users]) for name in ("off", "values"))
    best = max(inflations, key=lambda inflation: log_likelihood(off, values, inflation))
    moved = np.concatenate([user.back @ (user.off / (user.values + best)) for user in users])
    return published.clip(means + moved)


def log_likelihood(off: Floats, values: Floats, inflation: float) -> float:
    """Logarithm of the density of G in turned directions, where its variance is v (v + τ), but for a constant.

    Directions of which nothing was measured, v = 0, are left out.

    Args:
        off, values: (n,) G less its mean, and v.
    """
    some = values > 0
    squares = off[some] ** 2 / (values[some] * (values[some] + inflation))
    return float(-0.5 * np.sum(np.log(values[some] + inflation) + squares))
