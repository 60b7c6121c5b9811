"""RAP's adversary learns what lists reveal, and the recommender goes exactly against it."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from tasks.core.training_data import TrainingData
from tasks.models.ranking.bpr import BPR
from tasks.models.ranking.private_attributes import RAP, Adversary, RAPConfig, entropy
from tasks.models.training import draw_weights
from tests.models.contract import of_matrix

CONFIG = {
    "epochs": 15, "batch_size": 128, "learning_rate": 0.02, "regularization": 1e-4, "dimension": 8,
    "list_length": 5, "adversary_dimension": 8, "adversary_users": 48,
}  # fmt: skip
N_USERS, N_ITEMS = 300, 60


def planted(seed: int = 0) -> TrainingData:
    """Two groups of users like two halves of the items, a fifth of the time the other half; the group is `gender`.

    A third of the users are `UNKNOWN`, and `age` has nothing to do with anything.
    """
    rng = np.random.default_rng(seed)
    group = (rng.random(N_USERS) < 0.4).astype(np.int64)
    half = np.arange(N_ITEMS) % 2
    likes = rng.random((N_USERS, N_ITEMS)) < np.where(group[:, None] == half, 0.4, 0.1)
    gender = np.where(rng.random(N_USERS) < 1 / 3, -1, group)
    return of_matrix(likes, attributes={"gender": gender, "age": rng.integers(0, 3, N_USERS)})


def fitted(data: TrainingData, alpha: float, **override) -> RAP:
    config = RAPConfig.model_validate(CONFIG | {"alpha": alpha} | override)
    return RAP(config).fit(data, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def revealed() -> tuple[float, float]:
    """What a fresh adversary makes of lists that are trained as if nothing were to hide."""
    return fresh_adversary(fitted(planted(), alpha=0.0))


def gradients(model: BPR, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of user vectors, item vectors and biases."""
    names = ("users", "items", "biases")
    return dict(zip(names, torch.autograd.grad(loss, [getattr(model.network, n) for n in names]), strict=True))


def batch(data: TrainingData, seed: int = 1) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(data.users), 50)
    ids = data.users[chosen], data.items[chosen], rng.integers(0, N_ITEMS, 50)
    return [torch.from_numpy(array.astype(np.int64)) for array in ids]


