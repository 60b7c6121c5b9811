"""What an attacker has without an embedding is just that: attributes as given, friends counted, and nothing at all."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.models.user_networks.base import Attributes, Degree, Random, RandomConfig, UserEmbedder
from tests.models.naive_networks import friends_of, network


def embedded(model: UserEmbedder, data, seed: int = 0) -> np.ndarray:
    return model.fit(data, rng=np.random.default_rng(seed)).embed()


def test_attributes_are_given_as_they_are() -> None:
    data = network()
    assert np.array_equal(embedded(Attributes(Attributes.Config()), data), data.features)
    poisoned = replace(data, links=data.links[:2], posts=None, word_vectors=None)
    assert np.array_equal(embedded(Attributes(Attributes.Config()), poisoned, seed=1), data.features)


def test_the_degree_counts_friends() -> None:
    data = network(n_users=12, n_links=30)
    friends = [[len(friends_of(data.links, user))] for user in range(12)]
    assert embedded(Degree(Degree.Config()), data).tolist() == friends
    assert embedded(Degree(Degree.Config()), replace(data, features=None), seed=1).tolist() == friends
    assert friends[-1] == [0]


def test_random_vectors_follow_from_the_seed_and_the_number_of_users_alone() -> None:
    model = Random(RandomConfig(dimension=6))
    first = embedded(model, network(seed=0))
    assert np.array_equal(embedded(model, network(seed=5, n_links=3)), first)
    assert not np.isclose(embedded(model, network(seed=0), seed=1), first).any()


@pytest.mark.parametrize("model", [Attributes(Attributes.Config()), Degree(Degree.Config())])
def test_an_embedding_before_it_is_fitted_is_refused(model: UserEmbedder) -> None:
    with pytest.raises(RuntimeError, match="embed called before fit"):
        model.embed()
