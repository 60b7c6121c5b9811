"""Large or small text files, strictly: nothing is guessed, and what is wrong is named with its file and line.

`content` is for files that fit in memory; larger ones are read in `blocks` of whole lines, so that memory does not grow
with the file. `tasks.datasets.files` says what stands in the lines.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.errors import DamagedError, DataError

LATIN_1_OR_UTF_8 = "latin-1-or-utf-8"
"""Encoding of a file that some hands on re-encoded: one of the two, never both."""
YEAR_2100 = 4_102_444_800
"""In seconds since 1970. Time stamps from here on are milliseconds."""
BLOCK = 64 << 20
"""Bytes of a large file that are read at a time."""
LONGEST_LINE = 1 << 20
SHOWN = 80
"""Characters of a wrong text that a message shows."""


def content(path: Path, encoding: str = "utf-8") -> str:
    """The file's text.

    Args:
        encoding: a codec's name, or `LATIN_1_OR_UTF_8`.

    Raises:
        DataError: it is missing, empty, not of this encoding, or has a NUL byte (names the line).
    """
    try:
        raw = path.read_bytes()
        _refuse_nul(path, raw, 1)
        text = _decode(path, raw) if encoding == LATIN_1_OR_UTF_8 else raw.decode(encoding)
    except FileNotFoundError:
        raise _missing_file(path) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not {encoding}; is the file whole?") from None
    if not text.strip():
        raise _empty_file(path)
    return text


def _refuse_nul(path: Path, lines: bytes, line: int) -> None:
    """Text has none, and what reads it later may stop there."""
    if (at := lines.find(b"\0")) >= 0:
        number = line + lines.count(b"\n", 0, at)
        raise DataError(f"{path}:{number}: holds a NUL byte; is it a text file, in UTF-8 or Latin-1?")


def _missing_file(path: Path) -> DataError:
    return DamagedError(f"{path}: not found; run the download stage again")


def _empty_file(path: Path) -> DataError:
    return DamagedError(f"{path}: is empty; run the download stage again")


def _decode(path: Path, raw: bytes) -> str:
    if _is_utf_8(raw):
        return raw.decode()
    # Latin-1 decodes anything: a file of which some lines are UTF-8 would read without complaint, and wrongly.
    special = [(number, line) for number, line in enumerate(raw.split(b"\n"), start=1) if not line.isascii()]
    kinds = {_is_utf_8(line): number for number, line in reversed(special)}
    if len(kinds) == 2:
        raise DataError(
            f"{path}:{max(kinds.values())}: is {'UTF-8' if kinds[True] > kinds[False] else 'Latin-1'}, line "
            f"{min(kinds.values())} is not; one of the encodings is wrong, get the file again"
        )
    return raw.decode("latin-1")


def _is_utf_8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def require_header(path: Path, line: str, header: str) -> None:
    """Refuse a first line that is not `header`, with any line end.

    Raises:
        DataError: it differs.
    """
    if (line := line.removesuffix("\r")) != header:
        raise DataError(f"{path}:1: the header is {line[:SHOWN]!r}, not {header!r}; is it the right file?")


def only_header(path: Path) -> DataError:
    """What is said of a file without rows."""
    return DamagedError(f"{path}: has a header and nothing else; run the download stage again")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file; of one that is packed by gzip, or alone in a zip archive, those that are in it.

    Raises:
        DataError: the archive is damaged, encrypted, or holds another number of files than one.
    """
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        kind = file.read(4)
        file.seek(0)
        try:
            if kind.startswith(b"\x1f\x8b"):
                yield cast(IO[bytes], stack.enter_context(gzip.open(file)))
            elif kind == b"PK\x03\x04":
                archive = stack.enter_context(zipfile.ZipFile(file))
                names = [member.filename for member in archive.infolist() if not member.is_dir()]
                if len(names) != 1:
                    raise DataError(f"{path}: holds {len(names)} files; unpack the one that is meant")
                yield stack.enter_context(archive.open(names[0]))
            else:
                yield file
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise DataError(f"{path}: cannot be unpacked ({error}); get it again") from error


