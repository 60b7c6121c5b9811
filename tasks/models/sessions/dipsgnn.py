"""DIPSGNN (Hu and Fang, arXiv 2309.11515): a gated graph network whose aggregates are noisy.

The noise is all that sets it apart from the public network: node states are scaled to length C, so that one edge
changes an aggregate by C at most, and Gaussian noise is added to every aggregate (Eq. 6 and 7). Accountings:

`published`: σ by Theorem 4.2, fresh noise for every state of a node, in training only: recommendations are computed
from the true graph. (A state that several prefixes share has one noise for all of them; the paper draws noise for each
prefix, which is more releases of the same law.)

`rigorous`: one release for each user and epoch, from which the aggregates of all prefixes follow: for each visit of an
item, its successor's and its predecessor's state, with noise; an aggregate sums the visits so far. Recommendations are
computed from such a release too. σ is such that all releases of a run together are accounted at ε.

`released`: as `published`, but the noise is that of the code that the authors released, σ² N(0, 1): its standard
deviation is σ², smaller than σ wherever σ < 1. The ledger has what Theorem 4.2 gives at that noise. (No relation to
`tasks.models.sessions.released`, a variant of ours that releases noisy visits.)

`cached`: as `rigorous`, but the states that are aggregated are those of the initial, random vectors, so that one
release serves all epochs (aggregate once, then train, as GAP does: Sajadmanesh et al., USENIX Security 2023).
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.hashing import digest, uniform
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.graph.ops import Block, weighted_sum
from tasks.graph.prefixes import PrefixGraphs, Step
from tasks.models.sessions.gated import BATCH, Pair, Queries, ScaledConfig, ScaledSessions
from tasks.models.sessions.ledgers import LABELS, READ, KeyedModel, graph_entry, lists_entry
from tasks.models.sessions.sequential import Dropout
from tasks.privacy import noise
from tasks.privacy.accounting.gaps import EPOCH
from tasks.privacy.accounting.ledger import Event, LedgerEntry, unbounded_entry
from tasks.privacy.keyed import head_ids, prefix_ids
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.remarks import because, gap

Kind = Literal["published", "released", "rigorous", "cached"]
"""Accountings, see the module."""
IN_TRAINING = ("published", "released")
"""Those whose noise is fresh for every state of a node, in training alone."""
LEARNED = (gap("covers-aggregates"), gap("item-vectors-exact"))
"""Where aggregates of learned vectors are noisy."""


class DIPSGNNConfig(ScaledConfig):
    """Configuration of `DIPSGNN`."""

    epsilon: float | None = Field(gt=0, allow_inf_nan=False)
    """ε2, the budget of the edges; None draws no noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the same guarantee; the paper asks for less than 1 / number of edges."""
    accounting: Kind
    """What noise is added, and so what is guaranteed; see the module."""

    @property
    @override
    def plans_epochs(self) -> bool:
        return self.accounting == "rigorous" and self.epsilon is not None and self.steps > 0

    @model_validator(mode="after")
    def _one_step(self) -> Self:
        if self.accounting not in IN_TRAINING and self.steps > 1:
            raise ValueError(
                f"steps: {self.accounting} accounting covers one step, not {self.steps}: after it, a visit's state "
                "differs from prefix to prefix, and one release cannot serve them all"
            )
        return self


class DIPSGNN(KeyedModel, ScaledSessions):
    """The noisy gated graph network, with a user vector made of (perturbed) features."""

    noise_key = "DIPSGNN"
    config: DIPSGNNConfig
    uses_features: ClassVar[bool] = True

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network and, where aggregates are cached, the vectors that they are made of."""
        network = super().build(data, rng)
        self.key = noise.key(self.noise_rng)
        if self.config.accounting == "cached":
            for name, part in (("public_items", network.items), ("public_user", network.user)):
                network.register_buffer(name, part.weight.detach().clone())  # type: ignore[union-attr, operator]
        return network

    def _buffer(self, name: str) -> Tensor:
        return self.network.get_buffer(name)

    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        """See `Model.restore_released`. What is noisy can be scored once `key` is given back."""
        buffers = {name: tensors[name] for name in ("public_items", "public_user", "repeats") if name in tensors}
        super().restore_released({name: tensor for name, tensor in tensors.items() if name not in buffers})
        for name, tensor in buffers.items():
            self.network.register_buffer(name, tensor)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate of an aggregate, or of a visit's state."""
        config = self.config
        if config.epsilon is None or not config.steps:
            return 0.0
        if config.accounting in IN_TRAINING:
            law = aggregation.sigma if config.accounting == "published" else aggregation.released_sigma
            return law(config.steps, config.clip, config.epsilon, config.delta)
        return aggregation.rigorous_sigma(self.releases, config.clip, config.epsilon, config.delta)

    @property
    def noisy_inference(self) -> bool:
        """Whether recommendations are computed from something noisy."""
        return bool(self.sigma) and self.config.accounting not in IN_TRAINING

    @property
    def releases(self) -> int:
        """How often, at most, an edge is in a release: those of the training part in every epoch, others in fewer."""
        return 1 if self.config.accounting == "cached" else self.config.epochs

    def score_again(self, sequences: Sequences, draws: NDArray[np.int64]) -> Tensor:
        """As `score_next`, but sequence s gets draw draws[s] of its user's noise, all of them independent."""
        if not len(sequences):
            return self.score_next(sequences)
        with torch.no_grad():
            parts = np.array_split(np.arange(len(sequences)), -(-len(sequences) // BATCH))
            return torch.cat([self.logits(sequences.take(rows), draws=draws[rows], tested=True) for rows in parts])

    def aggregated_states(self, user: int) -> Tensor:
        """What an aggregate sums, for each item in a sequence of `user`: (n_items, d + d') rows of length C."""
        network = self.network
        with torch.no_grad():
            users = self.user_vectors(torch.tensor([user], device=self.device))
            items = network.items.weight
            if self.config.accounting == "cached":
                items = self._buffer("public_items")
                users = self._initial_users(torch.tensor([user]))
            assert users is not None
            return self.scale_states(torch.cat([items, users.expand(len(items), -1)], dim=1))

    @override
    def initial_states(self, graphs: PrefixGraphs, sequences: Sequences, dropout: Dropout) -> Tensor:
        """Masks of `rigorous` are a function of vectors, user and item: another visit changes none of them.

        So the guarantee holds whatever they are, and they are no secret.
        """
        if not (self.config.plans_epochs and dropout.share):
            return super().initial_states(graphs, sequences, dropout)
        users, items = sequences.users[graphs.node_owners.cpu().numpy()], graphs.node_items.cpu().numpy()
        states = self.network.items(graphs.node_items)
        coordinates = np.arange(states.shape[1])
        kept = uniform(self.vectors, "dropout", users[:, None], items[:, None], coordinates) >= dropout.share
        return states * torch.from_numpy(kept).to(states.device) / (1 - dropout.share)

    def receive(self, step: Step, joint: Tensor, through: Pair, queries: Queries) -> Tensor:
        """What the public network receives, and noise (Eq. 7)."""
        if self.config.accounting == "cached":
            joint = self._cached_states(queries)
        received = super().receive(step, joint, through, queries)
        for added, matrix in zip(self.noise(step, joint.shape[1], queries), through, strict=False):
            received = received + added @ matrix.T
        return received

    def _cached_states(self, queries: Queries) -> Tensor:
        users = self._initial_users(torch.from_numpy(queries.sequences.users).long())
        items = self._buffer("public_items")[queries.graphs.node_items]
        return self.scale_states(torch.cat([items, users[queries.graphs.node_owners]], dim=1))

    def _initial_users(self, users: Tensor) -> Tensor:
        table = self._buffer("public_user")
        return self._buffer("profiles")[users] @ table.T if self.uses_features else table[users]

    def noise(self, step: Step, width: int, queries: Queries) -> tuple[Tensor, ...]:
        """The noise on the aggregates of successors and of predecessors, each (n_versions, width); none without any.

        It is a function of the secret, the vectors that are aggregated, the user, whether the sequence was trained on
        or is asked about, and the items that the aggregate is of: the same again whenever the same is asked, and
        independent where anything differs, so that no difference of two releases is without noise.
        """
        sigma = self.sigma
        if not sigma or (self.config.accounting in IN_TRAINING and not self.network.training):
            return ()
        key, visits = (self.secret, self.vectors), prefixes(queries)
        if self.config.accounting in IN_TRAINING:
            number = next(number for number, other in enumerate(queries.graphs.steps) if other is step)
            final = visits[queries.sequences.indptr[1:] - 1]
            counts = torch.bincount(step.owners, minlength=len(final)).cpu().numpy()
            after, before = (
                noise.gaussian_streams((*key, number, direction), "aggregates", sigma, final, counts, width).to(
                    self.device
                )
                for direction in range(2)
            )
            return after, before
        # A vector per visit for what follows it, one for what precedes it, and one while nothing follows it yet. What
        # follows is known with the next event, and so is named by the prefix that this event ends.
        following = np.where(queries.sequences.has_next, np.roll(visits, -1), visits)
        after, before, nothing = (
            noise.gaussian_by_key((*key, direction), "aggregates", sigma, ids, width).to(self.device)
            for direction, ids in enumerate((following, visits, visits))
        )
        block = step.visits
        successors = Block(block.indptr, block.sources + step.ends * len(visits), 2 * len(visits))
        ones = torch.ones(len(block.sources), device=self.device)
        return weighted_sum(successors, ones, torch.cat([after, nothing])), weighted_sum(block, ones, before)

    @property
    def vectors(self) -> int:
        """A number that names the vectors which are aggregated: after a step of training they are others."""
        if self.config.accounting == "cached":
            tables = [self._buffer("public_items"), self._buffer("public_user")]
        else:
            assert self.network.user is not None
            tables = [self.network.items.weight, *self.network.user.parameters()]
        return digest(*(table.detach().cpu().numpy().tobytes() for table in tables))

    def ledger(self) -> list[LedgerEntry]:
        """Lists, for which nothing finite follows; what does of the aggregates alone; and labels. See the module."""
        config = self.config
        if config.epsilon is None:
            return []
        if not config.steps:
            nothing = because("nothing-aggregated"), because("lists-of-prefixes")
            kind = "rigorous" if config.accounting == "cached" else config.accounting
            return [lists_entry("no-aggregation", *nothing, accounting=kind), LABELS]
        claimed = config.epsilon, config.delta
        if config.accounting in IN_TRAINING:
            return [*self._entries_in_training(claimed), LABELS]
        event, remark = aggregation.release_event(self.sigma, config.clip, self.releases), because("aggregates-alone")
        cached = config.accounting == "cached"
        covered = (gap("covers-initial"),) if cached else LEARNED
        lists = lists_entry("noiseless-lists", because("lists-of-prefixes"), accounting="rigorous", covered=covered)
        if cached:
            graph = graph_entry("aggregates-once", remark, event, claimed, gaps=covered, given=("visit-counts",))
            return [lists, graph, LABELS]
        # Item vectors that are learned without noise change between the releases.
        graph = graph_entry(
            "aggregates-per-epoch", remark, event, claimed,
            gaps=covered, given=("states", "visit-counts"), unit="visit-given-states",
        )  # fmt: skip
        return [lists, graph.model_copy(update={"reasons": (*graph.reasons, because("states-learnt"))}), LABELS]

    def _entries_in_training(self, claimed: tuple[float, float]) -> list[LedgerEntry]:
        """The paper's claim for the system; at the noise of the code, what the theorem gives for the aggregates."""
        config, sigma, releases = self.config, self.sigma, self.releases
        aggregates = Event(
            kind="gaussian", parameters={"noise_multiplier": sigma / config.clip}, count=2 * releases * config.steps
        )
        one_aggregation = gap("claim-for-one-aggregation", releases=releases)
        published = unbounded_entry(
            "edge",
            "matrix-entry",
            "aggregates-training",
            because("recommendations-of-true-graph"),
            claimed=claimed,
            gaps=(
                gap("audited-as-visit"), one_aggregation, gap("sensitivity-three-entries"), READ, *LEARNED, EPOCH,
            ),
            events=(aggregates, Event(kind="non-private")),
        )  # fmt: skip
        if config.accounting == "published":
            return [published]
        reason = because("lists-of-true-graph")
        training = {
            "protects": "session graph",
            "mechanism": "aggregates-training-squared",
            "accounting": "released",
            "claimed_epsilon": aggregation.epsilon(config.steps, config.clip, sigma, config.delta),
            "reasons": (because("aggregates-alone"), because("claim-at-drawn-noise")),
            "events": (aggregates,),
        }
        return [
            lists_entry("noiseless-lists", reason, accounting="released", claimed=claimed, covered=LEARNED),
            published.model_copy(update=training),
        ]


class PrivU(DIPSGNN):
    """DIPSGNN with a vector for every user in place of features: the ablations Priv-U and, without noise, Nonp-U."""

    noise_key = "PrivU"
    uses_features: ClassVar[bool] = False

    def user_module(self, data: TrainingData) -> nn.Module | None:
        """One vector for each user id."""
        assert data.sequences is not None
        return UserVectors(data.n_users, self.config.user_dimension, data.sequences.users)


class UserVectors(nn.Embedding):
    """A vector for every user: that of one who did not train, as those who validate, is the mean of those who did."""

    trained: Tensor

    def __init__(self, n_users: int, dimension: int, users: NDArray[np.integer]) -> None:
        super().__init__(n_users, dimension)
        trained = torch.zeros(n_users, dtype=torch.bool)
        trained[torch.from_numpy(users).long()] = True
        self.register_buffer("trained", trained, persistent=False)  # no one else is asked about after training

    def forward(self, users: Tensor) -> Tensor:
        """(n,) ids -> (n, dimension)."""
        is_trained = self.trained[users]
        vectors = super().forward(users)
        mean = self.weight[self.trained].mean(dim=0)
        return vectors if is_trained.all() else torch.where(is_trained[:, None], vectors, mean)


def prefixes(queries: Queries) -> NDArray[np.uint64]:
    """(n_events,) an id of each prefix: of its user, its draw, its part (trained on or asked about) and its items."""
    sequences = queries.sequences
    return prefix_ids(head_ids(sequences, queries.draws, tested=queries.tested), sequences.items, sequences.indptr)
