"""What every embedder of users promises beyond the contract of all: shapes, missing parts, entries."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.models.user_networks.base import NetworkData, PairEmbedder
from tests.models.contract import NETWORKS, fitted, outputs, pair, small, system
from tests.models.naive_networks import network

PAIRS = [name for name in NETWORKS if issubclass(system(name), PairEmbedder)]
WIDTHS = {"word2vec-closed": 4, "attributes": 3, "degree": 1}
"""Of vectors that have a length of their own."""


@pytest.mark.parametrize("name", NETWORKS)
def test_every_user_has_a_finite_row(name):
    data = small(name)
    sizes = [n.n_users for n in data.networks] if name in PAIRS else [data.n_users]
    rows = outputs(fitted(name, data), data)
    assert [part.shape for part in rows] == [(size, WIDTHS.get(name, 5)) for size in sizes]
    assert all(part.dtype == torch.float32 and part.isfinite().all() for part in rows)


@pytest.mark.parametrize("missing", ["features", "posts", "links"])
@pytest.mark.parametrize("name", ["rgcn", "sne", "udmf", "deepwalk", "netmf"])
def test_a_network_without_one_kind_of_data_embeds_all_its_users(name, missing):
    nothing = {"links": np.empty((0, 2), np.int32), "posts": None, "features": None}
    absent = {missing: nothing[missing]} | ({"word_vectors": None} if missing == "posts" else {})
    rows = fitted(name, network(**absent)).embed()
    assert rows.shape == (9, 5)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("name", ["rgcn", "sne", "deepwalk", "netmf", "random"])
def test_a_network_without_users_has_no_rows(name):
    assert fitted(name, NetworkData(0, np.empty((0, 2), np.int32))).embed().shape == (0, 5)


def test_who_must_know_something_says_what_is_missing():
    bare = NetworkData(3, np.array([[0, 1]], np.int32))
    with pytest.raises(DataError, match="no texts"):
        fitted("word2vec", bare)
    with pytest.raises(DataError, match="no texts"):
        fitted("word2vec-closed", bare)
    with pytest.raises(DataError, match="vectors of their words"):
        fitted("rgcn", replace(network(), word_vectors=None))
    with pytest.raises(DataError, match="nothing to fuse"):
        fitted("udmf", NetworkData(3, np.empty((0, 2), np.int32)))
    with pytest.raises(DataError, match="users have no attributes"):
        fitted("attributes", bare)
    with pytest.raises(DataError, match="no embeddings"):
        fitted("crosue", replace(pair(), embeddings=None))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"links": np.array([[1, 1]], np.int32)}, "linked to itself"),
        ({"links": np.array([[1, 2], [2, 1]], np.int32)}, "twice"),
        ({"links": np.array([[1, 9]], np.int32)}, "beyond the 9"),
        ({"features": np.zeros((8, 2), np.float32)}, "8 rows for 9"),
        ({"word_vectors": np.zeros((6, 2), np.float32)}, "6 for a vocabulary of 7"),
    ],
)
def test_a_network_that_does_not_fit_together_is_refused(change, said):
    with pytest.raises(DataError, match=said) as error:
        replace(network(), **change)
    assert "\n" not in str(error.value)


def test_anchors_and_embeddings_of_other_networks_are_refused():
    good = pair()
    with pytest.raises(DataError, match="beyond the 9 and 40"):
        replace(good, anchors=np.array([[9, 0]], np.int32))
    with pytest.raises(DataError, match="embeddings: shapes"):
        replace(good, embeddings=good.embeddings[::-1])


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("rgcn", ["feature", "edge", "text"]),
        ("sne", ["feature", "edge"]),
        ("deepwalk", ["edge"]),
        ("netmf", ["edge"]),
        ("word2vec", ["text"]),
        ("word2vec-closed", ["text"]),
        ("attributes", ["feature"]),
        ("degree", ["edge"]),
        ("random", []),
        ("crosue", ["feature", "edge", "text"]),
    ],
)
def test_only_what_was_read_unperturbed_has_an_entry_and_it_says_none(name, reads):
    data = small(name)
    entries = fitted(name, data).ledger()
    assert [(entry.protects, entry.accounted_epsilon) for entry in entries] == [(kind, None) for kind in reads]
    every = frozenset({"feature", "edge", "text"})
    if name in PAIRS:
        first, second = data.networks
        half = replace(data, networks=(replace(first, perturbed=every), second))
        assert [entry.protects for entry in fitted(name, half).ledger()] == reads
        data = replace(data, networks=(replace(first, perturbed=every), replace(second, perturbed=every)))
    else:
        data = replace(data, perturbed=every)
    assert fitted(name, data).ledger() == []
