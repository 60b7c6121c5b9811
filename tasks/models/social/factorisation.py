"""Factorisation of ratings by full-batch gradient descent, with users, friends and recommender kept apart.

Source: Meng et al., "Personalized privacy-preserving social recommendation" (AAAI 2018), Algorithm 1; docs/methods.md
§5. What distinguishes PrivSR from its baselines (which ratings are used, which are treated as sensitive, the noise, the
friends) is what a subclass says. One iteration: the recommender shares item vectors; users submit; the recommender
takes a step; friends exchange; users take a step with the new item vectors. Friends' messages are all of the same
moment.

The paper does not say how vectors start. Here all of U starts near one unit vector and V near the same one, as long as
the mean of the published ratings, so that a user or item without ratings is predicted at that mean.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.errors import DataError, DivergenceError
from tasks.core.training_data import TrainingData
from tasks.models.base import Information, Observed, RatingPredictor, Replayed
from tasks.models.draws import normal
from tasks.models.social import ledgers
from tasks.models.social.information import Replay, watch
from tasks.models.social.messages import Memory, Noises
from tasks.models.social.parties import Friends, Steps, UntrustedRecommender, Users, into_unit_ball
from tasks.models.social.ratings import RatingTable, Scale, checked_ratings
from tasks.models.training import EpochConfig, EpochModel
from tasks.privacy.insecurity import SIMULATED

PARTIES = ("recommender", "users", "friends")
BYTES = 4
"""Of a number."""


class FactorisationConfig(EpochConfig):
    """What all of these models have in common."""

    epochs: int = Field(ge=1)
    """Times that `iterations_per_epoch` are done, at most: validation may end training earlier."""
    batch_size: Literal[0] = 0
    """Not used: every iteration takes all ratings."""
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
    """γ, step size of gradient descent on J, which is a sum over ratings and not a mean."""
    regularization: float = Field(ge=0, allow_inf_nan=False)
    """λ, weight of ‖U‖² + ‖V‖² in J."""
    iterations_per_epoch: int = Field(ge=1)
    """Steps of all item vectors and of all users' vectors between two validations."""
    dimension: int = Field(ge=1)
    """K, length of a vector."""
    initial_spread: float = Field(ge=0, allow_inf_nan=False)
    """Standard deviation of every coordinate at the start, around where all vectors start."""
    scale: Scale
    """Lowest and highest rating that there can be."""
    projection: bool = True
    """Whether users' vectors stay in the unit ball."""

    @property
    def rating_range(self) -> float:
        """Δ, the highest rating less the lowest."""
        return self.scale[1] - self.scale[0]

    @property
    def iterations(self) -> int:
        """Planned in all."""
        return self.epochs * self.iterations_per_epoch


class Vectors(nn.Module):
    """What a checkpoint holds of users and recommender; each party has only its own part of it.

    users: (n_users, K) u. items: (n_items, K) v. public_users: (n_users, K) w, if a model has them.
    """

    def __init__(self, users: Tensor, items: Tensor, public_users: Tensor | None = None) -> None:
        super().__init__()
        self.users = nn.Parameter(users, requires_grad=False)
        self.items = nn.Parameter(items, requires_grad=False)
        self.public_users = None if public_users is None else nn.Parameter(public_users, requires_grad=False)


