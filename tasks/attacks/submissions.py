"""What submissions to an untrusted recommender tell of sensitive ratings (docs/methods.md §5 and §7).

The recommender of Meng et al. (AAAI 2018) sends V and gets 2 (uᵀv - r) u and noise, from users who know u and r:

- `from_submissions`: the average submission about each sensitive rating, over the whole run.
- `from_first`: the first submission and the V that it answers, when all users' vectors are still near a start that
  everyone knows. Without noise that is the rating itself.
- `from_replay`: all submissions, each next to the user's vector as published ratings alone would have moved it by then:
  averages over the whole run mix answers to different V. Average submissions are then linear in r.
- `from_information`: submissions about published ratings, too. They depend on the user's vector, which was trained on
  sensitive ratings, and may carry far less noise. All of them together are, to first order, a measurement
  G = H (r - g) + noise of the user's sensitive ratings r, noise ~ N(0, H) (`Information`). What is expanded to first
  order, and friends left out, is off besides. So noise is taken to be N(0, τH), with the one τ of a grid by which
  G is likeliest, given guesses N(m, D) of the ratings: generalised least squares with over-dispersion (McCullagh and
  Nelder, "Generalized Linear Models", 1989, §4.5 and §9.2). So G - H (m - g) is N(0, τH + HDH), and the estimate is
  m + (H + τD⁻¹)⁻¹ (G - H (m - g)).

Values that are a known slope times a number, and noise, measure it by generalised least squares; a measurement is
weighed against a guess by precision (`weigh`): textbooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.attacks.reconstruction import (
    BLOCK,
    SMALLEST,
    Floats,
    Published,
    TunedAttacker,
    add_to_diagonals,
    row_products,
    sums_by_user,
)

DRIFTS = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Variances of what values are off besides their noise: what `likeliest` chooses from."""
INFLATIONS = tuple(10.0**power for power in range(13))
"""What the variance of the noise is multiplied by: what τ is chosen from."""
ROUNDS = 5
"""How often user vectors and ratings are estimated in turn from submissions; more changes little."""
ROUNDS_OF_FIRST = 3
"""The same from first submissions; without noise two are enough."""


def weigh(guess: Floats, doubt: Floats | float, precision: Floats, weighted: Floats) -> tuple[Floats, Floats]:
    """A guess and a measurement of each number, by precision; and the variance that is left: (n,) each.

    Without any precision that is the guess, bit for bit.

    Args:
        guess, doubt: its mean and variance.
        precision, weighted: of the measurement, and its precision times what was measured.
    """
    left = 1 + doubt * precision
    return guess + doubt * (weighted - precision * guess) / left, doubt / left


def log_likelihood(values: Floats, slopes: Floats, guess: Floats, doubt: Floats | float, variances: Floats) -> float:
    """Mean logarithm of the density of each number's values, but for a constant.

    Args:
        values, slopes: (n, K).
        guess, doubt: mean and variance of the numbers, normal.
        variances: (n, K) of the noise, normal and independent; values with infinite ones are left out.
    """
    logarithms = np.log(np.where(np.isfinite(variances), variances, 1)).sum(axis=1)
    off, precise = values - slopes * np.asarray(guess)[:, None], slopes / variances
    inflation = 1 + doubt * (slopes * precise).sum(axis=1)
    squares = (off**2 / variances).sum(axis=1) - doubt * (off * precise).sum(axis=1) ** 2 / inflation
    return float(-0.5 * np.mean(logarithms + np.log(inflation) + squares))


def likeliest(
    values: Floats, slopes: Floats, guess: Floats, doubt: Floats | float, variances: Floats, drifts: tuple[float, ...]
) -> float:
    """The drift that, added to the variances, makes the values likeliest; the arguments are `log_likelihood`'s."""
    return max(drifts, key=lambda drift: log_likelihood(values, slopes, guess, doubt, variances + drift))


