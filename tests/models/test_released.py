"""DIPSGNN with a guarantee for its lists: what is read of a visit, how often, with which noise; and its worth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.sessions.released import Released
from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.audits.audit import audit
from tests.models.contract import learning, ragged

CONFIG = {"dimension": 6, "epsilon": 5.0, "delta": 1e-5, "label_share": 0.25, "ridge": 1.0}


def known(seed: int = 0, n_users: int = 50) -> TrainingData:
    rng = np.random.default_rng(seed)
    return learning(ragged(rng.integers(0, 20, (n_users, 12)).tolist()), n_users, 20)


def fitted(of: TrainingData, seed: int = 0, **override: object) -> Released:
    return Released(Released.Config.model_validate(CONFIG | override)).fit(of, rng=np.random.default_rng(seed))


def replaced(of: TrainingData, event: int) -> TrainingData:
    """The same with another item at one event."""
    items = of.sequences.items.copy()
    items[event] = (items[event] + 7) % 20
    return replace(of, sequences=replace(of.sequences, items=items))


def test_a_replaced_visit_moves_one_state_by_the_distance_and_the_labels_by_the_square_root_of_two_at_most() -> None:
    """Without noise; the inputs of the readout held as they are, as the proof does. Every place of a sequence."""
    model = fitted(known(), epsilon=None)
    for event in range(24):
        first, other = known().sequences, replaced(known(), event).sequences
        moved = np.linalg.norm(model.states(first) - model.states(other), axis=1)
        assert 0 < moved[event] <= model.distance
        assert not np.delete(moved, event).any()
        inputs = model.inputs(first.without_last())
        sums = np.zeros((2, 20, inputs.shape[1]))
        for world, sequences in zip(sums, (first, other), strict=True):
            np.add.at(world, sequences.next_items, inputs)
        assert np.linalg.norm(sums[0] - sums[1]) <= 2**0.5 + 1e-12


def test_inputs_of_the_readout_have_length_one_at_most_whatever_the_noise() -> None:
    sequences = known().sequences
    for epsilon in (None, 0.1, 5.0):
        lengths = np.linalg.norm(fitted(known(), epsilon=epsilon).inputs(sequences), axis=1)
        assert lengths.max() <= 1 + 1e-12


def test_the_budget_is_spent_on_two_gaussian_releases_and_no_more() -> None:
    """What the door draws is what the ledger accounts: standard deviation over sensitivity, of states and labels."""
    with noise.recording() as draws:
        model = fitted(known())
    (entry,) = model.ledger()
    actual = {draw.release: draw.scale for draw in draws}
    assert [draw.release for draw in draws] == ["visits", "labels"]
    multipliers = [event.parameters["noise_multiplier"] for event in entry.events]
    assert multipliers == pytest.approx([actual["visits"] / model.distance, actual["labels"] / 2**0.5])
    assert 4.9 < (entry.accounted_epsilon or 0) <= 5.0
    assert account(entry.events, 1e-5).epsilon == entry.accounted_epsilon
    assert (entry.unit, entry.neighbouring) == ("visit", "replace")
    label, total = 1 / multipliers[1] ** 2, sum(1 / multiplier**2 for multiplier in multipliers)
    assert label / total == pytest.approx(0.25)
    assert fitted(known(), epsilon=None).ledger() == []


def test_a_visits_state_is_released_once_and_asked_again_it_is_the_same() -> None:
    """Noise is normal, and independent of that of other users, draws and sequences; false alarm 1e-6 each."""
    of = known(n_users=400)
    model = fitted(of)
    sequences = of.sequences
    states = model.states(sequences)
    drawn = states - model.vectors[sequences.items]
    assert kstest(drawn.ravel() / (model.multipliers[0] * model.distance), "norm").pvalue > 1e-6
    prefix = model.states(sequences.without_last())
    assert np.array_equal(prefix, states[sequences.has_next])
    alone = model.states(sequences.take(np.array([17])))
    assert np.array_equal(alone, states[sequences.owners == 17])
    again = model.states(sequences, np.ones(400, np.int64)) - model.vectors[sequences.items]
    for other in (again, np.roll(drawn, 1, axis=0), np.roll(drawn, 12, axis=0)):
        assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 5 / drawn.size**0.5


def test_a_tested_sequence_that_begins_like_training_shares_no_noise_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a visit whose state is the same in both would be told for certain; as `score_next` asks for them."""
    of = known(n_users=400)
    model, states, asked = fitted(of), Released.states, []

    def kept(*args: object, **named: object) -> object:
        asked.append(states(*args, **named))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(Released, "states", kept)
    model.score_next(of.sequences)
    learnt, (tested,), true = states(model, of.sequences), asked, model.vectors[of.sequences.items]
    assert (learnt != tested).all()
    assert abs(np.corrcoef((learnt - true).ravel(), (tested - true).ravel())[0, 1]) < 5 / true.size**0.5


def test_lists_are_functions_of_noisy_states() -> None:
    """Two items in one place, the same noisy states: the same scores. Nothing else is read of a sequence."""
    model = fitted(known())
    asked = ragged([[1, 2, 3], [4, 5, 6]], users=[0, 1])
    states = model.states(asked, tested=True)
    before = model.score_next(asked)
    other = replace(asked, items=(asked.items + 3) % 20)
    model.states = lambda *_, **__: states  # type: ignore[method-assign]
    assert torch.equal(model.score_next(other), before)


def test_scores_after_an_event_prove_no_more_than_the_budget_and_not_nothing() -> None:
    """What refutes the other accountings (`test_dipsgnn.py`): the best linear test of two visits, far apart."""
    model, n = fitted(known(), label_share=0.01), 20_000
    far = np.unravel_index((model.vectors @ model.vectors.T).argmin(), (20, 20))
    shown = [
        model.score_again(
            Sequences(np.zeros(n, np.int32), np.arange(n + 1), np.full(n, item, np.int32)), first + np.arange(n)
        ).numpy()
        for item, first in zip(far, (0, n), strict=True)
    ]
    half = n // 2
    direction, *_ = np.linalg.lstsq(np.concatenate([part[:half] for part in shown]), np.repeat([1.0, -1.0], half))
    present, absent = ((part[half:] @ direction).astype(np.float64) for part in shown)
    assert 0.5 < audit(present, absent, 0.999, 1e-5).epsilon < 5.0
