"""R-GCN and the loss over friendships: equal to loops over relations and neighbours, and friends come together."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.models.user_networks import rgcn
from tasks.models.user_networks.base import NetworkData, undirected_pairs
from tasks.models.user_networks.friendship import batches, friendship_loss
from tasks.models.user_networks.rgcn import RGCN, RGCNConfig
from tests.models import naive_networks as naive

CONFIG = RGCNConfig(epochs=2, batch_size=8, learning_rate=0.01, hidden=6, dimension=5, free=3)


def texts_only() -> NetworkData:
    """Vectors of whole texts, which some users have."""
    rng = np.random.default_rng(5)
    data = naive.network(posts=None, word_vectors=None)
    vectors = rng.normal(size=(9, 4)).astype(np.float32)
    return NetworkData(9, data.links, data.features, text_vectors=vectors, has_text=np.arange(9) % 3 > 0)


NETWORKS = {
    "all there": naive.network(),
    "no posts": naive.network(posts=None, word_vectors=None),
    "no attributes": naive.network(features=None),
    "no friendships": naive.network(links=np.empty((0, 2), np.int32)),
    "texts as vectors": texts_only(),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("posts_at_once", [1, 4, 1 << 16])
def test_layers_equal_a_loop_over_relations_and_neighbours(name, posts_at_once, monkeypatch):
    monkeypatch.setattr(rgcn, "POSTS_AT_ONCE", posts_at_once)
    model = RGCN(CONFIG).fit(NETWORKS[name], rng=np.random.default_rng(0))
    np.testing.assert_allclose(model.embed(), naive.rgcn(NETWORKS[name], model.network), atol=2e-5)


def test_gradients_are_the_same_whether_posts_go_through_at_once_or_one_by_one(monkeypatch):
    gradients = []
    for posts_at_once in (1, 1 << 16):
        monkeypatch.setattr(rgcn, "POSTS_AT_ONCE", posts_at_once)
        network = RGCN(CONFIG).build(NETWORKS["all there"], np.random.default_rng(0))
        network().square().sum().backward()
        gradients.append({name: weight.grad for name, weight in network.named_parameters()})
    for name, expected in gradients[1].items():
        assert expected.abs().sum() > 0, name
        torch.testing.assert_close(gradients[0][name], expected)


def test_a_user_hears_two_hops_of_friends_and_no_further():
    chain = np.array([[0, 1], [1, 2], [2, 3]], np.int32)
    features = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    moved = features.copy()
    moved[0] *= -1  # what all are scaled by stays the same
    before, after = (
        RGCN(CONFIG).build(NetworkData(4, chain, rows), np.random.default_rng(1))() for rows in (features, moved)
    )
    assert (before != after).any(1).tolist() == [True, True, True, False]


def test_neither_lengths_nor_what_all_vectors_of_texts_have_in_common_make_a_difference():
    """What is common is most of them, and training would begin by shrinking all embeddings."""
    data = NETWORKS["all there"]
    longer = replace(data, features=64 * data.features, word_vectors=data.word_vectors / 4)
    moved = replace(data, word_vectors=data.word_vectors + 10 * np.float32(data.word_vectors[0]))
    expected, scaled, near = (RGCN(CONFIG).fit(d, rng=np.random.default_rng(0)).embed() for d in (data, longer, moved))
    np.testing.assert_array_equal(scaled, expected)
    np.testing.assert_allclose(near, expected, atol=1e-3)


def test_loss_equals_equation_9_with_its_sign_put_right():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(6, 3))
    pairs, negatives = np.array([[0, 1], [4, 2]]), np.array([[3, 5, 5], [0, 4, 1]])
    slow = 0.0
    for (u, v), drawn in zip(pairs, negatives, strict=True):
        slow -= np.log(1 / (1 + np.exp(-z[u] @ z[v])))
        # Q times an average over Q draws is their sum
        slow -= len(drawn) * np.mean([np.log(1 / (1 + np.exp(z[u] @ z[n]))) for n in drawn])
    rows = torch.from_numpy(z)
    loss = friendship_loss(rows, rows, torch.from_numpy(pairs), torch.from_numpy(negatives))
    assert loss.item() == pytest.approx(slow / len(pairs))


def test_loss_of_no_pairs_is_zero_and_has_gradients():
    rows = torch.ones(3, 2, requires_grad=True)
    none = torch.empty(0, 2, dtype=torch.int64)
    loss = friendship_loss(rows, rows, none, none)
    loss.backward()
    assert loss.item() == 0
    assert rows.grad.tolist() == [[0, 0]] * 3


def test_an_epoch_has_every_friendship_once_from_each_side():
    data = naive.network()
    parts = list(batches(data.links, data.n_users, 2, 3, np.random.default_rng(0)))
    seen = np.concatenate([pairs for pairs, _ in parts])
    ways = np.concatenate([data.links, data.links[:, ::-1]])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, ways))
    assert all(negatives.shape == (len(pairs), 2) for pairs, negatives in parts)


def test_follows_become_friendships_once():
    follows = np.array([[3, 1], [1, 3], [2, 2], [0, 3], [3, 1]])
    assert undirected_pairs(follows).tolist() == [[0, 3], [1, 3]]
    assert undirected_pairs(np.array([[2, 2]])).shape == (0, 2)


def test_friends_score_higher_than_strangers_after_training():
    n, rng = 40, np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    links = pairs[(pairs[:, 0] % 2 == pairs[:, 1] % 2) & (rng.random(len(pairs)) < 0.4)].astype(np.int32)
    config = CONFIG.model_copy(update={"epochs": 60, "batch_size": 400, "learning_rate": 0.05})
    z = RGCN(config).fit(NetworkData(n, links), rng=rng).embed()
    scores = z @ z.T
    together = np.add.outer(np.arange(n), np.arange(n)) % 2 == 0
    np.fill_diagonal(together, False)
    strangers = np.add.outer(np.arange(n), np.arange(n)) % 2 == 1
    assert scores[together].mean() > 0.5 > -0.5 > scores[strangers].mean()