def from_submissions(
    tuned: TunedAttacker,
    mean_items: Floats,
    messages: Floats,
    variances: Floats,
    *,
    drifts: tuple[float, ...] = DRIFTS,
    rounds: int = ROUNDS,
) -> Floats:
    """What averaged submissions tell of the targets: (n_targets,).

    With u known, 2 (uᵀv - r) u measures r with an error of known variance (generalised least squares along u), which is
    weighed against the guess by precision; with the ratings known, submissions measure u, which is weighed against the
    fit to published ratings. Both are done in turn. Pure noise leaves the guess of `tuned`, bit for bit.

    Args:
        mean_items: (n_items, K) item vectors, averaged over the iterations whose submissions are.
        messages: (n_targets, K) the average submission about each target.
        variances: (n_targets, K) of the noise in it; may be infinite.
        drifts: variances of what it is off besides, because vectors move during training. The one is added with which
            what was submitted is likeliest, given û of the published ratings.
        rounds: estimates of the ratings; the first one uses û of the published ratings.
    """
    targets, published, profiles = tuned.targets, tuned.published, tuned.profiles
    items = mean_items[targets.items]
    of_user = sums_by_user(targets.users, published.n_users)
    vectors = profiles.vectors
    guess, slopes = tuned.guess(vectors), -2 * vectors[targets.users]
    off = messages + row_products(vectors[targets.users], items)[:, None] * slopes
    precisions = 1 / (variances + likeliest(off, slopes, guess, tuned.variance, variances, drifts))
    for done in range(1, rounds + 1):
        user_vectors = vectors[targets.users]
        expected = row_products(user_vectors, items)
        # The error e = uᵀv - r is submitted as 2 e u: its precision, and precision times its estimate
        precision = 4 * (user_vectors**2 * precisions).sum(axis=1)
        weighted = precision * expected - 2 * (user_vectors * messages * precisions).sum(axis=1)
        ratings = weigh(guess, tuned.variance, precision, weighted)[0]
        if done < rounds:
            normal = tuned.precision
            pull = (normal @ (profiles.vectors - vectors)[..., None])[..., 0]
            for start in range(0, len(user_vectors), BLOCK):
                rows = slice(start, start + BLOCK)
                sent = (expected - ratings)[rows], messages[rows], precisions[rows]
                gradient, matrix = gauss_newton(user_vectors[rows], items[rows], *sent, tuned.variance)
                pull += of_user[:, rows] @ gradient
                normal += (of_user[:, rows] @ matrix.reshape(len(matrix), -1)).reshape(normal.shape)
            vectors = vectors + np.linalg.solve(normal, pull[..., None])[..., 0]
    return published.clip(ratings)


def gauss_newton(
    users: Floats, items: Floats, errors: Floats, messages: Floats, precisions: Floats, variance: float
) -> tuple[Floats, Floats]:
    """What each submission says of its user's vector: gradient (n, K) and Gauss-Newton matrix (n, K, K).

    The rating, at its best for the present vectors, is eliminated (Schur complement): it follows whatever they become.

    variance: of a rating around its guess.
    """
    off = messages - 2 * errors[:, None] * users
    weighted = precisions * users
    length = row_products(users, weighted)
    gradient = 2 * (errors[:, None] * precisions * off + items * row_products(weighted, off)[:, None])
    along = errors[:, None] * weighted + length[:, None] * items
    mixed = (errors[:, None] * weighted)[:, :, None] * items[:, None, :]
    matrix = 4 * (mixed + mixed.transpose(0, 2, 1) + length[:, None, None] * items[:, :, None] * items[:, None, :])
    matrix = add_to_diagonals(matrix, 4 * errors[:, None] ** 2 * precisions)
    matrix -= (16 * variance / (1 + 4 * variance * length))[:, None, None] * along[:, :, None] * along[:, None, :]
    return gradient, matrix


def from_first(
    tuned: TunedAttacker,
    items: Floats,
    messages: Floats,
    variances: Floats,
    deviation: float,
    *,
    rounds: int = ROUNDS_OF_FIRST,
) -> tuple[Floats, Floats]:
    """What the first submissions tell of the targets: estimates, not cut off, and their variances, (n_targets,) each.

    A submission is 2 e u and noise, e = uᵀv - r and ‖u‖ = 1. In turn e is estimated with u known, and weighed against
    the guess of `tuned` by precision; then u with e known, weighed against the start. Pure noise leaves the guess, bit
    for bit.

    Args:
        items: (n_targets, K) the vector of each target's item in that iteration.
        messages: (n_targets, K) the submission about each target.
        variances: (n_targets, K) of the noise in it; may be infinite.
        deviation: standard deviation of a coordinate of u around K^-0.5, which all have in common.
        rounds: estimates of the ratings.
    """
    precisions, start_precision = 1 / (variances + SMALLEST), 1 / (deviation**2 + SMALLEST)
    guess, start = tuned.guess(tuned.profiles.vectors), items.shape[1] ** -0.5
    errors, along = np.zeros(len(items)), messages.sum(axis=1)  # the start tells the sign of e, whatever u is
    for _ in range(rounds):
        total_precision = start_precision + 4 * errors[:, None] ** 2 * precisions
        vectors = (start_precision * start + 2 * errors[:, None] * messages * precisions) / total_precision
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        expected = (vectors * items).sum(axis=1)
        precision = 4 * (vectors**2 * precisions).sum(axis=1)
        # How far uᵀv may be off: u has no leeway but across itself
        across = items - expected[:, None] * vectors
        doubt = (across**2 / total_precision).sum(axis=1)
        weighted = precision * expected - 2 * (vectors * messages * precisions).sum(axis=1)
        share = 1 / (1 + precision * doubt)
        ratings, variance = weigh(guess, tuned.variance, precision * share, weighted * share)
        errors = np.copysign(expected - ratings, along)
    return ratings, variance


