"""Large tables of interactions as numbers: read a batch at a time, so that memory grows by eight bytes a row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.datasets.tables import batches
from tasks.errors import DataError
from tasks.external.reading import PARQUET, Column, Names, role_column, rows_of


@dataclass(frozen=True)
class Coded:
    """Interactions: (n,) users and items by number; a pair may be repeated.

    user_ids, item_ids: the id of each number.
    strangers: rows whose item is not in the catalogue, which are left out.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: pl.Series
    item_ids: pl.Series
    strangers: int


class _Coder:
    """Ids by number, in the order in which they are first seen."""

    def __init__(self, ids: pl.Series, *, closed: bool) -> None:
        self._codes = pl.DataFrame({"id": ids}).with_columns(code=pl.int_range(pl.len(), dtype=pl.Int32))
        self._closed = closed

    @property
    def ids(self) -> pl.Series:
        return self._codes["id"]

    def code(self, ids: pl.Series) -> pl.Series:
        """Null for an id that is not known, where no more are taken."""
        if not self._closed:
            new = pl.DataFrame({"id": ids.unique(maintain_order=True)}).join(self._codes, on="id", how="anti")
            numbers = pl.int_range(len(self._codes), len(self._codes) + len(new), dtype=pl.Int32, eager=True)
            self._codes = pl.concat([self._codes, new.with_columns(code=numbers)])
        return pl.DataFrame({"id": ids}).join(self._codes, on="id", how="left", maintain_order="left")["code"]


def parts(path: Path) -> list[Path]:
    """The files of a table: itself, or all Parquet files in a folder and below.

    Raises:
        DataError: a folder has none.
    """
    files = sorted(path.rglob(f"*{PARQUET}")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path}: holds no *{PARQUET}")
    return files


def coded(path: Path, names: Names, items: pl.Series | None = None) -> Coded:
    """Read a CSV or Parquet file, or all Parquet files of a folder.

    Args:
        items: ids of the catalogue; None for the ids that are seen, in order of their text.

    Raises:
        DataError: see `tasks.external.reading.interactions`.
    """
    users = _Coder(pl.Series([], dtype=pl.String), closed=False)
    things = _Coder(pl.Series([], dtype=pl.String) if items is None else items, closed=items is not None)
    pieces, strangers = list[tuple[NDArray[np.int32], NDArray[np.int32]]](), 0
    for file in parts(path):
        user, item = str(role_column(file, "user", names)), str(role_column(file, "item", names))
        columns = {user: Column("id"), item: Column("id")}
        for _, rows in batches(file, None, columns):
            codes = things.code(rows[item])
            usable = codes.is_not_null()
            strangers += len(rows) - int(usable.sum())
            pieces.append((users.code(rows[user]).filter(usable).to_numpy(), codes.drop_nulls().to_numpy()))
    both = [np.concatenate([np.empty(0, np.int32), *column]) for column in zip(*pieces, strict=True)]
    ids = things.ids
    if items is None:
        order = ids.arg_sort().to_numpy()
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order))
        both[1], ids = number[both[1]], ids.sort()
    return Coded(both[0], both[1], users.ids, ids, strangers)


def catalogue(path: Path, names: Names) -> pl.Series:
    """The ids of a table of items, each once, in the order of their text: an order of rows may come from users.

    Raises:
        DataError: it has users; or see `tasks.external.reading.rows_of`.
    """
    if (user := role_column(path, "user", names, required=False)) is not None:
        raise DataError(f"{path}: has users (column {user!r}); a catalogue is made without the ratings, of items alone")
    column = str(role_column(path, "item", names))
    return rows_of(path, {column: Column("id")})[column].unique().sort()
