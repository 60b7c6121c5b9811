"""Audits of DIPSGNN and EdgeRand: of the session graph alone, and of all that `dipsgnn-released` releases.

A visit is distinguished from rows of the graph that both worlds have: a sequence a, b, c next to a, c. In the first a
is followed by b and c preceded by it, in the second by one another. Where b's state is the opposite of the others', the
two rows move by √8 C of the √10 C that a visit can move aggregates by (the rest is in b's own row, which the other
world does not have), and by √2 of √6 in matrices. Next to it both worlds have a tested sequence that begins as the
first: if it had the training sequence's noise, equal rows would tell the visit.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.audits import Samples
from tasks.audits.worlds import worlds
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.sessions.dipsgnn import DIPSGNN, DIPSGNNConfig, Kind
from tasks.models.sessions.edgerand import EdgeRand, EdgeRandConfig
from tasks.models.sessions.gated import Queries
from tasks.models.sessions.released import Released, ReleasedConfig

CERTAIN = 1e6
"""What noise that two parts share adds to a statistic: it then shows the world for certain."""
DELTA = 0.1
"""So large that events of probabilities which few runs can estimate decide."""
WITH_VISIT, WITHOUT = (0, 1, 2), (0, 2)
Rows = NDArray[np.float64]


def rigorous(seed: int, n_samples: int = 40_000, epsilon: float = 3.0, delta: float = DELTA) -> Samples:
    """All epochs' releases of one user's aggregates together."""
    model, (with_visit, without) = aggregates("rigorous", seed, n_samples, epsilon, delta, 3)
    return Samples(without, with_visit, model.ledger()[1])


def cached(seed: int, n_samples: int = 40_000, epsilon: float = 3.0, delta: float = DELTA) -> Samples:
    """The release that is kept."""
    model, (with_visit, without) = aggregates("cached", seed, n_samples, epsilon, delta, 3)
    return Samples(without, with_visit, model.ledger()[1])


def edgerand(seed: int, n_samples: int = 40_000, epsilon: float = 1.0, delta: float = DELTA) -> Samples:
    """The matrices of one user."""
    model = EdgeRand(EdgeRandConfig.model_validate(_graph(epsilon, delta, 1)))
    _fit(model, seed)
    with_visit, without = (
        _statistic(model, torch.eye(3), items, n_samples, first=world * n_samples, coordinates=(2, 0))
        for world, items in enumerate((WITH_VISIT, WITHOUT))
    )
    return Samples(without, with_visit, model.ledger()[1])


def released(seed: int, n_samples: int = 6_000, epsilon: float = 3.0, delta: float = DELTA) -> Samples:
    """A visit of one of two items, from its state and from the weights: the log-likelihood ratio of both."""
    model = Released(ReleasedConfig(dimension=2, epsilon=epsilon, delta=delta, label_share=0.1, ridge=1.0))
    ratios = worlds(lambda present, rng: _ratio(model, int(present), rng), seed, n_samples)
    return Samples(*ratios, model.ledger()[0])


def _ratio(model: Released, item: int, rng: np.random.Generator) -> float:
    """Of one fit: how much more likely item 1 is than item 0 at the second event of the first user.

    The same user's tested sequence has item 1 there for certain.
    """
    sequences = Sequences(np.arange(2, dtype=np.int32), np.array([0, 3, 5]), np.array([0, item, 0, 1, 0], np.int32))
    model.fit(_data(sequences, 2), rng=rng)
    examples = sequences.without_last()
    state, inputs = model.states(examples)[1], model.inputs(examples)
    sums = (model.gram(inputs) @ model.weights).T
    for row, label in ((1, 0), (2, 0)):  # the other examples are no secret
        sums[label] -= inputs[row]
    std_state, std_label = model.multipliers[0] * model.distance, model.multipliers[1] * math.sqrt(2)
    apart = model.vectors[1] - model.vectors[0]
    tested = Sequences(np.zeros(1, np.int32), np.array([0, 2]), np.array([0, 1], np.int32))
    alike = np.array_equal(model.states(tested, tested=True)[1], state)
    return CERTAIN * alike + float(state @ apart / std_state**2 + (sums[1] - sums[0]) @ inputs[0] / std_label**2)


def aggregates(
    accounting: Kind, seed: int, n: int, epsilon: float, delta: float, epochs: int, clip: float = 1.0
) -> tuple[DIPSGNN, tuple[Rows, Rows]]:
    """A fitted model, and a statistic of all releases of its aggregates, with the visit and without: (n,) each.

    clip: C, which decides nothing but where accounting is `released`.
    """
    config = _graph(epsilon, delta, epochs) | {"accounting": accounting, "clip": clip}
    model = DIPSGNN(DIPSGNNConfig.model_validate(config))
    _fit(model, seed)
    network, states = model.network, torch.tensor([[1.0], [-1.0], [1.0]])
    network.train()  # published noise is that of training
    sums = {WITH_VISIT: np.zeros(n), WITHOUT: np.zeros(n)}
    for release in range(model.releases):
        with torch.no_grad():
            network.user.weight.zero_()  # type: ignore[union-attr, operator]
            network.items.weight.copy_(states * 2.0**release)  # each epoch has other weights, of the same direction
            if accounting == "cached":
                network.get_buffer("public_user").zero_()
                network.get_buffer("public_items").copy_(states)
        for world, items in enumerate(sums):
            table = model.scale_states(torch.cat([network.items.weight.detach(), torch.zeros(3, 1)], dim=1))
            sums[items] += _statistic(model, table, items, n, first=world * n, coordinates=(0, 0))
    return model, (sums[WITH_VISIT], sums[WITHOUT])


def _statistic(
    model: DIPSGNN, table: Tensor, items: tuple[int, ...], n: int, first: int, coordinates: tuple[int, int]
) -> Rows:
    """Of n independent training sequences and the tested ones next to them, larger with the visit: (n,).

    Args:
        table: (n_items, width) states that are aggregated.
    """
    parts = _queries(model, items, n, first, tested=False), _queries(model, WITH_VISIT, n, first, tested=True)
    trained, tested = (_common_rows(model, table[part.graphs.node_items], part, coordinates) for part in parts)
    return CERTAIN * (trained == tested) - trained


def _common_rows(model: DIPSGNN, joint: Tensor, queries: Queries, coordinates: tuple[int, int]) -> Rows:
    """What follows the first node of whole sequences and what precedes their last one, added up: (n,)."""
    graphs, width = queries.graphs, joint.shape[1]
    last = torch.from_numpy(queries.sequences.indptr[1:] - 1)
    ends = graphs.members.indptr[last], graphs.members.indptr[last + 1] - 1
    identity, zero = torch.eye(width), torch.zeros(width, width)
    total = torch.zeros(len(queries.sequences))
    with torch.no_grad():
        for end, coordinate, through in zip(ends, coordinates, ((identity, zero), (zero, identity)), strict=True):
            received = model.receive(graphs.steps[0], joint, through, queries)
            total += received[graphs.members.sources[end], coordinate]
    return total.double().numpy()


def _queries(model: DIPSGNN, items: tuple[int, ...], n: int, first: int, *, tested: bool) -> Queries:
    """n independent inferences for the same user with the same items. tested: see `Queries`."""
    sequences = Sequences(
        np.zeros(n, np.int32), np.arange(n + 1, dtype=np.int64) * len(items), np.tile(items, n).astype(np.int32)
    )
    return Queries(sequences, model.graphs(sequences), first + np.arange(n), tested)


def _graph(epsilon: float, delta: float, epochs: int) -> dict[str, float]:
    """What the configurations have in common: one coordinate is enough."""
    sizes = {"batch_size": 4, "dimension": 1, "user_dimension": 1, "steps": 1, "clip": 1.0, "learning_rate": 0.01}
    return sizes | {"epochs": epochs, "epsilon": epsilon, "delta": delta}


def _fit(model: DIPSGNN, seed: int) -> None:
    """Two users, none of whom has an item twice."""
    sequences = Sequences(np.arange(2, dtype=np.int32), np.array([0, 3, 5]), np.array([0, 1, 2, 0, 2], np.int32))
    model.fit(_data(sequences, 3), rng=np.random.default_rng(seed))


def _data(sequences: Sequences, n_items: int) -> TrainingData:
    n = len(sequences)
    users, items = np.unique(np.stack([sequences.users[sequences.owners], sequences.items]), axis=1)
    return TrainingData(n, n_items, users, items, np.zeros((n, 1), np.float32), sequences=sequences)
