import calendar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl

from tasks.datasets import tmall
from tasks.datasets.tmall import ACTIONS, ObtainOptions, ReadOptions
from tasks.papers.protocol import profiles
from tests.datasets import formats

OFFICIAL, SMALL = ReadOptions(layout="official"), ReadOptions(layout="small")
LOG, INFO, FRAGMENT = "user_log_format1.csv", "user_info_format1.csv", "user_log_small.csv"
FILES = {
    LOG: """user_id,item_id,cat_id,seller_id,brand_id,time_stamp,action_type
7,500,12,90,33,1101,0
7,500,12,90,33,1101,0
7,501,12,90,,829,2
3,500,12,90,33,1111,3
""",
    INFO: """user_id,age_range,gender
3,6,0
7,8,1
8,0,2
9,,
10,7,1
11,1,0
""",
    FRAGMENT: """user_id,item_id,cat_id,merchant_id,brand_id,month,day,action,age_range,gender,province
7,500,12,90,33,11,01,0,0,1,上海市
7,500,12,90,33,11,01,0,5,2,山西
3,501,12,90,33,08,29,3,1,,
""",
}


converted = partial(formats.converted, tmall, options=OFFICIAL)


def seconds(month: int, day: int) -> int:
    return int(datetime(2014, month, day, tzinfo=UTC).timestamp())


def test_every_event_arrives_in_the_order_of_the_log(folder: Path) -> None:
    raw = converted(folder)
    rows = raw.scan("interactions").select("user", "item", "timestamp", "action", "day", "category", "seller", "brand")
    click = (7, 500, seconds(11, 1), ACTIONS.index("click"), 1101, 12, 90, 33)
    assert rows.collect().rows() == [
        click,
        click,
        (7, 501, seconds(8, 29), ACTIONS.index("buy"), 829, 12, 90, None),
        (3, 500, seconds(11, 11), ACTIONS.index("favourite"), 1111, 12, 90, 33),
    ]
    assert raw.scan("interactions").collect()["rating"].null_count() == 4
    assert (raw.schema.scale, raw.schema.time, raw.schema.unique_pairs) == (None, "seconds", False)


def test_codes_of_users_become_categories_and_unknown_ones_are_missing(folder: Path) -> None:
    raw = converted(folder)
    assert raw.scan("users").select("user", "gender", "age").collect().rows() == [
        (3, "female", "40-49"),
        (7, "male", "50+"),
        (8, None, None),
        (9, None, None),
        (10, "male", "50+"),
        (11, "female", "under-18"),
    ]
    assert all(feature.sensitive for feature in raw.schema.features)
    users, features = profiles(raw, pl.DataFrame({"id": [0, 1], "original": [9, 11]}))
    assert users.rows() == [(0, "unknown", "unknown"), (1, "female", "under-18")]
    assert [len(feature.categories) for feature in features] == [3, 8]


def test_every_day_of_a_year_has_its_own_time_in_order(folder: Path) -> None:
    header = FILES[LOG].splitlines()[0]
    lengths = {month: calendar.monthrange(2014, month)[1] for month in range(1, 13)}
    days = [100 * month + day for month, length in lengths.items() for day in range(1, length + 1)]
    (folder / LOG).write_text("\n".join([header, *(f"7,1,1,1,1,{day},0" for day in days)]) + "\n")
    times = converted(folder).scan("interactions").collect()["timestamp"]
    assert len(times) == 365
    assert (times.diff().drop_nulls() == 24 * 60 * 60).all()


def test_the_fragment_is_read_without_the_columns_that_were_filled_at_random(folder: Path) -> None:
    raw = converted(folder, options=SMALL)
    assert raw.schema.tables == ("interactions",)
    assert raw.schema.features == ()
    rows = raw.scan("interactions").select("user", "item", "timestamp", "action", "day", "seller").collect().rows()
    assert rows == [(7, 500, seconds(11, 1), 0, 1101, 90)] * 2 + [(3, 501, seconds(8, 29), 3, 829, 90)]


def test_the_real_fragment(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(tmall, tmp_path, mirror, ObtainOptions(layout="small"))
    assert [file.name for file in folder.iterdir()] == [FRAGMENT]
    rows = converted(folder, options=SMALL).scan("interactions").collect()
    assert (len(rows), rows["user"].n_unique(), rows["item"].n_unique()) == (9_999, 62, 5_915)
    counts = dict(rows["action"].value_counts().iter_rows())
    assert {ACTIONS[code]: count for code, count in counts.items()} == {"click": 8_750, "buy": 672, "favourite": 577}
    assert rows["timestamp"].min() >= seconds(5, 1)
    assert rows["timestamp"].max() <= seconds(11, 12)