def from_replay(
    tuned: TunedAttacker,
    guess: tuple[Floats, Floats],
    replayed: tuple[Floats, Floats],
    messages: Floats,
    variances: Floats,
    drifts: tuple[float, ...] = DRIFTS,
) -> Floats:
    """What averaged submissions tell of the targets, next to what was expected of them: (n_targets,).

    With w the user's replayed vector they are 2 (A - r B) and noise, A the average of (wᵀv) w and B that of w, so r is
    known by generalised least squares, and weighed against the guess by precision. Pure noise leaves the guess.

    Args:
        guess: (n_targets,) each, estimates from elsewhere and their variances.
        replayed: A and B, (n_targets, K) each.
        messages: (n_targets, K) the average submission about each target.
        variances: (n_targets, K) of the noise in it; may be infinite.
        drifts: variances of what it is off besides, as replayed vectors are not the true ones: to choose from.
    """
    expected, along = replayed
    off, slopes = messages - 2 * expected, -2 * along
    precisions = 1 / (variances + likeliest(off, slopes, *guess, variances, drifts))
    precision, weighted = (slopes**2 * precisions).sum(axis=1), (slopes * off * precisions).sum(axis=1)
    return tuned.published.clip(weigh(*guess, precision, weighted)[0])


@dataclass(frozen=True)
class Measured:
    """What was measured of each user's targets.

    guess, gradient: (n_targets,) g and G, in order of users.
    matrices: H of every user with targets in turn, (n_i, n_i).
    """

    guess: Floats
    gradient: Floats
    matrices: list[Floats]


def turn(gradient: Floats, matrix: Floats, missed: Floats, doubt: Floats) -> tuple[Floats, Floats, Floats]:
    """A user's guesses, turned so that what was measured is independent in each direction.

    Args:
        missed: m - g; doubt: the diagonal of D.

    Returns:
        (n,) measured less guessed, in these directions; (n,) values of D^½ H D^½ = Q diag(values) Qᵀ; and (n, n) D^½ Q,
        a direction's part in each rating.
    """
    deviation = np.sqrt(doubt)
    values, directions = np.linalg.eigh(deviation[:, None] * matrix * deviation)
    back = deviation[:, None] * directions
    return back.T @ (gradient - matrix @ missed), np.maximum(values, 0), back


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
    """
    means, doubts = guess[0], np.maximum(guess[1], SMALLEST)
    users, at = [], 0
    for matrix in measured.matrices:
        part = slice(at, at + len(matrix))
        missed = (means - measured.guess)[part]
        users.append(turn(measured.gradient[part], matrix, missed, doubts[part]))
        at = part.stop
    off, values = (np.concatenate([user[part] for user in users]) for part in (0, 1))
    best = max(inflations, key=lambda inflation: likelihood_of_directions(off, values, inflation))
    moved = np.concatenate([back @ (off / (values + best)) for off, values, back in users])
    return published.clip(means + moved)


def likelihood_of_directions(off: Floats, values: Floats, inflation: float) -> float:
    """Logarithm of the density of G in turned directions, where its variance is v (v + τ), but for a constant.

    Directions of which nothing was measured, v = 0, are left out.

    Args:
        off, values: (n,) G less its mean, and v.
    """
    some = values > 0
    squares = off[some] ** 2 / (values[some] * (values[some] + inflation))
    return float(-0.5 * np.sum(np.log(values[some] + inflation) + squares))
