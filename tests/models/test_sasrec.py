"""SASRec against slow, obvious code: every prefix by itself, attention as in the paper's equations."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.nn.functional import cross_entropy, layer_norm

from tasks.models.sessions.sasrec import SASRec
from tasks.models.sessions.sequential import NO_DROPOUT, Dropout
from tests.models.contract import learning, ragged

SETTINGS = {"epochs": 2, "batch_size": 4, "learning_rate": 0.05, "dimension": 6}
SEQUENCES = ragged([[0, 3, 1, 1], [2], [4, 0, 3, 2, 1, 4, 0], [1, 2]])


def trained(**override) -> SASRec:
    model = SASRec(SASRec.Config.model_validate(SETTINGS | override))
    return model.fit(learning(SEQUENCES, 4, 5), rng=np.random.default_rng(0))


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


@pytest.mark.parametrize("heads", [1, 2])
def test_one_pass_scores_every_prefix_as_slow_code_scores_it_alone(heads):
    model = trained(heads=heads)
    asked = ragged([[1, 2, 2], [0, 3, 1, 4, 2, 0, 1, 3, 3], [4]])  # nine events: more than any training sequence
    fast = model.score_next(asked)
    for event in range(asked.n_events):
        first = asked.indptr[asked.owners[event]]
        slow = slow_scores(model, asked.items[first : event + 1].tolist())
        torch.testing.assert_close(fast[event], slow, rtol=1e-4, atol=1e-5)


def test_the_loss_is_the_mean_cross_entropy_of_all_prefixes():
    model = trained()
    batch = SEQUENCES.take(np.array([0, 2, 3]))
    losses = []
    for row in range(len(batch)):
        items = batch.items[batch.indptr[row] : batch.indptr[row + 1]].tolist()
        for end in range(1, len(items)):
            losses.append(cross_entropy(slow_scores(model, items[:end]), torch.tensor(items[end])))
    assert model.loss(batch, NO_DROPOUT).item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-4)


def test_heads_that_do_not_divide_the_dimension_are_refused():
    with pytest.raises(ValidationError, match="dimension 6 must be a multiple of heads 4"):
        SASRec.Config.model_validate(SETTINGS | {"heads": 4})


def test_dropout_keeps_the_expectation_and_repeats_with_its_generator():
    """Mean of 100,000 values that are 0 or 1/0.7: standard deviation 0.0021; 6 of them are a false alarm in 5e8."""
    ones = torch.ones(100_000)
    dropped = Dropout(0.3, np.random.default_rng(1))(ones)
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 1 / 0.7]))
    assert dropped.mean().item() == pytest.approx(1.0, abs=6 * 0.0021)
    assert torch.equal(dropped, Dropout(0.3, np.random.default_rng(1))(ones))
    assert not torch.equal(dropped, Dropout(0.3, np.random.default_rng(2))(ones))
