"""Large tables of interactions as numbers: read a batch at a time, so that memory grows by eight bytes a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.datasets.tables import batches
from tasks.datasets.text import require_unique
from tasks.external.reading import PARQUET, Column, Names, Role, role_column, role_columns


@dataclass(frozen=True)
class Coded:
    """Interactions: (n,) users and items by number; a pair may be repeated.

    user_ids, item_ids: the id of each number; users whose rows are all left out have one, too.
    strangers: rows whose item is not in the catalogue, which are left out.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: pl.Series
    item_ids: pl.Series
    strangers: int


class _Coder:
    """Numbers ids in the order in which they are first seen, or by a list of all that there are (`closed`)."""

    def __init__(self, ids: pl.Series, *, closed: bool) -> None:
        self._codes = pl.DataFrame({"id": ids}).with_columns(code=pl.int_range(pl.len(), dtype=pl.Int32))
        self._closed = closed

    @property
    def ids(self) -> pl.Series:
        return self._codes["id"]

    def code(self, ids: pl.Series) -> pl.Series:
        """(n,) numbers of ids; closed: null for an id that the list does not have."""
        if not self._closed:
            new = pl.DataFrame({"id": ids.unique(maintain_order=True)}).join(self._codes, on="id", how="anti")
            numbers = pl.int_range(len(self._codes), len(self._codes) + len(new), dtype=pl.Int32, eager=True)
            self._codes = pl.concat([self._codes, new.with_columns(code=numbers)])
        return pl.DataFrame({"id": ids}).join(self._codes, on="id", how="left", maintain_order="left")["code"]


def parts(path: Path) -> list[Path]:
    """The files of a table: itself, or all Parquet files in a folder and below; a link that leads nowhere is one, too.

    Raises:
        DataError: a folder has none, or a link to a folder, which would not be read.
    """
    if not path.is_dir():
        return [path]
    within = sorted(path.rglob("*"))
    if linked := next((entry for entry in within if entry.is_symlink() and entry.is_dir()), None):
        raise DataError(f"{linked}: is a link to a folder; put its files there")
    files = [entry for entry in within if entry.suffix.lower() == PARQUET and not entry.is_dir()]
    if not files:
        raise DataError(f"{path}: holds no *{PARQUET}")
    return files


def coded(path: Path, names: Names, items: pl.Series | None = None) -> Coded:
    """Read a CSV or Parquet file, or all Parquet files of a folder.

    items: ids of the catalogue; None for the ids that are seen, in order of their text.

    Raises:
        DataError: see `tasks.external.reading.interactions`.
    """
    users = _Coder(pl.Series([], dtype=pl.String), closed=False)
    things = _Coder(pl.Series([], dtype=pl.String) if items is None else items, closed=items is not None)
    pieces, strangers = list[tuple[NDArray[np.int32], NDArray[np.int32]]](), 0
    for _, user, item in _ids(path, names, "user", "item"):
        codes = things.code(item)
        usable = codes.is_not_null()
        strangers += len(item) - int(usable.sum())
        pieces.append((users.code(user).filter(usable).to_numpy(), codes.drop_nulls().to_numpy()))
    both = [np.concatenate([np.empty(0, np.int32), *column]) for column in zip(*pieces, strict=True)]
    ids = things.ids
    if items is None:
        order = ids.arg_sort().to_numpy()
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order))
        both[1], ids = number[both[1]], ids.sort()
    return Coded(both[0], both[1], users.ids, ids, strangers)


def catalogue(path: Path, names: Names) -> pl.Series:
    """The ids of a table with a row for each item, in the order of their text: an order of rows may come from users.

    Raises:
        DataError: it has users, or an item twice, as ratings have; or see `coded`.
    """
    for file in parts(path):
        if (user := role_column(file, "user", names, required=False)) is not None:
            raise DataError(f"{file}: has users (column {user!r}); a catalogue has a row for each item, and no ratings")
    lines, ids = map(pl.concat, zip(*_ids(path, names, "item"), strict=True))
    require_unique(path, pl.DataFrame({"item": ids}), ["item"], 1 if path.is_dir() else lines)
    return ids.sort()


def _ids(path: Path, names: Names, *roles: Role) -> Iterator[list[pl.Series]]:
    """Numbers of lines and columns of ids, a batch at a time, of one file after another."""
    for file in parts(path):
        columns = role_columns(file, names, roles).values()
        for lines, rows in batches(file, None, dict.fromkeys(columns, Column("id"))):
            yield [lines, *(rows[column] for column in columns)]
