"""DPSGD, a private baseline of DIPSGNN's: its network, trained by differentially private SGD (Section 5.1).

Source of the training: Abadi et al., "Deep learning with differential privacy" (CCS 2016). No aggregate is noisy;
instead every gradient is clipped and gets noise, in all parameters. A record is a user with the whole training
sequence: items, their order, and the next items that the loss reads. (The paper says "the same level" of privacy as
DIPSGNN's, which is that of an edge, and not what a record is. Records of single examples would leave a user's events
in as many records as there are prefixes with them.) Noise is calibrated to the budget of all steps together.

A record's loss is the mean of its examples', so that one clip norm fits long sequences and short ones. Without clipping
and noise this is ordinary training in which users, not examples, weigh the same.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from typing_extensions import override

from tasks.graph.ops import weighted_sum
from tasks.graph.prefixes import PrefixGraphs, Step
from tasks.models.draws import OwnDraws
from tasks.models.sessions.gated import APGNNConfig, ScaledSessions, gru_update
from tasks.models.sessions.sequential import inputs_and_targets
from tasks.models.user_level import UserLevelModel
from tasks.privacy.accounting.gaps import BY_EPOCHS, FLOATS, PLACE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.accounting.per_record import Owned, copies, product, weighted_sums, zero_infinite
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.terms import because, gap
from tasks.sequences import Sequences
from tasks.training_data import TrainingData

PIECE = 32
"""Users whose gradients are held at a time; how many does not change a step but for rounding."""
COUNTED = ("noise_multiplier", "sampling_probability", "planned_steps")
"""Buffers of the network with what the ledger must know of a loaded model, too; none depends on who has a sequence."""


class DPSGDConfig(APGNNConfig):
    """Configuration of `DPSGD`. An epoch is as many steps as take every user once on average."""

    batch_size: int = Field(ge=1)
    """Expected number of users in a step; their number, or more, puts all of them into every step."""
    clip: float = Field(gt=0, allow_inf_nan=False)
    """C of DIPSGNN, the length that joint states are scaled to: a part of the network, not of the protection."""
    clip_norm: float = Field(gt=0)
    """Norm that no user's gradient exceeds, all parameters together; infinity only where `epsilon` is."""
    epsilon: float = Field(gt=0)
    """Budget of a user for all steps of `epochs` epochs; infinity trains without noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the guarantee; more than one in the number of users means little."""

    _noise_is_finite = model_validator(mode="after")(dpsgd.check_clip_norm)

    @property
    @override
    def plans_epochs(self) -> bool:
        return math.isfinite(self.epsilon)


class UserDropout:
    """Dropout of a private step, in which a user's masks are drawn for that user alone (`OwnDraws`)."""

    def __init__(self, share: float, key: tuple[int, ...] = ()) -> None:
        """share: of values that become 0, while the others grow so that the expectation stays. key: of the step."""
        self._share, self._key = share, key

    def __call__(self, values: Tensor, users: NDArray[np.integer], owners: Tensor) -> Tensor:
        """(n, d) `values` without a random share of them; users: ids; owners: (n,) ascending places in `users`."""
        if self._share == 0:
            return values
        rows = np.bincount(owners.cpu().numpy(), minlength=len(users))
        uniform = OwnDraws(self._key, users, rows).random(tuple(values.shape))
        return values * torch.from_numpy(uniform >= self._share).to(values.device) / (1 - self._share)


KEPT = UserDropout(0.0)
"""Every value is kept."""


