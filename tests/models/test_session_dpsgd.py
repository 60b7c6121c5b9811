"""DPSGD's clipped sums equal those of a loop over users, its noise is what was promised, and all of it is counted."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT
from tasks.models.sessions.dipsgnn import DIPSGNN, DIPSGNNConfig
from tasks.models.sessions.dpsasrec import DPSASRec, DPSASRecConfig
from tasks.models.sessions.dpsgd import DPSGD, DPSGDConfig
from tasks.models.sessions.private import COUNTED, PIECE, PrivateSequences, UserDropout
from tasks.models.sessions.sequential import NO_DROPOUT
from tests.models.contract import Stretch, learning, ragged
from tests.systems import ids

N_ITEMS, N_USERS = 9, 2 * PIECE + 8
NETWORK = {"epochs": 3, "batch_size": N_USERS, "learning_rate": 0.01, "dimension": 6, "user_dimension": 3, "steps": 1}
CONFIG = NETWORK | {"clip": 0.7, "clip_norm": 0.3, "epsilon": 2.0, "delta": 1e-3}
FREE = {"epsilon": math.inf, "clip_norm": math.inf}


def wandering(n_sequences: int, seed: int, shortest: int = 1, longest: int = 12) -> Sequences:
    """Random items, so with many repetitions; some sequences of one event where `shortest` is 1."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, n_sequences)
    return ragged([rng.integers(0, N_ITEMS, n).tolist() for n in lengths])


def make(**override) -> DPSGD:
    return DPSGD(DPSGDConfig.model_validate(CONFIG | override))


def fitted(seed: int = 0, progress=SILENT, **override) -> DPSGD:
    data = learning(wandering(N_USERS, seed=0), N_USERS, N_ITEMS)
    return make(**override).fit(data, rng=np.random.default_rng(seed), progress=progress)


def built(**override) -> DPSGD:
    """The model at its initial weights, ready for steps."""
    return fitted(progress=Stretch(0), **override)


def slow_gradients(model: PrivateSequences, sequences: Sequences) -> list[tuple[torch.Tensor, list[torch.Tensor]]]:
    """Loss and gradient of one user after the other, through the network as it scores."""
    result = []
    for row in np.flatnonzero(sequences.lengths > 1):
        loss = model.loss(sequences.take(np.array([row])), NO_DROPOUT)
        gradients = torch.autograd.grad(loss, list(model.network.parameters()), allow_unused=True)
        parameters = zip(model.network.parameters(), gradients, strict=True)
        result.append((loss.detach(), [torch.zeros_like(p) if g is None else g for p, g in parameters]))
    return result


def norm(gradients: list[torch.Tensor]) -> float:
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients))


def attentive(progress=SILENT, **override) -> DPSASRec:
    """Fewer positions than events, so that these share vectors."""
    config = {key: value for key, value in CONFIG.items() if key not in ("user_dimension", "steps", "clip")}
    model = DPSASRec(DPSASRecConfig.model_validate(config | {"positions": 4, "layers": 2, "heads": 2} | override))
    data = learning(wandering(N_USERS, seed=0), N_ITEMS + N_USERS, N_ITEMS)
    return model.fit(data, rng=np.random.default_rng(0), progress=progress)