def fresh_adversary(model: RAP, steps: int = 80) -> tuple[float, float]:
    """An adversary of gender trained again on the lists of half of the labelled users; the model stays as it is.

    Returns its cross-entropy in nats and its accuracy on the other half.
    """
    users = np.flatnonzero(model._data.attributes["gender"] >= 0).astype(np.int32)
    gender = torch.from_numpy(model._data.attributes["gender"][users])
    with torch.no_grad():
        lists = model.lists(users)
    lists = lists / lists.std()
    known, others = np.arange(0, len(users), 2), np.arange(1, len(users), 2)
    adversary = Adversary(lists.shape[2], 8, [2])
    draw_weights(adversary, np.random.default_rng(3))
    optimiser = torch.optim.Adam(adversary.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        cross_entropy(adversary(lists[known])[0], gender[known]).backward()
        optimiser.step()
    with torch.no_grad():
        (logits,) = adversary(lists[others])
    return cross_entropy(logits, gender[others]).item(), (logits.argmax(1) == gender[others]).float().mean().item()


def test_the_adversary_alone_learns_what_lists_reveal(revealed):
    gender = planted().attributes["gender"]
    counts = np.bincount(gender[gender >= 0])
    loss, accuracy = revealed
    assert loss < 0.5 * entropy(counts)
    assert accuracy > counts.max() / counts.sum() + 0.1


@pytest.mark.parametrize("alpha", [0.0, 0.5, 7.0])
def test_the_recommender_goes_against_the_adversary_and_the_adversary_its_own_way(alpha):
    data = planted()
    model = fitted(data, alpha=alpha, epochs=2)
    state = model._rng.bit_generator.state
    total = model.loss(*batch(data))
    ours = gradients(model, total)
    model._rng.bit_generator.state = state
    sample = model._rng.choice(model._labelled, CONFIG["adversary_users"], replace=False)
    ranking = BPR.loss(model, *batch(data))
    adversary = model.adversary_loss(sample, model.network.adversary(model.lists(sample)))
    assert total.item() == pytest.approx(ranking.item() + adversary.item(), rel=1e-6)
    first, second = gradients(model, ranking), gradients(model, adversary)
    for name, gradient in ours.items():
        assert second[name].any()
        torch.testing.assert_close(gradient, first[name] - alpha * second[name], rtol=1e-4, atol=1e-7)
    parameters = list(model.network.adversary.parameters())
    model._rng.bit_generator.state = state
    of_total = torch.autograd.grad(model.loss(*batch(data)), parameters)
    alone = torch.autograd.grad(model.adversary_loss(sample, model.network.adversary(model.lists(sample))), parameters)
    assert all(torch.equal(left, right) for left, right in zip(of_total, alone, strict=True))


def test_what_training_hid_an_adversary_trained_afresh_finds_harder(revealed):
    open_loss, open_accuracy = revealed
    hidden_loss, hidden_accuracy = fresh_adversary(fitted(planted(), alpha=10.0))
    assert hidden_loss > 2 * open_loss
    assert hidden_accuracy < open_accuracy - 0.15


def test_lists_are_the_best_items_that_the_user_has_not_rated():
    data = planted()
    model = fitted(data, alpha=1.0, epochs=2)
    users = np.arange(N_USERS, dtype=np.int32)
    lists = model.lists(users)
    scores = model.score(users)
    rated = np.zeros((N_USERS, N_ITEMS), bool)
    rated[data.users, data.items] = True
    for user in users:
        order = sorted(np.flatnonzero(~rated[user]), key=lambda item: -scores[user, item].item())[:5]
        expected = torch.sigmoid(scores[user, order])[:, None] * model.network.items[order]
        torch.testing.assert_close(lists[user], expected, rtol=1e-4, atol=1e-6)


def test_a_user_with_hardly_anything_left_has_a_list_filled_up_with_zeros():
    rated = np.ones((3, 6), bool)
    rated[0, 2] = rated[1, :3] = rated[2] = False
    data = of_matrix(rated, attributes={"gender": np.array([0, 1, 1])})
    lists = fitted(data, alpha=1.0, epochs=1).lists(np.arange(3, dtype=np.int32))
    assert [(row != 0).any(1).sum().item() for row in lists] == [1, 3, 5]


def test_the_adversary_loss_counts_labelled_users_alone_relative_to_the_entropy_of_classes():
    data = planted()
    model = fitted(data, alpha=0.0, epochs=1)
    users = np.arange(N_USERS, dtype=np.int32)
    logits = model.network.adversary(model.lists(users))
    expected = []
    for name, logit in zip(("age", "gender"), logits, strict=True):
        classes = data.attributes[name]
        known = np.flatnonzero(classes >= 0)
        log_p = torch.log_softmax(logit, 1)
        nats = -np.mean([log_p[user, classes[user]].item() for user in known])
        expected.append(nats / entropy(np.bincount(classes[known])))
    assert model.adversary_loss(users, logits).item() == pytest.approx(np.mean(expected), rel=1e-5)
    frequencies = np.array([0.25, 0.75])
    assert entropy(np.array([1, 3, 0])) == pytest.approx(-(frequencies * np.log(frequencies)).sum())


def test_a_sample_without_any_label_adds_nothing():
    model = fitted(planted(), alpha=1.0, epochs=1)
    users = np.flatnonzero(model._data.attributes["gender"] < 0).astype(np.int32)[:3]
    model._classes[0] = -1
    assert model.adversary_loss(users, model.network.adversary(model.lists(users))).item() == 0.0


def test_the_adversary_is_not_released_and_the_ledger_claims_nothing():
    model = fitted(planted(), alpha=1.0, epochs=1)
    assert set(model.released()) == {"users", "items", "biases"}
    (entry,) = model.ledger()
    assert (entry.protects, entry.claimed_epsilon, entry.accounted_epsilon) == ("feature", None, None)
