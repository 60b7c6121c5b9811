from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.contracts import Feature, RatingScale
from tasks.core.errors import DataError
from tasks.datasets.movielens import ML_1M, ArchiveOptions, TimeOptions
from tasks.papers.dipsgnn.protocol import Options, prepare
from tasks.papers.protocol import Prepared, k_core
from tasks.pipeline.papers import describe
from tasks.results.printed import statistics
from tests.datasets import formats
from tests.protocols.tables import as_published, assert_same, interactions, stored

ALL = Options(keep={}, core=1, last=100, train_share=0.8, valid_share=0.1, split_seed=0, tie_seed=0)
SCALE = RatingScale(low=1, high=5, step=1)


def obvious_core(pairs: list[tuple[int, int]], k: int) -> list[tuple[int, int]]:
    """Take away one thing at a time, until nothing is too rare."""
    while True:
        users, items = Counter(user for user, _ in pairs), Counter(item for _, item in pairs)
        rare = next((pair for pair in pairs if users[pair[0]] < k or items[pair[1]] < k), None)
        if rare is None:
            return pairs
        pairs = [pair for pair in pairs if pair != rare]


@given(pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=60), k=st.integers(1, 5))
def test_the_core_is_what_taking_away_one_by_one_leaves(pairs: list[tuple[int, int]], k: int) -> None:
    users, items = (np.array(ids, dtype=np.int32) for ids in (list(zip(*pairs, strict=True)) or [[], []]))
    kept = k_core(users, items, k)
    assert [pair for pair, stays in zip(pairs, kept, strict=True) if stays] == obvious_core(pairs, k)


@pytest.fixture(scope="module")
def random_tables() -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(0)
    n = 6000
    items = rng.integers(0, 80, n)
    times = rng.integers(0, 200, n)  # many events at the same time, some of them the same twice
    table = pl.DataFrame(
        {
            "user": 10 + 7 * rng.integers(0, 60, n),
            "item": 1000 - items,
            "rating": rng.integers(1, 6, n).astype(np.float32),
            "timestamp": np.where(items < 5, 199, times),  # some come so late that they are test events alone
            "action": rng.integers(0, 3, n),
        }
    )
    people = pl.DataFrame({"user": 10 + 7 * np.arange(60), "age": rng.integers(18, 60, 60)})
    return {"interactions": table, "users": people}


