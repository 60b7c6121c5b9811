"""DP-VAE's network has the published size, its priors are those of Eq. (11), and its loss that of Eq. (19)."""

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from tasks.models.vae.autoencoder import (
    SMALLEST,
    VAE,
    VAEConfig,
    VAENetwork,
    gaussian_divergence,
    metadata_vectors,
    user_priors,
)
from tests.models.test_userwise import CONFIGS, N_ITEMS, N_USERS, RIGOROUS, data, fitted, scores
from tests.systems import ids

KINDS, DIMENSION = 3, 4
VECTORS = np.random.default_rng(1).random((N_USERS, KINDS * DIMENSION)).astype(np.float32)
USER = {"prior": "user"}
PRIVATE = {"privacy": "dpsgd"}


def config(**override) -> VAEConfig:
    return VAEConfig.model_validate(CONFIGS["vae"] | override)


@pytest.mark.parametrize(
    ("n_items", "hidden", "dimension", "published"),
    [(1_682, 80, 20, 275_802), (26_744, 100, 30, 5_384_804), (17_770, 100, 50, 3_587_070)],
)
def test_parameter_counts_are_those_of_table_3(n_items, hidden, dimension, published):
    network = VAENetwork(n_items, config(hidden=hidden, dimension=dimension))
    assert sum(parameter.numel() for parameter in network.parameters()) == published


def test_divergence_equals_that_of_torch_distributions():
    generator = torch.Generator().manual_seed(0)
    mean, log_variance, prior_mean = (torch.randn(6, 5, generator=generator) for _ in range(3))
    prior_variance = torch.rand(6, 5, generator=generator) + 0.1
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(prior_mean, prior_variance.sqrt())).sum(1)
    torch.testing.assert_close(gaussian_divergence(mean, log_variance, prior_mean, prior_variance), expected)


def test_priors_equal_slow_code():
    vectors = metadata_vectors(VECTORS, DIMENSION)
    means = vectors.mean(0)
    centre, deviation = user_priors(vectors, means, None, np.random.default_rng(0))
    for user in range(N_USERS):
        for j in range(DIMENSION):
            own = vectors[user, :, j]
            expected = sum(own[w] * means[w, j] for w in range(KINDS))
            assert centre[user, j] == pytest.approx(expected)
            assert deviation[user, j] == pytest.approx(
                max(sum((own[w] - expected) ** 2 for w in range(KINDS)), SMALLEST)
            )


def test_noise_of_priors_is_of_each_users_budget():
    """A mean of 40,000 squares within 5 standard errors: a sound one fails once in 1.7 million tries."""
    vectors = np.full((2, KINDS, 20_000), 0.5)
    means, noise = np.zeros((KINDS, 20_000)), np.array([1.0, 3.0])
    centre, deviation = user_priors(vectors, means, noise, np.random.default_rng(0))
    np.testing.assert_allclose((centre**2).mean(1), noise**2, rtol=5 * np.sqrt(2 / 20_000))
    assert (deviation >= SMALLEST).all()
    assert (deviation == SMALLEST).any()


def test_rigorous_priors_know_nothing_of_other_users():
    """Another user's metadata may move no one's prior but that user's own."""
    changed = VECTORS.copy()
    changed[3] = 1 - changed[3]
    override = USER | RIGOROUS | {"epochs": 1}
    before, after = (fitted("vae", data(features=f), **override).network.means for f in (VECTORS, changed))
    assert (before != after).any(1).nonzero().ravel().tolist() == [3]
    published = USER | {"epochs": 1}
    before, after = (fitted("vae", data(features=f), **published).network.means for f in (VECTORS, changed))
    assert (before != after).any(1).all()


def test_the_ledger_says_what_protects_metadata():
    given = data(features=VECTORS)
    rigorous = fitted("vae", given, **USER, **RIGOROUS).ledger()
    assert {entry.protects for entry in rigorous} == {"interaction", "feature"}
    assert all(entry.accounted_epsilon is not None and entry.accounted_epsilon <= 0.2 for entry in rigorous)
    assert rigorous[0].gaps == rigorous[1].gaps != ()
    published = fitted("vae", given, **USER, **PRIVATE).ledger()
    assert all(entry.accounted_epsilon is None and "means-of-metadata" in ids(entry.reasons) for entry in published)
    assert {entry.protects for entry in fitted("vae", given, **PRIVATE).ledger()} == {"interaction"}


def test_metadata_are_read_only_for_priors_of_users():
    model = VAE(config())
    assert not model.reads_features()
    assert VAE(config(**USER)).reads_features()
    standard = scores(fitted("vae", data(features=VECTORS)))
    assert torch.equal(standard, scores(fitted("vae", data())))


def test_a_frozen_encoder_stays_as_it_was_drawn():
    first = fitted("vae", frozen_encoder=True, epochs=1).network.reader.weight
    last = fitted("vae", frozen_encoder=True, epochs=4).network.reader.weight
    assert torch.equal(first, last)
    moved = fitted("vae", epochs=4).network
    assert not torch.equal(moved.reader.weight, last)


def test_noise_on_weights_never_makes_a_loss_infinite():
    network = VAENetwork(N_ITEMS, config())
    with torch.no_grad():
        network.posterior.bias.fill_(1e6)
    losses = network.losses(torch.eye(N_ITEMS), torch.zeros(N_ITEMS, dtype=torch.int64), np.random.default_rng(0))
    assert torch.isfinite(losses).all()
