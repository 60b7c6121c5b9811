"""BPR: matrix factorisation for implicit feedback, trained on pairwise ranking (Rendle et al., UAI 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.training import EpochConfig, PairwiseModel


class BPRConfig(EpochConfig):
    """Configuration of `BPR`; `regularization` weighs all rows in every step, the paper's those of a triple."""

    dimension: int = Field(ge=1)
    """Length of user and item vectors."""
    init_std: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """Standard deviation of the initial vectors."""


class BPRNetwork(nn.Module):
    """users: (n_users, d), items: (n_items, d), biases: (n_items,)."""

    def __init__(self, users: Tensor, items: Tensor, biases: Tensor) -> None:
        super().__init__()
        self.users = nn.Parameter(users)
        self.items = nn.Parameter(items)
        self.biases = nn.Parameter(biases)


class BPR(PairwiseModel):
    """Scores s_uv = p_u·q_v + b_v; loss −log σ(s_uv − s_uv') (BPR-OPT, Eq. 4.2 ff.)."""

    config: BPRConfig
    network: BPRNetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """User and item vectors N(0, init_std²), item biases 0."""

        def vectors(rows: int) -> Tensor:
            return torch.from_numpy(rng.normal(0.0, self.config.init_std, (rows, self.config.dimension))).float()

        return BPRNetwork(vectors(data.n_users), vectors(data.n_items), torch.zeros(data.n_items))

    @override
    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        network = self.network
        return _PairwiseLoss.apply(network.users, network.items, network.biases, users, items, negatives)

    @override
    def train_batch(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """The same as by autograd, whose own work is a third of such a step."""
        network = self.network
        tables = network.users, network.items, network.biases
        slopes = [torch.zeros_like(table) if table.grad is None else table.grad.zero_() for table in tables]
        with torch.no_grad():
            loss, *activations = _forward(*tables, users, items, negatives)
            _add_slopes(slopes, activations, [users, items, negatives], -1.0)
        for table, slope in zip(tables, slopes, strict=True):
            table.grad = slope
        self._optimiser.step()
        return loss

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        network = self.network
        with torch.no_grad():
            rows = network.users[torch.from_numpy(users).long()]
            return torch.addmm(network.biases, rows, network.items.T)

    @override
    def released(self) -> dict[str, Tensor]:
        return dict(self.network.state_dict())

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self.network = BPRNetwork(**tensors)


class _PairwiseLoss(torch.autograd.Function):
    """Mean of −log σ(s_uv − s_uv'), with its gradient written out: half of the time that autograd takes for it."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        loss, *activations = _forward(*tensors)
        ctx.shapes = [table.shape for table in tensors[:3]]
        ctx.save_for_backward(*activations, *tensors[3:])
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        slopes = [saved[0].new_zeros(shape) for shape in ctx.shapes]
        _add_slopes(slopes, saved[:3], saved[3:], -gradients[0])
        return *slopes, None, None, None


def _forward(
    users: Tensor, items: Tensor, biases: Tensor, user: Tensor, item: Tensor, negative: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Loss; (batch, d) p_u and q_v − q_v'; (batch,) s_uv − s_uv'."""
    vectors = users.index_select(0, user)
    apart = items.index_select(0, item).sub_(items.index_select(0, negative))
    difference = torch.linalg.vecdot(vectors, apart).add_(biases[item]).sub_(biases[negative])
    return softplus(-difference).mean(), vectors, apart, difference


def _add_slopes(
    slopes: Sequence[Tensor], activations: Sequence[Tensor], triples: Sequence[Tensor], weight: Tensor | float
) -> None:
    """Add −weight times the gradient of the loss to those of users, items and biases; what is known is used up."""
    (of_users, of_items, of_biases), (vectors, apart, difference), (user, *items) = slopes, activations, triples
    slope = torch.sigmoid(-difference).mul_(weight / len(user))
    of_users.index_add_(0, user, apart.mul_(slope[:, None]))
    vectors.mul_(slope[:, None])
    for rows, sign in zip(items, (1, -1), strict=True):
        of_items.index_add_(0, rows, vectors, alpha=sign)
        of_biases.index_add_(0, rows, slope, alpha=sign)
