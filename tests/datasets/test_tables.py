import functools
import gzip
import re
import time
import zipfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.core.errors import DataError
from tasks.datasets import tables
from tasks.datasets.tables import Column, batches, in_seconds, read_table

COLUMNS = {"user": Column("id"), "n": Column("whole"), "x": Column("number"), "word": Column("text", may_be_empty=True)}
HEADER = "user,note,n,word,x\n"
RECORD = '{"user": 7, "n": 1, "x": 1, "word": "w"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.csv"


def read(path: Path, separator: str | None = ",") -> list[tuple[object, ...]]:
    return [row for _, rows in batches(path, separator, COLUMNS) for row in rows.rows()]


def refused(path: Path, match: str, separator: str | None = ",") -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(path, separator)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing(path: Path, end: str, start: str) -> None:
    path.write_bytes(f"{start}{HEADER}7,,-3,é,1.5\nann,hello,9,,2".replace("\n", end).encode())
    assert read(path) == [("7", -3, 1.5, "é"), ("ann", 9, 2.0, None)]


def test_quotes_protect_separators_and_are_doubled_inside(path: Path) -> None:
    path.write_text(HEADER + '7,"a, b",3,"say ""yes""",1\n"8",,4,",",2\n')
    assert read(path) == [("7", 3, 1.0, 'say "yes"'), ("8", 4, 2.0, ",")]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("\n" + HEADER, "table.csv:1: is empty; the first line must name the columns"),
        ('[{"user": 7}]\n', "table.csv:1: is no JSON object; write one record a line"),
        ('[\n  {\n    "user": 7\n  }\n]\n', "table.csv:1: is no JSON object; write one record a line"),
        ("user;n;x;word\n1;2;3;w\n", r"no column 'user' \(has 'user;n;x;word'\); correct `read` .* or its separator"),
        ("user,n,x,word,user\n1,2,3,w,1\n", "table.csv:1: column 'user' is there 2 times"),
        (HEADER + "7,,3,w,1\n\n8,,3,w,1\n", "table.csv:3: 1 fields instead of 5"),
        (HEADER + '7,,3,"w",1\n8,,3,w\n', "table.csv:3: 4 fields instead of 5"),
        (HEADER + "7,,3,w,1\n8,,3.0,w,1\n", "table.csv:3: n is '3.0', not an integer"),
        (HEADER + "7,,3,w,1\n,,3,w,1\n", "table.csv:3: user is empty"),
        (HEADER + '7,"open,3,w,1\n8,,3,w,1\n', "table.csv:2: a quotation mark is in the wrong place"),
        (HEADER + '7,"a"b,3,"c\n8,d",3,w,1\n', "table.csv:2: a quotation mark is in the wrong place"),
        (HEADER + "7,,3,w,1\n8,,3,w,1 \n", "table.csv:3: x is '1 ', not a number"),
        (HEADER.replace("\n", "\r") + "7,,3,w,1\r", "table.csv:1: lines end in a carriage return alone; save"),
        ("user,n,x,word\n7,3,1,w\n8,3,1", "table.csv:3: 3 fields instead of 4"),  # where it may be empty
        ('user,n,x,word\n7,3,1,"w"\n8,3,1\n', "table.csv:3: 3 fields instead of 4"),
        ((HEADER + "7,,3,w,1\n8,,3,\xe9,1\n").encode("latin-1"), "csv:3: byte 0xe9 is not UTF-8; save the file as UTF"),
        (HEADER.encode("utf-16"), "table.csv:1: byte 0xff is not UTF-8"),
        (bytes(range(256)) * 20, "table.csv:1: holds a NUL byte|is not UTF-8"),
        ('{"user": 7, "n": 1, "x": 1, "word": "w"}\n{"user": 7,\n', "table.csv:2: is no whole JSON object"),
        (RECORD.replace('"n": 1, ', "") + RECORD, "table.csv:1: n is missing"),
        (RECORD + RECORD.replace('"n": 1', '"n": "many"'), "table.csv:2: n is 'many', not an integer"),
        (RECORD + RECORD.replace("7", "1e3"), "table.csv:2: user is a number with a point"),
        (RECORD + "\n" + RECORD, "table.csv:2: is no whole JSON object"),
        ('{"user": 7}\n' * 200 + RECORD, "table.csv:1: n is missing"),  # which only the last has
    ],
)
def test_a_malformed_table_is_named(path: Path, content: str | bytes, match: str) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(path, match)


def test_what_is_not_wanted_of_json_may_hold_anything(path: Path) -> None:
    path.write_text(RECORD.replace('"w"', '{"a": 1}, "other": 1') + RECORD.replace('"w"', '"w", "other": [1]'))
    assert [row[0] for row in read(path)] == ["7", "7"]


