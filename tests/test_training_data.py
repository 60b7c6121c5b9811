"""What models are trained on: an interaction is there once, and what it is names the noise."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.errors import DataError
from tasks.sequences import Sequences
from tasks.training_data import TrainingData

USERS, ITEMS = np.array([0, 0, 1, 2], np.int32), np.array([1, 2, 2, 0], np.int32)


def test_a_repeated_interaction_is_refused_and_sequences_count_repeated_items() -> None:
    """Neighbours that differed in a repeat had one digest, so one noise."""
    with pytest.raises(DataError, match=r"2 repeated interactions, the first of user 0, item 2"):
        TrainingData(3, 3, np.append(USERS, [0, 2]).astype(np.int32), np.append(ITEMS, [2, 0]).astype(np.int32))
    once, twice = (
        TrainingData(3, 3, USERS, ITEMS, sequences=Sequences.from_events(users, items))
        for users, items in ((USERS, ITEMS), (np.insert(USERS, 1, 0), np.insert(ITEMS, 1, 1)))
    )
    assert once.digest != twice.digest


def test_the_digest_stays_whatever_the_order() -> None:
    """Committed results have noise of this key."""
    data, ratings = TrainingData(3, 4, USERS, ITEMS), np.arange(4, dtype=np.float32)
    assert data.digest == "7a9926d974ceb0944b5bd1129eff525d0e82397f55f8985e9d9606bf44da620d"
    order = [2, 0, 3, 1]
    assert TrainingData(3, 4, USERS[order], ITEMS[order]).digest == data.digest
    given = TrainingData(3, 4, USERS, ITEMS, ratings=ratings)
    assert TrainingData(3, 4, USERS[order], ITEMS[order], ratings=ratings[order]).digest == given.digest != data.digest
