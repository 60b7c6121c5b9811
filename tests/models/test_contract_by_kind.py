"""What all models of one kind promise beyond the contract of all: of ratings, of what comes next, of networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.models.user_networks.base import (
    NetworkData,
    PairEmbedder,
)
from tests.models.contract import (
    BY_EPOCHS,
    N_ITEMS,
    NETWORKS,
    RATINGS,
    SEQUENCES,
    cycles,
    fitted,
    grammar,
    learning,
    make,
    outputs,
    pair,
    quickly,
    ragged,
    small,
    system,
    trained,
)
from tests.models.naive_networks import friends_of, network
from tests.models.social_data import ratings


@pytest.mark.parametrize("name", RATINGS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_all_pairs_have_finite_predictions_whatever_is_sensitive(name, share):
    """Users without ratings, friends or published ratings and an item without ratings among them."""
    data = ratings(share)
    actual = outputs(fitted(name, data), data)[0]
    assert actual.dtype == torch.float32
    assert torch.isfinite(actual).all()
    mean = data.ratings[~data.sensitive].mean() if share < 1 else 3.0
    if name != "dpmf-ratings":  # whose user without ratings is where it started, and whose items move with noise alone
        assert abs(actual[1, 0] - mean) < 1.0


@pytest.mark.parametrize("name", RATINGS)
def test_nobody_has_friends_or_everybody_is_alone_with_a_rating(name):
    users = np.arange(3, dtype=np.int32)
    alone = TrainingData(
        3,
        3,
        users,
        users,
        ratings=np.array([1, 5, 3], np.float32),
        sensitive=np.array([True, False, True]),
        links=np.zeros((0, 2), np.int32),
    )
    assert torch.isfinite(outputs(fitted(name, alone), alone)[0]).all()


@pytest.mark.parametrize("name", RATINGS)
def test_what_was_learnt_is_predicted_better_than_by_the_mean(name):
    """Everyone likes even items."""
    users, items = (ids.ravel().astype(np.int32) for ids in np.indices((40, 30)))
    values = np.where(items % 2 == 0, 5, 2).astype(np.float32)
    rng = np.random.default_rng(0)
    train = rng.random(len(users)) < 0.7
    sensitive = rng.random(int(train.sum())) < 0.1
    data = TrainingData(
        40, 30, users[train], items[train], ratings=values[train], sensitive=sensitive,
        links=np.stack([np.arange(38), np.arange(38) + 2], axis=1).astype(np.int32),
    )  # fmt: skip
    override = {"epochs": 100, "learning_rate": 1e-3, "regularization": 1e-3} if name in BY_EPOCHS else {}
    if "epsilon" in RATINGS[name]:
        override |= {"epsilon": 1000.0}
    actual = fitted(name, data, **override).predict(users[~train], items[~train]).numpy()
    mean = data.ratings[~sensitive].mean()
    assert np.abs(actual - values[~train]).mean() < 0.5 * np.abs(mean - values[~train]).mean()


@pytest.mark.parametrize("name", RATINGS)
def test_ratings_that_do_not_say_what_is_sensitive_are_refused(name):
    with pytest.raises(DataError, match="which are sensitive"):
        fitted(name, replace(ratings(), sensitive=None))


@pytest.mark.parametrize("name", RATINGS)
def test_a_loaded_model_knows_of_no_message(name, tmp_path):
    trained(name).save(tmp_path / "model.safetensors")
    loaded = type(trained(name)).load(tmp_path / "model.safetensors")
    assert loaded.observed() is None
    assert loaded.replayed() is None


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_cyclic_grammar_is_continued_after_every_prefix_of_held_out_sequences(name):
    model = fitted(name, grammar())
    held_out = cycles(40, N_ITEMS, seed=1)
    scores = model.score_next(held_out)
    assert scores.shape == (held_out.n_events, N_ITEMS)
    assert scores.dtype == torch.float32
    following = torch.from_numpy((held_out.items + 1) % N_ITEMS)
    assert (scores.argmax(1) == following).float().mean() > 0.95


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_is_scored_the_same_whichever_others_are_asked_about_beside_it(name):
    data = grammar()
    model = trained(name)
    together = model.score_next(data.sequences)
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(data.sequences))
    shuffled = model.score_next(data.sequences.take(rows))
    events = np.concatenate([np.flatnonzero(data.sequences.owners == row) for row in rows])
    torch.testing.assert_close(shuffled, together[torch.from_numpy(events)], rtol=1e-4, atol=1e-5)
    for row in rng.choice(len(data.sequences), 10, replace=False):
        alone = model.score_next(data.sequences.take(np.array([row])))
        others = together[torch.from_numpy(data.sequences.owners == row)]
        torch.testing.assert_close(alone, others, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_scores_after_an_event_depend_on_no_later_event(name):
    data = grammar()
    model = trained(name)
    sequences = data.sequences
    prefixes = sequences.without_last()
    kept = sequences.has_next & (sequences.lengths[sequences.owners] > 1)
    expected = model.score_next(sequences)[torch.from_numpy(kept)]
    torch.testing.assert_close(model.score_next(prefixes), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_one_event_one_item_again_and_again_and_unknown_users_and_items_are_scored(name):
    """In training: one event; one item only; an ordinary sequence. User 3 and item 5 appear when scoring only."""
    data = learning(ragged([[4], [2, 2, 2, 2], [0, 1, 2, 3, 0, 1]]), n_users=4, n_items=6)
    model = quickly(name, data)
    asked = ragged([[5], [2], [5, 5, 0], [3, 1, 4] * 20], users=[3, 1, 0, 2])
    scores = model.score_next(asked)
    assert scores.shape == (asked.n_events, 6)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", SEQUENCES)
def test_data_without_a_next_item_is_refused(name):
    lonely = learning(ragged([[0], [1]]), 2, 3)
    for data in (lonely, replace(lonely, sequences=None)):
        with pytest.raises(DataError, match="interactions"):
            make(name).fit(data, rng=np.random.default_rng(0))


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
    with pytest.raises(DataError, match=said):
        replace(network(), **change)


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


def test_attributes_are_given_as_they_are() -> None:
    data = network()
    poisoned = replace(data, links=data.links[:2], posts=None, word_vectors=None)
    for given, seed in ((data, 0), (poisoned, 1)):
        assert np.array_equal(fitted("attributes", given, seed).embed(), data.features)


def test_the_degree_counts_friends() -> None:
    data = network(n_users=12, n_links=30)
    friends = [[len(friends_of(data.links, user))] for user in range(12)]
    for given, seed in ((data, 0), (replace(data, features=None), 1)):
        assert fitted("degree", given, seed).embed().tolist() == friends
    assert friends[-1] == [0]


def test_random_vectors_follow_from_the_seed_and_the_number_of_users_alone() -> None:
    cases = ({}, 0), ({"seed": 5, "n_links": 3}, 0), ({}, 1)
    first, same, other = (fitted("random", network(**given), seed).embed() for given, seed in cases)
    assert np.array_equal(same, first)
    assert not np.isclose(other, first).any()


@pytest.mark.parametrize("name", ["attributes", "degree"])
def test_an_embedding_before_it_is_fitted_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="embed called before fit"):
        make(name).embed()
