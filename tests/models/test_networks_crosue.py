"""The cross-network GCN: equal to dense matrix powers, and what anchors carry takes effect on both sides."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from tests.models import naive_networks as naive
from tests.models.contract import make, pair

configured = partial(make, "crosue")
NO_ANCHORS = np.empty((0, 2), np.int32)


def outputs(data, seed=0, **changes):
    return configured(**changes).build(data, np.random.default_rng(seed))()


@pytest.mark.parametrize("propagation", ["hierarchy", "iterative"])
@pytest.mark.parametrize("hops", [1, 4])
@pytest.mark.parametrize("anchors", ["found", "several of one user", "none"])
def test_output_equals_dense_powers_and_the_stack(propagation, hops, anchors):
    data = pair()
    twice = np.array([[0, 3], [0, 7], [5, 3], [0, 3]], np.int32)
    data = replace(data, anchors={"found": data.anchors, "several of one user": twice, "none": NO_ANCHORS}[anchors])
    model = configured(hops=hops, propagation=propagation).fit(data, rng=np.random.default_rng(0))
    for rows, expected in zip(model.embed(), naive.crosue(data, model.network, model.config), strict=True):
        np.testing.assert_allclose(rows, expected, atol=2e-5)


@pytest.mark.parametrize("side", [0, 1])
def test_what_one_network_knows_of_an_anchor_moves_the_other_within_k_hops(side):
    data = pair()
    anchor, partner = data.anchors[0, side], data.anchors[0, 1 - side]
    embeddings = [rows.copy() for rows in data.embeddings]
    embeddings[side][anchor] += 1
    moved = replace(data, embeddings=tuple(embeddings))
    before, after = (outputs(d)[1 - side] for d in (data, moved))
    dense = naive.adjacency(data.networks[1 - side]) > 0
    reach = (
        np.linalg.matrix_power(dense.astype(int) + np.eye(len(dense), dtype=int), configured().config.hops)[:, partner]
        > 0
    )
    np.testing.assert_array_equal((before != after).any(1).numpy(), reach)
    alone = [outputs(replace(d, anchors=NO_ANCHORS))[1 - side] for d in (data, moved)]
    assert torch.equal(*alone)


@pytest.mark.parametrize(
    ("anchors", "still"), [(pair().anchors, []), (NO_ANCHORS, ["to_first.weight", "to_second.weight"])]
)
def test_every_weight_of_both_networks_moves_but_what_carries_across_without_anchors(anchors, still):
    data, model = replace(pair(), anchors=anchors), configured(epochs=1)
    fresh = model.build(data, np.random.default_rng(0)).state_dict()
    model.fit(data, rng=np.random.default_rng(0))
    assert [name for name, weight in model.weights().items() if torch.equal(weight, fresh[name])] == still


def test_anchor_loss_is_the_mean_absolute_difference_and_training_makes_it_small():
    data = pair()
    apart = {}
    for weight in (0.0, 10.0):
        model = configured(epochs=10, anchor_weight=weight).fit(data, rng=np.random.default_rng(0))
        first, second = model.embed()
        apart[weight] = np.mean([np.abs(first[a] - second[b]) for a, b in data.anchors])
        with torch.no_grad():
            assert model.network.anchor_loss(*model.network()).item() == pytest.approx(apart[weight], rel=1e-5)
    assert apart[10.0] < 0.5 * apart[0.0]


def test_anchors_weigh_the_same_whatever_the_length_of_the_embeddings():
    losses = []
    for dimension in (5, 50):
        network = configured(dimension=dimension).build(pair(), np.random.default_rng(0))
        first, second = (
            torch.full((n.n_users, dimension), value) for n, value in zip(pair().networks, (1.0, 3.0), strict=True)
        )
        losses.append(configured().config.anchor_weight * network.anchor_loss(first, second).item())
    assert losses == [20, 20]


def test_the_embeddings_it_starts_from_are_left_as_they_were():
    data = pair()
    before = [rows.copy() for rows in data.embeddings]
    configured().fit(data, rng=np.random.default_rng(0))
    for rows, expected in zip(data.embeddings, before, strict=True):
        np.testing.assert_array_equal(rows, expected)


def test_a_network_without_friendships_still_learns_from_its_anchors():
    data = pair()
    lonely = replace(data.networks[0], links=np.empty((0, 2), np.int32))
    data = replace(data, networks=(lonely, data.networks[1]))
    model = configured(epochs=1)
    fresh = model.build(data, np.random.default_rng(0)).state_dict()
    model.fit(data, rng=np.random.default_rng(0))
    assert not torch.equal(model.weights()["around.0.layers.0.weight"], fresh["around.0.layers.0.weight"])


def test_two_networks_without_friendships_take_no_step():
    data = pair()
    data = replace(data, networks=tuple(replace(n, links=np.empty((0, 2), np.int32)) for n in data.networks))
    model = configured()
    fresh = model.build(data, np.random.default_rng(0))()
    for rows, expected in zip(model.fit(data, rng=np.random.default_rng(0)).embed(), fresh, strict=True):
        np.testing.assert_array_equal(rows, expected.detach().numpy())
