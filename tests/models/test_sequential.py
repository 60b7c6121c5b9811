"""SASRec and HRNN against slow, obvious code: one event after the other, with the papers' equations written out."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, layer_norm

from tasks.models.sessions.hrnn import HRNN
from tasks.models.sessions.sasrec import SASRec
from tasks.models.sessions.sequential import NO_DROPOUT, Dropout
from tests.models.contract import fitted, learning, ragged

SETTINGS = {"epochs": 3, "batch_size": 4, "learning_rate": 0.05, "dimension": 6}
PARTS = [[0, 3, 1, 1], [2], [4, 0, 3, 2, 1, 4, 0], [1, 2], [3, 1, 0, 2, 4, 4]]
SEQUENCES = ragged(PARTS)
STRANGER = 5


def trained(name: str, **override):
    return fitted(name, learning(SEQUENCES, 6, 5), **SETTINGS | override)


def slow_scores(model: SASRec, prefix: list[int]) -> torch.Tensor:
    """Scores after the last event of one prefix, from loops over blocks, heads and events."""
    net, heads = model.network, model.config.heads
    with torch.no_grad():
        size = net.items.shape[1]
        places = [min(place, len(net.positions) - 1) for place in range(len(prefix))]
        events = torch.stack([net.items[i] * size**0.5 + net.positions[p] for i, p in zip(prefix, places, strict=True)])
        for block in net.blocks:
            normed = layer_norm(events, (size,), block.attention_norm.weight, block.attention_norm.bias)
            queries, keys, values = (normed @ part.T for part in block.query_key_value.weight.split(size))
            added = torch.zeros_like(events)
            width = size // heads
            for now in range(len(prefix)):
                for head in range(heads):
                    part = slice(head * width, (head + 1) * width)
                    weights = torch.softmax(keys[: now + 1, part] @ queries[now, part] / width**0.5, 0)
                    added[now, part] = weights @ values[: now + 1, part]
            events = events + added
            normed = layer_norm(events, (size,), block.network_norm.weight, block.network_norm.bias)
            hidden = (normed @ block.inner.weight.T + block.inner.bias).clamp(min=0)
            events = events + hidden @ block.outer.weight.T + block.outer.bias
        return layer_norm(events, (size,), net.norm.weight, net.norm.bias)[-1] @ net.items.T


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


@pytest.mark.parametrize("heads", [1, 2])
def test_one_pass_scores_every_prefix_as_slow_code_scores_it_alone(heads):
    model = trained("sasrec", heads=heads)
    asked = ragged([[1, 2, 2], [0, 3, 1, 4, 2, 0, 1, 3, 3], [4]])  # nine events: more than any training sequence
    fast = model.score_next(asked)
    for event in range(asked.n_events):
        first = asked.indptr[asked.owners[event]]
        slow = slow_scores(model, asked.items[first : event + 1].tolist())
        torch.testing.assert_close(fast[event], slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("session_length", [1, 3, 50])
def test_scores_are_those_of_slow_code_that_goes_on_from_the_training_sessions(session_length):
    model = trained("hrnn", session_length=session_length)
    parts, users = [[1, 2, 2, 0], [0, 3, 1, 4, 2, 0, 1], [4], [2, 2]], [2, 0, 1, STRANGER]
    fast = model.score_next(ragged(parts, users=users))
    slow = []
    for user, items in zip(users, parts, strict=True):
        state = torch.zeros(6)
        if user != STRANGER:
            _, state = read(model, PARTS[user], state)
        slow += read(model, items, state)[0]
    torch.testing.assert_close(fast, torch.stack(slow), rtol=1e-4, atol=1e-5)


SLOW = {
    "sasrec": lambda model, items: [slow_scores(model, items[: end + 1]) for end in range(len(items))],
    "hrnn": lambda model, items: read(model, items, torch.zeros(6))[0],
}


@pytest.mark.parametrize("name", SLOW)
def test_the_loss_is_the_mean_cross_entropy_of_all_prefixes(name):
    model, rows, losses = trained(name), [3, 2, 0], []
    for items in (PARTS[row] for row in rows):
        scores = SLOW[name](model, items)
        losses += [cross_entropy(s, torch.tensor(i)) for s, i in zip(scores[:-1], items[1:], strict=True)]
    loss = model.loss(SEQUENCES.take(np.array(rows)), NO_DROPOUT)
    assert loss.item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-4)


def test_dropout_keeps_the_expectation_and_repeats_with_its_generator():
    """Mean of 100,000 values that are 0 or 1/0.7: standard deviation 0.0021; 6 of them are a false alarm in 5e8."""
    ones = torch.ones(100_000)
    dropped = Dropout(0.3, np.random.default_rng(1))(ones)
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 1 / 0.7]))
    assert dropped.mean().item() == pytest.approx(1.0, abs=6 * 0.0021)
    assert torch.equal(dropped, Dropout(0.3, np.random.default_rng(1))(ones))
    assert not torch.equal(dropped, Dropout(0.3, np.random.default_rng(2))(ones))