class DPSGD(UserLevelModel, ScaledSessions):
    """DIPSGNN's network without noise on aggregates, with user-level differential privacy."""

    noise_key = "DPSGD"
    config: DPSGDConfig
    uses_features: ClassVar[bool] = True

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network, and the noise that all epochs together may need."""
        network = super().build(data, rng)
        multiplier = self.plan(data.n_users)
        self._places = np.full(data.n_users, -1)
        self._places[self._sequences.users] = np.arange(len(self._sequences))
        for name, value in zip(COUNTED, (multiplier, self._plan.probability, self._plan.steps), strict=True):
            network.register_buffer(
                name, torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
            )
        return network

    def train_epoch(self) -> float:
        """One step per Poisson sample of users; returns the mean loss of a user."""
        key, total = int(self._rng.integers(2**63)), 0.0
        for step in range(self._plan.steps_per_epoch):
            users = dpsgd.poisson_sample(len(self._places), self._plan.probability, self.noise_rng)
            total += self.private_step(self.sequences_of(users), UserDropout(self.config.dropout, (key, step)))
        return total / self._plan.steps_per_epoch

    def sequences_of(self, users: NDArray[np.int64]) -> Sequences:
        """The training sequences of these users; whoever has no event keeps a place in samples, and adds nothing."""
        places = self._places[users]
        return self._sequences.take(places[places >= 0])

    def private_step(self, sequences: Sequences, dropout: UserDropout = KEPT) -> float:
        """One step on a sample of users, possibly none; returns its summed loss over the expected batch.

        A user of one event gives no example, and so no gradient.
        """
        expected = self._plan.expected
        total, clipped, sums = self.clipped_sum(sequences, dropout)
        self._clipped.append(clipped / expected)
        multiplier, clip_norm = self._read_buffer("noise_multiplier"), self.config.clip_norm
        released = [dpsgd.add_noise(gradient, multiplier, clip_norm, self.noise_rng) for gradient in sums]
        if self.watch is not None:
            self.watch(released, self._plan.probability)
        for parameter, gradient in zip(self.network.parameters(), released, strict=True):
            parameter.grad = gradient / expected
        self._optimiser.step()
        return total / expected

    def clipped_sum(self, sequences: Sequences, dropout: UserDropout = KEPT) -> tuple[float, int, list[Tensor]]:
        """The sum of the users' losses, how many users are clipped, and the sums of clipped gradients by parameter."""
        total, clipped = 0.0, 0
        sums = [torch.zeros_like(parameter) for parameter in self.network.parameters()]
        lengths = sequences.lengths
        order = np.argsort(lengths, kind="stable")  # a piece of equally long sequences has little padding
        for piece in sequences.take(order[lengths[order] > 1]).batches(PIECE):
            losses, gradients = self.gradients(piece, dropout)
            gradients, norms = zero_infinite(gradients)
            factors = dpsgd.clip_factors(norms, self.config.clip_norm)
            for part, gradient in zip(sums, weighted_sums(gradients, factors), strict=True):
                part += gradient
            total += float(losses.sum())
            clipped += int((factors < 1).sum())
        return total, clipped, sums

    def gradients(self, sequences: Sequences, dropout: UserDropout = KEPT) -> tuple[Tensor, list[Tensor]]:
        """Losses of users, (n_users,), and their gradients, (n_users, ...) for each parameter in its order.

        Every sequence has at least two events.
        """
        n = len(sequences)
        parameters = {name: copies(parameter, n) for name, parameter in self.network.named_parameters()}
        prefixes, targets = inputs_and_targets(sequences, self.device)
        logits = _Pass(self, parameters, prefixes).logits(dropout)
        owners = torch.from_numpy(prefixes.owners).to(self.device)
        shares = torch.from_numpy(1.0 / prefixes.lengths).float().to(self.device)[owners]
        losses = torch.zeros(n, device=self.device).index_add(
            0, owners, shares * cross_entropy(logits, targets, reduction="none")
        )
        return losses.detach(), list(torch.autograd.grad(losses.sum(), list(parameters.values())))

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        super().restore_released({name: tensor for name, tensor in tensors.items() if name not in COUNTED})
        for name in COUNTED:
            self.network.register_buffer(name, tensors[name])

    def ledger(self) -> list[LedgerEntry]:
        """All planned steps."""
        planned, n_users = None, 0
        if hasattr(self, "network"):
            multiplier, probability, steps = (self._read_buffer(name) for name in COUNTED)
            planned, n_users = (multiplier, probability, int(steps)), len(self.network.get_buffer("profiles"))
        return [
            self.steps_entry(
                planned,
                n_users,
                gaps=GAPS,
                remarks=(because("whole-sequence"),),
            )
        ]

    def _read_buffer(self, name: str) -> float:
        return self.network.get_buffer(name).item()


