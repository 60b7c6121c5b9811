"""Audits of the models that private SGD trains: `dpae`, `dpvae-rigorous`, `dpvae-compact` and `dpsgd`.

One user has a row, or nobody has: then the user's clipped gradient g is all that a step may add to its noise, and it is
as long as the clipping bound. The auditor sees what every step of a real `fit` releases, knows the weights before it,
and so g, and adds up log(1 - q + q exp((⟨x, g⟩ - ‖g‖²/2)/σ²)), the log-likelihood ratio of a step that the user is in
with probability q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.audits import Samples
from tasks.models.ranking.dpae import DPAE, DPAEConfig
from tasks.models.sessions.dpsgd import DPSGD, DPSGDConfig
from tasks.models.vae.userwise import UserModel
from tasks.models.vae.vae import VAE, VAEConfig
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms.user_sgd import QUANTILE_RATE, Rigorous
from tasks.sequences import Sequences
from tasks.training_data import TrainingData

DELTA = 0.1
"""So large that events of probabilities which few runs can estimate decide."""
USERS, ITEMS = 2, 6
STEPS = {"epochs": 2, "batch_size": USERS, "delta": DELTA, "learning_rate": 0.01}
"""Two steps, each with all users."""
ROWS = {"optimiser": "sgd", "values": "binary", "dimension": 1, "hidden": 1, "beta": 0.01, "prior": "standard"}
PRIVATE = {"privacy": "dpsgd", "accounting": "rigorous", "clip_norm": 0.01}


def autoencoder(seed: int, n_samples: int = 1_500, epsilon: float = 2.0) -> Samples:
    """`dpae`, every user in every step."""
    return _autoencoder(STEPS, seed, n_samples, epsilon)


def autoencoder_sampled(seed: int, n_samples: int = 3_000, epsilon: float = 2.0) -> Samples:
    """`dpae`, two steps with one of two users on average."""
    return _autoencoder(STEPS | {"epochs": 1, "batch_size": 1}, seed, n_samples, epsilon)


def rigorous(seed: int, n_samples: int = 1_000, epsilon: float = 2.0) -> Samples:
    """`dpvae-rigorous`."""
    config = VAEConfig.model_validate(STEPS | ROWS | PRIVATE | {"epsilon_max": epsilon})
    return _rows(VAE(config), seed, n_samples)


def rigorous_quantile(seed: int, n_samples: int = 1_000, epsilon: float = 2.0) -> Samples:
    """`dpvae-rigorous` with a bound that follows a quantile."""
    config = VAEConfig.model_validate(STEPS | ROWS | PRIVATE | {"epsilon_max": epsilon, "quantile": 0.5})
    return _rows(VAE(config), seed, n_samples)


def compact(seed: int, n_samples: int = 1_000, epsilon: float = 2.0) -> Samples:
    """`dpvae-compact`: a frozen encoder, tied to nothing."""
    config = VAEConfig.model_validate(STEPS | ROWS | PRIVATE | {"epsilon_max": epsilon, "frozen_encoder": True})
    return _rows(VAE(config), seed, n_samples)


def sessions(seed: int, n_samples: int = 600, epsilon: float = 2.0) -> Samples:
    """`dpsgd`, one step: one of two users has a sequence, or a single event, which teaches nothing."""
    small = {"epochs": 1, "dimension": 1, "steps": 1, "user_dimension": 1, "clip": 1.0, "clip_norm": 0.01}
    config = DPSGDConfig.model_validate(STEPS | small | {"epsilon": epsilon})
    taught, alone = ([0, 1, 2, 0], [1, 2]), ([0], [1, 2])
    worlds = [
        TrainingData(
            USERS,
            ITEMS,
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            features=np.ones((USERS, 1), np.float32),
            sequences=_sequences(both),
        )
        for both in (alone, taught)
    ]
    model = DPSGD(config)

    def own() -> Sequence[Tensor]:
        return model.clipped_sum(_sequences(taught[:1]))[2]

    return _samples(model, worlds, own, seed, n_samples, others=lambda: model.clipped_sum(_sequences(alone))[2])


def _autoencoder(steps: dict[str, float], seed: int, n: int, epsilon: float) -> Samples:
    own = {"dimension": 1, "momentum": 0.5, "epsilon": epsilon, "clip_norm": 0.01}
    return _rows(DPAE(DPAEConfig.model_validate(steps | own)), seed, n)


def _rows(model: DPAE | UserModel, seed: int, n: int) -> Samples:
    """A user with three items, or none."""
    items = np.arange(3, dtype=np.int32)
    worlds = [TrainingData(USERS, ITEMS, np.zeros(len(own), np.int32), own) for own in (items[:0], items)]
    row = torch.zeros(1, ITEMS)
    row[0, torch.from_numpy(items).long()] = 1.0
    return _samples(model, worlds, lambda: model.clipped(row).weighted_sum(torch.ones(1)), seed, n)


def _samples(
    model: Any,
    worlds: Sequence[TrainingData],
    own: Callable[[], Sequence[Tensor]],
    seed: int,
    n: int,
    others: Callable[[], Sequence[Tensor]] | None = None,
) -> Samples:
    """Fit a model again and again.

    Args:
        worlds: without the user, and with the user.
        own: the user's clipped gradient at the present weights, a tensor per parameter.
        others: the sum of everybody else's, where every step has all of them; None where they have no gradient.
    """
    rng, samples = np.random.default_rng(seed), []
    entry = model.fit(worlds[0], rng=rng).ledger()[0]
    for data in worlds:
        ratios = np.empty(n)
        for run in range(n):
            auditor = model.watch = _Ratio(model, own, entry.events[0], others)
            model.fit(data, rng=rng)
            ratios[run] = auditor.total
        samples.append(ratios)
    return Samples(samples[0], samples[1], entry)


class _Ratio:
    """Adds up the log-likelihood ratios of the steps of one run."""

    def __init__(
        self,
        model: Any,
        own: Callable[[], Sequence[Tensor]],
        steps: Event,
        others: Callable[[], Sequence[Tensor]] | None,
    ) -> None:
        self._model, self._own, self._others = model, own, others
        self._multiplier = steps.parameters["noise_multiplier"]
        self._bound = float(model.config.clip_norm)
        self.total = 0.0

    def __call__(self, released: Sequence[Tensor], probability: float) -> None:
        """Take in what a step releases."""
        private = getattr(self._model.network, "private", None)
        multiplier = self._multiplier
        own, left = _flat(self._own()), _flat(released)
        if self._others is not None:
            left = left - _flat(self._others())
        moved, ratio = float(left @ own / own.norm()) / self._bound, 0.0
        if isinstance(private, Rigorous):
            multiplier = private.gradient_multiplier
            if private.quantile is not None:
                # what the step made of the bound says how the noisy count of small norms came out
                bound = private.present_bound()
                count = private.plan.expected * (private.quantile - 0.5 - math.log(bound / self._bound) / QUANTILE_RATE)
                ratio, self._bound = (-count / 2 - 1 / 8) / private.count_noise**2, bound
        ratio += (moved - 0.5) / multiplier**2
        self.total += math.log1p(probability * math.expm1(ratio))


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts]).double()


def _sequences(of: Sequence[Sequence[int]]) -> Sequences:
    lengths = [len(events) for events in of]
    users = np.repeat(np.arange(len(of), dtype=np.int32), lengths)
    return Sequences.from_events(users, np.concatenate([np.array(events, np.int32) for events in of]))