def test_a_table_of_very_many_columns_is_refused_at_once(path: Path) -> None:
    others = [f"c{number}" for number in range(100_000)]
    path.write_text(f"user,n,word,x,{','.join(others)}\n7,3,w,1{100_000 * ','}\n")
    started = time.process_time()
    refused(path, "table.csv:1: 100,004 columns, more than the limit of 10,000; leave some out")
    assert time.process_time() - started < 5


def test_a_first_line_without_end_is_refused_at_once(path: Path) -> None:
    path.write_bytes(b"user," * 1_000_000)
    refused(path, "table.csv:1: is longer than 1,048,576 bytes")


def test_many_columns_that_nobody_asked_for_cost_little(path: Path) -> None:
    path.write_text(f"{','.join(map(str, range(9_000)))},user,n,word,x\n{9_000 * ','}7,3,w,1\n")
    started = time.process_time()
    assert read(path) == [("7", 3, 1.0, "w")]
    assert time.process_time() - started < 5


FORMS = {
    "user;note;n;word;x\n7;;3;w;1\n8;a;4;;2\n\n\n": ("lines that are empty at the end", ".csv"),
    "user, note, n, word, x\n7, , 3, w, 1\n8, a, 4, , 2\n": ("blanks", ".csv"),
    "user, note, n, word, x\n7,,3,w,1\n8,a,4,,2\n": ("blanks in the header", ".csv"),
    "user:token\tnote:token\tn:float\tword:token_seq\tx:float\n7\t\t3\tw\t1\n8\ta\t4\t\t2\n": ("RecBole", ".inter"),
    "user::note::n::word::x\n7::::3::w::1\n8::a::4::::2\n": ("MovieLens", ".dat"),
    'note::user::n::word::x\n"a\n, b::c"::7::3::w::1\na::8::4::::2\n': ("MovieLens, quoted", ".dat"),
    'note, user, n, word, x\n"a\n, b::c", 7, 3, w, 1\na, 8, 4, , 2\n': ("blanks, quoted", ".csv"),
    '{"user": 7, "n": 3, "word": "w", "x": 1.0}\n{"user": 8, "n": 4, "x": 2, "word": null, "note": [1]}\n': (
        "JSON",
        ".json",
    ),
}
"""Tables of one content."""


@pytest.mark.parametrize("text", FORMS, ids=[name for name, _ in FORMS.values()])
@pytest.mark.parametrize("packed", ["", "gzip", "zip"])
def test_tables_are_read_as_people_have_them(path: Path, text: str, packed: str) -> None:
    path = path.with_suffix(FORMS[text][1])
    path.write_bytes(gzip.compress(text.encode()) if packed == "gzip" else text.encode())
    if packed == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/table", text)
    assert read(path, separator=None) == [("7", 3, 1.0, "w"), ("8", 4, 2.0, None)]


def test_numbers_without_a_header_are_in_the_order_of_movielens(path: Path) -> None:
    columns = {"user": Column("id"), "item": Column("id"), "rating": Column("number"), "timestamp": Column("whole")}
    for between in ("\t", "::", ","):
        path.write_text(between.join(["1", "17", "4.5", "881250949"]) + "\n")
        lines, rows = read_table(path, None, columns)
        assert (lines.to_list(), rows.rows()) == ([1], [("1", "17", 4.5, 881250949)])
    for other in ("1,2,3,4,5", "1,17,881250949", "1,17,881250949,4", "0,196,242,3"):
        path.write_text(f"{other}\n")
        refused(path, r"table.csv:1: no column 'user' \(has 'column_1', 'column_2'", separator=None)
        ((_, rows),) = batches(path, None, {"column_3": Column("number")})
        assert rows.rows() == [(float(other.split(",")[2]),)]
    path.write_text("0,1,2\n")
    refused(path, "table.csv:1: numbers the columns, or is data; put a line before it", separator=None)


def test_quoted_text_may_have_line_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "blocks", functools.partial(tables.blocks, size=8))
    path.write_text(HEADER + '7,,3,"a\nb, ""c""",1\n8,,4,,2\n')
    assert read(path) == [("7", 3, 1.0, 'a\nb, "c"'), ("8", 4, 2.0, None)]
    path.write_text(path.read_text() + '9,,5,"\n\n",3\n 9,,6,w,4\n')
    refused(path, "table.csv:8: user is ' 9'")
    path.write_text(path.read_text().replace(" 9", "9"))
    assert read_table(path, ",", COLUMNS)[0].to_list() == [2, 4, 5, 8]
    path.write_text(HEADER + '7,,3,5" disk,1\n8,,4,5" disk,1\n')
    refused(path, "table.csv:2: a quot")
    path.write_text(HEADER + '7,,3,w,1\n8,,4,5" disk,1\n9,,4,w,1\n')
    refused(path, "table.csv:3: a quot")
    path.write_text(HEADER + '7,,3,"w,1\n' + "8,,4,w,1\n" * 100)
    monkeypatch.setattr(tables, "BLOCK", 50)
    refused(path, "table.csv:2: a quot")
    monkeypatch.setattr(tables, "blocks", functools.partial(tables.blocks, size=7))  # each ends between quotes
    path.write_text(HEADER + '7,,3,"a\nb",1\n' * 40)
    assert read(path) == [("7", 3, 1.0, "a\nb")] * 40
    assert read_table(path, ",", COLUMNS)[0].to_list() == list(range(2, 82, 2))


