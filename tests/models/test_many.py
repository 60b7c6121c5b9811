"""Shadow runs: models that are trained side by side are those trained alone, and folding in serves all users alike."""

from typing import Any

import numpy as np
import pytest
import torch

from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.ranking.bpr import BPR, BPRConfig
from tasks.models.ranking.folding import fold_in
from tasks.models.ranking.many import fit_many
from tests.models.contract import CONFIGS, make, of_matrix, short, system

N_USERS, N_ITEMS = 40, 30
CONFIG = BPRConfig(epochs=3, batch_size=64, learning_rate=0.02, regularization=0.001, dimension=5)
SYSTEMS = [
    "popularity",
    "dp-popularity",
    "ease",
    "bpr",
    "gcn",
    "gerai",
    "dpae",
    "dpals",
    "ials",
    "vae",
    "dpmf-rigorous",
]


def data(seed: int, n: int = 330) -> TrainingData:
    rng = np.random.default_rng(seed)
    matrix = rng.permutation(N_USERS * N_ITEMS).reshape(N_USERS, N_ITEMS) < n
    return of_matrix(matrix, rng.random((N_USERS, 3)).astype(np.float32))


def test_models_trained_side_by_side_are_those_trained_one_after_another() -> None:
    """... also where their numbers of steps and the sizes of their last batches differ."""
    datas = [data(seed, n) for seed, n in enumerate((330, 300, 400, 384))]
    alone = [BPR(CONFIG).fit(of, rng=np.random.default_rng(seed)) for seed, of in enumerate(datas)]
    together = fit_many(BPR, CONFIG, datas, [np.random.default_rng(seed) for seed in range(4)])
    for apart, batched in zip(alone, together, strict=True):
        for name, tensor in apart.released().items():
            torch.testing.assert_close(batched.released()[name], tensor, rtol=1e-4, atol=1e-5)


def fitted(name: str, of: TrainingData, **changed: object) -> Any:
    cls = system(name)
    config = cls.Config.model_validate(CONFIGS[name] | short(name) | changed)
    (model,) = fit_many(cls, config, [of], [np.random.default_rng(0)], [("test", name)])
    return model


@pytest.mark.parametrize("name", SYSTEMS)
def test_equal_histories_are_served_alike_whoever_was_trained_on(name: str) -> None:
    of = data(0)
    kept = (ids[of.users < 30] for ids in (of.users, of.items))
    of = TrainingData(N_USERS, N_ITEMS, *kept, features=np.ones((N_USERS, 3), np.float32))
    model = fitted(name, of)
    history = np.array([1, 4, 7, 9, 12], np.int32)  # of a member, of someone else, and of no one who was trained on
    users = np.repeat(np.array([3, 8, 35], np.int32), len(history))
    score = fold_in(model, Seen.from_pairs(users, np.tile(history, 3), N_USERS), N_ITEMS)
    scores = score(np.array([3, 8, 35], np.int32))
    assert scores.shape == (3, N_ITEMS)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, scores[[0, 0, 0]], rtol=1e-4, atol=1e-5)
    if "popularity" not in name and name != "gerai":  # whose noise hides it here
        other = fold_in(model, Seen.from_pairs(users, np.tile(history + 10, 3), N_USERS), N_ITEMS)
        assert not np.allclose(other(np.array([3], np.int32)), scores[:1])


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        *((name, {}) for name in ("ease", "dpae", "gcn", "ials", "vae", "dpals")),
        ("dpals", {"unobserved_weight": 0.1, "local_share": 0.1}),
        ("dpals", {"counts_share": 0.4, "head": 12}),
    ],
)
def test_folding_in_what_was_trained_on_gives_the_models_own_scores(name: str, changed: dict[str, object]) -> None:
    of = data(1)
    model, users = fitted(name, of, **changed), np.arange(N_USERS, dtype=np.int32)
    folded = fold_in(model, Seen.from_pairs(of.users, of.items, N_USERS), N_ITEMS)(users)
    np.testing.assert_allclose(folded, model.score(users), rtol=1e-4, atol=1e-5)


def test_a_model_that_reads_ratings_is_refused() -> None:
    """A history holds items alone: encoded as rows of 1 it gave other scores than the row that was trained on."""
    with pytest.raises(ValueError, match="reads ratings"):
        fold_in(make("vae", values="ratings"), Seen.from_pairs(np.empty(0, int), np.empty(0, int), 1), 1)


def test_a_model_with_a_learnt_vector_for_every_user_has_none_for_strangers() -> None:
    model = fitted("mf", data(0))
    with pytest.raises(ValueError, match="MF: users cannot be folded in"):
        fold_in(model, Seen.from_pairs(np.empty(0, int), np.empty(0, int), 1), N_ITEMS)  # type: ignore[arg-type]
