from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.errors import DataError
from tasks.papers.protocol import average, encode, links, ordering, renumber_survivors, select
from tests.protocols.tables import interactions, stored

ROWS = interactions((30, 7, 4, 3), (10, 7, None, 1), (10, 9, 2, None), (20, 9, float("nan"), 5), (20, 8, 5, 7))


@pytest.mark.parametrize(
    ("ranges", "left"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"rating": (2, 4)}, [0, 2]),
        ({"rating": (4, None)}, [0, 4]),
        ({"rating": (None, 4)}, [0, 2]),
        ({"rating": (None, None)}, [0, 2, 4]),
        ({"rating": (4, None), "timestamp": (7, 7)}, [4]),
    ],
)
def test_ranges_include_their_ends_and_hold_no_missing_value(
    ranges: dict[str, tuple[float | None, float | None]], left: list[int]
) -> None:
    assert select(ROWS.with_row_index().lazy(), ranges).collect()["index"].to_list() == left


@pytest.mark.parametrize("column", ["action", "word"])
def test_a_range_of_a_column_without_numbers_is_refused(column: str) -> None:
    with pytest.raises(DataError, match=f"column '{column}' of `keep` is not there or has no numbers.*'rating'"):
        select(ROWS.with_columns(word=pl.lit("a")).lazy(), {column: (0, 1)})


@pytest.mark.parametrize("ids", [pl.Int64, pl.String])
def test_coded_ids_are_in_the_order_of_the_published_ones(tmp_path: Path, ids: pl.DataType) -> None:
    table = ROWS.with_columns(pl.col("user", "item").cast(ids))
    start = encode(stored(tmp_path, {"interactions": table}), {"rating": (3, None)})
    assert start.user_ids.rows() == [(n, pl.Series([user]).cast(ids)[0]) for n, user in enumerate((10, 20, 30))]
    assert start.item_ids["original"].cast(pl.Int64).to_list() == [7, 8, 9]
    assert sorted(start.rows.select("user", "item", "rating").rows()) == [(1, 1, 5), (2, 0, 4)]
    assert start.rows.schema["user"] == start.rows.schema["item"] == pl.Int32
    published = start.published
    assert (published.users, published.items, published.interactions) == (3, 3, 5)


def test_nothing_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"of 5 none are left with keep = .*params.yaml"):
        encode(stored(tmp_path, {"interactions": ROWS}), {"rating": (9, None)})


def test_the_schema_says_what_orders_the_rows(tmp_path: Path) -> None:
    assert ordering(stored(tmp_path, {"interactions": ROWS})) is None
    placed = stored(
        tmp_path, {"interactions": ROWS.with_row_index("position").cast({"position": pl.Int64})}, time="order"
    )
    assert ordering(placed) == "position"


@given(codes=st.lists(st.integers(0, 9), min_size=1))
def test_ids_of_survivors_have_no_gaps_and_keep_their_order(codes: list[int]) -> None:
    ids = pl.DataFrame({"id": np.arange(10, dtype=np.int32), "original": list("abcdefghij")})
    actual, left = renumber_survivors(np.array(codes, dtype=np.int32), ids)
    expected = sorted(set(codes))
    assert left.rows() == [(n, "abcdefghij"[code]) for n, code in enumerate(expected)]
    assert actual.tolist() == [expected.index(code) for code in codes]
    assert actual.dtype == np.int32


def test_the_mean_of_repeated_ratings_is_one_row_whatever_their_order() -> None:
    rows = interactions((1, 1, 0.1, 5), (1, 1, 0.2, 6), (1, 1, 0.7, 1), (1, 2, 3, 9), (2, 1, None, 9))
    actual = average(rows)
    assert actual.select("user", "item").rows() == [(1, 1), (1, 2), (2, 1)]
    assert actual["rating"].to_list() == [pytest.approx(1 / 3), 3, None]
    assert actual["timestamp"].null_count() == 3
    assert all(average(rows.sample(fraction=1, shuffle=True, seed=seed)).equals(actual) for seed in range(10))


def test_links_between_two_users_kept_are_counted_down_to_one_of_each(tmp_path: Path) -> None:
    rows = [("a", "b", "trust"), ("b", "a", "trust"), ("a", "b", "trust"), ("a", "b", "like")]
    rows += [("c", "c", "trust"), ("c", "z", "trust"), ("z", "a", "trust")]
    social = pl.DataFrame(rows, ["source", "target", "relation"], orient="row")
    ids = pl.DataFrame({"id": np.arange(3, dtype=np.int32), "original": ["a", "b", "c"]})
    actual, steps = links(stored(tmp_path, {"social": social}), ids)
    assert actual.rows() == [(0, 1, "like"), (0, 1, "trust"), (1, 0, "trust")]
    assert [n for _, n in steps] == [7, 5, 4, 3]
