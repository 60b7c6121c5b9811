"""Gated graph networks against the same equations, one prefix at a time; what they read, and what they must not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.core.training_data import TrainingData
from tasks.models.sessions.sequential import NO_DROPOUT, mean_cross_entropy
from tests.models.contract import learning, ragged
from tests.models.naive_sessions import all_scores, mean_loss
from tests.systems import system_class

CLIP = 0.7
PUBLIC = {"epochs": 1, "batch_size": 4, "learning_rate": 0.01, "dimension": 5}
USERS = PUBLIC | {"user_dimension": 3}
SCALED = USERS | {"clip": CLIP, "epsilon": None, "delta": 1e-5, "accounting": "published"}
KINDS = {
    "srgnn": (PUBLIC, {"normalised": True}),
    "apgnn": (USERS, {"normalised": True}),
    "nonp": (SCALED, {"clip": CLIP}),
    "nonp-u": (SCALED, {"clip": CLIP}),
    "edgerand": (SCALED, {"clip": CLIP}),
}
N_ITEMS = 7
PARTS = [
    [0, 1, 2, 3, 4],
    [5],
    [2, 2, 2],
    [0, 1, 0, 1, 0],
    [3, 3, 4, 4, 3, 0],
    [1, 0, 2, 0, 1, 3, 1, 2],
    [4, 5],
    [6, 0, 6],
]
OWNERS = [4, 2, 7, 0, 9, 1, 3, 8]


def data(parts=PARTS, owners=OWNERS, n_items: int = N_ITEMS) -> TrainingData:
    return learning(ragged(parts, users=owners), n_users=10, n_items=n_items)


def trained(name: str, of: TrainingData | None = None, **override):
    cls = system_class(name)
    model = cls(cls.Config.model_validate(KINDS[name][0] | override))
    return model.fit(of or data(), rng=np.random.default_rng(0))


def gradients(network, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    network.zero_grad()
    loss.backward()
    return {name: parameter.grad for name, parameter in network.named_parameters()}


def as_each_by_itself(model, sequences, learnt: dict, asked: dict, atol: float = 1e-4) -> torch.Tensor:
    """Scores, loss and gradients are those of slow code; these scores."""
    scores = all_scores(model.network, sequences, **asked).detach()
    torch.testing.assert_close(model.score_next(sequences), scores, rtol=0, atol=atol)
    slow, fast = mean_loss(model.network, sequences, **learnt), model.loss(sequences, NO_DROPOUT)
    assert fast.item() == pytest.approx(slow.item(), abs=atol)
    expected, actual = gradients(model.network, slow), gradients(model.network, fast)
    assert actual.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(
            actual[name], gradient, rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}"
        )
        assert gradient.abs().max() > 0, name
    return scores


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("name", KINDS)
def test_all_prefixes_at_once_are_scored_and_learnt_from_as_each_by_itself(name, steps):
    """Scores, and the gradient of a batch's loss for every parameter; repeats, loops, to and fro, one event or item."""
    model, how = trained(name, steps=steps), KINDS[name][1] | {"steps": steps}
    rng = np.random.default_rng(steps)
    owners = rng.permutation(10)
    random = [rng.integers(0, rng.integers(1, 7), rng.integers(2, 12)).tolist() for _ in owners]
    for sequences in (data().sequences, ragged(random, users=owners.tolist())):
        as_each_by_itself(model, sequences, how, how, atol=1e-5)


def test_scores_and_gradients_would_show_a_difference():
    """Equality to 1e-5 says something: the order of a prefix, a repetition and normalisation change scores by more."""
    model = trained("nonp", steps=1)
    scores = model.score_next(ragged([[0, 1, 2], [1, 0, 2], [0, 1, 0, 1, 2]], users=[0, 1, 2]))
    same_user = model.score_next(ragged([[0, 1, 2]], users=[0]))[-1]
    other_order = model.score_next(ragged([[1, 0, 2]], users=[0]))[-1]
    repeated = model.score_next(ragged([[0, 1, 0, 1, 2]], users=[0]))[-1]
    assert torch.allclose(scores[2], same_user, rtol=0, atol=1e-6)
    for different in (other_order, repeated):
        assert (different - same_user).abs().max() > 1e-3


def classes_of_users() -> tuple[TrainingData, torch.Tensor]:
    """Four kinds of users, told by their features alone: after a random item each kind takes an item of its own.

    Sequences come in another order than user ids. Also each user's next item, by id.
    """
    rng = np.random.default_rng(2)
    n_users, n_kinds, n_common = 120, 4, 6
    kind = rng.integers(0, n_kinds, n_users)
    features = np.eye(n_kinds, dtype=np.float32)[kind] * 2 - 1
    own = n_common + kind
    owners = rng.permutation(n_users)
    parts = [[int(rng.integers(n_common)), int(own[user])] for user in owners]
    known = learning(ragged(parts, users=owners.tolist()), n_users, n_common + n_kinds)
    return replace(known, features=features), torch.from_numpy(own)


BY_FEATURES = {
    "apgnn": {},
    "dipsgnn": {"epsilon": 5.0},
    "dipsgnn-cached": {"epsilon": 5.0, "accounting": "cached"},
    "edgerand": {"epsilon": 5.0},
}
LEARN = {"epochs": 10, "batch_size": 8, "learning_rate": 0.02, "dimension": 12, "user_dimension": 6, "steps": 1}


@pytest.mark.parametrize("name", BY_FEATURES)
def test_features_stay_with_their_users_through_every_shuffle(name):
    """Batches mix users again each epoch: with another user's features a quarter of the next items could be found."""
    known, own = classes_of_users()
    cls = system_class(name)
    settings = LEARN if name == "apgnn" else SCALED | LEARN | BY_FEATURES[name]
    model = cls(cls.Config.model_validate(settings)).fit(known, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    users = rng.permutation(len(own))[:50]
    asked = ragged([[int(item)] for item in rng.integers(0, 6, 50)], users=users.tolist())
    assert (model.score_next(asked).argmax(1) == own[users]).float().mean() > 0.95


def test_a_user_without_training_events_is_an_average_one():
    """Those who validate have none: a vector that no step has moved would be chance."""
    of = data()
    known = replace(of, sequences=of.sequences.take(np.arange(1, len(of.sequences))))
    stranger = int(of.sequences.users[0])
    cls = system_class("priv-u")
    model = cls(cls.Config.model_validate(SCALED | {"steps": 1, "epsilon": 4.0, "epochs": 2})).fit(
        known, rng=np.random.default_rng(0)
    )
    with torch.no_grad():
        vectors = model.user_vectors(torch.arange(of.n_users))
        others = np.unique(known.sequences.users)
        torch.testing.assert_close(vectors[stranger], model.network.user.weight[others].mean(dim=0))
        assert torch.equal(vectors[others], model.network.user.weight[others])


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_the_mean_cross_entropy_and_its_gradient_are_torchs_however_large_scores_are(size):
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(0, size, (20, 9))).requires_grad_()
    targets = torch.from_numpy(rng.integers(0, 9, 20))
    losses = [loss(logits, targets) for loss in (torch.nn.functional.cross_entropy, mean_cross_entropy)]
    torch.testing.assert_close(losses[1], losses[0])
    slow, fast = (torch.autograd.grad(3 * loss, logits)[0] for loss in losses)
    torch.testing.assert_close(fast, slow)
