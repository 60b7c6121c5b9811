"""One user moves either sum by no more than is proved, whoever it is, and rows that attain the bounds do."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.release import sums

SIZE = 60
sets = st.lists(st.sets(st.integers(0, SIZE - 1)), max_size=8)


def rows_of(users: list[set[int]] | list[range], size: int = SIZE) -> csr_array:
    dense = np.zeros((len(users), size), np.int8)
    for user, items in enumerate(users):
        dense[user, list(items)] = 1
    return csr_array(dense)


def slow_pairs(rows: csr_array, m: int) -> NDArray[np.float64]:
    made = []
    for i in range(rows.shape[1]):
        for j in range(i + 1, rows.shape[1]):
            total = 0.0
            for row in rows.toarray():
                n = int(row.sum())
                total += row[i] * row[j] * (min(1.0, math.sqrt(m * (m - 1) / (n * (n - 1)))) if n > 1 else 0.0)
            made.append(total)
    return np.array(made)


@given(users=sets, row=st.sets(st.integers(0, SIZE - 1)), m=st.sampled_from([2, 3, 10]))
def test_a_user_more_moves_both_sums_by_no_more_than_the_sensitivity(
    users: list[set[int]], row: set[int], m: int
) -> None:
    fewer, more = rows_of(users), rows_of([*users, row])
    assert np.linalg.norm(sums.counts(more, m) - sums.counts(fewer, m)) <= sums.counts_sensitivity(m)
    assert np.linalg.norm(sums.pairs(more, m) - sums.pairs(fewer, m)) <= sums.pairs_sensitivity(m)


@pytest.mark.parametrize("m", [2, 3, 10])
@pytest.mark.parametrize("n", [2, 3, 9, 10, 11, 59, 60, 700])
def test_rows_of_many_items_attain_the_bounds(m: int, n: int) -> None:
    rows = rows_of([range(n)], 700)
    if n >= m:
        assert np.linalg.norm(sums.counts(rows, m)) == pytest.approx(sums.counts_sensitivity(m), rel=1e-5)
        assert np.linalg.norm(sums.pairs(rows, m)) == pytest.approx(sums.pairs_sensitivity(m), rel=1e-5)


@pytest.mark.parametrize("m", [2, 3, 6, 10, 90])
def test_the_bound_of_a_weight_holds_in_whole_numbers(m: int) -> None:
    """Rounding never takes a row beyond its bound, however long it is."""
    sizes = np.unique(np.r_[np.arange(1, 3000), np.random.default_rng(0).integers(1, 2**40, 3000)])
    for weight, size in zip(sums._weights(sizes, m), sizes.tolist(), strict=True):
        assert int(weight * 2**sums.BITS) ** 2 * size <= max(m, size if size <= m else 0) << 2 * sums.BITS


@settings(max_examples=15, deadline=None)
@given(users=st.lists(st.sets(st.integers(0, 11)), max_size=6), m=st.sampled_from([2, 3]))
def test_pairs_are_the_slow_sum(users: list[set[int]], m: int) -> None:
    rows = rows_of(users, 12)
    assert sums.pairs(rows, m) == pytest.approx(slow_pairs(rows, m), abs=1e-6)


def test_no_order_of_users_and_no_partition_changes_a_bit() -> None:
    rng = np.random.default_rng(1)
    rows = csr_array((rng.random((500, 40)) < rng.random((500, 1))).astype(np.int8))
    order = rng.permutation(500)
    for of, m in ((sums.counts, 10), (sums.pairs, 2)):
        parts = of(rows[order[:123]].tocsr(), m) + of(rows[order[123:]].tocsr(), m)
        assert parts.tobytes() == of(rows, m).tobytes()


def test_a_pair_that_counts_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        sums.counts(csr_array(np.array([[2, 0]])), 10)
