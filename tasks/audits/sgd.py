"""Audits of the models that private SGD trains: `dpae`, `dpvae-rigorous`, `dpvae-compact`, `dpsgd`; `ae`, `mf`, `svd`.

Every user has items of their own, so that the users' gradients hardly meet, and one fit has a sample for every user: a
random half of the users have their rows, the others have none. The auditor sees what every step of a real `fit`
releases and knows the weights before it, and so all gradients g, which are as long as the clipping bound C. With G the
gradients of all users and K = G Gᵀ, the released x becomes z = K^(-1/2) G x: a number for each user, whose noise is
independent of all others', and in which a user who is there moves the own number by the diagonal of K^(1/2), nearly C.
What the others move it by is known and taken off (Nasr et al., "Tight auditing of differentially private machine
learning", USENIX Security 2023, for one user by ⟨x, g⟩). The statistic adds up over the steps
log(1 - q + q exp((z m - m²/2)/(σC)²)), the log-likelihood ratio of a step that the user is in with probability q.

Samples are independent as far as the noise on different coordinates is, which is what the mechanism says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.audits import Samples
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpae import DPAE, DPAEConfig
from tasks.models.ranking.factorisation import MF, SVD, FactorisationConfig
from tasks.models.sessions.dpsasrec import DPSASRec, DPSASRecConfig
from tasks.models.sessions.dpsgd import DPSGD, DPSGDConfig
from tasks.models.sessions.private import PrivateSequences
from tasks.models.vae.autoencoder import AE, VAE, AEConfig, VAEConfig
from tasks.models.vae.user_config import UserConfig
from tasks.models.vae.userwise import UserModel
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms import ghost
from tasks.privacy.mechanisms.user_sgd import Rigorous

DELTA = 0.1
"""So large that events of probabilities which few runs can estimate decide: what tests use. A line of a ledger is
audited at its own."""
USERS, OWN = 128, 3
"""In one fit, and items of each."""
STEPS = {"epochs": 2, "batch_size": USERS, "learning_rate": 0.01}
"""Two steps, each with all users."""
ROWS: dict[str, Any] = {"optimiser": "sgd", "values": "binary", "dimension": 2, "hidden": 6, "beta": 0.01}
PRIVATE = {"privacy": "dpsgd", "accounting": "rigorous", "clip_norm": 0.01}
PUBLISHED = {"privacy": "dpsgd", "clip_norm": 0.01, "optimiser": "sgd", "values": "binary", "dimension": 2}
TINY = 1e-12
Present = NDArray[np.bool_]
World = Callable[[Present], TrainingData]
"""Data in which these users, (users,), have what is theirs."""
Gradients = Callable[[], Iterable[Tensor]]
"""Of all users at the present weights, (users, ...) for each parameter; their lengths do not matter."""


def sessions(seed: int, n_samples: int = 40_000, epsilon: float = 2.0, delta: float = DELTA) -> Samples:
    """`dpsgd`, one step: a user has a sequence, or no event at all.

    States are so long that scores of items have most of a gradient.
    """
    small = {"epochs": 1, "dimension": 8, "steps": 1, "user_dimension": 1, "clip": 10.0, "clip_norm": 0.01}
    model = DPSGD(DPSGDConfig.model_validate(STEPS | small | {"epsilon": epsilon, "delta": delta}))
    return _of_sequences(model, seed, n_samples)


def attention(seed: int, n_samples: int = 40_000, epsilon: float = 2.0, delta: float = DELTA) -> Samples:
    """`dp-sasrec`, one step, as `sessions`."""
    small = {"epochs": 1, "dimension": 8, "layers": 1, "positions": OWN, "clip_norm": 0.01}
    model = DPSASRec(DPSASRecConfig.model_validate(STEPS | small | {"epsilon": epsilon, "delta": delta}))
    return _of_sequences(model, seed, n_samples)


def _of_sequences(model: PrivateSequences, seed: int, n_samples: int) -> Samples:
    items = np.arange(USERS * OWN, dtype=np.int32).reshape(USERS, OWN)

    def world(present: Present) -> TrainingData:
        features, none = np.zeros((USERS, 1), np.float32), np.zeros(0, np.int32)
        return TrainingData(USERS, items.size, none, none, features=features, sequences=_sequences(items, present))

    everyone = _sequences(items, np.ones(USERS, np.bool_))
    return _samples(model, world, lambda: model.gradients(everyone)[1], seed, n_samples)


def autoencoder(
    seed: int,
    n_samples: int = 40_000,
    epsilon: float = 2.0,
    delta: float = DELTA,
    world: World | None = None,
    rows: Tensor | None = None,
    **steps: float,
) -> Samples:
    """`dpae`, every user in every step.

    Args:
        world, rows: other data, and the rows of its users, had all of them theirs, (`USERS` or more, n_items); those
            after the first `USERS` always have them.
        steps: what differs from `STEPS`.
    """
    config = {"dimension": 1, "momentum": 0.5, "epsilon": epsilon, "delta": delta, "clip_norm": 0.01}
    model = DPAE(DPAEConfig.model_validate(STEPS | steps | config))
    complete = _rows() if rows is None else rows

    def gradients() -> tuple[Tensor, ...]:
        parts = model.clipped_gradients(complete, np.arange(len(complete)))
        items = torch.einsum("ui,ud->uid", parts.inputs, parts.hidden_errors)
        return items + torch.einsum("ui,ud->uid", parts.errors, parts.hidden), parts.errors

    return _samples(model, world or _world, gradients, seed, n_samples, always=len(complete) - USERS)


autoencoder_sampled = partial(autoencoder, epochs=1, batch_size=USERS // 2)
"""`dpae`, two steps with half of the users on average."""


def _published(
    model: Callable[[UserConfig], UserModel],
    config: type[UserConfig],
    seed: int,
    n_samples: int = 4_000,
    epsilon: float = 6.0,
    delta: float = DELTA,
    batch_size: int = USERS,
    **more: object,
) -> Samples:
    """DP-VAE's printed noise of equal budgets: users of one batch, whose noise covers each of them, in all epochs.

    Claims are for one step.

    more: `epochs` and `private_epochs` of the configuration among others.
    """
    budget = {"epsilon_max": epsilon, "delta": delta, "batch_size": batch_size}
    return _of_rows(model(config.model_validate(STEPS | PUBLISHED | budget | more)), seed, n_samples, batch_size)


published_autoencoder = partial(_published, AE, AEConfig)
published_factors = partial(_published, MF, FactorisationConfig, unobserved=0.0)
published_factors_and_biases = partial(_published, SVD, FactorisationConfig, unobserved=0.0)


def rigorous(seed: int, n_samples: int = 40_000, epsilon: float = 2.0, **more: object) -> Samples:
    """`dpvae-rigorous`; more: `delta` and `prior` of the configuration among others."""
    config = STEPS | ROWS | PRIVATE | {"epsilon_max": epsilon, "delta": DELTA, "prior": "standard"} | more
    return _of_rows(VAE(VAEConfig.model_validate(config)), seed, n_samples)


rigorous_quantile = partial(rigorous, quantile=0.5)
"""`dpvae-rigorous` with a bound that follows a quantile: the gradients; the count has an audit of its own."""
compact = partial(rigorous, frozen_encoder=True)
"""`dpvae-compact`: a frozen encoder, tied to nothing."""


def _of_rows(model: UserModel, seed: int, n: int, users: int = USERS) -> Samples:
    world = _world_with_metadata if model.reads_features() else _world
    rows = _rows(users)

    def gradients() -> Iterable[Tensor]:
        with ghost.record_calls(model.network) as calls:
            losses = model.step_losses(rows, np.arange(users))
        outers, _ = ghost.gradients(losses, calls)
        return (part for outer in outers for part in _of_each(outer))

    return _samples(model, world, gradients, seed, n, users)


def _of_each(outer: ghost.Outers) -> tuple[Tensor, ...]:
    """Gradients of a layer's weights and biases, nothing of which is tied to another layer."""
    assert isinstance(outer, ghost.Outer)
    weights = torch.einsum("uo,ui->uoi", outer.errors, outer.inputs)
    return (weights,) if outer.layer.bias is None else (weights, outer.errors)