@pytest.fixture(scope="module")
def without_ties(random_tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The same events, each at a time of its own."""
    rows = random_tables["interactions"].sort("timestamp").with_columns(timestamp=pl.int_range(6000, dtype=pl.Int64))
    return random_tables | {"interactions": rows}


SCHEMA = {"scale": SCALE, "time": "seconds", "features": (Feature(name="age", kind="numeric"),)}
RANDOM = Options(
    keep={"rating": (3, None), "action": (0, 1)},
    core=25,
    last=20,
    train_share=0.8,
    valid_share=0.2,
    split_seed=3,
    tie_seed=4,
)


def obvious(table: pl.DataFrame, options: Options) -> dict[int, list[tuple[int, int, bool]]]:
    """User -> (item, time, test) in the order of the sequence, with published ids, as docs/methods.md §3 words it."""
    rows = [row for row in table.iter_rows(named=True) if row["rating"] >= 3 and row["action"] <= 1]
    while True:
        users, items = Counter(row["user"] for row in rows), Counter(row["item"] for row in rows)
        left = [row for row in rows if min(users[row["user"]], items[row["item"]]) >= options.core]
        if len(left) == len(rows):
            break
        rows = left
    result = {}
    for user in sorted({row["user"] for row in rows}):
        mine = sorted((row["timestamp"], row["item"]) for row in rows if row["user"] == user)[-options.last :]
        result[user] = [(item, time, n >= int(len(mine) * options.train_share)) for n, (time, item) in enumerate(mine)]
    known = {item for mine in result.values() for item, _, test in mine if not test}
    return {user: [event for event in mine if event[0] in known or not event[2]] for user, mine in result.items()}


def test_sequences_are_those_of_the_obvious_way(tmp_path: Path, without_ties: dict[str, pl.DataFrame]) -> None:
    prepared = prepare(stored(tmp_path / "raw", without_ties, **SCHEMA), RANDOM)
    tables = as_published(prepared, tmp_path / "processed")
    expected = obvious(without_ties["interactions"], RANDOM)
    users, items = (tables[name]["original"].cast(pl.Int64).to_list() for name in ("user_ids", "item_ids"))
    assert users == sorted(expected)
    assert items == sorted({item for mine in expected.values() for item, _, _ in mine})
    actual = tables["interactions"]
    assert actual["user"].is_sorted()
    for code, user in enumerate(users):
        mine = actual.filter(pl.col("user") == code)
        rows = [
            (items[item], time, split == "test")
            for item, time, split in mine.select("item", "timestamp", "split").rows()
        ]
        assert rows == expected[user]
    assert tables["users"]["age"].to_list() == [
        without_ties["users"].filter(pl.col("user") == user)["age"].item() for user in users
    ]
    assert (prepared.n_users, prepared.n_items, prepared.repeats) == (len(users), len(items), True)


@pytest.mark.parametrize("unique", [True, False])
def test_no_item_is_repeated_where_raw_data_rule_it_out(
    tmp_path: Path, without_ties: dict[str, pl.DataFrame], unique: bool
) -> None:
    rows = without_ties["interactions"]
    tables = without_ties | {"interactions": rows.unique(["user", "item"]) if unique else rows}
    raw = stored(tmp_path, tables, **SCHEMA, unique_pairs=unique)
    prepared = prepare(raw, RANDOM.model_copy(update={"core": 2}))
    assert ("no-repeats" not in prepared.conditions) == unique
    assert prepared.tables["interactions"].select("user", "item").is_unique().all() == unique


def test_what_is_counted_is_what_each_step_left(tmp_path: Path, without_ties: dict[str, pl.DataFrame]) -> None:
    prepared = prepare(stored(tmp_path, without_ties, **SCHEMA), RANDOM)
    published, _, core, last, known = prepared.counts
    assert published.interactions == 6000
    sizes = [count.interactions for count in prepared.counts]
    assert all(before > after for before, after in pairwise(sizes))
    assert core.users == last.users == known.users == prepared.n_users
    assert (known.items, known.interactions) == (prepared.n_items, len(prepared.tables["interactions"]))
    assert last.interactions == 20 * last.users


def test_events_of_the_same_time_are_not_in_the_order_of_their_items(tmp_path: Path) -> None:
    """Of 4,000 transitions in a random order, half go up, with standard deviation 18 (neighbouring ones are not
    independent: (n + 1) / 12); within 5 of these."""
    rows = interactions(*((user, item, None, 1) for user in range(40) for item in range(101)))
    raw = stored(tmp_path, {"interactions": rows}, time="seconds")
    options = ALL.model_copy(update={"last": 101, "train_share": 0.999})
    tables = [prepare(raw, options.model_copy(update={"tie_seed": seed})).tables["interactions"] for seed in (0, 1)]
    orders = [table.filter(pl.col("split") != "test")["item"].to_numpy().reshape(40, 100) for table in tables]
    for order in orders:
        assert abs(int((np.diff(order) > 0).sum()) - 40 * 99 / 2) < 5 * 18.5
    assert (orders[0] != orders[1]).any()


def test_where_the_order_of_the_file_is_the_time_it_decides(tmp_path: Path) -> None:
    rows = interactions(*((1, item, None, None) for item in (5, 9, 7, 5, 8)))
    rows = rows.with_columns(position=pl.int_range(pl.len()))
    prepared = prepare(stored(tmp_path / "a", {"interactions": rows}, time="order"), ALL)
    assert prepared.tables["interactions"]["item"].to_list() == [0, 2, 1, 0]  # 8 comes last, and is new
    assert_same(prepare(stored(tmp_path / "b", {"interactions": rows.reverse()}, time="order"), ALL), prepared)


def test_without_any_order_there_are_no_sequences(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing says which came first"):
        prepare(stored(tmp_path, {"interactions": interactions((1, 1, 5, None))}), ALL)


def test_an_empty_core_is_refused(tmp_path: Path) -> None:
    rows = interactions((1, 1, 5, 1), (2, 1, 5, 2))
    with pytest.raises(DataError, match=r"none are left .core, least 2"):
        prepare(stored(tmp_path, {"interactions": rows}, time="seconds"), ALL.model_copy(update={"core": 2}))


def test_a_single_event_is_learnt_from_and_of_two_the_second_is_the_test(tmp_path: Path) -> None:
    rows = interactions((1, 7, 5, 1), (2, 7, 5, 2), (2, 7, 5, 1), (3, 7, 1, 5), (3, 8, 1, 6))
    prepared = prepare(stored(tmp_path, {"interactions": rows}, time="seconds"), ALL)
    actual = prepared.tables["interactions"].select("user", "timestamp", pl.col("split") == "test")
    assert actual.rows() == [(0, 1, False), (1, 1, False), (1, 2, True), (2, 5, False)]  # item 8 was not seen before
    assert prepared.tables["item_ids"]["original"].to_list() == ["7"]


def test_who_validates_changes_neither_test_nor_catalogue(
    tmp_path: Path, random_tables: dict[str, pl.DataFrame]
) -> None:
    raw = stored(tmp_path, random_tables, **SCHEMA)
    first, other = (
        prepare(raw, RANDOM.model_copy(update={"split_seed": seed})).tables["interactions"] for seed in (0, 1)
    )
    assert first.drop("split").equals(other.drop("split"))
    assert (first["split"] == "test").equals(other["split"] == "test")
    validating = [set(table.filter(pl.col("split") == "valid")["user"]) for table in (first, other)]
    assert validating[0] != validating[1]
    for table, users in zip((first, other), validating, strict=True):
        assert 0 < len(users) < 0.5 * table["user"].n_unique()
        assert not users & set(table.filter(pl.col("split") == "train")["user"])
        assert users <= set(table.filter(pl.col("split") == "test")["user"])


@pytest.fixture(scope="module")
def ml_1m(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """ML-1M without time stamps: the order of the file stands for them, which changes no count before the split."""
    archive = ArchiveOptions(archive="no-timestamps")
    folder = formats.obtained(ML_1M, tmp_path_factory.mktemp("ml-1m"), mirror, archive)
    raw = formats.converted(ML_1M, folder, TimeOptions(time="order"))
    return prepare(raw, ALL.model_copy(update={"keep": {"rating": (4, None)}, "core": 10}))


def test_ml_1m_has_the_paper_s_items_and_interactions(ml_1m: Prepared) -> None:
    """Table 1: 2,810 items and 365,535 interactions; its 5,945 users are 5,949 here, as in the paper's released code.

    Its items and its average length of 96.07 are those before the cut to 100, its interactions those after it.
    """
    published, kept, core, last, known = ml_1m.counts
    assert (published.users, published.items, published.interactions) == (6040, 3706, 1_000_209)
    assert kept.interactions == 348_971 + 226_310
    assert (core.users, core.items, core.interactions) == (5949, 2810, 571_531)
    assert round(core.interactions / core.users, 2) == 96.07
    assert (last.users, last.interactions) == (5949, 365_535)
    assert known.users == 5949


def test_what_the_papers_table_counts_does_not_depend_on_the_order_of_events(
    tmp_path: Path, without_ties: dict[str, pl.DataFrame]
) -> None:
    """So a copy without time stamps can be counted, though the items that the cut leaves differ."""
    counted, left = [], set()
    for seed in range(5):
        rows = without_ties["interactions"].with_columns(pl.col("timestamp").shuffle(seed=seed))
        options = RANDOM.model_copy(update={"last": 3})
        prepared = prepare(stored(tmp_path / str(seed), without_ties | {"interactions": rows}, **SCHEMA), options)
        steps = tuple(asdict(step) for step in prepared.counts)
        against: Any = SimpleNamespace(counts=steps, n_features=1, paper=describe("dipsgnn"))
        counted.append(statistics(against))
        left.add(next(step["items"] for step in steps if step["step"] == "last"))
    assert len(left) > 1
    assert counted == counted[:1] * 5
