"""Stage `convert`: raw tables that keep their contract, or one line and nothing left behind."""

import json
from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.core.raw import read_raw
from tasks.pipeline.common import INTERIM, RAW, digest, read_json
from tasks.stages import convert, download

pytestmark = pytest.mark.usefixtures("project", "downloaded")


@pytest.fixture
def downloaded() -> None:
    download.main("demo")


def test_the_raw_tables_say_what_they_hold_and_where_they_come_from() -> None:
    convert.main("demo")
    raw = read_raw(INTERIM / "demo")
    assert raw.schema.tables == ("interactions", "items", "users")
    assert [feature.name for feature in raw.schema.features] == ["gender", "age", "occupation"]
    assert raw.scan("interactions").select(pl.len()).collect().item() == 17_757
    assert read_json(INTERIM / "demo" / "source.json")["synthetic"] is True
    before = digest(INTERIM / "demo")
    convert.main("demo")
    assert digest(INTERIM / "demo") == before


def test_a_malformed_file_leaves_nothing() -> None:
    file = RAW / "demo" / "u.data"
    file.write_text(file.read_text().replace("\t5\t", "\t6\t", 1))
    with pytest.raises(DataError, match=r"data/raw/demo/u\.data:\d+: rating is 6, not 1 to 5"):
        convert.main("demo")
    assert list(INTERIM.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda folder: (folder / "schema.json").unlink(), "schema.json: no such schema"),
        (lambda folder: (folder / "schema.json").write_text("{"), "schema.json: not a schema of raw tables"),
        (lambda folder: cast(folder / "interactions.parquet", "user"), "column 'user' is double, not id"),
        (lambda folder: order(folder / "schema.json"), "column 'position' is missing"),
    ],
)
def test_a_broken_table_is_named(change, match: str) -> None:  # type: ignore[no-untyped-def]
    convert.main("demo")
    change(INTERIM / "demo")
    with pytest.raises(DataError, match=match):
        read_raw(INTERIM / "demo")


def cast(path: Path, column: str) -> None:
    pl.read_parquet(path).with_columns(pl.col(column).cast(pl.Float64)).write_parquet(path)


def order(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"time": "order"}))
