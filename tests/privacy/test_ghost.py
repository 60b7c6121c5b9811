"""Ghost norms and sums, and those of gradients per record, equal those of gradients computed one by one."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from tasks.core.errors import ConfigurationError
from tasks.privacy.accounting.per_record import Owned, copies, product, squared_norms, weighted_sums
from tasks.privacy.mechanisms import ghost

SHAPES = [
    *((0, 5, (3,)), (1, 1, (1,)), (4, 7, (3,)), (9, 6, (5, 2)), (3, 20, (8, 4, 2))),
    *((0, 5, 3), (1, 1, 1), (1, 4, 6), (4, 7, 3), (9, 6, 2), (3, 20, 8)),
]
"""Rows, items, and widths of layers; one number where weights are tied."""


class Rows(nn.Module):
    """Layers with tanh between them; the last gives as many numbers as a row has."""

    def __init__(self, n_items: int, widths: tuple[int, ...], *, bias: bool = True) -> None:
        super().__init__()
        sizes = [n_items, *widths, n_items]
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in itertools.pairwise(sizes))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            rows = torch.tanh(layer(rows))
        return self.layers[-1](rows)


def losses(network: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    return -(rows * torch.log_softmax(network(rows), -1)).sum(-1)


class Tied(nn.Module):
    """In, a layer between, and out by the transposed weights of the first."""

    def __init__(self, n_items: int, width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.reader = nn.Linear(n_items, width, bias=bias)
        self.between = nn.Linear(width, width)
        self.writer = ghost.Transposed(self.reader)
        nn.init.normal_(self.writer.bias)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.writer(torch.tanh(self.between(torch.tanh(self.reader(rows)))))


def made(n: int, n_items: int, widths: tuple[int, ...] | int, seed: int, *, bias: bool = True):
    torch.manual_seed(seed)
    make = Tied if isinstance(widths, int) else Rows
    return make(n_items, widths, bias=bias).double(), some_rows(n, n_items)


def some_rows(n: int, n_items: int) -> torch.Tensor:
    rows = ((torch.rand(n, n_items) < 0.4) * torch.randint(1, 6, (n, n_items))).double()
    rows[: n // 4] = 0.0  # users without ratings
    return rows


def ours(network: nn.Module, rows: torch.Tensor) -> list[ghost.Outer]:
    with ghost.record_calls(network) as calls:
        result = losses(network, rows)
    return ghost.gradients(result, calls)[0]


def by_example(network: nn.Module, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Every example's gradient of every parameter, by torch.func."""
    weights = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def loss(values: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return -(row * torch.log_softmax(functional_call(network, values, (row,)), -1)).sum()

    return vmap(grad(loss), in_dims=(None, 0))(weights, rows)


@pytest.mark.parametrize(("n", "n_items", "widths"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_norms_and_weighted_sums_equal_those_of_gradients_per_example(n, n_items, widths, bias, seed):
    network, rows = made(n, n_items, widths, seed, bias=bias)
    outers = ours(network, rows)
    weights = torch.rand(n, dtype=torch.float64)
    sums, tied = ghost.weighted_sums(outers, weights), isinstance(network, Tied)
    assert set(sums) == set(network.parameters())
    if n == 0:
        assert ghost.squared_norms(outers).shape == (0,)
        assert tied or ghost.l1_norms(outers).shape == (0,)
        assert not any(total.any() for total in sums.values())
        return
    true = by_example(network, rows)
    flat = torch.cat([gradient.flatten(1) for gradient in true.values()], 1)
    torch.testing.assert_close(ghost.squared_norms(outers).sqrt(), flat.norm(dim=1), rtol=1e-5, atol=1e-10)
    if not tied:
        torch.testing.assert_close(ghost.l1_norms(outers), flat.abs().sum(1), rtol=1e-5, atol=1e-10)
    direction = {parameter: torch.randn_like(parameter) for parameter in sums}
    actual = ghost.Scaled(outers, weights).inner(list(direction.values()))
    names = dict(network.named_parameters())
    inner = sum((true[name] * direction[parameter]).flatten(1).sum(1) for name, parameter in names.items())
    torch.testing.assert_close(actual, weights * inner, rtol=1e-5, atol=1e-10)
    for name, parameter in names.items():
        torch.testing.assert_close(sums[parameter], torch.tensordot(weights, true[name], 1), rtol=1e-5, atol=1e-10)


def test_tied_weights_have_no_l1_norms_and_need_their_source():
    network, rows = made(4, 5, 3, 0)
    with pytest.raises(ConfigurationError, match="tied weights do not give"):
        ghost.l1_norms(ours(network, rows))
    with ghost.record_calls(network) as calls:
        actual = losses(nn.Sequential(nn.Linear(5, 3).double().requires_grad_(False), network.writer), rows)
    with pytest.raises(ValueError, match="to be used next to them"):
        ghost.gradients(actual, calls)
    network.reader.requires_grad_(False)
    with pytest.raises(ValueError, match="both trained or both frozen"), ghost.record_calls(network):
        pass


@pytest.mark.parametrize("widths", [(3,), 3])
def test_a_gradient_that_is_not_finite_counts_nothing(widths):
    network, rows = made(4, 5, widths, 0)
    outers = ours(network, rows)
    sound = ghost.weighted_sums(outers, torch.tensor([1.0, 0, 1, 1], dtype=torch.float64))
    outers[0].errors[1] = torch.inf
    outers[1].inputs[1] = torch.nan
    cleaned, norms = ghost.zero_non_finite(outers)
    assert norms[1] == 0
    assert norms.isfinite().all()
    for parameter, total in ghost.weighted_sums(cleaned, torch.ones(4, dtype=torch.float64)).items():
        torch.testing.assert_close(total, sound[parameter])


def test_frozen_layers_have_no_gradient_and_local_tensors_have_theirs():
    network, rows = made(4, 5, (3,), 0)
    network.layers[0].requires_grad_(False)
    vectors = torch.ones(4, 5, dtype=torch.float64, requires_grad=True)
    with ghost.record_calls(network) as calls:
        actual = losses(network, rows * vectors)
    outers, (own,) = ghost.gradients(actual, calls, [vectors])
    assert [outer.layer for outer in outers] == [network.layers[1]]
    (expected,) = torch.autograd.grad(losses(network, rows * vectors).sum(), vectors)
    torch.testing.assert_close(own, expected)


def test_a_layer_used_twice_or_over_more_than_rows_or_half_frozen_is_refused():
    layer = nn.Linear(3, 3)
    with ghost.record_calls(layer), pytest.raises(ValueError, match="once per example"):
        layer(layer(torch.ones(2, 3)))
    with ghost.record_calls(layer), pytest.raises(ValueError, match="rows of inputs"):
        layer(torch.ones(2, 4, 3))
    layer.bias.requires_grad_(False)
    with pytest.raises(ValueError, match="both trained or both frozen"), ghost.record_calls(layer):
        pass


@pytest.mark.parametrize("counts", [[1], [2, 0, 3], [0, 0, 1, 7, 2, 0]])
def test_a_matrix_that_is_used_twice_gets_both_shares_and_a_record_without_rows_none(counts):
    rng = np.random.default_rng(0)
    rows, matrix, bias = (torch.from_numpy(rng.normal(size=shape)) for shape in ((sum(counts), 4), (4, 4), (4,)))
    rows.requires_grad_()

    def loss(through, added) -> torch.Tensor:
        return torch.tanh(through(torch.tanh(through(rows) + added))).square()

    owned = Owned(torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)), len(counts))
    matrices, biases = copies(matrix, len(counts)), copies(bias, len(counts))
    total = loss(lambda x: product(x, matrices, owned), biases[owned.owners]).sum()
    *ours, of_rows = torch.autograd.grad(total, [matrices, biases, rows])
    slow = []
    for record in range(len(counts)):
        first, other = matrix.clone().requires_grad_(), bias.clone().requires_grad_()
        mine = loss(lambda x, first=first: x @ first.T, other)[owned.owners == record].sum()
        slow.append(torch.autograd.grad(mine, [first, other]))
    for index, gradient in enumerate(ours):
        torch.testing.assert_close(gradient, torch.stack([gradients[index] for gradients in slow]))
    expected = torch.autograd.grad(loss(lambda x: x @ matrix.T, bias).sum(), rows)[0]
    torch.testing.assert_close(of_rows, expected)
    norms = torch.stack([sum(g.square().sum() for g in gradients) for gradients in slow])
    torch.testing.assert_close(squared_norms(ours), norms)
    weights = torch.from_numpy(rng.random(len(counts)))
    for index, part in enumerate(weighted_sums(ours, weights)):
        torch.testing.assert_close(part, sum(w * g[index] for w, g in zip(weights, slow, strict=True)))
