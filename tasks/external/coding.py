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
    """Read a table, or all Parquet files of a folder.

    items: ids of the catalogue; None for the ids that are seen, in order of their text.

    Raises:
        DataError: see `tasks.external.reading.interactions`.
    """
    user_ids = pl.Series([], dtype=pl.String)
    item_ids = user_ids if items is None else items
    pieces, strangers = list[pl.DataFrame](), 0
    for _, user, item in _ids(path, names, "user", "item"):
        user_ids = _with_new(user_ids, user)
        item_ids = _with_new(item_ids, item) if items is None else items
        rows = pl.DataFrame({"user": _numbers(user, user_ids), "item": _numbers(item, item_ids)})
        strangers += rows["item"].null_count()
        pieces.append(rows.drop_nulls())
    users, numbers = pl.concat(pieces)
    if items is None:
        numbers = (item_ids.rank("ordinal").cast(pl.Int32) - 1).gather(numbers)
        item_ids = item_ids.sort()
    return Coded(users.to_numpy(), numbers.to_numpy(), user_ids, item_ids, strangers)


def _with_new(ids: pl.Series, more: pl.Series) -> pl.Series:
    """These ids, and after them those that are new, in the order in which they are first seen."""
    return pl.concat([ids, more]).unique(maintain_order=True)


def _numbers(ids: pl.Series, among: pl.Series) -> pl.Series:
    """(n,) the number of each id among all; null for one that is not there."""
    return ids.cast(pl.Enum(among), strict=False).to_physical().cast(pl.Int32)


def catalogue(path: Path, names: Names) -> pl.Series:
    """The ids of a table with a row for each item, in the order of their text: an order of rows may come from users.

    Raises:
        DataError: it has users, or an item twice, as ratings have (of a folder, rows are counted through all its
            files); or see `coded`.
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
