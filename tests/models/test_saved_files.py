"""What a saved model has in which file: the one that may be released has nothing of a single user's record."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from tasks.errors import DataError
from tasks.models.base import own_file
from tests.models.test_noise_streams import PRIVATE, case, model_of

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
