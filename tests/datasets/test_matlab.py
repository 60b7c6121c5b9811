from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.io import savemat

from tasks.datasets.matlab import Matrix, Range
from tasks.errors import DataError

COLUMNS: dict[str, Range] = {"user": (1, None), "item": (1, None), "rating": (0, 5)}
RATING = Matrix("rating.mat", "rating", COLUMNS)
MATRIX = np.array([[1, 10, 5], [2, 10, 3], [1, 20, 0]])
LARGE = MATRIX.astype(np.uint64) + np.uint64(2**63)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rating.mat"


def save(path: Path, value: object = MATRIX, *, name: str = "rating", compressed: bool = True) -> None:
    savemat(path, {name: value}, do_compression=compressed)


def refused(path: Path, match: str, matrix: Matrix = RATING, **options: int) -> None:
    with pytest.raises(DataError, match=match) as caught:
        matrix.read(path.parent, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "uint16", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("compressed", [True, False])
def test_whole_numbers_of_any_type_arrive(path: Path, kind: str, compressed: bool) -> None:
    save(path, MATRIX.astype(kind), compressed=compressed)
    table = RATING.read(path.parent)
    assert table.columns == ["user", "item", "rating"]
    assert [str(column) for column in table.dtypes] == ["Int64"] * 3
    assert (table.to_numpy() == MATRIX).all()


def test_the_wanted_variable_is_read_whatever_else_is_there(path: Path) -> None:
    others = {"cells": np.array([1, "x"], dtype=object), "text": "abc", "record": {"a": 1}}
    savemat(path, others | {"rating": MATRIX}, do_compression=True)
    assert len(RATING.read(path.parent)) == 3


def test_a_release_may_have_fewer_columns(path: Path) -> None:
    save(path, MATRIX[:, :2])
    matrix = replace(RATING, minimum=2)
    assert matrix.read(path.parent).columns == ["user", "item"]
    refused(path, r"variable 'rating' is 3 x 2, not rows of 3 columns \(user, item, rating\)")
    save(path, MATRIX[:, :1])
    refused(path, "variable 'rating' is 3 x 1, not rows of 2 to 3 columns", matrix)


@pytest.mark.parametrize(
    ("row", "column", "value", "match"),
    [
        (3, 2, np.nan, r"variable 'rating', row 3, column 2 \(item\) is nan, not a whole number"),
        (1, 1, np.inf, r"row 1, column 1 \(user\) is inf, not a whole number"),
        (2, 3, 3.5, r"row 2, column 3 \(rating\) is 3.5, not a whole number"),
        (2, 1, 1e300, r"row 2, column 1 \(user\) is 1.*e\+300, not a whole number"),
        (2, 1, 0, r"row 2, column 1 \(user\) is 0, not 1 or more"),
        (2, 2, -7, r"row 2, column 2 \(item\) is -7, not 1 or more"),
        (2, 3, 6, r"row 2, column 3 \(rating\) is 6, not 0 to 5"),
    ],
)
def test_a_bad_value_is_named_by_row_and_column(path: Path, row: int, column: int, value: float, match: str) -> None:
    wrong = MATRIX.astype(float)
    wrong[row - 1, column - 1] = value
    save(path, wrong)
    refused(path, match)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.where((MATRIX == 3) | (MATRIX == 20), np.nan, MATRIX), r"row 2, column 3 .*nan.*whole number \(2 such"),
        (LARGE, "is 9223372036854775809, not a whole number"),
        ("text", "is of type char, not real numbers"),
        (np.array([[1, "x", 2]], dtype=object), "is of type cell, not real numbers"),
        ({"a": 1}, "is of type struct, not real numbers"),
        (MATRIX > 3, "is of type logical, not real numbers"),
        (scipy.sparse.csc_array(MATRIX.astype(float)), "is of type sparse, not real numbers"),
        (MATRIX * 1j, "is of complex numbers, not real ones"),
        (MATRIX.reshape(3, 1, 3), "is 3 x 1 x 3, not rows of 3 columns"),
        (MATRIX.T[:, :2], "is 3 x 2, not rows of 3 columns"),
        (MATRIX[:0], "is 0 x 3, not rows of 3 columns"),
    ],
)
def test_what_is_no_matrix_of_whole_numbers_is_refused(path: Path, value: ArrayLike, match: str) -> None:
    save(path, value)
    refused(path, f"variable 'rating'.* {match}")


def test_another_variable_is_named(path: Path) -> None:
    refused(path, "not found; run the download stage again")
    save(path, name="trust")
    refused(path, r"variable 'rating' is not among its variables \(trust\)")


@pytest.mark.parametrize(
    "content", [b"", b"user,item,rating\n1,10,5\n" * 20, b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400)]
)
def test_what_is_no_mat_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "is not a whole .mat file of MATLAB 5 to 7.2")


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_cut_anywhere_is_refused(path: Path, compressed: bool) -> None:
    save(path, compressed=compressed)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refused(path, "is not a whole .mat file|not among its variables")


def test_a_matrix_that_grows_in_memory_is_refused_before_it_unpacks(path: Path) -> None:
    save(path, np.ones((100_000, 3), dtype=np.uint8))
    refused(path, "is 100000 x 3, more than the limit of 1,000,000 bytes", max_bytes=1_000_000)


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_what_is_written_is_read_back_and_says_what_it_is(path: Path, kind: type[np.integer[Any]]) -> None:
    table = pl.DataFrame({"rating": [5, 0], "item": [10, 300], "user": [1, 2]})
    first, again = (
        RATING.write(path.parent, table, kind, "MATLAB 5.0, of the test") or path.read_bytes() for _ in "12"
    )
    assert first == again
    assert first.startswith(b"MATLAB 5.0, of the test   ")
    assert RATING.read(path.parent).equals(table.select("user", "item", "rating"))
