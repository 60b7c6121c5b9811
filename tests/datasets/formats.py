"""What tests of formats share: conversion of small files, and refusals in one line."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.core.raw import RawTables, read_raw
from tasks.datasets.fetch import NoOptions, Places


def converted(module: Any, folder: Path, options: Any = None, name: str = "interim") -> RawTables:
    """The raw tables of the files in `folder`, below it."""
    target = folder / name
    target.mkdir(exist_ok=True)
    module.convert(folder, target, options or NoOptions())
    return read_raw(target)


def refused(module: Any, folder: Path, match: str, options: Any = None) -> None:
    """Conversion fails in one line, which names the folder."""
    with pytest.raises(DataError, match=match) as caught:
        converted(module, folder, options)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value)) < 700


def places(root: Path, mirror: Path | str | None = None) -> Places:
    """Where files lie that a source takes: all below `root`, but for a mirror."""
    return Places(mirror and str(mirror), root / "placed", root / "downloads")


def obtained(module: Any, root: Path, mirror: Path | None = None, options: Any = None) -> Path:
    """The files of a source, in a folder below `root`."""
    folder = root / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    module.obtain(folder, places(root, mirror), options or NoOptions())
    return folder


def require_pseudonymous(raw: RawTables, n_users: int) -> None:
    """Of users the tables of a pair hold no text but what was posted and attributes, and only their new numbers."""
    kept = [pl.read_parquet(path) for path in raw.folder.rglob("*.parquet")]
    texts = {name for table in kept for name, kind in table.schema.items() if kind == pl.String}
    assert texts == {"relation", "text", "gender", "occupation"}
    numbers = {value for table in kept for value in table.select(pl.col("^(user|source|target)$")).to_numpy().flat}
    assert numbers <= {*range(n_users)}


def write(folder: Path, name: str, content: str | bytes | list[str] | pl.DataFrame) -> Path:
    """A file of a text, of bytes, of lines, or in Parquet."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pl.DataFrame):
        content.write_parquet(path)
        return path
    text = "".join(f"{line}\n" for line in content) if isinstance(content, list) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def change_line(path: Path, line: int, wrong: str, encoding: str = "utf-8") -> None:
    """Replace a line, counted from 1."""
    lines = path.read_bytes().decode(encoding).split("\n")
    lines[line - 1] = wrong
    path.write_bytes("\n".join(lines).encode(encoding))
