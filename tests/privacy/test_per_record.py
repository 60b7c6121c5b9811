"""Gradients per record equal those of each record's rows alone."""

import numpy as np
import pytest
import torch

from tasks.privacy.accounting.per_record import Owned, copies, product, squared_norms, weighted_sums


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
