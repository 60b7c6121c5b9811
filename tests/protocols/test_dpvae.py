from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.core.contracts import Feature, RatingScale
from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.datasets.movielens import ML_100K
from tasks.papers.dpvae.protocol import (
    Options,
    argsort,
    bounds,
    frequent,
    in_order,
    merge,
    most_recent,
    prepare,
    sample,
)
from tests.datasets import formats
from tests.protocols.tables import as_published, assert_same, interactions, random_interactions, stored

SCALE = RatingScale(low=1, high=5, step=1)
PAPER = Options(
    keep={}, sample=None, omega=0.05, delta=0.1, d=85.3, p_min=0.0017, omit=("users", "items"), test_share=0.1,
    valid_share=0.1, split_seed=0,
)  # fmt: skip


def changed(**options: object) -> Options:
    return Options.model_validate(PAPER.model_dump() | options)


def test_bounds_are_the_printed_ones() -> None:
    """[3, 1772] on ML-100K; docs/methods.md §4 finds d of about 85 and p_min of about 0.0017 behind it."""
    assert bounds(0.05, 0.1, 85.3, 0.0017) == (3, 1772)
    assert bounds(0.05, 0.1, 85, 0.0017) == (3, 1766)


@given(omega=st.floats(0.01, 0.99), delta=st.floats(0.01, 0.99), d=st.floats(1, 1e5), p_min=st.floats(0.001, 1))
def test_better_accuracy_needs_more_and_the_lower_bound_is_a_share_of_the_upper(
    omega: float, delta: float, d: float, p_min: float
) -> None:
    lower, upper = bounds(omega, delta, d, p_min)
    assert abs(lower - p_min * upper) <= 1
    assert bounds(omega / 2, delta, d, p_min)[1] >= 2 * upper - 1
    assert bounds(omega, delta / 2, d, p_min)[1] >= upper


def table(rows: list[tuple[int, int, int | None, int]], timed: bool = True) -> pl.DataFrame:
    schema = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32, "time": pl.Int64}
    frame = pl.DataFrame(rows, schema, orient="row")
    return in_order((frame if timed else frame.drop("time")).to_dict())


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=40
)


@given(key=st.lists(st.integers(0, 9)), step=st.sampled_from([1, 2**55, 2**59]))
def test_places_are_in_the_order_of_their_numbers_and_then_their_own(key: list[int], step: int) -> None:
    """However large the numbers: those that leave no room for places are sorted in another way."""
    numbers = [number * step for number in key]
    expected = sorted(range(len(key)), key=lambda place: (numbers[place], place))
    assert argsort(np.array(numbers, dtype=np.int64)).tolist() == expected


@given(rows=ROWS)
def test_rows_are_in_the_order_of_pair_time_and_rating(rows: list[tuple[int, int, int, int]]) -> None:
    expected = sorted(rows, key=lambda row: (row[0], row[1], row[3], row[2]))
    assert table(rows).rows() == expected


@given(rows=ROWS, timed=st.booleans())
def test_repeats_merge_one_by_one(rows: list[tuple[int, int, int, int]], timed: bool) -> None:
    actual = merge(table(rows, timed)).rows()
    ordered = sorted(rows, key=lambda row: (row[0], row[1], row[3], row[2]))
    expected = []
    for (user, item), group in groupby(ordered, key=lambda row: row[:2]):
        mine = list(group)
        m = len(mine)
        if timed:
            rating = sum(row[2] * 2 * t / (m * (m + 1)) for t, row in enumerate(mine, start=1))
            expected.append((user, item, pytest.approx(rating), mine[-1][3]))
        else:
            expected.append((user, item, pytest.approx(sum(row[2] for row in mine) / m)))
    assert actual == expected


def test_a_missing_rating_makes_the_merged_one_missing_and_no_other() -> None:
    actual = merge(table([(0, 0, None, 9), (0, 0, 4, 5), (0, 1, 3, 1), (0, 2, None, 1), (1, 0, 2, 1), (1, 0, 2, 2)]))
    assert actual["rating"].to_list() == [None, 3, None, 2]


