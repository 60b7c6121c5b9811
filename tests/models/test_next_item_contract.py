"""What every recommender of the next item promises: a grammar it learns, causality, save and load, exact resuming."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.models.base import NextItemRecommender
from tasks.models.training import EpochModel
from tasks.sequences import Sequences
from tasks.stages.monitor import Monitor, Screen
from tasks.training_data import TrainingData
from tests.systems import system_class, systems

GRAPH = {"epochs": 25, "batch_size": 16, "learning_rate": 0.01, "dimension": 16, "dropout": 0.0, "steps": 1}
NOISY = GRAPH | {"user_dimension": 4, "clip": 1.0, "epsilon": 1000.0, "delta": 1e-5, "accounting": "published"}
CONFIGS = {
    "sasrec": {"epochs": 25, "batch_size": 16, "learning_rate": 0.01, "dimension": 16, "dropout": 0.1, "heads": 2},
    "hrnn": {
        "epochs": 25,
        "batch_size": 16,
        "learning_rate": 0.01,
        "dimension": 16,
        "dropout": 0.1,
        "session_length": 5,
    },
    "srgnn": GRAPH,
    "apgnn": GRAPH | {"user_dimension": 4},
    "dipsgnn": NOISY,
    "dipsgnn-authors-code": NOISY | {"accounting": "released"},
    "dipsgnn-rigorous": NOISY | {"accounting": "rigorous"},
    "dipsgnn-cached": NOISY | {"accounting": "cached"},
    "dipsgnn-released": {"dimension": 16, "epsilon": 1e6, "delta": 1e-5, "label_share": 0.5, "ridge": 1e-3},
    "edgerand": NOISY,
    "nonp": NOISY | {"epsilon": None},
    "nonp-u": NOISY | {"epsilon": None},
    "priv-u": NOISY,
    # All users in every step: noise for a sample of them takes the accountant minutes where there is so little of it.
    "dpsgd": {key: value for key, value in NOISY.items() if key != "accounting"}
    | {"epochs": 120, "batch_size": 1000, "learning_rate": 0.03, "clip_norm": 1.0},
}
NEXT_ITEM = [name for name in systems() if issubclass(system_class(name), NextItemRecommender)]
BY_EPOCHS = [name for name in NEXT_ITEM if issubclass(system_class(name), EpochModel)]
N_ITEMS = 12


def ragged(parts: list[list[int]], users: list[int] | None = None) -> Sequences:
    owners = np.arange(len(parts)) if users is None else np.array(users)
    items = np.array([item for part in parts for item in part], np.int32)
    return Sequences.from_events(np.repeat(owners, [len(part) for part in parts]).astype(np.int32), items)


def learning(sequences: Sequences, n_users: int, n_items: int) -> TrainingData:
    """Training data of `sequences`, with all that any model may read."""
    pairs = np.unique(np.stack([sequences.users[sequences.owners], sequences.items]), axis=1)
    features = np.random.default_rng(0).uniform(-1, 1, (n_users, 4)).astype(np.float32)
    ratings = np.full(pairs.shape[1], 5, np.float32)
    return TrainingData(n_users, n_items, pairs[0], pairs[1], features, ratings=ratings, sequences=sequences)


def cycles(n_sequences: int, n_items: int, seed: int) -> Sequences:
    """Item i is followed by i + 1, and the last by the first; starts and lengths (1 to 12) are random."""
    rng = np.random.default_rng(seed)
    starts, lengths = rng.integers(0, n_items, n_sequences), rng.integers(1, 13, n_sequences)
    return ragged([list((start + np.arange(n)) % n_items) for start, n in zip(starts, lengths, strict=True)])


def grammar(n_users: int = 60, n_items: int = N_ITEMS, seed: int = 0) -> TrainingData:
    return learning(cycles(n_users, n_items, seed), n_users, n_items)


def make(name: str, **override):
    cls = system_class(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override))


def fitted(name: str, data: TrainingData, seed: int = 0, **override):
    return make(name, **override).fit(data, rng=np.random.default_rng(seed))


def quickly(name: str, data: TrainingData, seed: int = 0):
    """A model that has learnt something, for what does not depend on how much."""
    return fitted(name, data, seed, **({"epochs": 2} if name in BY_EPOCHS else {}))


@cache
def _trained(name: str) -> NextItemRecommender:
    return quickly(name, grammar())


def trained(name: str) -> NextItemRecommender:
    """A copy, of the caller's own, of a model fitted quickly on the grammar that has scored nothing yet."""
    return deepcopy(_trained(name))


