"""What a ranking is worth to each user, and counts of users that name no one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.evaluation.users import bin_users, exposure

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_exposure_is_the_mean_popularity_of_a_list() -> None:
    popularity = np.array([0.9, 0.1, 0.5])
    assert exposure(np.array([[0, 1], [1, 1], [0, 2]]), popularity) == pytest.approx([0.5, 0.1, 0.7])


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(1, 12))
def test_no_bin_has_few_users_and_every_user_is_in_one(values: list[float], least: int) -> None:
    bins = bin_users(np.array(values), EDGES, least)
    if len(values) < least:
        assert bins == []
        return
    assert all(users >= least for *_, users in bins)
    assert sum(users for *_, users in bins) == len(values)
    ends = [end for low, high, _ in bins for end in (low, high)]
    assert ends == sorted(ends)
    assert set(ends) <= set(EDGES)
    assert all(any(low <= value <= high for low, high, _ in bins) for value in values)


def test_bins_that_are_large_enough_stay_as_they_are() -> None:
    values = np.repeat([0.1, 0.3, 0.6, 0.9], [10, 12, 4, 7])
    assert bin_users(values, EDGES) == [(0.0, 0.25, 10), (0.25, 0.5, 12), (0.5, 1.0, 11)]
    assert bin_users(values[:-7], EDGES) == [(0.0, 0.25, 10), (0.25, 0.75, 16)]


@pytest.mark.parametrize(
    ("value", "bins"), [(0.0, [(0.0, 0.25, 20)]), (0.6, [(0.5, 0.75, 20)]), (1.0, [(0.75, 1.0, 20)])]
)
def test_users_who_are_alike_are_in_one_narrow_bin(value: float, bins: list[tuple[float, float, int]]) -> None:
    assert bin_users(np.full(20, value), EDGES) == bins