@pytest.mark.parametrize("between", tables.LONGER_SEPARATORS)
def test_quotes_protect_separators_of_several_characters(path: Path, between: str) -> None:
    path.write_text(between.join(["user", "n", "x", "word"]) + "\n" + between.join(["7", "3", "1", f'"a{between}b"']))
    assert read(path, separator=None) == [("7", 3, 1.0, f"a{between}b")]


@pytest.mark.parametrize("wrong", [" 7", "7\n7", "7\0"])
def test_ids_with_blanks_around_them_or_control_characters_are_refused(path: Path, wrong: str) -> None:
    for file in (path.with_suffix(".parquet"), path.with_suffix(".jsonl")):
        rows = FRAME.with_columns(user=pl.Series(["7", wrong]))
        rows.write_parquet(file) if file.suffix == ".parquet" else rows.write_ndjson(file)
        refused(file, f":2: user is {re.escape(repr(wrong))}, not an id without blanks around it", separator=None)


def test_empty_text_is_empty_in_all_kinds_of_files(path: Path) -> None:
    rows = pl.DataFrame({"user": ["7", "8"], "n": [3, 4], "x": ["1", "2"], "word": ["w", ""]})
    for file in (path.with_suffix(".parquet"), path.with_suffix(".jsonl")):
        write = pl.DataFrame.write_parquet if file.suffix == ".parquet" else pl.DataFrame.write_ndjson
        write(rows, file)
        assert read(file, separator=None) == [("7", 3, 1.0, "w"), ("8", 4, 2.0, None)]
        write(rows.with_columns(user=pl.Series(["7", ""])), file)
        refused(file, ":2: user is empty", separator=None)


@pytest.mark.parametrize("name", ["table", "table.csv.bz2", "table.xlsx"])
def test_a_file_of_another_kind_is_refused(path: Path, name: str) -> None:
    path.with_name(name).write_text(HEADER + "7,,3,w,1\n")
    refused(path.with_name(name), f"{name}: is none of .csv, .*; save it as CSV or Parquet")


def test_damaged_archives_are_refused(path: Path) -> None:
    path.write_bytes(gzip.compress(HEADER.encode() * 1000)[:-20])
    refused(path, "table.csv: cannot be unpacked")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", HEADER)
        archive.writestr("b", HEADER)
    refused(path, "table.csv: holds 2 files; unpack the one that is meant")
    with zipfile.ZipFile(path, "w") as archive:
        pass
    refused(path, "table.csv: holds no text; unpack it")
    FRAME.write_parquet(path.with_suffix(".parquet"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(path.with_suffix(".parquet"))
    refused(path, r"table.csv: holds no text; unpack it, and name a table of Parquet \*\.parquet")


def test_lines_are_counted_across_blocks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "blocks", functools.partial(tables.blocks, size=50))
    path.write_text(HEADER + "".join(f"{n},,3,w,1\n" for n in range(40)))
    parts = list(batches(path, ",", COLUMNS))
    assert len(parts) > 5
    assert [user for lines, rows in parts for user in zip(rows["user"], lines, strict=True)] == [
        (str(n), n + 2) for n in range(40)
    ]
    with path.open("a") as file:
        file.write("40,,3,w\n")
    refused(path, "table.csv:42: 4 fields instead of 5")


FRAME = pl.DataFrame({"user": [7, 8], "n": [3, 4], "x": [1, 2], "word": ["w", None], "other": [1.0, 2.0]})


def test_parquet_gives_the_same_as_text(path: Path) -> None:
    parquet = path.with_suffix(".parquet")
    FRAME.write_parquet(parquet)
    FRAME.write_csv(path)
    assert read(parquet) == read(path) == [("7", 3, 1.0, "w"), ("8", 4, 2.0, None)]
    FRAME.cast({"word": pl.Categorical, "x": pl.String}).with_columns(pl.col("word").fill_null("")).write_parquet(
        parquet
    )
    assert read(parquet) == read(path)
    words = pa.array(["w", None])
    for word in (words.cast(pa.large_string()), words.cast(pa.string_view()), words.dictionary_encode()):
        numbers = {"user": pa.array([7, 8], pa.uint8()), "n": [3, 4], "x": pa.array([1, 2], pa.decimal128(5, 1))}
        pq.write_table(pa.table(numbers | {"word": word}), parquet)
        assert read(parquet) == read(path)


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("user", [1.0, 2.0], "column 'user' holds Float64, not whole numbers or text"),
        ("user", [1, None], "table.parquet:2: user is empty"),
        ("user", ["1", ""], "table.parquet:2: user is empty"),
        ("x", ["1", "one"], "table.parquet:2: x is 'one', not a number"),
        ("n", [1.0, 2.0], "column 'n' holds Float64, not whole numbers"),
        ("word", [1.0, 2.0], "column 'word' holds Float64, not text"),
        ("word", [[1], [2]], r"column 'word' holds List\(Int64\), not text"),
    ],
)
def test_a_column_of_parquet_of_the_wrong_type_is_named(
    path: Path, column: str, values: Sequence[object], match: str
) -> None:
    parquet = path.with_suffix(".parquet")
    FRAME.with_columns(pl.Series(column, values)).write_parquet(parquet)
    refused(parquet, match)


