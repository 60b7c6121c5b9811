"""Recommenders that learn from users' whole rows, publicly or by user-level private SGD.

The networks of `tasks.models.vae` and `tasks.models.ranking.factorisation` end in one linear layer over the items.
Training in public takes the mean gradient of a batch of users; training in private hands the users' gradients to
`tasks.privacy.mechanisms.user_sgd` and takes what that releases: `private_step` is all the difference.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.base import SILENT, Progress, Recommender
from tasks.models.draws import Draws, OwnDraws
from tasks.models.training import DerivedModel
from tasks.models.vae.user_config import UserConfig, entries, plan_releases
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.insecurity import OWN_SCALES
from tasks.privacy.mechanisms import dpsgd, ghost, laplace, user_sgd

PIECE = 512  # users at a time when all are encoded
LARGE = 1e30
"""The largest loss of a user that is shown."""
CONTIGUOUS = torch.contiguous_format


class UserNetwork(nn.Module, ABC):
    """From a user's row to scores of all items; the last layer is `items`, (n_items, width)."""

    items: nn.Linear | ghost.Transposed
    private: user_sgd.UserSGD | None
    """How its gradients are released; None in public training."""

    def __init__(self) -> None:
        super().__init__()
        self.register_module("private", None)

    @abstractmethod
    def codes(self, rows: Tensor, users: Tensor, rng: Draws | None) -> tuple[Tensor, Tensor]:
        """What `items` reads, (n, width), and a term that each user's loss has besides the likelihood, (n,).

        Args:
            rows: (n, n_items) users' rows.
            users: (n,) int64 ids.
            rng: of what is drawn in training; None scores.
        """

    @abstractmethod
    def mismatch(self, rows: Tensor, logits: Tensor) -> Tensor:
        """(n,) what each user's loss has for the difference between a row and its reconstruction."""

    def losses(self, rows: Tensor, users: Tensor, rng: Draws | None) -> Tensor:
        """(n,) the users' losses; 0 for a row of zeros, so that users without interactions teach nothing.

        That is the neighbouring relation of private training: a user taken out adds nothing to any sum.
        """
        codes, extra = self.codes(rows, users, rng)
        return torch.where((rows != 0).any(1), self.mismatch(rows, self.items(codes)) + extra, 0.0)

    def local(self) -> list[nn.Parameter]:
        """Parameters with a row for each user, which stay with the users: neither clipped nor noisy."""
        return []