def _world(present: Present) -> TrainingData:
    users = len(present)
    items = np.arange(users * OWN, dtype=np.int32)
    items = items[present[items // OWN]]
    return TrainingData(users, users * OWN, items // OWN, items)


def _world_with_metadata(present: Present) -> TrainingData:
    """The same, and metadata of users who are there."""
    metadata = np.repeat(present[:, None], ROWS["dimension"], axis=1).astype(np.float32)
    return replace(_world(present), features=metadata)


def _rows(users: int = USERS) -> Tensor:
    return torch.eye(users).repeat_interleave(OWN, 1)


def _samples(
    model: UserModel | PrivateSequences | DPAE,
    world: World,
    gradients: Gradients,
    seed: int,
    n: int,
    users: int = USERS,
    always: int = 0,
) -> Samples:
    """Fit a model again and again.

    Args:
        gradients: of what the model would release of each user in the present step, `users` and `always` more, who
            have theirs in all worlds.
    """
    rng, half = np.random.default_rng(seed), users // 2
    entry = model.fit(world(np.ones(users, np.bool_)), rng=rng).ledger()[0]
    fits = -(-n // half)
    sides = np.empty((2, fits, half))
    for run in range(fits):
        present = rng.permutation(users) < half
        auditor = model.watch = _Ratios(
            model, gradients, np.pad(present, (0, always), constant_values=True), entry.events[0]
        )
        model.fit(world(present), rng=rng)
        totals = auditor.totals[:users]
        sides[:, run] = totals[~present][:half], totals[present]
    without, there = sides.reshape(2, -1)[:, :n]
    return Samples(without, there, entry)


class _Ratios:
    """Adds up the log-likelihood ratios of the steps of one fit, of every user."""

    def __init__(self, model: Any, gradients: Gradients, present: Present, steps: Event) -> None:
        self._model, self._gradients, self._present = model, gradients, present.astype(np.float64)
        self._multiplier = steps.parameters["noise_multiplier"]
        self._bound = float(model.config.clip_norm)
        self.totals = np.zeros(len(present))

    def __call__(self, released: Sequence[Tensor], probability: float) -> None:
        # where nothing bounds a step, weights of the next may be no numbers: it then says nothing more
        rows = torch.cat([part.flatten(1) for part in self._gradients()], 1).nan_to_num(0, 0, 0)
        rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=TINY)
        left = torch.cat([part.flatten() for part in released]).nan_to_num(0, 0, 0) / self._bound
        values, vectors = torch.linalg.eigh((rows @ rows.T).double())
        roots = values.clamp(min=TINY).sqrt()
        moves = ((vectors * roots) @ vectors.T).numpy()
        observed = (vectors @ ((vectors.T @ (rows @ left).double()) / roots)).numpy()
        own_moves = moves.diagonal()
        observed -= probability * (moves @ self._present - own_moves * self._present)
        private, multiplier = getattr(self._model.network, "private", None), self._multiplier
        if isinstance(private, Rigorous):  # whose bound of the next step the count of this step has moved
            multiplier, self._bound = private.gradient_multiplier, private.present_bound()
        ratios = (observed - own_moves / 2) * own_moves / multiplier**2
        staying = np.log1p(-probability) if probability < 1 else -np.inf
        self.totals += np.logaddexp(staying, np.log(probability) + ratios)


def _sequences(items: NDArray[np.int32], present: Present) -> Sequences:
    """Of the users who are there: all of their items, (USERS, OWN)."""
    users = np.flatnonzero(present).astype(np.int32)
    return Sequences.from_events(users.repeat(items.shape[1]), items[users].ravel())
