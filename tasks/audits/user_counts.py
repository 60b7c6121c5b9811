"""Audits of the counts that private training on users' rows releases besides gradients: small norms, and items."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tasks.audits import Samples
from tasks.audits.worlds import training_data
from tasks.models.vae.autoencoder import VAE, VAEConfig
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import ghost
from tasks.privacy.mechanisms.user_sgd import QUANTILE_RATE, Rigorous

DELTA = 0.1
QUANTILE, CLIP = 0.5, 1.0
USERS, CONTRIBUTION = 100, 3
"""Users in one fit of whom each is a sample, and items of each that count."""
RIDGE = 1e-9
"""Share of the mean variance that every statistic is given, so that one without noise decides alone."""


def norms(seed: int, n_samples: int = 20_000, epsilon: float = 2.0, delta: float = DELTA) -> Samples:
    """One step of `dpvae-rigorous` whose bound follows a quantile: a user whose gradient is clipped, or an empty row.

    What is released are a sum of gradients and, through the bound of the next step, the count of small norms.
    """
    private = Rigorous(2, 2, 1, np.full(2, epsilon), epsilon, delta, CLIP, QUANTILE)
    rng, layer, users = np.random.default_rng(seed), nn.Linear(1, 1, bias=False), np.arange(2)
    sides = np.empty((2, n_samples, 2))
    for side, length in zip(sides, (0.0, 10 * CLIP), strict=True):
        outer = ghost.Outer(layer, torch.tensor([[length], [0.0]]), torch.ones(2, 1))
        for sample in side:
            private.bound.fill_(CLIP)
            released, _ = private.release([outer], users, 1, rng)
            sample[0] = float(next(iter(released.values())))
            sample[1] = -math.log(private.present_bound() / CLIP) / QUANTILE_RATE
    model = _model(epsilon, delta=delta, quantile=QUANTILE)
    return Samples(*combine(*sides), model.fit(training_data(2, 3, [], []), rng=rng).ledger()[0])


def popularity(
    seed: int,
    n_samples: int = 40_000,
    epsilon: float = 2.0,
    popularity: float = 0.5,
    contribution: int = CONTRIBUTION,
    times: int = 1,
) -> Samples:
    """Counts that biases start at: users with `times` as many items of their own as count, or none.

    Every item has one interaction that is no secret, so that counts of 1 and less are distinguished from more.
    """
    each, rng = times * contribution, np.random.default_rng(seed)
    n_items, public = USERS * each, USERS * times
    items = np.arange(n_items)
    model = _model(epsilon, batch_size=USERS + public, popularity=popularity, contribution=contribution)
    sides: tuple[list[float], list[float]] = ([], [])
    while len(sides[1]) < n_samples:
        present = rng.permutation(USERS) < USERS // 2
        private = items[present[items // each]]
        data = training_data(
            USERS + public, n_items, [*(private // each), *(USERS + items // contribution)], [*private, *items]
        )
        biases = model.fit(data, rng=rng).released()["biases"].double().numpy()
        counts = np.exp(biases - biases.min())  # the smallest of so many is 1
        for side, there in zip(sides, (False, True), strict=True):
            side += (counts > 1.5).reshape(USERS, each).sum(1)[present == there].tolist()
    entry = model.ledger()[0]
    event = next(event for event in entry.events if event.kind == "discrete-laplace")
    part = {
        "mechanism": "counts-of-biases",
        "events": (event,),
        "claimed_epsilon": popularity * epsilon,
        "claimed_delta": 0.0,
        "accounted_epsilon": account([event]).epsilon,
        "accounted_delta": 0.0,
    }
    return Samples(np.array(sides[0][:n_samples]), np.array(sides[1][:n_samples]), entry.model_copy(update=part))


popularity_above_cap = partial(popularity, times=4)
"""Users with four times as many items as may count."""


def _model(epsilon: float, **more: object) -> VAE:
    """One step of all users that changes nothing."""
    sizes = {"epochs": 1, "batch_size": 2, "learning_rate": 0.0, "dimension": 1, "hidden": 1}
    kind = {"optimiser": "sgd", "values": "binary", "beta": 0.0, "prior": "standard"}
    private = {"privacy": "dpsgd", "accounting": "rigorous", "clip_norm": CLIP, "delta": DELTA, "epsilon_max": epsilon}
    return VAE(VAEConfig.model_validate(sizes | kind | private | more))


def combine(
    without: NDArray[np.float64], present: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Their sum with the weights that tell the two worlds apart best (Fisher's linear discriminant): (n,) each.

    Weights come from the first half of the runs, which also chooses an audit's event, so that they do not spoil its
    confidence. Of Gaussian noise the sum is the log-likelihood ratio; a statistic that lacks its noise has by far the
    largest weight.

    Args:
        without, present: (n, k) statistics of runs in either world.
    """
    first = [side[: len(side) // 2] for side in (without, present)]
    moved = first[1].mean(0) - first[0].mean(0)
    covariance = sum(np.cov(side, rowvar=False) for side in first)
    weights = np.linalg.solve(covariance + RIDGE * np.trace(covariance) * np.eye(len(moved)), moved)
    return without @ weights, present @ weights