@given(rows=ROWS, lower=st.integers(1, 6), omit=st.sampled_from([(), ("users",), ("items",), ("users", "items")]))
def test_the_few_are_omitted_once(rows: list[tuple[int, int, int, int]], lower: int, omit: tuple[str, ...]) -> None:
    frame = table(rows)
    pairs = frame.select("user", "item").rows()
    expected = [
        ("users" not in omit or sum(other[0] == user for other in pairs) >= lower)
        and ("items" not in omit or sum(other[1] == item for other in pairs) >= lower)
        for user, item in pairs
    ]
    assert frequent(frame, lower, omit).tolist() == expected


@given(rows=ROWS, n=st.integers(1, 10))
def test_the_most_recent_stay(rows: list[tuple[int, int, int, int]], n: int) -> None:
    frame = merge(table(rows))
    expected = []
    for _, group in groupby(frame.rows(), key=lambda row: row[0]):
        recent = sorted(group, key=lambda row: (row[3], row[1]))[-n:]
        expected += sorted(recent, key=lambda row: row[1])
    assert most_recent(frame, n).rows() == expected


def test_without_times_nobody_may_be_above_the_bound() -> None:
    frame = table([(0, item, 3, 0) for item in range(5)], timed=False)
    assert most_recent(frame, 5).equals(frame)
    with pytest.raises(DataError, match="1 users have more than 4, and nothing says which are the most recent"):
        most_recent(frame, 4)


def test_every_row_is_equally_likely_to_be_sampled() -> None:
    """Binomial over 600 seeds, 50 rows, 5 standard deviations: false alarm below 5e-5."""
    frame, runs = table([(0, item, 3, 0) for item in range(50)]), 600
    hits = np.zeros(50)
    for seed in range(runs):
        hits[sample(frame, 0.3, Uniforms.of(seed, [7], range(50)))["item"].to_numpy()] += 1
    assert np.abs(hits / runs - 0.3).max() < 5 * np.sqrt(0.3 * 0.7 / runs)


@pytest.fixture(scope="module")
def random_tables() -> dict[str, pl.DataFrame]:
    people = pl.DataFrame({"user": 10 + 7 * np.arange(80), "age": np.random.default_rng(1).integers(18, 60, 80)})
    return {"interactions": random_interactions(4000, 80, 60), "users": people}


SCHEMA = {"scale": SCALE, "time": "seconds", "features": (Feature(name="age", kind="numeric", low=18, high=60),)}
RANDOM = changed(keep={"rating": (2, None)}, sample=0.95, omega=0.1, d=1.0, p_min=0.4)  # bounds 17 and 43


def test_each_step_leaves_what_it_says(tmp_path: Path, random_tables: dict[str, pl.DataFrame]) -> None:
    prepared = prepare(stored(tmp_path / "raw", random_tables, **SCHEMA), RANDOM)
    assert RANDOM.bounds() == (17, 43)
    published, kept, drawn, once, omitted, recent = prepared.counts
    assert published.interactions == 4000
    assert drawn.interactions == pytest.approx(0.95 * kept.interactions, abs=300)
    assert kept.interactions == (random_tables["interactions"]["rating"] >= 2).sum()
    assert drawn.interactions > once.interactions > omitted.interactions > recent.interactions
    assert (once.users, once.items) != (omitted.users, omitted.items)
    actual = as_published(prepared, tmp_path / "processed")
    rows = actual["interactions"]
    assert rows.select("user", "item").equals(rows.select("user", "item").unique().sort("user", "item"))
    assert rows.group_by("user").len()["len"].max() == 43
    assert set(actual["user_ids"]["original"]) <= {str(user) for user in random_tables["users"]["user"]}
    counts = (recent.users, recent.items, recent.interactions)
    assert (
        counts
        == (len(actual["users"]), len(actual["item_ids"]), len(rows))
        == (prepared.n_users, prepared.n_items, len(rows))
    )
    assert rows["rating"].is_between(1, 5).all()


