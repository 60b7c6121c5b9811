"""Noise by key: the normal law, independence of whatever differs, and sameness of whatever does not."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from tasks.core.hashing import digest, mix
from tasks.privacy.keyed import normals, prefix_ids, streams

FALSE_ALARM = 1e-6
"""Chance of each statistical test below to fail with right code, were its keys not fixed."""
LARGEST = 2**43
"""Ids are user · 2^20 + position."""


def correlation(first, other) -> float:
    """In standard errors."""
    return float(np.corrcoef(np.ravel(first), np.ravel(other))[0, 1]) * np.size(first) ** 0.5


@pytest.mark.parametrize(
    "ids", [np.arange(4000), np.arange(4000) * 2**20, LARGEST - np.arange(1, 4001)], ids=["from 0", "users", "largest"]
)
@pytest.mark.parametrize("key", [(0,), (0, 0, 0), (2**62 - 1, 2**32, 2)])
def test_numbers_are_standard_normal(key, ids):
    table = normals(key, ids, 51)
    assert table.shape == (4000, 51)
    assert table.dtype == np.float32
    assert kstest(table.ravel(), "norm").pvalue > FALSE_ALARM
    assert all(kstest(column, "norm").pvalue > FALSE_ALARM / 51 for column in table.T)
    # squares, and the tails beyond four standard deviations
    assert abs((table.astype(float) ** 2).mean() - 1) < 5 * (2 / table.size) ** 0.5
    expected = 2 * norm.sf(4) * table.size
    assert abs((abs(table) > 4).sum() - expected) < 5 * expected**0.5


def test_columns_rows_and_neighbouring_keys_are_uncorrelated():
    ids = np.arange(5000)
    table = normals((7, 3, 1), ids, 40)
    columns = np.corrcoef(table.T)[np.triu_indices(40, 1)]
    assert abs(columns).max() < 6 * 5000**-0.5  # 780 pairs: false alarm 1.5e-6
    squares = np.corrcoef(table.T**2)[np.triu_indices(40, 1)]
    assert abs(squares).max() < 6 * 5000**-0.5
    others = [(7, 3, 2), (7, 4, 1), (8, 3, 1), (3, 7, 1), (7, 3), (7, 3, 1, 0), (0, 7, 3, 1)]
    for key in others:
        other = normals(key, ids, 40)
        assert abs(correlation(table, other)) < 5, key
        assert abs(correlation(table, other[::-1])) < 5, key
    for shift in (1, 2, 3, 1000):
        assert abs(correlation(table[shift:], table[:-shift])) < 5
        assert abs(correlation(table, normals((7, 3, 1), ids + 2**20 * shift, 40))) < 5
    # an id's columns are not those of the next id, moved along
    for moved in (1, 2, 4):
        assert abs(correlation(table[1:, :-moved], table[:-1, moved:])) < 5


def test_a_number_depends_on_its_own_key_id_and_column_alone():
    key, ids = (123456789, 5, 1), np.random.default_rng(0).integers(0, LARGEST, 300)
    table = normals(key, ids, 17)
    assert np.array_equal(normals(key, ids, 17), table)
    order = np.random.default_rng(1).permutation(300)
    assert np.array_equal(normals(key, ids[order], 17), table[order])
    assert np.array_equal(normals(key, ids[42:43], 17), table[42:43])
    for width in (1, 2, 16, 40):
        assert np.array_equal(normals(key, ids, width)[:, :17], table[:, :width])
    assert normals(key, ids[:0], 17).shape == (0, 17)


def test_no_two_ids_get_the_same_numbers():
    """Neighbours, users 2^20 apart, and ids anywhere up to 2^43: 24 bits of mantissa in each of four columns."""
    rng = np.random.default_rng(0)
    anywhere = rng.integers(0, LARGEST, 100_000)
    ids = np.unique(
        np.concatenate([np.arange(50_000), np.arange(50_000) * 2**20, LARGEST - np.arange(50_000), anywhere])
    )
    for key in ((0, 0), (2**62 - 1, 2**32)):
        rows = np.ascontiguousarray(normals(key, ids, 4)).view("V16").ravel()
        assert len(np.unique(rows)) == len(ids)


def test_a_prefix_has_an_id_of_its_own_that_depends_on_nothing_else():
    heads = mix(np.array([4, 4, 9]), np.array([0, 1, 0]))
    items, indptr = np.array([1, 2, 3, 1, 2, 3, 1, 3]), np.array([0, 3, 6, 8])
    ids = prefix_ids(heads, items, indptr)
    assert len(np.unique(ids)) == 8
    assert np.array_equal(prefix_ids(heads[:1], np.array([1, 2, 5, 3]), np.array([0, 4]))[:2], ids[:2])
    assert np.array_equal(prefix_ids(heads[2:], items[6:], np.array([0, 2])), ids[6:])


def test_ids_of_many_prefixes_and_pairs_do_not_meet():
    """Any two of a million meet by a chance of 3e-8."""
    rng = np.random.default_rng(0)
    indptr = np.arange(0, 500_001, 50)
    ids = prefix_ids(mix(np.arange(10_000)), rng.integers(0, 30, 500_000), indptr)
    pairs = mix(np.arange(1000)[:, None], np.arange(500)).ravel()
    assert len(np.unique(np.concatenate([ids, pairs]))) == 1_000_000


def test_streams_are_functions_of_their_id_and_begin_alike_however_long():
    ids = mix(np.arange(50))
    table = streams((3, 1), ids, np.full(50, 40), 20)
    assert kstest(table.ravel(), "norm").pvalue > FALSE_ALARM
    assert np.array_equal(streams((3, 1), ids[7:8], np.array([9]), 20), table[280:289])
    assert abs(correlation(table[40:], table[:-40])) < 5
    assert abs(correlation(table, streams((1, 3), ids, np.full(50, 40), 20))) < 5
    assert streams((3,), ids[:0], np.empty(0, int), 4).shape == (0, 4)


def test_a_digest_tells_where_one_part_ends():
    assert digest(b"ab", b"c") != digest(b"a", b"bc") != digest(b"abc")
