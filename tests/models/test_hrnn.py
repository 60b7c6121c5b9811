"""HRNN against slow, obvious code: one event after the other, with the equations of a GRU written out."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from tasks.models.sessions.hrnn import HRNN
from tasks.models.sessions.sequential import NO_DROPOUT
from tests.models.contract import learning, ragged

SETTINGS = {"epochs": 3, "batch_size": 4, "learning_rate": 0.05, "dimension": 6}
PARTS = [[0, 3, 1, 1], [2], [4, 0, 3, 2, 1, 4, 0], [1, 2], [3, 1, 0, 2, 4, 4]]
SEQUENCES = ragged(PARTS)
STRANGER = 5


def trained(session_length: int = 3, **override) -> HRNN:
    config = HRNN.Config.model_validate(SETTINGS | {"session_length": session_length} | override)
    return HRNN(config).fit(learning(SEQUENCES, 6, 5), rng=np.random.default_rng(0))


def gru(inputs, state, w_in, w_state, b_in, b_state):
    """One step: reset and update gate, candidate, and their mix."""
    reset_in, update_in, new_in = (w_in @ inputs + b_in).chunk(3)
    reset_state, update_state, new_state = (w_state @ state + b_state).chunk(3)
    update = torch.sigmoid(update_in + update_state)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_state) * new_state)
    return (1 - update) * new + update * state


def read(model: HRNN, items: list[int], user_state: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Scores after each event of one sequence, and the user's state after it."""
    net, length = model.network, model.config.session_length
    session = [net.session.weight_ih_l0, net.session.weight_hh_l0, net.session.bias_ih_l0, net.session.bias_hh_l0]
    user = [net.user.weight_ih, net.user.weight_hh, net.user.bias_ih, net.user.bias_hh]
    scores = []
    with torch.no_grad():
        for place, item in enumerate(items):
            if place % length == 0:
                state = torch.tanh(net.start.weight @ user_state + net.start.bias)
            state = gru(net.items[item], state, *session)
            scores.append(net.outputs @ state + net.biases)
            if place % length == length - 1 or place == len(items) - 1:
                user_state = gru(state, user_state, *user)
    return scores, user_state


@pytest.mark.parametrize("session_length", [1, 3, 50])
def test_scores_are_those_of_slow_code_that_goes_on_from_the_training_sessions(session_length):
    model = trained(session_length)
    parts, users = [[1, 2, 2, 0], [0, 3, 1, 4, 2, 0, 1], [4], [2, 2]], [2, 0, 1, STRANGER]
    fast = model.score_next(ragged(parts, users=users))
    slow = []
    for user, items in zip(users, parts, strict=True):
        state = torch.zeros(6)
        if user != STRANGER:
            _, state = read(model, PARTS[user], state)
        slow += read(model, items, state)[0]
    torch.testing.assert_close(fast, torch.stack(slow), rtol=1e-4, atol=1e-5)


def test_the_loss_is_the_mean_cross_entropy_of_all_prefixes():
    model = trained()
    batch = SEQUENCES.take(np.array([3, 2, 0]))
    losses = []
    for row in (3, 2, 0):
        scores, _ = read(model, PARTS[row], torch.zeros(6))
        losses += [cross_entropy(s, torch.tensor(i)) for s, i in zip(scores[:-1], PARTS[row][1:], strict=True)]
    assert model.loss(batch, NO_DROPOUT).item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-4)
