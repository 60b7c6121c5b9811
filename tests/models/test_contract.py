"""What every model promises: refitting, save and load, exact resuming; recommenders of lists also known truths."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.models import MODELS
from tasks.models.base import RatingPredictor, own_file
from tasks.models.training import PairwiseModel
from tasks.models.user_networks.base import Embedder
from tasks.pipeline.monitor import Monitor, Screen
from tests.models.contract import (
    BY_EPOCHS,
    CONFIGS,
    KINDS,
    LISTS,
    RATINGS,
    TINY,
    all_scores,
    attributes,
    checkerboard,
    fitted,
    make,
    outputs,
    quickly,
    same,
    small,
    system,
    trained,
)
from tests.models.test_noise_streams import PRIVATE, case, model_of
from tests.systems import systems

PERSONALISED = [name for name in LISTS if "popularity" not in name]
PAIRWISE = [name for name in LISTS if issubclass(system(name), PairwiseModel)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_registered_model_is_held_to_the_contract(kind):
    """Suites' embedders and GERAI's ablations differ from their models in their data, DPALS as published in options."""
    names = MODELS if kind is Embedder else systems().keys() - {"gerai-nl", "gerai-nf", "dpals-published"}
    assert {name for name in names if issubclass(system(name), kind)} <= set(KINDS[kind])


@pytest.mark.parametrize("name", CONFIGS)
def test_same_seed_same_outputs_and_refitting_forgets(name):
    other, model = small(name, seed=1), trained(name)
    outputs(model, small(name))  # whatever scoring keeps must be forgotten, too
    model.fit(other, rng=np.random.default_rng(7))
    fresh = quickly(name, other, seed=7)
    assert same(outputs(model, other), outputs(fresh, other))
    if name in RATINGS:
        assert model.communication() == fresh.communication()
        if (seen := model.observed()) is not None:
            np.testing.assert_array_equal(seen.mean_items, fresh.observed().mean_items)


@pytest.mark.parametrize("name", CONFIGS)
def test_save_and_load_change_no_output(name, tmp_path):
    data, model = small(name), trained(name)
    model.save(tmp_path / "model.safetensors")
    loaded = system(name).load(tmp_path / "model.safetensors")
    if hasattr(model, "key"):
        loaded.key = model.key  # a secret, which no file has
    assert same(outputs(loaded, data), outputs(model, data))
    assert loaded.config == model.config


@pytest.mark.parametrize("name", CONFIGS)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(DataError, match="not a saved model"):
        system(name).load(tmp_path / "model.safetensors")


class Interrupted(Exception):
    pass


def remembered(model, data):
    """All that is left of a run: what it gives and, of predictors of ratings, what others remember."""
    parts = outputs(model, data)
    if isinstance(model, RatingPredictor):
        seen = model.observed()
        parts += [torch.from_numpy(array) for array in (seen.items, seen.mean_items)]
        for received in (seen.submissions, model.replayed(), seen.friends):
            arrays = [] if received is None else vars(received).values()
            parts += [torch.from_numpy(array) for array in arrays]
    return parts


@pytest.mark.parametrize("name", BY_EPOCHS)
def test_an_interrupted_run_ends_as_an_unbroken_one(name, tmp_path):
    data = checkerboard(n_users=24, n_items=16)[0] if name in LISTS else small(name)

    def train(folder, interrupt):
        calls = iter(range(1, 100))

        def watched(model):
            if next(calls) == interrupt:
                raise Interrupted
            outputs(model, data)  # validation scores, and must not change what training draws
            return -abs(model.epochs_done - 2) / 10  # the best epoch is 2, and patience is 2

        monitor = Monitor(folder, Screen("test", 1), "run", watched, 2, "ndcg")
        return make(name, epochs=5).fit(data, rng=np.random.default_rng(5), progress=monitor), monitor.history

    unbroken, history = train(tmp_path / "unbroken", None)
    last = 5 if unbroken.config.plans_epochs else 4  # planned epochs are all run
    assert [record["epoch"] for record in history] == list(range(1, last + 1))
    with pytest.raises(Interrupted):
        train(tmp_path / "broken", 3)
    for interrupt in (None, 1):  # the second: complete, nothing is trained or validated any more
        resumed, resumed_history = train(tmp_path / "broken", interrupt)
        assert same(remembered(resumed, data), remembered(unbroken, data))
        assert resumed_history == history
        assert resumed.ledger() == unbroken.ledger()
        if name in RATINGS:
            assert resumed.communication() == unbroken.communication()
            assert resumed.communication()["iterations"] == 3 * last


@pytest.mark.parametrize("name", PERSONALISED)
def test_checkerboard_held_out_items_are_ranked_first(name):
    data, held_out = checkerboard()
    scores = all_scores(fitted(name, data), data)
    scores[torch.from_numpy(data.users).long(), torch.from_numpy(data.items).long()] = -torch.inf
    n_held_out = torch.from_numpy(held_out.sum(1))
    hits = total = 0
    for user in range(data.n_users):
        top = scores[user].topk(int(n_held_out[user])).indices.numpy()
        hits += held_out[user, top].sum()
        total += len(top)
    assert hits / total > 0.95


@pytest.mark.parametrize("name", LISTS)
def test_scores_are_finite_for_users_with_one_item_or_none_and_an_item_never_seen(name):
    users, items = np.array([0, 0, 1, 2, 2], np.int32), np.array([0, 1, 2, 0, 2], np.int32)
    ratings = np.array([4, 5, 1, 5, 4], np.float32)
    data = TrainingData(4, 5, users, items, np.zeros((4, 4), np.float32), attributes(4), ratings)
    override = ({"epochs": 3} if name in BY_EPOCHS else {}) | TINY.get(name, {})
    scores = all_scores(fitted(name, data, **override), data)
    assert scores.shape == (4, 5)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", [*PAIRWISE, "lightfm", "dpmf-implicit"])
def test_a_user_who_has_everything_is_refused(name):
    users, items = np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32)
    data = TrainingData(2, 2, users, items, np.zeros((2, 1), np.float32), attributes(2))
    with pytest.raises(DataError, match="user 0 has all 2 items"):
        make(name).fit(data, rng=np.random.default_rng(0))


FEATURES = {"profiles", "features"}
"""Buffers of users' features: these are released as they were perturbed, and have a line of their own."""
LEARNT = {"interaction", "rating"}


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_for_each_users_own_eyes_is_in_no_file_that_is_released(name: str, tmp_path: Path) -> None:
    """Of every system with a finite ε for what it learns from: no tensor has a row for each user."""
    data, path = case(name)[1], tmp_path / "model.safetensors"
    model = model_of(name).fit(data, rng=np.random.default_rng(0))
    model.save(path)
    public = load_file(path)
    assert data.n_users != data.n_items
    by_user = {key for key, tensor in public.items() if tensor.dim() and len(tensor) == data.n_users}
    if any(entry.protects in LEARNT and entry.accounted_epsilon is not None for entry in model.ledger()):
        assert by_user <= FEATURES
    if not model.own_tensors:
        assert not own_file(path).exists()
        return
    assert set(load_file(own_file(path))) | set(public) == set(model.released())
    assert not set(public) & set(model.own_tensors)
    own_file(path).unlink()
    with pytest.raises(DataError, match=r"model.own.safetensors is not next to it"):
        type(model).load(path)


def test_equal_models_are_equal_bytes(tmp_path: Path) -> None:
    """safetensors writes entries of its header in an order of its own, again each time: one entry has no order."""
    model = model_of("dpae").fit(case("dpae")[1], rng=np.random.default_rng(0))
    saved = set()
    for number in range(16):
        model.save(path := tmp_path / f"{number}.safetensors")
        saved.add((path.read_bytes(), own_file(path).read_bytes()))
    assert len(saved) == 1
