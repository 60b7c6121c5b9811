"""What models are trained on: an interaction is there once, and what it is names the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import DataError
from tasks.sequences import Sequences
from tasks.training_data import TrainingData

USERS, ITEMS = np.array([0, 0, 1, 2], np.int32), np.array([1, 2, 2, 0], np.int32)


def test_a_repeated_interaction_is_refused_and_sequences_count_repeated_items() -> None:
    """Neighbours that differed in a repeat had one digest, so one noise."""
    users, items = USERS[[0, 1, 1, 2, 3, 3]], ITEMS[[0, 1, 1, 2, 3, 3]]
    with pytest.raises(DataError, match=r"2 repeated interactions, the first of user 0, item 2"):
        TrainingData(3, 3, users, items)
    once, twice = Sequences.from_events(USERS, ITEMS), Sequences.from_events(users, items)
    data = TrainingData(3, 3, USERS, ITEMS, sequences=once)
    assert data.digest != replace(data, sequences=twice).digest


def test_the_digest_stays_whatever_the_order() -> None:
    """Committed results have noise of this key."""
    order, ratings = [2, 0, 3, 1], np.arange(4, dtype=np.float32)
    data, other = TrainingData(3, 4, USERS, ITEMS), TrainingData(3, 4, USERS[order], ITEMS[order])
    assert data.digest == other.digest == "7a9926d974ceb0944b5bd1129eff525d0e82397f55f8985e9d9606bf44da620d"
    rated = replace(data, ratings=ratings)
    assert replace(other, ratings=ratings[order]).digest == rated.digest != data.digest
