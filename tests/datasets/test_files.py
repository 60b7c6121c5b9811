from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.datasets import text
from tasks.datasets.files import Column, TextTable
from tasks.datasets.text import LATIN_1_OR_UTF_8
from tests.datasets.test_text import LINES, written

COLUMNS = {"user": Column(pl.Int32), "rating": Column(pl.Float64), "title": Column()}
TABLE = TextTable("table.csv", COLUMNS)
QUOTING = replace(TABLE, quoted=True)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ("31,x,film", "table.csv:31: rating is 'x', not a number"),
        ("31,15.5", "table.csv:31: 2 fields instead of 3"),
        ("31,15.5,film,31", "table.csv:31: 4 fields instead of 3"),
        ("31,,film", "table.csv:31: rating is empty"),
        ("3 1,15.5,film", "table.csv:31: user is '3 1', not an integer"),
        ("", "table.csv:31: 1 fields instead of 3"),
    ],
)
@pytest.mark.parametrize("size", [50, 1 << 20])
def test_a_bad_line_is_named_by_its_number_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, wrong: str, match: str
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    written(tmp_path, "\n".join([*LINES[:30], wrong, *LINES[31:]]))
    with pytest.raises(DataError, match=match) as caught:
        list(TABLE.batches(tmp_path))
    assert "\n" not in str(caught.value)


QUOTED = '1,2,"11\'09""01 - September 11, The (2002)"\r\n2,3,plain\r\n'


def test_a_quoted_field_may_hold_separators_and_quotes(tmp_path: Path) -> None:
    written(tmp_path, QUOTED)
    assert QUOTING.read(tmp_path).rows() == [(1, 2.0, "11'09\"01 - September 11, The (2002)"), (2, 3.0, "plain")]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ('3,4,"never closed', "table.csv:3: a quoted field does not end on its line"),
        ("3,four,one", "table.csv:3: rating is 'four', not a number"),
        ('3,4,""', "table.csv:3: title is empty"),
    ],
)
def test_a_bad_line_of_a_quoted_table_is_named(tmp_path: Path, wrong: str, match: str) -> None:
    for rest in ("", "\n4,5,film\n"):
        written(tmp_path, f"{QUOTED}{wrong}\n{rest.lstrip()}")
        with pytest.raises(DataError, match=match):
            QUOTING.read(tmp_path)


def test_row_numbers_count_from_below_the_header(tmp_path: Path) -> None:
    written(tmp_path, "user,rating,title\n1,2,x\n2,y,z\n")
    with pytest.raises(DataError, match=r"table.csv:3: rating is 'y'"):
        replace(TABLE, headed=True).read(tmp_path)
    with pytest.raises(DataError, match=r"table.csv:1: the header is 'user,rating,title', not 'a;b;c'"):
        replace(TABLE, headed="a;b;c").read(tmp_path)
    written(tmp_path, "user,rating,title\n")
    with pytest.raises(DataError, match="has a header and nothing else"):
        replace(TABLE, headed=True).read(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (Column(pl.Int32, 1), "0", "x is 0, not 1 or more"),
        (Column(pl.Int32, 1, 5), "6", "x is 6, not 1 to 5"),
        (Column(pl.Int32, 1, 1), "2", "x is 2, not 1"),
        (Column(pl.Float64, 0, 1), "nan", "x is nan, not 0 to 1"),
        (Column(values=("F", "M")), "X", "x is 'X', not F or M"),
        (Column(pattern="^a+$", what="letters a"), "b", "x is 'b', not letters a"),
    ],
)
def test_a_value_that_its_column_does_not_allow_is_named(
    tmp_path: Path, column: Column, value: str, message: str
) -> None:
    written(tmp_path, f"{value},7\n")
    with pytest.raises(DataError, match=f"table.csv:1: {message}"):
        TextTable("table.csv", {"x": column, "y": Column()}).read(tmp_path)


def test_values_of_another_file_and_keys_are_held_in_batches_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TextTable("table.csv", {"user": Column(pl.Int32), "item": Column(pl.Int32)}, unique=("user", "item"))
    written(tmp_path, "1,1\n1,2\n2,1\n1,2\n")
    for size in (1, 1 << 20):
        monkeypatch.setattr(text, "BLOCK", size)
        with pytest.raises(DataError, match=r":4: user 1, item 2 is repeated \(first on line 2\)"):
            list(table.batches(tmp_path))
        with pytest.raises(DataError, match=r":3: user is 2, not a user of users\.csv"):
            list(table.batches(tmp_path, {"user": (pl.Series([1]), "a user of users.csv")}))


ROWS = pl.DataFrame({"title": ["é, 1", 'a "b"', None], "user": [1, 2, 3], "rating": [0.5, 5.0, 1.0]})


@pytest.mark.parametrize(
    ("separator", "encoding", "quoted", "headed"),
    [
        (",", "utf-8", True, True),
        ("\t", "latin-1", False, False),
        ("::", LATIN_1_OR_UTF_8, False, "user::rating"),
        ("\t\t", "utf-8", False, False),
    ],
)
def test_what_a_declaration_writes_it_reads_back(
    tmp_path: Path, separator: str, encoding: str, quoted: bool, headed: bool | str
) -> None:
    columns = COLUMNS | {"title": Column(empty=True)}
    table = TextTable("a/table.csv", columns, separator, headed, encoding, quoted)
    table.write(tmp_path, [ROWS[:1], ROWS[1:]])
    assert table.read(tmp_path).equals(ROWS.select("user", "rating", "title").cast({"user": pl.Int32}))
    assert (tmp_path / "a/table.csv").read_bytes().count(b"\n") == 3 + bool(headed)


def test_a_quoted_field_may_go_over_lines_where_that_is_declared(tmp_path: Path) -> None:
    table = replace(QUOTING, multiline=True)
    rows = pl.DataFrame({"user": [1, 2], "rating": [1.0, 2.0], "title": ["two\nlines", "one"]})
    table.write(tmp_path, [rows])
    assert table.read(tmp_path).equals(rows.cast({"user": pl.Int32}))
    with pytest.raises(DataError, match=r"table\.csv:1: a quoted field does not end on its line"):
        QUOTING.read(tmp_path)
    for wrong, line in (('3,4,"never', 4), ("3,4", 4), ("3,x,y", 4)):
        with (tmp_path / "table.csv").open("a") as file:
            file.write(f"{wrong}\n")
        with pytest.raises(DataError, match=f"table.csv:{line}: "):
            table.read(tmp_path)
        table.write(tmp_path, [rows])