class SocialFactorisation(EpochModel, RatingPredictor):
    """Predicts uᵀv. See the module."""

    config: FactorisationConfig
    own_tensors: ClassVar[tuple[str, ...]] = ("users",)
    network: Vectors
    with_parties: ClassVar[bool] = True
    """Whether users keep ratings to themselves and send messages; a plain model reads published ratings alone."""

    def __init__(self, config: FactorisationConfig) -> None:
        """See `Model`. The parties compute with NumPy, in the memory of the network's tensors: on the CPU."""
        super().__init__(config)
        self.device = torch.device("cpu")

    @abstractmethod
    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which ratings are used at all, and which of these are submitted as sensitive ones.

        Args:
            sensitive: (n_interactions,) which ratings their users keep to themselves.
        """

    def noises(self) -> Noises:
        """The noise of all messages; none unless a subclass says so."""
        return Noises()

    @override
    def insecure(self) -> str:
        if self.noises() == Noises():
            return super().insecure()
        return SIMULATED

    def alpha(self) -> float:
        """Weight of friends' vectors."""
        return 0.0

    def sensitive_weight(self) -> float:
        """Weight of submissions about sensitive ratings in the recommender's steps, in (0, 1]."""
        return 1.0

    def splits_vectors(self) -> bool:
        """Whether messages are computed with vectors trained on published ratings alone."""
        return False

    def build(self, data: TrainingData, rng: np.random.Generator) -> Vectors:
        """The parties at their start; see `EpochModel.build`."""
        config = self.config
        ratings, sensitive = checked_ratings(data, config.scale)
        starts = dict(zip(PARTIES, rng.spawn(len(PARTIES)), strict=True))
        self._noise_rngs = dict(zip(PARTIES, self.noise_stream(data, rng).spawn(len(PARTIES)), strict=True))
        used, submitted = self.sides(sensitive)

        def table(mask: NDArray[np.bool_]) -> RatingTable:
            return RatingTable(data.users[mask], data.items[mask], ratings[mask], data.n_users, data.n_items)

        published = table(~sensitive)
        submitted_table, public = table(used & submitted), table(used & ~submitted)
        noises = self.noises()
        friends = None
        if self.uses_links:
            if data.links is None:
                raise DataError("training data have no links between users, which this model learns from")
            friends = Friends(published, data.links, noises.friends, self._noise_rngs["friends"])
        start = float(published.values.mean(dtype=np.float64)) if len(published) else sum(config.scale) / 2
        vectors = self._start(data, start, starts)
        steps = Steps(config.learning_rate, config.regularization, self.alpha(), config.projection)
        self._recommender = UntrustedRecommender(
            vectors.items.numpy(), noises, steps, self.sensitive_weight(), self._noise_rngs["recommender"]
        )
        public_vectors = None if vectors.public_users is None else vectors.public_users.numpy()
        self._users = Users(
            submitted_table, public, friends, vectors.users.numpy(), public_vectors, noises, steps,
            self._noise_rngs["users"],
        )  # fmt: skip
        self._remember(published, table(used & submitted & sensitive), noises)
        return vectors

    def optimiser(self) -> torch.optim.Optimizer:
        """Nothing: the parties take their steps themselves."""
        return torch.optim.SGD(self.network.parameters(), lr=self.config.learning_rate)

    def train_epoch(self) -> float:
        """`iterations_per_epoch` iterations; returns the mean squared error before the last step of users."""
        for _ in range(self.config.iterations_per_epoch):
            self.iterate()
        if not np.isfinite(self._recommender.vectors).all() or not np.isfinite(self._users.vectors).all():
            raise DivergenceError(
                f"learning_rate: gradient descent with step {self.config.learning_rate:g} diverges; make it smaller"
            )
        return self._users.squared_error

    def iterate(self) -> None:
        """One iteration of Algorithm 1."""
        recommender, users = self._recommender, self._users
        broadcast = recommender.broadcast()
        submissions = users.submit(broadcast)
        self._items += recommender.vectors
        if self._submitted is not None and self._replay is not None:
            watched = submissions.values[self._watched]
            self._submitted.add(watched, broadcast.sensitive_mixing)
            self._replay.add(watched, broadcast)
            if self._joint is not None:
                self._joint.add(watched, submissions, broadcast)
        recommender.receive(submissions)
        if self._replay is not None:
            self._replay.step(recommender.vectors)
        if self._joint is not None:
            self._joint.step(recommender.vectors)
        messages = users.exchange()
        if messages is not None and self._to_friends is not None:
            self._to_friends.add(messages.watched / self._divisor[:, None], messages.mixing)
        users.step(recommender.vectors, messages)

    @override
    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> Tensor:
        rows, columns = (torch.from_numpy(ids.astype(np.int64)) for ids in (users, items))
        return (self.network.users[rows] * self.network.items[columns]).sum(1)

    def observed(self) -> Observed | None:
        """See `RatingPredictor.observed`: averages over all iterations done, whichever epoch is kept."""
        if not self.epochs_done:
            return None
        return Observed(
            items=self.network.items.numpy().copy(),
            mean_items=self._items / np.float32(self.iterations_done),
            submissions=None if self._submitted is None else self._submitted.averages(),
            friends=None if self._to_friends is None else self._to_friends.averages(),
        )

    @override
    def replayed(self) -> Replayed | None:
        return self._replay.replayed() if self.epochs_done and self._replay is not None else None

    @override
    def information(self) -> Information | None:
        if not self.epochs_done or self._joint is None:
            return None
        return self._joint.information(self._recommender.vectors)

    def submissions(self, sensitivity: float, iterations: int = 0) -> ledgers.Messages:
        """What ledgers need of submissions about sensitive ratings. iterations: 0 for those that were done."""
        senders = self._users.sensitive.of_item if self.epochs_done else np.zeros(1, np.int64)
        done = iterations or self.iterations_done or self.config.iterations
        return ledgers.Messages(self.noises().sensitive, sensitivity, done, senders)

    @property
    def iterations_done(self) -> int:
        """Iterations of `fit`; 0 for a loaded model."""
        return self.epochs_done * self.config.iterations_per_epoch

    def communication(self) -> dict[str, float]:
        """See `RatingPredictor.communication`; also `iterations`, how many were done.

        Counted are the messages of an iteration (see `messages`): to every user with ratings one with the vectors of
        the items rated, and h where there is noise; back, one per rating; between friends one per link, and one with h.
        A number is a float32; ids, addresses and what never changes (who rated what) are not counted. A model without
        parties sends none.
        """
        if not self.iterations_done:
            return {}
        done = {"iterations": float(self.iterations_done)}
        if not self.with_parties:
            return done
        users, noises, friends = self._users, self.noises(), self._users.friends
        sensitive, public = len(users.sensitive), len(users.public)
        receivers = int(np.count_nonzero(users.sensitive.of_user + users.public.of_user))
        links = 0 if friends is None else len(friends.receivers) * (1 + noises.friends.mixes)
        back = sensitive + public + links
        vectors = sensitive * (1 + noises.sensitive.mixes) + public * (1 + noises.public.mixes) + back
        size = vectors * self.config.dimension * BYTES
        return {"messages": float(receivers + back), "bytes": float(size)} | done

    @override
    def released(self) -> dict[str, Tensor]:
        return {"users": self.network.users.detach(), "items": self.network.items.detach()}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self.network = Vectors(tensors["users"], tensors["items"])

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """See `EpochModel.state`: also what receivers remember, and every party's generator."""
        tensors, extras = super().state()
        generators = {party: rng.bit_generator.state for party, rng in self._noise_rngs.items()}
        return tensors | self._memory_tensors(), extras | {"parties": generators}

    @override
    def load_state(self, tensors: dict[str, Tensor], extras: dict[str, Any]) -> None:
        super().load_state(tensors, extras)
        for name, tensor in self._memory_tensors().items():
            tensor.copy_(tensors[name])
        for party, state in extras["parties"].items():
            self._noise_rngs[party].bit_generator.state = state

    def _start(self, data: TrainingData, mean: float, rngs: dict[str, np.random.Generator]) -> Vectors:
        """Vectors at the start: users draw theirs, the recommender its own."""
        std, dimension = self.config.initial_spread, self.config.dimension

        def initial(centre: float, rows: int, party: str) -> NDArray[np.float32]:
            return (centre / dimension**0.5 + normal(rngs[party], (rows, dimension), std)).astype(np.float32)

        users = initial(1.0, data.n_users, "users")
        users /= np.maximum(np.linalg.norm(users, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        into_unit_ball(users)
        items = torch.from_numpy(initial(mean, data.n_items, "recommender"))
        own = torch.from_numpy(users)
        return Vectors(own, items, own.clone() if self.splits_vectors() else None)

    def _remember(self, published: RatingTable, sensitive: RatingTable, noises: Noises) -> None:
        """What the recommender and friends remember: nothing yet.

        Args:
            published: ratings that everyone knows.
            sensitive: ratings that their users keep to themselves, among those that are submitted as sensitive.
        """
        users, dimension = self._users, self.config.dimension
        self._items = np.zeros_like(self._recommender.vectors)
        self._submitted = self._replay = self._joint = self._to_friends = None
        submitted = users.sensitive
        if self.with_parties:
            width = submitted.shape[1]
            kept_keys = sensitive.users.astype(np.int64) * width + sensitive.items
            self._watched = np.isin(submitted.users.astype(np.int64) * width + submitted.items, kept_keys)
            variance = noises.sensitive.variance(submitted.of_item[sensitive.items])
            self._submitted = Memory(sensitive.users, sensitive.items, sensitive.items, width, variance, dimension)
            self._replay = Replay(published, sensitive, variance, users)
            if not self.splits_vectors() and len(sensitive) and len(published):
                self._joint = watch(users, published, sensitive, self.config.scale)
        if self.with_parties and users.friends is not None:
            friends = users.friends
            receivers, senders = friends.receivers[friends.watched], friends.senders[friends.watched]
            self._divisor = -2 * friends.similarity[friends.watched]
            variance = noises.friends.variance(friends.counts[receivers]) / self._divisor.astype(np.float64) ** 2
            self._to_friends = Memory(senders, receivers, receivers, submitted.shape[0], variance, dimension)

    def _memory_tensors(self) -> dict[str, Tensor]:
        """All that receivers remember, sharing memory with it."""
        tensors = {"memory.items": torch.from_numpy(self._items)}
        kept = (
            ("submitted", self._submitted),
            ("replay", self._replay),
            ("joint", self._joint),
            ("friends", self._to_friends),
        )
        for party, memory in kept:
            if memory is not None:
                tensors |= {f"memory.{party}.{name}": tensor for name, tensor in memory.tensors().items()}
        return tensors
