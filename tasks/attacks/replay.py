"""Reconstruction of sensitive ratings by one who recalls what every submission answered (docs/methods.md §5 and §7).

The untrusted recommender of Meng et al. (AAAI 2018) sends V and gets 2 (uᵀv - r) u and noise. Averages over the whole
run mix answers to different V. Two attackers do not, each of whom begins with what the one before guesses:

- `first`: the first submission and the V that it answers, when all users' vectors are still near a start that everyone
  knows. Without noise that is the rating itself.
- `replayed`: all submissions, each next to the user's vector as published ratings alone would have moved it by then.
  Average submissions are then linear in r.
"""

from __future__ import annotations

import numpy as np

from tasks.attacks.measurements import DRIFTS, Floats, likeliest, weigh
from tasks.attacks.reconstruction import SMALLEST, TunedAttacker

ROUNDS = 3
"""How often vectors and ratings are estimated in turn from first submissions; without noise two are enough."""


def from_first(
    tuned: TunedAttacker, items: Floats, messages: Floats, variances: Floats, deviation: float, *, rounds: int = ROUNDS
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

    Raises:
        ValueError: the deviation is negative, or there are no rounds.
    """
    if deviation < 0 or rounds < 1:
        raise ValueError(f"the deviation must be at least 0, not {deviation:g}, and rounds at least 1, not {rounds}")
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

    Raises:
        ValueError: a drift is not positive, or there is none.
    """
    expected, along = replayed
    off, slopes = messages - 2 * expected, -2 * along
    precisions = 1 / (variances + likeliest(off, slopes, *guess, variances, drifts))
    precision, weighted = (slopes**2 * precisions).sum(axis=1), (slopes * off * precisions).sum(axis=1)
    return tuned.published.clip(weigh(*guess, precision, weighted)[0])
