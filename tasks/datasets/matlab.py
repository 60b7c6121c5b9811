"""One matrix of whole numbers in a .mat file (MATLAB 5 to 7.2), read trusting nothing that the file says.

scipy.io.loadmat does not read it: on a corrupt file it can end the process (a segmentation fault in scipy 1.17), and it
unpacks without limit. What is read here is what MathWorks, "MAT-File Format", chapter 1, says of numeric arrays.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import io

from tasks.errors import DataError

MAX_BYTES = 1 << 30
"""Limit on the unpacked size of a file, and on that of the matrix with 8 bytes a number."""

Range = tuple[int, int | None]
"""Lowest and highest value of a column; None where nothing is too high."""

Array = np.ndarray[Any, Any]

_HEADER, _TEXT = 128, 116  # bytes before the first element, and of text among them
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function", 17: "opaque"}
_NUMBERS = range(6, 16)  # double, single, int8 to uint64
_LOGICAL, _COMPLEX = 0x02, 0x08
_EXACT = 2.0**53  # up to here every whole number is a double
_AGAIN = "get the file again"


@dataclass(frozen=True)
class _Variable:
    """The head of a variable, and its values as they lie in the file."""

    name: str
    kind: str
    """`numbers`, or why it is none."""
    shape: tuple[int, ...]
    values: memoryview
    """The element of the real part, with its tag."""
    order: str


class _Broken(Exception):
    """The bytes are not what the format says."""


@dataclass(frozen=True)
class Matrix:
    """A .mat file of which one variable is read: a matrix of whole numbers."""

    file: str
    """Its name in the folder of the data set."""
    variable: str
    columns: Mapping[str, Range]
    """Names of the matrix's columns in their order, and the values that each may have."""
    minimum: int | None = None
    """How many of them there must be, where releases differ (default: all); the others are then left out."""

    def read(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> pl.DataFrame:
        """The matrix as a table: int64 columns, rows in MATLAB's order.

        Args:
            max_bytes: limit on what the file unpacks to.

        Raises:
            DataError: the file is missing, truncated, not a .mat, of MATLAB 7.3, or unpacks to more than the limit; the
                variable is missing, no matrix of real numbers, or of another width; a value is not a whole number, or
                not allowed (names row and column, counted from 1).
        """
        path = folder / self.file
        widths = range(len(self.columns) if self.minimum is None else self.minimum, len(self.columns) + 1)
        try:
            elements = _elements(path, max_bytes)
            chosen = _choose(path, self.variable, [_variable(element, order) for element, order in elements])
            where, shape = f"{path}: variable {self.variable!r}", " x ".join(map(str, chosen.shape))
            if len(chosen.shape) != 2 or chosen.shape[1] not in widths or not chosen.shape[0]:
                wanted = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
                listed = ", ".join(self.columns)
                raise DataError(f"{where} is {shape}, not rows of {wanted} columns ({listed}); is it the right file?")
            if 8 * math.prod(chosen.shape) > max_bytes:
                raise DataError(f"{where} is {shape}, more than the limit of {max_bytes:,} bytes")
            matrix = _matrix(chosen)
        except (_Broken, zlib.error) as error:
            raise DataError(f"{path}: is truncated or corrupt ({error}); {_AGAIN}") from error
        names = list(self.columns)[: matrix.shape[1]]
        _require(where, names, matrix, _is_integral(matrix), dict.fromkeys(names, "a whole number"))
        numbers = matrix.astype(np.int64)
        allowed, words = np.ones(numbers.shape, dtype=bool), {}
        for column, name in enumerate(names):
            low, high = self.columns[name]
            allowed[:, column] = (numbers[:, column] >= low) & (True if high is None else numbers[:, column] <= high)
            words[name] = f"{low} or more" if high is None else f"{low} to {high}"
        _require(where, names, matrix, allowed, words)
        return pl.DataFrame({name: numbers[:, column] for column, name in enumerate(names)})

    def write(self, folder: Path, table: pl.DataFrame, kind: type[np.integer[Any]], header: str) -> None:
        """Write the file of a table's rows, whose columns are the first of `columns` in any order.

        Args:
            kind: of the numbers.
            header: text that the file begins with; of it 116 bytes are kept.
        """
        path, columns = folder / self.file, [name for name in self.columns if name in table.columns]
        matrix = np.asfortranarray(table.select(columns).to_numpy().astype(kind))
        io.savemat(path, {self.variable: matrix}, do_compression=True)
        with path.open("r+b") as file:  # in place of scipy's, which says when the file was written
            file.write(header.encode().ljust(_TEXT)[:_TEXT])


def read_release(folder: Path, releases: Mapping[str, tuple[Matrix, Matrix]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ratings and trust of the one release of which the ratings are in `folder`.

    Raises:
        DataError: no release or several are there, or as `Matrix.read`.
    """
    there = [matrices for matrices in releases.values() if (folder / matrices[0].file).is_file()]
    if len(there) != 1:
        names = " or ".join(ratings.file for ratings, _ in releases.values())
        what = "both releases are" if there else f"no {names} is"
        raise DataError(f"{folder}: {what} there; run the download stage again")
    ratings, trust = there[0]
    return ratings.read(folder), trust.read(folder)


def _elements(path: Path, max_bytes: int) -> Iterator[tuple[memoryview, str]]:
    """The content of every array of the file, unpacked, and the byte order; all together no more than `max_bytes`."""
    try:
        size = path.stat().st_size
        content = memoryview(path.read_bytes() if size <= max_bytes else b"")
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    too_much = DataError(f"{path}: unpacks to more than the limit of {max_bytes:,} bytes; is it the right file?")
    if size > max_bytes:
        raise too_much
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    version = struct.unpack(f"{order}H", content[124:126])[0] if order else None
    if version == 0x0200 or content[:4] == b"\x89HDF":
        raise DataError(f"{path}: is of MATLAB 7.3 (HDF5); save it in MATLAB with save -v7")
    if order is None or version != 0x0100:
        raise DataError(f"{path}: is not a .mat file of MATLAB 5 to 7.2; {_AGAIN}")
    at, room = _HEADER, max_bytes
    while at < len(content):
        kind, body, used = _element(content[at:], order)
        if kind == _COMPRESSED:
            inflater = zlib.decompressobj()
            unpacked = inflater.decompress(body, room + 1)
            if len(unpacked) > room:
                raise too_much
            if not inflater.eof:
                raise _Broken("a compressed element has no end")
            kind, body, _ = _element(memoryview(unpacked), order)
        if kind != _MATRIX:
            raise _Broken(f"an element of type {kind}, not an array")
        room -= len(body)
        at += used
        yield body, order


def _element(content: memoryview, order: str) -> tuple[int, memoryview, int]:
    """The first element: its type, its bytes, and where the next one begins."""
    if len(content) < 8:
        raise _Broken(f"{len(content)} bytes where an element begins")
    kind, length = struct.unpack(f"{order}II", content[:8])
    if kind >> 16:  # up to four bytes are packed into the tag itself
        kind, length, start, used = kind & 0xFFFF, kind >> 16, 4, 8
    else:
        start, used = 8, 8 + length
        if kind != _COMPRESSED:  # alone not padded to a multiple of 8
            used += -length % 8
    if start + length > min(len(content), used):
        raise _Broken(f"an element of {length:,} bytes, of which {len(content) - start:,} are there")
    return kind, content[start : start + length], used


def _variable(content: memoryview, order: str) -> _Variable:
    parts = []
    for expected in (_UINT32, _INT32, _INT8):  # flags, dimensions, name
        kind, body, used = _element(content, order)
        if kind != expected:
            raise _Broken(f"an array with a part of type {kind} instead of {expected}")
        parts.append(body)
        content = content[used:]
    flags, dimensions, name = parts
    if len(flags) != 8 or not len(dimensions) or len(dimensions) % 4:
        raise _Broken("an array without flags or dimensions")
    first = struct.unpack(f"{order}I", flags[:4])[0]
    number, bits = first & 0xFF, first >> 8 & 0xFF
    kind_of = "numbers" if number in _NUMBERS else f"a {_CLASSES.get(number, f'class {number}')} array"
    if kind_of == "numbers" and bits & (_LOGICAL | _COMPLEX):
        kind_of = "a logical array" if bits & _LOGICAL else "an array of complex numbers"
    shape = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    if min(shape) < 0:
        raise _Broken("an array with a negative dimension")
    return _Variable(bytes(name).decode("latin-1"), kind_of, shape, content, order)


def _choose(path: Path, name: str, variables: list[_Variable]) -> _Variable:
    matching = [variable for variable in variables if variable.name == name]
    if len(matching) != 1:
        names = ", ".join(variable.name for variable in variables)
        times = "there several times" if matching else f"not among its variables ({names})"
        raise DataError(f"{path}: variable {name!r} is {times}; is it the right file?")
    if matching[0].kind != "numbers":
        raise DataError(f"{path}: variable {name!r} is {matching[0].kind}, not real numbers; is it the right file?")
    return matching[0]


def _matrix(variable: _Variable) -> Array:
    """(n_rows, n_columns), as stored: MATLAB stores whole numbers as the shortest type that holds them."""
    kind, values, _ = _element(variable.values, variable.order)
    if kind not in _STORED:
        raise _Broken(f"numbers of type {kind}")
    stored = np.dtype(variable.order + _STORED[kind])
    if len(values) != stored.itemsize * math.prod(variable.shape):
        raise _Broken(f"{len(values):,} bytes for {' x '.join(map(str, variable.shape))} numbers of type {stored.name}")
    return np.frombuffer(values, stored).reshape(variable.shape, order="F")


def _is_integral(matrix: Array) -> Array:
    """(n_rows, n_columns) bool: which values are whole numbers that int64 has."""
    if matrix.dtype.kind == "f":
        return np.isfinite(matrix) & (np.floor(matrix) == matrix) & (np.abs(matrix) <= _EXACT)
    return matrix <= np.iinfo(np.int64).max


def _require(where: str, names: list[str], matrix: Array, right: Array, words: Mapping[str, str]) -> None:
    if right.all():
        return
    wrong = np.argwhere(~right)
    row, column = wrong[0]
    more = f" ({len(wrong):,} such values)" if len(wrong) > 1 else ""
    value = f"{matrix[row, column]:.17g}" if matrix.dtype.kind == "f" else matrix[row, column]
    cell = f"row {row + 1}, column {column + 1} ({names[column]})"
    raise DataError(f"{where}, {cell} is {value}, not {words[names[column]]}{more}; {_AGAIN}")