class UserModel(DerivedModel, Recommender):
    """A recommender trained by steps on users' rows."""

    config: UserConfig
    own_tensors: ClassVar[tuple[str, ...]] = ("codes",)
    network: UserNetwork
    uses_ratings = True
    watch: Callable[[Sequence[Tensor], float], None] | None = None
    """Called in every private step, before weights change, with what it releases, the noisy sums of clipped gradients,
    and with the probability at which a user is in it. The sums are as they are during the call alone. For auditors."""
    _step_draws: OwnDraws | None = None

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        if self.config.batch_size > data.n_users:
            raise ConfigurationError(
                f"batch_size: {self.config.batch_size} users in a step, but there are {data.n_users}; make it smaller"
            )
        if self.config.values == "ratings" and data.ratings is None:
            raise ConfigurationError("values: these data have no ratings; say binary")
        return super().fit(data, rng=rng, progress=progress)

    @override
    def reads_ratings(self) -> bool:
        return self.config.values == "ratings"

    @abstractmethod
    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        """The network at its initial weights, all drawn from `rng`."""

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """See `EpochModel.build`; with privacy, also the noise that all epochs together may need."""
        self._keep_rows(data)
        self._budgets = self.draw_budgets(data.n_users, rng)
        network = self.architecture(data, rng)
        self._start_at_popularity(network, data)
        network.private = plan_releases(self.config, data.n_users, self._budgets)
        return network

    @override
    def optimiser(self) -> torch.optim.Optimizer:
        if self.config.optimiser == "adam":
            return super().optimiser()
        decay = 2 * self.config.regularization
        return torch.optim.SGD(self.network.parameters(), lr=self.config.learning_rate, weight_decay=decay)

    def train_epoch(self) -> float:
        """As many steps as take every user once (rigorous: on average); returns the mean loss of a user."""
        total, n_seen = 0.0, 0
        for users in self._batches():
            total += self.private_step(users) if self.network.private else self.public_step(users)
            n_seen += len(users)
        return total / max(n_seen, 1)

    def public_step(self, users: NDArray[np.int64]) -> float:
        """One step by the mean gradient of `users`; returns their summed loss."""
        ids, rows = self._examples(users, self._rng)
        return self.step(self.network.losses(rows, ids, self._rng).mean()) * len(users)

    def private_step(self, users: NDArray[np.int64]) -> float:
        """One step by what may be released of the gradients of `users`, possibly none; returns their summed loss."""
        self._optimiser.zero_grad()
        losses = self._released_gradients(users)
        self._optimiser.step()
        # noise on weights may make a loss infinite; what is shown of it must be a number
        return float(losses.double().nan_to_num(posinf=LARGE).clamp(max=LARGE).sum()) / self.config.examples

    def _released_gradients(self, users: NDArray[np.int64]) -> Tensor:
        """Gives every parameter its gradient of a private step; returns the losses, (n,).

        A method of its own, so that rows and activations are gone when the optimiser takes memory of its own.
        """
        network, config = self.network, self.config
        assert network.private is not None
        draws = self._draws(users)
        self._step_draws = draws if isinstance(draws, OwnDraws) else None
        ids, rows = self._examples(users, draws)
        with ghost.record_calls(network) as calls:
            losses = network.losses(rows, ids, draws)
        outers, local_gradients = ghost.gradients(losses, calls, network.local())
        losses = losses.detach()
        calls.clear()  # they hold all outputs
        released, divisor = network.private.release(outers, users, config.examples, self.noise_rng)
        if self.watch is not None:
            self.watch(list(released.values()), config.batch_size / self._data.n_users)
        for parameter, total in released.items():
            parameter.grad = total.div_(divisor)
        for parameter, gradient in zip(network.local(), local_gradients, strict=True):
            parameter.grad = gradient / (config.batch_size * config.examples)
        return losses

    def _draws(self, users: NDArray[np.int64]) -> Draws:
        """What the examples of `users` draw in a private step.

        Of Poisson samples every user draws alone, so that who is in the step changes no one else's gradient. Where
        batches partition the users, whoever is taken out keeps a row, and all others their draws.
        """
        if isinstance(self.network.private, user_sgd.Rigorous):
            return OwnDraws([int(self._rng.integers(2**63))], users, self.config.examples)
        return self._rng

    def step_losses(self, rows: Tensor, users: NDArray[np.integer]) -> Tensor:
        """(n,) losses of `users`, (n,) ids, with these rows, (n, n_items), and what they draw in the present step.

        For auditors. One example of each; nothing is drawn where users do not draw alone.
        """
        draws = None if self._step_draws is None else self._step_draws.of(users)
        return self.network.losses(rows.to(self.device), self._ids(users), draws)

    def losses(self, rows: Tensor) -> Tensor:
        """(n,) losses of any rows, (n, n_items), under the weights as they are, with nothing drawn.

        Priors of users, which no row of a stranger has, are those of user 0 for all.
        """
        self._rows_alone()
        with torch.no_grad():
            first = torch.zeros(len(rows), dtype=torch.int64, device=self.device)
            return self.network.losses(rows.to(self.device), first, None)

    def clipped_gradients(self, rows: Tensor, users: NDArray[np.integer]) -> ghost.Scaled:
        """What `users` with these rows would add to the sums of the present private step; see `step_losses`."""
        self._rows_alone()
        private = self.network.private
        assert private is not None
        with ghost.record_calls(self.network) as calls:
            losses = self.step_losses(rows, users)
        outers, norms = ghost.zero_non_finite(ghost.gradients(losses, calls)[0])
        return ghost.Scaled(outers, dpsgd.clip_factors(norms.square(), private.present_bound()))

    def rows(self, users: NDArray[np.integer]) -> Tensor:
        """Training interactions of `users`: (len(users), n_items), zeros where there are none."""
        row, item = self._seen.pairs(users)
        rows = torch.zeros(len(users), self._data.n_items, device=self.device)
        rows[torch.from_numpy(row), torch.from_numpy(item).long()] = self._values[self._seen.places(users)]
        return rows

    def draw_budgets(self, n_users: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(n_users,) ε_k; see `UserConfig.budgets`."""
        config = self.config
        if config.privacy == "none":
            return np.full(n_users, math.inf)
        assert config.epsilon_max is not None
        if config.budgets == "equal":
            return np.full(n_users, config.epsilon_max)
        if config.budgets == "uniform":
            return config.epsilon_max * (1 - rng.random(n_users))  # (0, 1]
        budgets = np.array(config.budgets, np.float64)
        try:
            user_sgd.check_budgets(budgets, n_users, config.epsilon_max)
        except ValueError as error:
            raise ConfigurationError(f"budgets: {error}") from error
        return budgets

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: the last layer, which may be published, and `codes`, (n_users, width).

        A code is computed from the user's own row and is not private towards whoever sees it.
        """
        network = self.network
        pieces = np.split(np.arange(self._data.n_users), range(PIECE, self._data.n_users, PIECE))
        codes = [network.codes(self.rows(users), self._ids(users), None)[0] for users in pieces]
        items = network.items.weight.detach().clone(memory_format=CONTIGUOUS)
        biases = {} if network.items.bias is None else {"biases": network.items.bias.detach().clone()}
        return {"codes": torch.cat(codes), "items": items, **biases}

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        scoring = self.released()
        scores = scoring["codes"][torch.from_numpy(users).long()] @ scoring["items"].T
        return scores + scoring["biases"] if "biases" in scoring else scores

    def diagnostics(self) -> dict[str, float]:
        """Mean clipping bound of the steps since the last call, and mean share of examples that it clipped."""
        private = self.network.private
        if private is None or not private.noted:
            return {}
        noted, private.noted = np.array(private.noted), []
        return {"bound": float(noted[:, 0].mean()), "clipped": float(noted[:, 1].mean())}

    @override
    def insecure(self) -> str:
        config = self.config
        if config.privacy == "none" or config.epsilon_max is None or math.isinf(config.epsilon_max):
            return super().insecure()
        if config.accounting == "published":
            return OWN_SCALES
        return ""

    def ledger(self) -> list[LedgerEntry]:
        """All planned steps, also those that validation saved: when it ends training depends on private data.

        Before training, as for data of one batch of users.
        """
        if hasattr(self, "network"):
            private, budgets = self.network.private, self._budgets
        else:
            budgets = np.full(self.config.batch_size, self.config.epsilon_max or math.inf)
            private = plan_releases(self.config, len(budgets), budgets)
        return entries(self.config, private, budgets, self.metadata_in()) if private else []

    def metadata_in(self) -> Literal["nothing", "local", "shared"]:
        """Where users' metadata enter: nowhere, each user's own loss alone, or also a mean over all users."""
        return "nothing"

    def _rows_alone(self) -> None:
        if self.network.local():
            raise ConfigurationError(
                "this model learns a vector for every user and says nothing of other rows; audit an autoencoder"
            )

    def _ids(self, users: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(users).to(self.device)

    def _keep_rows(self, data: TrainingData) -> None:
        self._seen = Seen.from_pairs(data.users, data.items, data.n_users)
        values = np.ones(len(data.users), np.float32)
        if self.config.values == "ratings":
            assert data.ratings is not None
            values = data.ratings[np.lexsort((data.items, data.users))]  # the order of `Seen`
        self._values = torch.from_numpy(values).to(self.device)

    def _batches(self) -> Iterable[NDArray[np.int64]]:
        if self.network.private:
            return self.network.private.batches(self.noise_rng)
        order = self._rng.permutation(self._data.n_users)
        return map(np.sort, np.split(order, range(self.config.batch_size, len(order), self.config.batch_size)))

    def _examples(self, users: NDArray[np.int64], draws: Draws) -> tuple[Tensor, Tensor]:
        """Ids and rows of the examples of `users`, a user's after one another."""
        n = self.config.examples
        ids, rows = self._ids(users.repeat(n)), self.rows(users).repeat_interleave(n, 0)
        if n > 1:
            rows *= torch.from_numpy(draws.random(tuple(rows.shape)) < 0.5).to(self.device)
        return ids, rows

    def _start_at_popularity(self, network: UserNetwork, data: TrainingData) -> None:
        """Biases at the logarithms of the items' counts, which private training must pay for."""
        config = self.config
        if config.popularity is None:
            return
        items, budget = data.items, config.counts_epsilon()
        if config.privacy != "none":
            items = items[laplace.cap(data.users, items, config.contribution, self.noise_rng)]
        counts = np.bincount(items, minlength=data.n_items)
        if not math.isinf(budget):
            counts = laplace.noisy_counts(counts, budget, config.contribution, self.noise_rng)
        logs = np.log(np.maximum(counts, 1))
        network.items.bias.data = torch.from_numpy(logs - logs.mean()).float()