def test_an_empty_broken_or_other_parquet_file_is_refused(path: Path) -> None:
    parquet = path.with_suffix(".parquet")
    FRAME.clear().write_parquet(parquet)
    refused(parquet, "has no rows")
    FRAME.drop("n").write_parquet(parquet)
    refused(parquet, r"table.parquet: no column 'n' \(has 'user', 'x', 'word', 'other'\)")
    parquet.write_bytes(parquet.read_bytes()[:-20])
    refused(parquet, "not a readable Parquet file")
    parquet.write_text(HEADER)
    refused(parquet, "not a readable Parquet file")


def seconds(values: Sequence[object], kind: Literal["seconds", "milliseconds", "iso"]) -> list[int]:
    frame = pl.DataFrame({"when": values})
    return in_seconds(Path("t.csv"), frame, "when", pl.Series([2, 3][: len(values)]), kind)["when"].to_list()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-31", datetime(2024, 5, 31, tzinfo=UTC)),
        ("2024-05-31T18:30", datetime(2024, 5, 31, 18, 30, tzinfo=UTC)),
        ("2024-05-31 18:30:05", datetime(2024, 5, 31, 18, 30, 5, tzinfo=UTC)),
        ("2024-05-31T18:30:05.999", datetime(2024, 5, 31, 18, 30, 5, tzinfo=UTC)),
        ("2024-05-31T18:30:05Z", datetime(2024, 5, 31, 18, 30, 5, tzinfo=UTC)),
        ("2024-05-31T18:30+02:00", datetime(2024, 5, 31, 16, 30, tzinfo=UTC)),
        ("2024-05-31T18:30:05.5-05:30", datetime(2024, 6, 1, 0, 0, 5, tzinfo=UTC)),
    ],
)
def test_iso_times_become_seconds(text: str, moment: datetime) -> None:
    assert seconds([text], "iso") == [int(moment.timestamp())]


def test_times_of_parquet_become_seconds() -> None:
    noon = datetime(2024, 5, 31, 12, tzinfo=UTC)
    assert seconds([noon], "iso") == [int(noon.timestamp())]
    assert seconds([noon.astimezone(timezone(timedelta(hours=2)))], "iso") == [int(noon.timestamp())]
    assert seconds([noon.replace(tzinfo=None)], "iso") == [int(noon.timestamp())]
    assert seconds([date(2024, 5, 31)], "iso") == [int(noon.timestamp()) - 43_200]


@pytest.mark.parametrize(
    ("value", "kind", "match"),
    [
        (1_717_180_200_000, "seconds", r"t.csv:3: when is 1717180200000, not seconds .* \(are these milliseconds\?\)"),
        (-1, "seconds", "when is -1, not seconds between 1970 and 2100"),
        (5_000_000_000_000, "milliseconds", "not milliseconds between 1970 and 2100"),
        ("31.05.2024", "iso", "when is '31.05.2024', not a date and time as 2024-05-31T18:30:00"),
        ("2024-05-31T25:00", "iso", "not a date and time"),
        ("1717180200", "iso", "not a date and time"),
    ],
)
def test_a_time_that_is_none_is_named(
    value: object, kind: Literal["seconds", "milliseconds", "iso"], match: str
) -> None:
    right = {"seconds": 1, "milliseconds": 1, "iso": "2024-05-31"}[kind]
    with pytest.raises(DataError, match=match):
        seconds([right, value], kind)