def test_every_registered_next_item_model_is_held_to_the_contract():
    assert set(CONFIGS) == set(NEXT_ITEM)


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_a_cyclic_grammar_is_continued_after_every_prefix_of_held_out_sequences(name):
    model = fitted(name, grammar())
    held_out = cycles(40, N_ITEMS, seed=1)
    scores = model.score_next(held_out)
    assert scores.shape == (held_out.n_events, N_ITEMS)
    assert scores.dtype == torch.float32
    following = torch.from_numpy((held_out.items + 1) % N_ITEMS)
    assert (scores.argmax(1) == following).float().mean() > 0.95


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_same_seed_same_scores_and_refitting_forgets(name):
    first, second = grammar(), grammar(n_users=30, n_items=9, seed=1)
    model = trained(name)
    model.score_next(first.sequences)  # whatever scoring keeps must be forgotten, too
    model.fit(second, rng=np.random.default_rng(7))
    fresh = quickly(name, second, seed=7)
    assert torch.equal(model.score_next(second.sequences), fresh.score_next(second.sequences))


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_save_and_load_change_no_score(name, tmp_path):
    data = grammar()
    model = trained(name)
    model.save(tmp_path / "model.safetensors")
    loaded = system_class(name).load(tmp_path / "model.safetensors")
    if hasattr(model, "key"):
        loaded.key = model.key  # a secret, which no file has
    assert torch.equal(loaded.score_next(data.sequences), model.score_next(data.sequences))
    assert loaded.config == model.config


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(DataError, match="not a saved model") as error:
        system_class(name).load(tmp_path / "model.safetensors")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NEXT_ITEM)
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


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_scores_after_an_event_depend_on_no_later_event(name):
    data = grammar()
    model = trained(name)
    sequences = data.sequences
    prefixes = sequences.without_last()
    kept = sequences.has_next & (sequences.lengths[sequences.owners] > 1)
    expected = model.score_next(sequences)[torch.from_numpy(kept)]
    torch.testing.assert_close(model.score_next(prefixes), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_sequences_of_one_event_one_item_again_and_again_and_unknown_users_and_items_are_scored(name):
    """In training: one event; one item only; an ordinary sequence. User 3 and item 5 appear when scoring only."""
    data = learning(ragged([[4], [2, 2, 2, 2], [0, 1, 2, 3, 0, 1]]), n_users=4, n_items=6)
    model = quickly(name, data)
    asked = ragged([[5], [2], [5, 5, 0], [3, 1, 4] * 20], users=[3, 1, 0, 2])
    scores = model.score_next(asked)
    assert scores.shape == (asked.n_events, 6)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_an_item_that_only_follows_itself_is_predicted_after_itself(name):
    sequences = ragged([[item] * 6 for item in np.arange(48) % 6])
    # easier than a grammar
    short = {"epochs": CONFIGS[name]["epochs"] * 2 // 5} if name in BY_EPOCHS else {}
    model = fitted(name, learning(sequences, 48, 6), **short)
    assert torch.equal(model.score_next(ragged([[3, 3]])).argmax(1), torch.tensor([3, 3]))


@pytest.mark.parametrize("name", NEXT_ITEM)
def test_data_without_a_next_item_is_refused(name):
    lonely = learning(ragged([[0], [1]]), 2, 3)
    for data in (lonely, replace(lonely, sequences=None)):
        with pytest.raises(DataError, match="interactions") as error:
            make(name).fit(data, rng=np.random.default_rng(0))
        assert "\n" not in str(error.value)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("name", BY_EPOCHS)
def test_an_interrupted_run_ends_as_an_unbroken_one(name, tmp_path):
    data = grammar(n_users=20)

    def train(folder, interrupt):
        calls = iter(range(1, 100))

        def watched(model):
            if next(calls) == interrupt:
                raise Interrupted
            model.score_next(data.sequences)  # validation scores, and must not change what training draws
            return -abs(model.epochs_done - 3) / 10  # the best epoch is 3; patience is 2

        monitor = Monitor(folder, watched, Screen("test", 1), 2, "recall")
        monitor._screen.begin("run", 8)
        model = make(name, epochs=8).fit(data, rng=np.random.default_rng(5), progress=monitor)
        history = monitor.history
        return model.score_next(data.sequences), history

    scores, history = train(tmp_path / "unbroken", None)
    last = 8 if make(name, epochs=8).config.plans_epochs else 5  # planned epochs are all run
    assert [record["epoch"] for record in history] == list(range(1, last + 1))
    for interrupted_at in (1, 4):
        broken = tmp_path / f"broken at {interrupted_at}"
        with pytest.raises(Interrupted):
            train(broken, interrupted_at)
        resumed_scores, resumed_history = train(broken, None)
        assert torch.equal(resumed_scores, scores)
        assert resumed_history == history
