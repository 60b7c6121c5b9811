"""`dp-popularity`: no user counts for more than is paid for, and noise of the ledger's scale is drawn once."""

import math

import numpy as np
import pytest

from tasks.core.training_data import TrainingData
from tasks.models.ranking.popularity import PrivatePopularity, PrivatePopularityConfig
from tasks.privacy import noise

N_ITEMS = 40


def fitted(users: list[int], items: list[int], **config) -> PrivatePopularity:
    data = TrainingData(3, N_ITEMS, np.array(users, np.int32), np.array(items, np.int32))
    model = PrivatePopularity(PrivatePopularityConfig(**config))
    return model.fit(data, rng=np.random.default_rng(0))


@pytest.mark.parametrize("contribution", [1, 7])
def test_a_user_with_every_item_counts_for_the_contribution_alone(contribution: int) -> None:
    """Noise of so large a budget is 0."""
    counts = fitted([1] * N_ITEMS, [*range(N_ITEMS)], epsilon=1e6, contribution=contribution).released()["counts"]
    assert counts.sum() == contribution
    assert counts.max() == 1


def test_the_budget_is_spent_once() -> None:
    with noise.recording() as draws:
        model = fitted([0, 1, 1], [3, 3, 5], epsilon=0.5, contribution=7)
    (draw,) = [item for item in draws if item.release == "item counts"]
    assert draw.shape == (N_ITEMS,)
    assert draw.scale == pytest.approx(1 / -math.expm1(-0.5 / 7))
    (entry,) = model.ledger()
    assert (entry.accounted_epsilon, entry.accounted_delta) == (pytest.approx(0.5), 0)
