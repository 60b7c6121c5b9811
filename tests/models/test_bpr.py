"""BPR's gradient, which is written out, beside autograd's."""

from __future__ import annotations

import torch
from torch.nn.functional import logsigmoid

from tasks.models.ranking.bpr import BPR, BPRNetwork


def test_the_gradient_written_out_is_autograds() -> None:
    """Of Rendle et al., Eq. 4.2, with users and items that come several times, also as each other's negatives."""
    torch.manual_seed(0)
    tables = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (5, 3), (5,))]
    ids = torch.tensor([0, 3, 3, 1, 3]), torch.tensor([0, 4, 4, 2, 1]), torch.tensor([4, 0, 1, 1, 4])
    model = BPR.__new__(BPR)
    model.network = BPRNetwork(*(table.detach() for table in tables))
    loss = model.loss(*ids)
    (3 * loss).backward()
    (users, items, biases), (user, item, negative) = tables, ids
    difference = (users[user] * (items[item] - items[negative])).sum(1) + biases[item] - biases[negative]
    expected = -logsigmoid(difference).mean()
    torch.testing.assert_close(loss, expected)
    (3 * expected).backward()
    for parameter, table in zip(model.network.parameters(), tables, strict=True):
        torch.testing.assert_close(parameter.grad, table.grad)
