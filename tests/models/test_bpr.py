"""BPR's gradient, which is written out, and its step against those of autograd; its negatives one by one."""

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from tasks.core.training_data import TrainingData
from tasks.models.ranking.bpr import BPR, BPRConfig, BPRNetwork
from tasks.models.training import NegativeSampler, PairwiseModel


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


def test_a_step_by_hand_is_that_of_autograd() -> None:
    rng = np.random.default_rng(0)
    users, items = np.divmod(rng.choice(900, 200, replace=False).astype(np.int32), 30)
    data = TrainingData(n_users=30, n_items=40, users=users, items=items)
    config = BPRConfig(epochs=1, batch_size=64, learning_rate=0.01, regularization=0.01, dimension=5)
    by_hand, by_autograd = (BPR(config).fit(data, rng=np.random.default_rng(1)) for _ in range(2))
    triples = [torch.from_numpy(rng.integers(0, 30, 50)) for _ in range(3)]
    for _ in range(3):
        loss = by_hand.train_batch(*triples)
        torch.testing.assert_close(loss, PairwiseModel.train_batch(by_autograd, *triples), rtol=0, atol=0)
    for name, tensor in by_hand.released().items():
        torch.testing.assert_close(tensor, by_autograd.released()[name], rtol=0, atol=0)


@pytest.mark.parametrize(("n_users", "n_items", "n"), [(30, 40, 700), (5, 2, 5), (1000, 2_000_000, 3000)])
def test_draws_are_those_of_a_plain_rejection(n_users: int, n_items: int, n: int) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(n_users * n_items - n_users, n, replace=False) if n > 5 else np.arange(5) * 2
    users, items = (codes // n_items).astype(np.int32), (codes % n_items).astype(np.int32)
    known = set(zip(users.tolist(), items.tolist(), strict=True))
    sampler = NegativeSampler(users, items, n_users, n_items)
    asked = np.concatenate([users, users[::-1]])
    actual = sampler.draw(asked, np.random.default_rng(1))
    plain = np.random.default_rng(1)
    expected = plain.integers(0, n_items, len(asked), dtype=np.int32)
    while again := [at for at, pair in enumerate(zip(asked, expected, strict=True)) if tuple(map(int, pair)) in known]:
        expected[again] = plain.integers(0, n_items, len(again), dtype=np.int32)
    np.testing.assert_array_equal(actual, expected)
    pairs = rng.integers(0, n_users, 2000).astype(np.int32), rng.integers(0, n_items, 2000).astype(np.int32)
    seen = [(int(user), int(item)) in known for user, item in zip(*pairs, strict=True)]
    assert sampler._is_positive(*pairs).tolist() == seen