GAPS = (
    *BY_EPOCHS,
    PLACE,
    gap("own-recommendations"),
    gap("features-apart"),
    FLOATS,
)


class _Pass:
    """`GatedSessions.logits`, every map of which is applied with a record's own copy of its parameters."""

    def __init__(self, model: DPSGD, parameters: dict[str, Tensor], sequences: Sequences) -> None:
        """parameters: `copies` of the network's, for each of `sequences`."""
        self._model, self._parameters, self._sequences = model, parameters, sequences
        self._graphs = model.graphs(sequences)
        self._events = self._owned(self._graphs.event_owners)

    def logits(self, dropout: UserDropout) -> Tensor:
        graphs, items = self._graphs, self._parameters["items.weight"]
        each = torch.arange(len(self._sequences), device=self._model.device)
        profiles = self._model.network.get_buffer("profiles")[torch.from_numpy(self._sequences.users).long()]
        users = self._linear("user", profiles, self._owned(each))
        owned = self._owned(graphs.node_owners)
        states = dropout(items[graphs.node_owners, graphs.node_items], self._sequences.users, graphs.node_owners)
        for step in graphs.steps:
            states, owned = self._propagate(step, states, owned, users)
        return product(self._read(graphs, states, owned, users), items, self._events)

    def _propagate(self, step: Step, states: Tensor, owned: Owned, users: Tensor) -> tuple[Tensor, Owned]:
        d, after = states.shape[1], self._owned(step.owners)
        joint = self._model.scale_states(torch.cat([states, users[owned.owners]], dim=1))
        aggregates = [
            weighted_sum(block, self._model.edge_weights(block), self._times(f"{name}.weight", joint, owned))
            + self._parameters[f"{name}.bias"][after.owners]
            for name, block in (("successors", step.successors), ("predecessors", step.predecessors))
        ]
        received = self._times("gates.weight_ih", torch.cat(aggregates, dim=1), after)
        received = received + self._parameters["gates.bias_ih"][after.owners]
        kept = joint[:, :d]
        recurrent = self._times("gates.weight_hh", kept, owned) + self._parameters["gates.bias_hh"][owned.owners]
        return gru_update(received, recurrent[step.previous], kept[step.previous]), after

    def _read(self, graphs: PrefixGraphs, states: Tensor, owned: Owned, users: Tensor) -> Tensor:
        last, members = states[graphs.last], graphs.members
        nodes, lasts = (
            self._linear("attend_node", states, owned),
            self._linear("attend_last", last, self._events),
        )
        hidden = torch.sigmoid(nodes[members.sources] + lasts[members.centres])
        edges = self._owned(self._events.owners[members.centres])
        weights = self._linear("attention", hidden, edges).squeeze(1)
        parts = [weighted_sum(members, weights * graphs.visits, states), last, users[self._events.owners]]
        return self._linear("readout", torch.cat(parts, dim=1), self._events)

    def _linear(self, name: str, rows: Tensor, owned: Owned) -> Tensor:
        """A linear layer of the network, with its bias if it has one."""
        bias = self._parameters.get(f"{name}.bias")
        out = self._times(f"{name}.weight", rows, owned)
        return out if bias is None else out + bias[owned.owners]

    def _times(self, name: str, rows: Tensor, owned: Owned) -> Tensor:
        return product(rows, self._parameters[name], owned)

    def _owned(self, owners: Tensor) -> Owned:
        return Owned(owners, len(self._sequences))
