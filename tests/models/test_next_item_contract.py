"""What every recommender of the next item promises beyond the contract of all: a grammar it learns, and causality."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tests.models.contract import (
    N_ITEMS,
    SEQUENCES,
    cycles,
    fitted,
    grammar,
    learning,
    make,
    quickly,
    ragged,
    trained,
)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_cyclic_grammar_is_continued_after_every_prefix_of_held_out_sequences(name):
    model = fitted(name, grammar())
    held_out = cycles(40, N_ITEMS, seed=1)
    scores = model.score_next(held_out)
    assert scores.shape == (held_out.n_events, N_ITEMS)
    assert scores.dtype == torch.float32
    following = torch.from_numpy((held_out.items + 1) % N_ITEMS)
    assert (scores.argmax(1) == following).float().mean() > 0.95


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_is_scored_the_same_whichever_others_are_asked_about_beside_it(name):
    data = grammar()
    model = trained(name)
    together = model.score_next(data.sequences)
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(data.sequences))
    shuffled = model.score_next(data.sequences.take(rows))
    events = np.concatenate([np.flatnonzero(data.sequences.owners == row) for row in rows])
    torch.testing.assert_close(shuffled, together[torch.from_numpy(events)], rtol=1e-4, atol=1e-5)
    for row in rng.choice(len(data.sequences), 10, replace=False):
        alone = model.score_next(data.sequences.take(np.array([row])))
        others = together[torch.from_numpy(data.sequences.owners == row)]
        torch.testing.assert_close(alone, others, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_scores_after_an_event_depend_on_no_later_event(name):
    data = grammar()
    model = trained(name)
    sequences = data.sequences
    prefixes = sequences.without_last()
    kept = sequences.has_next & (sequences.lengths[sequences.owners] > 1)
    expected = model.score_next(sequences)[torch.from_numpy(kept)]
    torch.testing.assert_close(model.score_next(prefixes), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_one_event_one_item_again_and_again_and_unknown_users_and_items_are_scored(name):
    """In training: one event; one item only; an ordinary sequence. User 3 and item 5 appear when scoring only."""
    data = learning(ragged([[4], [2, 2, 2, 2], [0, 1, 2, 3, 0, 1]]), n_users=4, n_items=6)
    model = quickly(name, data)
    asked = ragged([[5], [2], [5, 5, 0], [3, 1, 4] * 20], users=[3, 1, 0, 2])
    scores = model.score_next(asked)
    assert scores.shape == (asked.n_events, 6)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", SEQUENCES)
def test_data_without_a_next_item_is_refused(name):
    lonely = learning(ragged([[0], [1]]), 2, 3)
    for data in (lonely, replace(lonely, sequences=None)):
        with pytest.raises(DataError, match="interactions") as error:
            make(name).fit(data, rng=np.random.default_rng(0))
        assert "\n" not in str(error.value)
