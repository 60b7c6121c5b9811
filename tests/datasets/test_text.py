from pathlib import Path

import polars as pl
import pytest

from tasks.core import raw
from tasks.core.errors import DataError
from tasks.core.raw import raw_writer
from tasks.datasets import text
from tasks.datasets.text import LATIN_1_OR_UTF_8, Pairs, allow, blocks, content, line_count, n_lines, require_unique
from tests.datasets import formats

LINES = [f"{number},{number / 2},film {number}" for number in range(1, 41)]


def written(folder: Path, content: bytes | str) -> Path:
    return formats.write(folder, "table.csv", content)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("last", [True, False])
def test_blocks_hold_every_line_once_and_know_its_number(tmp_path: Path, size: int, end: str, last: bool) -> None:
    path = written(tmp_path, end.join(LINES) + end * last)
    assert line_count(path) == len(LINES)
    actual = list(blocks(path, size=size))
    assert b"".join(lines for _, lines in actual) == path.read_bytes()
    for first_line, lines in actual:
        assert lines.splitlines()[0].startswith(f"{first_line},".encode())
    assert actual[-1][0] + n_lines(actual[-1][1]) - 1 == len(LINES)


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LONGEST_LINE", 100)
    path = written(tmp_path, b"1\n2\n" + b"\x00" * 10_000)
    with pytest.raises(DataError, match=r"table.csv:3: is longer than 100 bytes"):
        list(blocks(path, size=10))


def test_a_reencoded_file_reads_as_the_original(tmp_path: Path) -> None:
    titles = "Misérables\nplain\nÅngström\n"
    for encoding in ("latin-1", "utf-8"):
        assert content(written(tmp_path, titles.encode(encoding)), LATIN_1_OR_UTF_8) == titles


@pytest.mark.parametrize("first", ["latin-1", "utf-8"])
def test_a_file_of_two_encodings_is_refused_by_line(tmp_path: Path, first: str) -> None:
    second = {"latin-1": "utf-8", "utf-8": "latin-1"}[first]
    path = written(tmp_path, "plain\né\né\n".encode(first) + "plain\né\n".encode(second))
    with pytest.raises(DataError, match=f"(?i)table.csv:5: is {second}, line 2 is not"):
        content(path, LATIN_1_OR_UTF_8)


def test_lines_at_fault_are_counted_as_far_as_they_were_read(tmp_path: Path) -> None:
    table = pl.DataFrame({"user": [1, 0, 0]})
    with pytest.raises(DataError, match=r":2: user is 0, not 1 or more \(at least 2 such lines\)"):
        allow(tmp_path, table, "user", pl.col("user") >= 1, "1 or more")
    with pytest.raises(DataError, match=":12: "):
        allow(tmp_path, table, "user", pl.col("user") >= 1, "1 or more", 11)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2), (1, 3), (2, 1)],
        [(2, 1), (1, 3), (1, 2), (2**31 - 1, 0), (0, 2**31 - 1)],
        [(5, 5), (1, 1), (7, 2), (1, 1), (5, 5), (1, 1)],
        [(1, 1), (1, 1)],
    ],
)
def test_pairs_in_blocks_are_judged_as_in_one_table(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    table = pl.DataFrame(rows, {"user": pl.Int32, "item": pl.Int32}, orient="row")
    pairs = Pairs()
    for start in range(0, len(table), 2):
        block = table.slice(start, 2)
        pairs.add(block["user"], block["item"])
    said = []
    for repeats in (
        lambda: require_unique(tmp_path, table, ["user", "item"], 2),
        lambda: pairs.require_unique(tmp_path, ("user", "item"), 2),
    ):
        try:
            said.append(repeats())
        except DataError as error:
            said.append(str(error))
    assert said[0] == said[1]
    assert (said[0] is None) == (len(set(rows)) == len(rows))


@pytest.mark.parametrize("group", [1, 2, 100])
def test_appended_rows_are_read_back_as_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    monkeypatch.setattr(raw, "ROW_GROUP", group)
    rows = {"user": [3, -1, 2**40], "item": [1, 1, 2], "rating": [0.5, 5.0, None], "timestamp": [10, 5, None]}
    table = pl.DataFrame(rows, schema_overrides={"rating": pl.Float32})
    with raw_writer(tmp_path / "table.parquet") as write:
        for start in range(3):
            write(table.slice(start, 1))
    assert pl.read_parquet(tmp_path / "table.parquet").equals(table)
