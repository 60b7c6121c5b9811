"""SNE and UDMF: what of ids, attributes, texts and structure reaches the embeddings."""

from dataclasses import replace

import numpy as np
import torch

from tasks.models.user_networks.base import NetworkData
from tasks.models.user_networks.udmf import standardise
from tests.models.contract import fitted
from tests.models.naive_networks import network


def halves(n=60, seed=0) -> tuple[NetworkData, np.ndarray]:
    """Friends within halves alone, and an attribute that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    links = pairs[((pairs < n // 2).all(1) | (pairs >= n // 2).all(1)) & (rng.random(len(pairs)) < 0.3)]
    gender = rng.integers(0, 2, n)
    noise = rng.uniform(-1, 1, (n, 3))
    return NetworkData(n, links.astype(np.int32), np.column_stack([2 * gender - 1, noise]).astype(np.float32)), gender


def fitted_by_least_squares(rows: np.ndarray, classes: np.ndarray) -> float:
    """Accuracy of the best linear reading of `classes` on the first half of the rows, asked about the second."""
    order = np.random.default_rng(1).permutation(len(rows))
    train, test = np.array_split(order, 2)
    wide = np.column_stack([rows, np.ones(len(rows))])
    weights, *_ = np.linalg.lstsq(wide[train], 2.0 * classes[train] - 1, rcond=1e-6)
    return float(((wide[test] @ weights > 0) == classes[test]).mean())


def test_sne_brings_users_of_one_half_together():
    data, _ = halves()
    settings = {"epochs": 40, "batch_size": 600, "learning_rate": 0.02, "dimension": 8, "ids": 8, "attributes": 4}
    rows = fitted("sne", data, **settings).embed()
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    alike = units @ units.T
    assert alike[:30, :30].mean() > 0.5 > 0 > alike[:30, 30:].mean()


def test_sne_sees_attributes():
    data = network()
    other = replace(data, features=np.roll(data.features, 1, axis=0))
    first, second = (fitted("sne", d, epochs=1).embed() for d in (data, other))
    assert not np.array_equal(first, second)


def test_udmf_keeps_attributes_and_structure_both():
    data, gender = halves()
    settings = {"epochs": 150, "batch_size": 20, "learning_rate": 0.005, "dimension": 8, "hidden": 16}
    model = fitted("udmf", data, **settings, walk={"dimension": 4})
    assert fitted_by_least_squares(model.embed(), gender) > 0.9
    assert fitted_by_least_squares(model.embed(), np.arange(60) < 30) > 0.9
    with torch.no_grad():
        # giving back the mean of every column would cost 1 for each of the two modalities
        assert model.network.loss(torch.arange(60)).item() < 1.0


def test_udmf_fuses_as_many_modalities_as_there_are():
    nothing = {"features": None}, {"posts": None, "word_vectors": None}, {"links": np.empty((0, 2), np.int32)}
    models = [fitted("udmf", network(**absent), epochs=1) for absent in ({}, *nothing)]
    assert [len(model.network.modalities) for model in models] == [3, 2, 2, 2]


def test_standardised_rows_are_centred_and_of_mean_square_1_and_a_constant_is_zero():
    rows = standardise(torch.from_numpy(np.random.default_rng(0).normal(3, 20, (50, 4))))
    torch.testing.assert_close(rows.mean(0), torch.zeros(4, dtype=torch.float64), atol=1e-12, rtol=0)
    assert abs(rows.square().mean().item() - 1) < 1e-12
    assert not standardise(torch.full((5, 2), 7.0)).any()
