"""Canaries: made-up users put into the training data by coin tosses, and how an auditor guesses who was in.

Source: Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023); what the right guesses
prove is computed by `tasks.privacy.audits.one_run`. Audited is the protection of everything that one user did: a canary
is a user with a few of the rarest items, which real users hardly touch, so that what a model knows of them it knows
from the canary. Each is in with probability 1/2, and the model is trained once.

**A canary that is out leaves no trace.** The number of users is public and the same for every outcome of the coins: all
canaries have a user id, and one that is out is a user without interactions. That is the neighbouring relation of the
audited models ("all training interactions of one user added or removed"); a model in which a user without interactions
still pulls (biases, a prior) has a larger sensitivity than one clip norm, and the audit measures that, too. Features,
where a model reads them, are copied from a real user for a canary that is in and one that is out: they are not what is
audited.

**Two auditors.** `loss_scores` sees the released network alone. `Watcher` sees what every step releases, all of which
the accounted epsilon covers, and is the stronger where the gradients of canaries hardly meet: to the network, noise and
forgetting come in between. What either can do, a run without noise next to the audited one says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.attacks.targets import shuffled_groups
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.training_data import TrainingData


@runtime_checkable
class HasUserLosses(Protocol):
    """A model that says how badly its released network fits users."""

    def losses(self, rows: Tensor) -> Tensor:
        """(n,) losses of users with these rows of interactions, (n, n_items) of 0 and 1; no randomness."""
        ...


class PerUser(Protocol):
    """Gradients of users, which need never be formed."""

    def weighted_sum(self, weights: Tensor) -> Sequence[Tensor]:
        """Sum over users of weight × gradient, a tensor per parameter; weights: (n,)."""
        ...

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """(n,) inner products of the gradients with a direction, a tensor per parameter."""
        ...


@runtime_checkable
class AuditableSteps(Protocol):
    """A model trained by noisy sums of clipped gradients that lets an auditor watch."""

    watch: Callable[[Sequence[Tensor], float], None] | None
    """Called in every step, before weights change, with the noisy sums that the step releases, a tensor per parameter,
    and with the probability at which a user is in it. None: no one watches."""

    def clipped_gradients(self, rows: Tensor, users: NDArray[np.integer]) -> PerUser:
        """What users with these rows, (n, n_items), and ids, (n,), would add to the present step.

        With what they draw in it that hides nothing. Draws nothing from the model's generator: training is the same
        whether it is watched or not.
        """
        ...


@dataclass(frozen=True)
class Canaries:
    """Users made up for an audit.

    items: (m, n_items_each) int32 ids of the items of each, distinct within a canary.
    included: (m,) bool, who is in the training data.
    value: what their rows hold for each of their items: 1, or the highest rating of data with ratings.
    """

    items: NDArray[np.int32]
    included: NDArray[np.bool_]
    value: float = 1.0

    def rows(self, n_items: int) -> Tensor:
        """All of them as rows of interactions: (m, n_items) float32 of 0 and `value`."""
        result = torch.zeros(len(self.items), n_items)
        return result.scatter_(1, torch.from_numpy(self.items.astype(np.int64)), self.value)


def draw(data: TrainingData, m: int, n_items_each: int, rng: np.random.Generator) -> Canaries:
    """m canaries of rare items, and who is in.

    The m × n_items_each rarest items of the training data (all items if there are fewer) are shuffled and cut into
    canaries (`shuffled_groups`).

    Raises:
        ConfigurationError: m or n_items_each is below 1, or there are fewer than n_items_each items.
    """
    if m < 1 or not 1 <= n_items_each <= data.n_items:
        raise ConfigurationError(
            f"canaries: need 1 or more, of 1 to {data.n_items} items each (are {m} of {n_items_each}); correct the "
            "audit's parameters"
        )
    counts = np.bincount(data.items, minlength=data.n_items)
    rare = np.lexsort((rng.random(data.n_items), counts))[: m * n_items_each]
    items = shuffled_groups(rare, m, n_items_each, rng).astype(np.int32)
    value = 1.0 if data.ratings is None else float(data.ratings.max())
    return Canaries(items, rng.random(m) < 0.5, value)


def insert(data: TrainingData, canaries: Canaries, rng: np.random.Generator) -> TrainingData:
    """The training data with canary j as user data.n_users + j, without interactions where it is out.

    Args:
        rng: chooses real users whose features are copied; draws the same whoever is in.

    Raises:
        DataError: the data have sequences or sensitive ratings, which canaries have not.
    """
    if data.sequences is not None:
        raise DataError("canaries: their items have no order; audit models that read no sequences")
    if data.sensitive is not None:
        raise DataError("canaries: none of their ratings are sensitive; audit models that do not tell ratings apart")
    m, each = canaries.items.shape
    copied = rng.integers(data.n_users, size=m)
    users = np.repeat(np.arange(data.n_users, data.n_users + m, dtype=np.int32), each)
    present = np.repeat(canaries.included, each)
    return replace(
        data,
        n_users=data.n_users + m,
        users=np.concatenate([data.users, users[present]]),
        items=np.concatenate([data.items, canaries.items.ravel()[present]]),
        ratings=None
        if data.ratings is None
        else np.append(data.ratings, np.full(int(present.sum()), canaries.value, np.float32)),
        features=None if data.features is None else np.concatenate([data.features, data.features[copied]]),
        attributes={name: np.concatenate([values, np.full(m, -1)]) for name, values in data.attributes.items()},
    )


def loss_scores(
    model: HasUserLosses, reference: HasUserLosses, canaries: Canaries, n_items: int
) -> NDArray[np.float64]:
    """How much better the released network fits each canary than one that was trained without any of them: (m,).

    Args:
        reference: trained on the real users alone, best without noise; an auditor who knows them can train it.
    """
    rows = canaries.rows(n_items)
    return (reference.losses(rows) - model.losses(rows)).double().cpu().numpy()


class Watcher:
    """Scores canaries by what every step releases; set as a model's `watch` before `fit`.

    A canary that is in adds its clipped gradient g to the sum of every step it is sampled into. The auditor knows the
    real users and the canaries, all but the coins: from a released sum it takes what the real users and half of every
    canary are expected to add, and what is left has an inner product with g that is larger by half of ‖g‖² on average
    if the canary is in, and smaller by as much if it is out. Added up over steps of the same noise, that is the
    likelihood ratio test, but for the small inner products of canaries with each other.
    """

    def __init__(self, model: AuditableSteps, canaries: Canaries, data: TrainingData) -> None:
        """data: the real users, without canaries."""
        self._model = model
        m = len(canaries.items)
        real = torch.zeros(data.n_users, data.n_items)
        values = torch.ones(len(data.users)) if data.ratings is None else torch.tensor(data.ratings)
        real[torch.from_numpy(data.users.astype(np.int64)), torch.from_numpy(data.items.astype(np.int64))] = values
        self._canaries = canaries.rows(data.n_items)
        self._known, self._users = torch.cat([real, self._canaries]), np.arange(data.n_users + m)
        self._expected = torch.cat([torch.ones(data.n_users), torch.full((m,), 0.5)])
        self.scores: NDArray[np.float64] = np.zeros(m)
        """(m,) sums over the steps so far."""

    def __call__(self, released: Sequence[Tensor], probability: float) -> None:
        """Take in one step; see `AuditableSteps.watch`."""
        weights = (probability * self._expected).to(released[0].device)
        expected = self._model.clipped_gradients(self._known, self._users).weighted_sum(weights)
        left = [total - share for total, share in zip(released, expected, strict=True)]
        gradients = self._model.clipped_gradients(self._canaries, self._users[-len(self._canaries) :])
        self.scores += gradients.inner(left).double().cpu().numpy()
