"""One matrix of whole numbers in a .mat file (MATLAB 5 to 7.2), as scipy reads it.

scipy takes a file at its word: on a corrupt one it may end the process. What is read has passed its checksum, or was
placed by the user where none is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import io

from tasks.errors import DataError

MAX_BYTES = 1 << 30
"""Limit on the size of a file, and on that of the matrix with 8 bytes a number."""
Range = tuple[int, int | None]
"""Lowest and highest value of a column; None where nothing is too high."""
Array = np.ndarray[Any, Any]
_TEXT = 116  # bytes of text that a file begins with
_EXACT = 2.0**53  # up to here every whole number is a double
_NUMBERS = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_AGAIN = "get the file again"


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

        Raises:
            DataError: the file is missing, not of MATLAB 5 to 7.2, or larger than the limit; the variable is missing,
                no matrix of real numbers, or of another width; a value is not a whole number, or not allowed (names row
                and column, counted from 1).
        """
        path = folder / self.file
        where, again = f"{path}: variable {self.variable!r}", "is it the right file?"
        widths = range(len(self.columns) if self.minimum is None else self.minimum, len(self.columns) + 1)
        try:
            with path.open("rb") as file:
                variables = {name: (shape, kind) for name, shape, kind in io.whosmat(file)}
                if self.variable not in variables:
                    raise DataError(f"{where} is not among its variables ({', '.join(variables)}); {again}")
                shape, kind = variables[self.variable]
                if kind not in _NUMBERS:
                    raise DataError(f"{where} is of type {kind}, not real numbers; {again}")
                size = " x ".join(map(str, shape))
                if len(shape) != 2 or shape[1] not in widths or not shape[0]:
                    wanted = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
                    raise DataError(
                        f"{where} is {size}, not rows of {wanted} columns ({', '.join(self.columns)}); {again}"
                    )
                if 8 * shape[0] * shape[1] > max_bytes:
                    raise DataError(f"{where} is {size}, more than the limit of {max_bytes:,} bytes")
                matrix = io.loadmat(file, variable_names=[self.variable])[self.variable]
        except FileNotFoundError:
            raise DataError(f"{path}: not found; run the download stage again") from None
        except DataError:
            raise
        except Exception as error:  # of any kind, where a file is not what its bytes say
            why = " ".join(str(error).split())
            raise DataError(f"{path}: is not a whole .mat file of MATLAB 5 to 7.2 ({why}); {_AGAIN}") from error
        if matrix.dtype.kind == "c":
            raise DataError(f"{where} is of complex numbers, not real ones; {again}")
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
