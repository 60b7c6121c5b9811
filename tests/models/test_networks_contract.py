"""What every embedder of users promises: shape, refitting, save and load, resuming, and networks with parts missing."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import DataError
from tasks.models import MODELS, model_class
from tasks.models.training import EpochModel
from tasks.models.user_networks.base import Embedder, NetworkData, PairData, PairEmbedder
from tasks.models.user_networks.controls import Attributes, Degree, Random
from tasks.models.user_networks.crosue import CroGCN
from tasks.models.user_networks.deepwalk import DeepWalk, NetMF
from tasks.models.user_networks.rgcn import RGCN
from tasks.models.user_networks.sne import SNE
from tasks.models.user_networks.udmf import UDMF
from tasks.models.user_networks.word2vec import TrainedWord2Vec, Word2Vec
from tests.models.naive_networks import network

STEPS = {"epochs": 3, "batch_size": 7, "learning_rate": 0.01, "dimension": 5}
WALK = {"dimension": 5, "walks": 4, "length": 6, "window": 2}
CONFIGS = {
    "rgcn": (RGCN, STEPS | {"hidden": 6, "free": 4}),
    "sne": (SNE, STEPS | {"ids": 4, "attributes": 3, "batch_size": 50}),
    "udmf": (UDMF, STEPS | {"walk": WALK, "text": {"dimension": 5}}),
    "word2vec": (TrainedWord2Vec, {"dimension": 5}),
    "word2vec-closed": (Word2Vec, {"dimension": 5}),
    "deepwalk": (DeepWalk, WALK),
    "netmf": (NetMF, WALK),
    "attributes": (Attributes, {}),
    "degree": (Degree, {}),
    "random": (Random, {"dimension": 5}),
    "crosue": (CroGCN, STEPS),
    "crogcn-nh": (CroGCN, STEPS | {"propagation": "iterative"}),
    "crogcn-na": (CroGCN, STEPS | {"anchor_weight": 0.0}),
}
PAIRS = [name for name, (cls, _) in CONFIGS.items() if issubclass(cls, PairEmbedder)]
WIDTHS = {"word2vec-closed": 4, "attributes": 3, "degree": 1}
"""Of vectors that have a length of their own."""
BY_EPOCHS = [name for name, (cls, _) in CONFIGS.items() if issubclass(cls, EpochModel)]


def pair(seed=0, n_anchors=4) -> PairData:
    """Networks of very different size."""
    rng = np.random.default_rng(seed)
    networks = network(seed=seed), network(n_users=40, n_links=90, seed=seed + 1)
    embeddings = tuple(rng.normal(size=(data.n_users, 6)).astype(np.float32) for data in networks)
    anchors = np.stack([rng.permutation(9)[:n_anchors], rng.permutation(40)[:n_anchors]], axis=1).astype(np.int32)
    return PairData(networks, anchors, embeddings)


def some(name: str, seed=0):
    return pair(seed) if name in PAIRS else network(seed=seed)


def make(name: str, **override):
    cls, settings = CONFIGS[name]
    return cls(cls.Config.model_validate(settings | override))


def fitted(name: str, data, seed=0, **override):
    return make(name, **override).fit(data, rng=np.random.default_rng(seed))


def embedded(model) -> tuple[np.ndarray, ...]:
    rows = model.embed()
    return rows if isinstance(rows, tuple) else (rows,)


def same(first, second) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(embedded(first), embedded(second), strict=True))


def test_every_registered_embedder_is_held_to_the_contract():
    """Suites have systems beside these which differ from their models in their data alone."""
    registered = {name: model_class(name) for name in MODELS}
    of = {name: cls for name, cls in registered.items() if issubclass(cls, Embedder)}
    assert {name: CONFIGS[name][0] for name in of} == of


@pytest.mark.parametrize("name", CONFIGS)
def test_every_user_has_a_finite_row(name):
    data = some(name)
    sizes = [n.n_users for n in data.networks] if name in PAIRS else [data.n_users]
    rows = embedded(fitted(name, data))
    assert [part.shape for part in rows] == [(size, WIDTHS.get(name, 5)) for size in sizes]
    assert all(part.dtype == np.float32 and np.isfinite(part).all() for part in rows)


@pytest.mark.parametrize("name", CONFIGS)
def test_refitting_forgets_what_was_learnt_before(name):
    again = fitted(name, some(name, seed=3)).fit(some(name), rng=np.random.default_rng(0))
    assert same(again, fitted(name, some(name)))


@pytest.mark.parametrize("name", CONFIGS)
def test_save_and_load_embed_the_same(name, tmp_path):
    model = fitted(name, some(name))
    model.save(tmp_path / "model.safetensors")
    loaded = type(model).load(tmp_path / "model.safetensors")
    assert same(loaded, model)
    assert loaded.config == model.config


class Kept:
    """A `Progress` that stops after an epoch and keeps the state, or goes on from a kept one."""

    def __init__(self, stop_after: int, kept=None):
        self.stop_after, self.kept = stop_after, kept

    def restore(self, model):
        if self.kept is not None:
            model.load_state(*self.kept)
        return True

    def epoch(self, model, loss):
        assert np.isfinite(loss)
        tensors, rest = model.state()
        self.kept = {name: tensor.clone() for name, tensor in tensors.items()}, rest
        return model.epochs_done < self.stop_after

    def finish(self, model):
        del model


@pytest.mark.parametrize("name", BY_EPOCHS)
def test_resumed_training_ends_as_unbroken_training(name):
    first = Kept(stop_after=2)
    make(name).fit(some(name), rng=np.random.default_rng(0), progress=first)
    resumed = make(name).fit(some(name), rng=np.random.default_rng(0), progress=Kept(99, first.kept))
    assert same(resumed, fitted(name, some(name)))


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
    data = some(name)
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