NO_BOUND = {"omega": None, "delta": None, "d": None, "p_min": None, "omit": ()}


def test_without_a_bound_everything_stays(tmp_path: Path, random_tables: dict[str, pl.DataFrame]) -> None:
    """As under a bound that no one reaches from above, with no one omitted; the other tests' bound leaves less."""
    raw = stored(tmp_path, random_tables, **SCHEMA)
    options = RANDOM.model_dump()
    original = prepare(raw, Options.model_validate(options | NO_BOUND))
    idle = prepare(raw, Options.model_validate(options | {"omit": (), "omega": 1e-3}))
    bounded = prepare(raw, RANDOM)
    assert original.counts == idle.counts[:4] == bounded.counts[:4]
    assert_same(replace(original, counts=idle.counts), idle)
    assert len(bounded.tables["interactions"]) < len(original.tables["interactions"])


@pytest.mark.parametrize("wrong", [{"omega": None}, {"d": None, "p_min": None}, NO_BOUND | {"omit": ("users",)}])
def test_half_a_bound_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="bound"):
        changed(**wrong)


def test_each_user_is_split_8_to_1_to_1(tmp_path: Path) -> None:
    rows = interactions(*((user, item, 3, item) for user in (1, 2, 3) for item in range(20 * user)))
    prepared = prepare(stored(tmp_path, {"interactions": rows}, time="seconds"), changed(omit=()))
    split = prepared.tables["interactions"]
    for user in range(3):
        mine = split.filter(pl.col("user") == user)["split"].cast(pl.String)
        assert [(mine == name).sum() for name in ("train", "valid", "test")] == [n * (user + 1) for n in (16, 2, 2)]
    other = prepare(stored(tmp_path, {"interactions": rows}, time="seconds"), changed(omit=(), split_seed=1))
    assert not other.tables["interactions"]["split"].equals(split["split"])


def test_without_times_repeats_are_averaged_and_no_time_is_made_up(tmp_path: Path) -> None:
    rows = interactions(*((1, item, 5, None) for item in range(5)), (1, 0, 2, None))
    prepared = prepare(stored(tmp_path, {"interactions": rows}, scale=SCALE), changed(omit=()))
    actual = prepared.tables["interactions"]
    assert actual["rating"].to_list() == [3.5, 5, 5, 5, 5]
    assert actual["timestamp"].null_count() == 5


def test_a_bound_that_nobody_reaches_is_refused(tmp_path: Path) -> None:
    raw = stored(tmp_path, {"interactions": interactions((1, 1, 5, 1), (2, 1, 5, 2))}, time="seconds")
    with pytest.raises(DataError, match=r"none are left \(users-and-items-omitted, least 3\)"):
        prepare(raw, PAPER)


@pytest.mark.parametrize(
    ("omit", "items", "ratings"), [(("users",), 1682, 100_000), (("users", "items"), 1473, 99_723)]
)
def test_ml_100k_is_the_paper_s_where_only_users_are_omitted(
    mirror: Path, tmp_path: Path, omit: tuple[str, ...], items: int, ratings: int
) -> None:
    """Table 2 has 943 / 1,682 / 100,000 after a step that should have taken the 209 films of one or two ratings."""
    raw = formats.converted(ML_100K, formats.obtained(ML_100K, tmp_path, mirror))
    prepared = prepare(raw, changed(omit=omit))
    last = prepared.counts[-1]
    assert (last.users, last.items, last.interactions) == (943, items, ratings)
    sizes = prepared.tables["interactions"]["split"].cast(pl.String).value_counts(sort=True)["count"].to_list()
    assert sizes == pytest.approx([0.8 * ratings, 0.1 * ratings, 0.1 * ratings], rel=0.01)
