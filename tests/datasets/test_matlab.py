import struct
import zlib
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


def test_the_other_byte_order_is_read(path: Path) -> None:
    name, data = b"rating\0\0", MATRIX.astype(">f8").tobytes(order="F")
    parts = [(6, struct.pack(">II", 6, 0)), (5, struct.pack(">ii", *MATRIX.shape)), (1, name[:6]), (9, data)]
    body = b"".join(struct.pack(">II", kind, len(part)) + part + b"\0" * (-len(part) % 8) for kind, part in parts)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    path.write_bytes(header + struct.pack(">II", 14, len(body)) + body)
    assert (RATING.read(path.parent).to_numpy() == MATRIX).all()


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


def test_several_bad_values_are_counted_and_the_first_row_is_named(path: Path) -> None:
    wrong = MATRIX.astype(float)
    wrong[2, 0] = wrong[1, 2] = np.nan
    save(path, wrong)
    refused(path, r"row 2, column 3 \(rating\) is nan, not a whole number \(2 such values\)")


def test_a_number_beyond_int64_is_refused(path: Path) -> None:
    wrong = MATRIX.astype(np.uint64)
    wrong[0, 0] = 2**63
    save(path, wrong)
    refused(path, "is 9223372036854775808, not a whole number")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ("text", "is a char array, not real numbers"),
        (np.array([[1, "x", 2]], dtype=object), "is a cell array, not real numbers"),
        ({"a": 1}, "is a struct array, not real numbers"),
        (MATRIX > 3, "is a logical array, not real numbers"),
        (scipy.sparse.csc_array(MATRIX.astype(float)), "is a sparse array, not real numbers"),
        (MATRIX * 1j, "is an array of complex numbers, not real numbers"),
        (MATRIX.reshape(3, 1, 3), "is 3 x 1 x 3, not rows of 3 columns"),
        (MATRIX.T[:, :2], "is 3 x 2, not rows of 3 columns"),
        (MATRIX[:0], "is 0 x 3, not rows of 3 columns"),
        (np.array([[7]]), "is 1 x 1, not rows of 3 columns"),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(path: Path, value: ArrayLike, match: str) -> None:
    save(path, value)
    refused(path, f"variable 'rating' {match}")


def test_another_variable_is_named(path: Path) -> None:
    save(path, name="trust")
    refused(path, r"variable 'rating' is not among its variables \(trust\)")


def test_a_variable_that_is_there_twice_is_refused(path: Path) -> None:
    save(path)
    path.write_bytes(path.read_bytes() + path.read_bytes()[128:])
    refused(path, "variable 'rating' is there several times")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is not a .mat file"),
        (b"user,item,rating\n1,10,5\n" * 20, "is not a .mat file"),
        (bytes(range(256)) * 20, "is not a .mat file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(2000), r"is of MATLAB 7.3 \(HDF5\); save it in MATLAB with save -v7"),
        (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400), "is of MATLAB 7.3"),
        (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM", r"'rating' is not among its variables \(\)"),
        (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + bytes(range(200)), "is truncated or corrupt"),
        (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + bytes(8), "is truncated or corrupt"),
    ],
)
def test_what_is_no_mat_file_is_refused(path: Path, content: bytes, match: str) -> None:
    path.write_bytes(content)
    refused(path, match)


def test_a_file_of_matlab_4_is_refused(path: Path) -> None:
    savemat(path, {"rating": MATRIX.astype(float)}, format="4")
    refused(path, "is not a .mat file of MATLAB 5")


def test_a_missing_file_is_named(path: Path) -> None:
    refused(path, "not found; run the download stage again")


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_cut_anywhere_is_refused(path: Path, compressed: bool) -> None:
    save(path, compressed=compressed)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refused(path, "is truncated or corrupt|is not a .mat file|not among its variables")


@pytest.mark.parametrize("compressed", [True, False])
def test_flipped_bytes_never_end_in_anything_but_a_refusal_or_a_table(path: Path, compressed: bool) -> None:
    save(path, compressed=compressed)
    content, rng = np.frombuffer(path.read_bytes(), dtype=np.uint8), np.random.default_rng(0)
    refusals = 0
    for _ in range(400):
        broken = content.copy()
        broken[rng.integers(128, len(content), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(broken.tobytes())
        try:
            RATING.read(path.parent)
        except DataError:
            refusals += 1
    assert refusals > 200


def test_a_compressed_bomb_is_refused_before_it_unpacks(path: Path) -> None:
    save(path, np.ones((400_000, 3)))
    assert path.stat().st_size < 100_000
    assert len(RATING.read(path.parent)) == 400_000
    refused(path, "unpacks to more than the limit of 1,000,000 bytes", max_bytes=1_000_000)


def test_an_element_that_lies_about_its_size_is_refused(path: Path) -> None:
    body = struct.pack("<II", 14, 1 << 31) + bytes(1 << 20)
    packed = zlib.compress(body)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    refused(path, r"is truncated or corrupt \(an element of 2,147,483,648 bytes, of which 1,048,576 are there\)")


def test_a_matrix_that_grows_in_memory_is_refused(path: Path) -> None:
    save(path, np.ones((100_000, 3), dtype=np.uint8))
    refused(path, "is 100000 x 3, more than the limit of 1,000,000 bytes", max_bytes=1_000_000)


def test_the_real_companion_of_ciao_is_read(mirror: Path) -> None:
    pairs: dict[str, Range] = {"source": (1, None), "target": (1, None)}
    table = Matrix("trust.mat", "trust", pairs).read(mirror / "ciao")
    assert table.shape == (57_544, 2)


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_what_is_written_is_read_back_and_says_what_it_is(path: Path, kind: type[np.integer[Any]]) -> None:
    table = pl.DataFrame({"rating": [5, 0], "item": [10, 300], "user": [1, 2]})
    first, again = (
        RATING.write(path.parent, table, kind, "MATLAB 5.0, of the test") or path.read_bytes() for _ in "12"
    )
    assert first == again
    assert first.startswith(b"MATLAB 5.0, of the test   ")
    assert RATING.read(path.parent).equals(table.select("user", "item", "rating"))
