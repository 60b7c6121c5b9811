import numpy as np
import polars as pl
import pytest

from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.datasets.encoding import encode

SHARE = Feature(name="share", kind="numeric", low=0, high=1)
ENTROPY = Feature(name="entropy", kind="numeric", low=0, high=float(np.log(5)))
COLOUR = Feature(name="colour", kind="categorical", categories=("red", "green", "blue"))


def users(**columns: list) -> pl.DataFrame:
    n = len(next(iter(columns.values())))
    return pl.DataFrame({"user": pl.Series(range(n), dtype=pl.Int32), **columns})


def test_bounds_become_minus_one_and_one_and_categories_one_hot() -> None:
    table = users(share=[0.0, 0.5, 1.0], colour=["blue", "red", "green"])
    expected = [[-1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]]
    encoded = encode(table, (SHARE, COLOUR))
    assert encoded.dtype == np.float32
    np.testing.assert_array_equal(encoded, np.array(expected, dtype=np.float32))


def test_rows_are_in_user_order_whatever_the_order_of_the_table() -> None:
    table = users(share=[0.1, 0.2, 0.9], colour=["blue", "red", "green"])
    shuffled = table[[2, 0, 1]]
    np.testing.assert_array_equal(encode(table, (SHARE, COLOUR)), encode(shuffled, (SHARE, COLOUR)))


def test_a_bound_rounded_to_float32_is_inside() -> None:
    table = users(entropy=pl.Series([0.0, np.log(5)], dtype=pl.Float32))
    assert encode(table, (ENTROPY,)).ravel().tolist() == [-1, 1]


def test_equal_bounds_encode_as_zero() -> None:
    constant = Feature(name="count", kind="numeric", low=7, high=7, bounds="fitted")
    assert encode(users(count=[7.0, 7.0]), (constant,)).ravel().tolist() == [0, 0]


def test_no_features_give_no_columns() -> None:
    assert encode(users(share=[0.0, 1.0]), ()).shape == (2, 0)


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), float("inf"), None])
def test_a_value_outside_its_bounds_names_column_count_and_row(wrong: float | None) -> None:
    with pytest.raises(DataError, match=r"column 'share': 1 values are outside \[0, 1\], first at rows 1"):
        encode(users(share=[0.5, wrong]), (SHARE,))


@pytest.mark.parametrize("wrong", ["violet", None])
def test_an_unknown_category_names_column_count_and_row(wrong: str | None) -> None:
    with pytest.raises(DataError, match=r"column 'colour': 2 values are outside the 3 categories.*rows 0, 2"):
        encode(users(colour=[wrong, "red", wrong]), (COLOUR,))


def test_ids_with_gaps_are_refused() -> None:
    with pytest.raises(DataError, match=r"ids are not 0\.\.1"):
        encode(users(share=[0.5, 0.5]).with_columns(user=pl.Series([0, 2], dtype=pl.Int32)), (SHARE,))
