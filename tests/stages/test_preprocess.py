"""Stage `preprocess`: tables that keep their contracts, from checked raw data only."""

import numpy as np
import polars as pl
import pytest

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.raw import read_raw
from tasks.datasets.encoding import encode
from tasks.pipeline.common import INTERIM, PROCESSED, QUALITY, RAW, digest, read_json
from tasks.stages import convert, download, preprocess
from tests.stages import tiny

pytestmark = pytest.mark.usefixtures("project", "converted")
FILES = {
    "interactions.parquet", "users.parquet", "schema.json", "user_ids.parquet", "item_ids.parquet", "source.json",
    "counts.json",
}  # fmt: skip


@pytest.fixture
def converted() -> None:
    download.main("demo")
    convert.main("demo")
    tiny.passed("raw", "demo")


def tables(name: str) -> tuple[contracts.Schema, pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    folder = PROCESSED / name
    schema = contracts.read_schema(folder / "schema.json")
    return (
        schema,
        contracts.read(folder / "interactions.parquet", contracts.INTERACTIONS),
        contracts.read(folder / "users.parquet", contracts.users_schema(schema.features)),
        contracts.read(folder / "user_ids.parquet", contracts.ID_MAP),
        contracts.read(folder / "item_ids.parquet", contracts.ID_MAP),
    )


def test_the_tables_are_the_raw_ones_under_dense_ids() -> None:
    preprocess.main("demo")
    assert {file.name for file in (PROCESSED / "demo").iterdir()} == FILES
    schema, interactions, users, user_ids, item_ids = tables("demo")
    assert (schema.n_users, schema.n_items, schema.synthetic) == (300, 500, True)
    assert users["user"].to_list() == user_ids["id"].to_list() == list(range(300))
    assert item_ids["original"].cast(pl.Int32).is_sorted()
    assert set(interactions["split"]) == set(contracts.SPLITS)
    back = (
        interactions.join(user_ids, left_on="user", right_on="id")
        .join(item_ids, left_on="item", right_on="id", suffix="_item")
        .select(
            pl.col("original").cast(pl.Int64).alias("user"),
            pl.col("original_item").cast(pl.Int64).alias("item"),
            "rating",
            "timestamp",
        )
    )
    raw = read_raw(INTERIM / "demo")
    assert back.sort("user", "item").equals(raw.scan("interactions").sort("user", "item").collect())
    assert users["occupation"].to_list() == raw.scan("users").sort("user").collect()["occupation"].to_list()
    assert np.abs(encode(users, schema.features)).max() <= 1
    assert read_json(PROCESSED / "demo" / "source.json")["synthetic"] is True


def test_the_order_of_the_raw_rows_does_not_matter_and_a_rerun_gives_the_same_bytes() -> None:
    preprocess.main("demo")
    before = digest(PROCESSED / "demo")
    for name in ("u.data", "u.user", "u.item"):
        file = RAW / "demo" / name
        file.write_bytes(b"\n".join(reversed(file.read_bytes().splitlines())) + b"\n")
    convert.main("demo")
    preprocess.main("demo")
    assert digest(PROCESSED / "demo") == before


def test_users_and_items_without_a_rating_get_no_id() -> None:
    file = RAW / "demo" / "u.data"
    kept = [line for line in file.read_text().splitlines() if line.split("\t")[0] != "7" and line.split("\t")[1] != "9"]
    file.write_text("\n".join(kept) + "\n")
    convert.main("demo")
    preprocess.main("demo")
    schema, interactions, users, user_ids, item_ids = tables("demo")
    assert (schema.n_users, schema.n_items) == (len(users), interactions["item"].n_unique()) == (299, 499)
    assert "7" not in user_ids["original"]
    assert "9" not in item_ids["original"]


def test_unchecked_failed_and_missing_raw_tables_stop_here_and_leave_nothing() -> None:
    def refused(match: str) -> None:
        with pytest.raises(DataError, match=match):
            preprocess.main("demo")
        assert not PROCESSED.exists()

    (INTERIM / "demo" / "users.parquet").unlink()
    refused(r"data/interim/demo/users\.parquet: no such table; run convert again")
    tiny.passed("raw", "demo", success=False)
    refused("data/quality/raw/demo.json: these data failed their check")
    (QUALITY / "raw" / "demo.json").unlink()
    refused("data/quality/raw/demo.json: not found")


def test_data_of_which_nothing_is_held_out_are_refused() -> None:
    """Eight interactions a user leave none to a validation part of 5 %."""
    rows = pl.read_parquet(INTERIM / "demo" / "interactions.parquet")
    kept = rows.filter(pl.int_range(pl.len()).over("user") < 8)
    kept.select(rows.columns).write_parquet(INTERIM / "demo" / "interactions.parquet")
    with pytest.raises(DataError, match=r"^demo: no interaction is in the valid part"):
        preprocess.main("demo")
    assert not PROCESSED.exists() or not list(PROCESSED.iterdir())
