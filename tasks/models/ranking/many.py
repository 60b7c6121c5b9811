"""Many small models in one tensor: the runs of a shadow-model attack, trained side by side.

A step on a small batch is mostly the time of calling its operations. Runs of one configuration on different data share
these calls: their vectors lie one after another, and a step gathers, multiplies and scatters for all of them. Every run
draws from its own generator what it would draw alone, and a run without a batch in a step is not changed, so each model
is the one that `fit` gives, up to rounding. `python -m tests.benchmarks.bench_shadows` measures what that saves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from tasks.core.training_data import TrainingData
from tasks.models.base import Model, ModelConfig, Recommender
from tasks.models.ranking.bpr import BPR, BPRConfig, BPRNetwork
from tasks.models.training import NegativeSampler

SIDE_BY_SIDE, ONE_BY_ONE = 33, 5


def together(cls: type[Model]) -> int:
    """How many models of a class are best fitted at a time: many side by side, few where an interruption costs all."""
    return SIDE_BY_SIDE if cls is BPR else ONE_BY_ONE


def fit_many(
    cls: type[Recommender],
    config: ModelConfig,
    datas: Sequence[TrainingData],
    rngs: Sequence[np.random.Generator],
    named: Sequence[tuple[str, ...]] | None = None,
) -> list[Recommender]:
    """Models fitted on each of the data, with the generator of each; as many users and items in all of them.

    BPR is trained side by side, any other model one after another. No validation ends training.

    Args:
        named: what distinguishes the noise of the models (`Model.named`).
    """
    if cls is BPR and isinstance(config, BPRConfig):
        return list(_fit_bpr(config, datas, rngs))
    models = [cls(config) for _ in datas]
    for model, name in zip(models, named or (), strict=named is not None):
        model.named = name
    return [model.fit(data, rng=rng) for model, data, rng in zip(models, datas, rngs, strict=True)]


class _Run:
    """One run's interactions in the order of an epoch, with negatives: the draws of `PairwiseModel`."""

    def __init__(self, data: TrainingData, rng: np.random.Generator, batch_size: int) -> None:
        self._data, self._rng, self._size = data, rng, batch_size
        self._sampler = NegativeSampler(data.users, data.items, data.n_users, data.n_items)
        self.steps = -(-len(data.users) // batch_size)

    def epoch(self) -> list[NDArray[np.int64]]:
        """(3, batch) users, items and negatives of each step, as rows of the run's table."""
        order = self._rng.permutation(len(self._data.users))
        users, items = self._data.users[order], self._data.items[order]
        negatives = self._sampler.draw(users, self._rng)
        first = self._data.n_users
        triples = np.stack([users, items + first, negatives + first]).astype(np.int64)
        return np.split(triples, range(self._size, len(users), self._size), axis=1)


def _fit_bpr(config: BPRConfig, datas: Sequence[TrainingData], rngs: Sequence[np.random.Generator]) -> list[BPR]:
    """`BPR.fit` for all runs: the gradients of its loss, and Adam.

    A run's table has a row for every user, (p_u, 0), and below them one for every item, (q_i, b_i): Adam knows no rows,
    and a place without a gradient that begins at 0 stays there.
    """
    tables = torch.stack([_table(BPR(config).build(data, rng)) for data, rng in zip(datas, rngs, strict=True)])
    slopes = torch.zeros_like(tables)
    parameters = [nn.Parameter(table) for table in tables]  # in the memory of `tables`
    optimiser = torch.optim.Adam(
        parameters, lr=config.learning_rate, weight_decay=2 * config.regularization, fused=True
    )
    runs = [_Run(data, rng, config.batch_size) for data, rng in zip(datas, rngs, strict=True)]
    active: list[int] = []
    for _ in range(config.epochs):
        batches = [run.epoch() for run in runs]
        for step in range(max(run.steps for run in runs)):
            before, active = active, [run for run, steps in enumerate(batches) if step < len(steps)]
            if active != before:  # Adam leaves parameters without a gradient as they are
                for run, parameter in enumerate(parameters):
                    parameter.grad = slopes[run] if run in active else None
            _write_slopes(tables, slopes, active, [batches[run][step] for run in active])
            optimiser.step()
    fitted = []
    for table, data in zip(tables, datas, strict=True):
        users, items = table[: data.n_users], table[data.n_users :]
        model = BPR(config)
        model.network = BPRNetwork(users[:, :-1].clone(), items[:, :-1].clone(), items[:, -1].clone())
        fitted.append(model)
    return fitted


def _table(network: nn.Module) -> Tensor:
    users, items, biases = (network.get_parameter(name).detach() for name in ("users", "items", "biases"))
    return torch.cat([pad(users, (0, 1)), torch.cat([items, biases[:, None]], dim=1)])


def _write_slopes(tables: Tensor, slopes: Tensor, active: Sequence[int], batches: Sequence[NDArray[np.int64]]) -> None:
    """The gradients of the mean loss of each run's batch of places: -log σ(p_u·(q_i - q_j) + b_i - b_j)."""
    shift = np.repeat(np.array(active) * tables.shape[1], [batch.shape[1] for batch in batches])
    places = torch.from_numpy((np.concatenate(batches, axis=1) + shift).ravel())
    weights = torch.from_numpy(np.concatenate([np.full(b.shape[1], 1 / b.shape[1], np.float32) for b in batches]))
    rows = tables.flatten(0, 1).index_select(0, places)
    user, item, negative = rows.chunk(3)
    apart = item - negative
    user[:, -1] = 1.0  # what biases are multiplied by
    slope = torch.sigmoid(torch.linalg.vecdot(user, apart).neg_()).mul_(weights).neg_()[:, None]
    torch.mul(user, slope, out=item)
    torch.neg(item, out=negative)
    torch.mul(apart, slope, out=user)
    user[:, -1] = 0.0
    slopes.zero_().flatten(0, 1).index_add_(0, places, rows)