MODELS = {
    **{f"{steps} steps": lambda steps=steps: built(steps=steps) for steps in range(4)},
    "attention": lambda: attentive(Stretch(0)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_users_equal_those_of_a_loop(name, seed):
    model = MODELS[name]()
    sequences = wandering(12, seed, shortest=2).take(np.random.default_rng(seed).permutation(12))
    losses, ours = model.gradients(sequences)
    slow = slow_gradients(model, sequences)
    torch.testing.assert_close(losses, torch.stack([loss for loss, _ in slow]), rtol=1e-5, atol=1e-5)
    for user, (_, gradients) in enumerate(slow):
        assert norm(gradients) > 0.01
        for mine, theirs in zip(ours, gradients, strict=True):
            torch.testing.assert_close(mine[user], theirs, rtol=1e-4, atol=1e-5 * norm(gradients))


@pytest.mark.parametrize("name", ["0 steps", "1 steps", "2 steps", "attention"])
def test_clipped_sums_equal_those_of_a_loop(name):
    """More users than are held at a time; some have one event, and some gradients are clipped and some are not."""
    model = MODELS[name]()
    sequences = wandering(N_USERS - 3, seed=4)
    assert (sequences.lengths == 1).any()
    slow = slow_gradients(model, sequences)
    norms = np.array([norm(gradients) for _, gradients in slow])
    bound = float(np.median(norms) * 1.0001)
    model.config = model.config.model_copy(update={"clip_norm": bound})
    total, clipped, sums = model.clipped_sum(sequences)
    assert total == pytest.approx(sum(float(loss) for loss, _ in slow), rel=1e-5)
    assert clipped == (norms > bound).sum()
    factors = np.minimum(1, bound / norms)
    for index, ours in enumerate(sums):
        theirs = sum(factor * gradients[index] for factor, (_, gradients) in zip(factors, slow, strict=True))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * bound * math.sqrt(len(slow)))


def test_without_noise_and_clipping_it_is_ordinary_training_of_dipsgnn_without_noise():
    """Sequences are equally long, so that users and examples weigh the same."""
    data = learning(wandering(30, seed=1, shortest=8, longest=8), 30, N_ITEMS)
    plain = DIPSGNN(DIPSGNNConfig.model_validate(NETWORK | {
        "clip": CONFIG["clip"], "epsilon": None, "delta": 1e-3, "accounting": "published", "regularization": 0.01,
    })).fit(data, rng=np.random.default_rng(0))  # fmt: skip
    ours = make(**FREE, regularization=0.01).fit(data, rng=np.random.default_rng(0))
    torch.testing.assert_close(ours.score_next(data.sequences), plain.score_next(data.sequences), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_counts_nothing(value):
    """The others add up as if they were alone, and a step releases finite sums."""
    model, sequences = built(), ragged([[1, 2], [3, 4], [5, 6]])
    _, _, expected = model.clipped_sum(sequences.take(np.array([0, 2])))
    gradients = model.gradients

    def broken(sequences, *rest):
        losses, parts = gradients(sequences, *rest)
        parts[0][1, 0] = value
        return losses, parts

    model.gradients = broken
    for total, other in zip(model.clipped_sum(sequences)[2], expected, strict=True):
        torch.testing.assert_close(total, other)
    released = []
    model.watch = lambda sums, _: released.extend(sums)
    model.private_step(sequences)
    assert all(total.isfinite().all() for total in released)


def without(data: TrainingData, user: int) -> TrainingData:
    """The same with nothing of one user, whose place is kept."""
    left = data.users != user
    sequences = data.sequences.take(np.flatnonzero(data.sequences.users != user))
    return replace(data, users=data.users[left], items=data.items[left], sequences=sequences)


@pytest.mark.parametrize("batch_size", [N_USERS // 8, N_USERS])
def test_a_user_taken_out_keeps_a_place(batch_size, tmp_path):
    """Else the sampling probability and what sums are divided by would tell whether a user is there."""
    data = learning(wandering(N_USERS, seed=0), N_USERS, N_ITEMS)
    saved = []
    for number, given in enumerate((data, without(data, 0))):
        model = make(batch_size=batch_size, epochs=1, epsilon=0.1).fit(given, rng=np.random.default_rng(0))
        model.save(tmp_path / f"{number}.safetensors")
        loaded = DPSGD.load(tmp_path / f"{number}.safetensors").network
        saved.append((model._plan, model.ledger(), [loaded.get_buffer(name) for name in COUNTED]))
    assert saved[0] == saved[1]
    assert ids(saved[0][1][0].reasons) == {"whole-sequence"}
    asked = np.array([0, 3, N_USERS - 1])
    assert model.sequences_of(asked).users.tolist() == [3, N_USERS - 1]


@pytest.mark.parametrize("user", [0, 5])
def test_a_user_moves_nobody_elses_gradient_where_values_are_dropped(user):
    """All masks are public, with the seed: given them, a step may move by the clip norm, as it does."""
    data, sums = learning(wandering(N_USERS, seed=6, shortest=2), N_USERS, N_ITEMS), []
    for given in (data, without(data, user)):
        model = make(epochs=1, epsilon=math.inf, clip_norm=0.01, dropout=0.3)
        model.watch = lambda released, _: sums.append(torch.cat([part.flatten() for part in released]).double())
        model.fit(given, rng=np.random.default_rng(0))
    assert len(sums) == 2
    assert (sums[0] - sums[1]).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_dropout_leaves_out_its_share_anew_in_every_step():
    """False alarm: one in 1,000."""
    ones, owners = torch.ones(400, 50), torch.arange(4).repeat_interleave(100)
    first, other = (UserDropout(0.3, (7, step))(ones, np.arange(4), owners) for step in range(2))
    assert first.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
    assert stats.binomtest(int((first == 0).sum()), first.numel(), 0.3).pvalue > 1e-3
    assert not torch.equal(first, other)
    assert len({tuple(part.flatten().tolist()) for part in first.split(100)}) == 4


def test_positions_of_a_private_model_are_not_read_off_the_longest_sequence(tmp_path):
    model = attentive(epochs=1)
    assert model.network.positions.shape == (4, CONFIG["dimension"])
    model.save(tmp_path / "model.safetensors")
    loaded = DPSASRec.load(tmp_path / "model.safetensors")
    assert loaded.ledger() == model.ledger()
    assert loaded.ledger()[0].accounted_epsilon == pytest.approx(2, rel=0.01)
    longer = ragged([[1, 2, 3, 4, 5, 6, 7, 8] * 3])
    assert torch.equal(loaded.score_next(longer), model.score_next(longer))