def blocks(path: Path, *, header: str | None = None, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a large file, about `size` bytes (`BLOCK`) at a time, with the number of their first line.

    Args:
        header: what the first line must be (it is not among the blocks); None where there is no header.

    Raises:
        DataError: the file is missing or empty; another header; a line is longer than `LONGEST_LINE`; a NUL byte.
    """
    if not path.is_file():
        raise _missing_file(path)
    with opened(path) as file:
        line = 1
        if header is not None:
            first_line = file.readline(LONGEST_LINE)
            if not first_line.strip():
                raise _empty_file(path)
            require_header(path, first_line.removesuffix(b"\n").decode(errors="backslashreplace"), header)
            line = 2
        start = line
        while lines := file.read(size or BLOCK):
            remainder = file.readline(LONGEST_LINE)
            lines += remainder
            if len(remainder) == LONGEST_LINE and not remainder.endswith(b"\n"):
                at = line + lines.count(b"\n")
                raise DataError(f"{path}:{at}: is longer than {LONGEST_LINE:,} bytes; is it the right file?")
            if line == start and lines.isspace():
                break
            _refuse_nul(path, lines, line)
            yield line, lines
            line += n_lines(lines)
        if line == start:
            raise _empty_file(path) if header is None else only_header(path)


def n_lines(text: bytes) -> int:
    """How many lines there are; a last one without line end counts."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


def line_count(path: Path) -> int:
    """Lines of a large file."""
    return sum(n_lines(lines) for _, lines in blocks(path))


def allow(
    path: Path,
    table: pl.DataFrame,
    column: str,
    allowed: pl.Expr,
    what: str,
    first_line: int | pl.Series = 1,
) -> None:
    """Refuse a table unless `allowed` is true for every row; missing values pass.

    first_line: number of the first row's line, or of every row's.

    Raises:
        DataError: names the first line, its value, what is allowed, and how many lines of the table are at fault.
    """
    wrong = table.select(row=(~allowed).arg_true())["row"]
    if len(wrong):
        value = table[column][wrong[0]]
        value = value[:SHOWN] if isinstance(value, str) else value
        more = f" (at least {len(wrong)} such lines)" if len(wrong) > 1 else ""
        line = wrong[0] + first_line if isinstance(first_line, int) else first_line[wrong[0]]
        raise DataError(f"{path}:{line}: {column} is {value!r}, not {what}{more}")


def require_unique(path: Path, table: pl.DataFrame, key: list[str], first_line: int | pl.Series = 1) -> None:
    """Refuse a table in which two rows have the same `key`.

    first_line: as `allow` has it.

    Raises:
        DataError: names both lines.
    """
    repeated = table.select(key).is_duplicated()
    if not repeated.any():
        return
    rows = table.select(key).with_row_index("row").filter(repeated)
    first = rows.row(0)[1:]
    same = pl.all_horizontal(pl.col(name) == value for name, value in zip(key, first, strict=True))
    again = rows.filter(same)["row"]
    lines = again + first_line if isinstance(first_line, int) else first_line.gather(again)
    raise repeat_error(path, dict(zip(key, first, strict=True)), lines[0], lines[1])


def repeat_error(path: Path, key: Mapping[str, object], first: int, again: int) -> DataError:
    """What is said of two lines with the same `key`."""
    named = ", ".join(f"{name} {value}" for name, value in key.items())
    return DataError(f"{path}:{again}: {named} is repeated (first on line {first}); keep one of these lines")


class Pairs:
    """Two int32 columns of a large file that must not have the same values twice: 8 bytes a row while it is read."""

    def __init__(self) -> None:
        self._keys: list[NDArray[np.int64]] = []

    def add(self, first: pl.Series, second: pl.Series) -> None:
        """Take the next rows of the file; ids are 0 or more."""
        self._keys.append((first.cast(pl.Int64).to_numpy() << 32) | second.to_numpy())

    def require_unique(self, path: Path, names: tuple[str, str], first_line: int = 1) -> None:
        """Refuse a pair that is there twice.

        Raises:
            DataError: names both lines.
        """
        keys = np.concatenate(self._keys)
        if (keys[1:] > keys[:-1]).all():
            return
        ordered = np.sort(keys)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            key = keys[np.isin(keys, twice)][0]
            lines = np.flatnonzero(keys == key) + first_line
            raise repeat_error(path, {names[0]: key >> 32, names[1]: key & 0xFFFFFFFF}, lines[0], lines[1])
