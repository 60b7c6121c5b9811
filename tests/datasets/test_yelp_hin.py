from functools import partial
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from tasks.datasets import yelp_hin
from tasks.datasets.yelp_hin import FEATURES, SOURCE, ReadOptions
from tasks.papers.protocol import profiles
from tests.datasets import formats

NONE, ORDER = ReadOptions(time="none"), ReadOptions(time="order")
RATINGS, FRIENDS, COMPLIMENTS, CATEGORIES, CITIES = (
    "user_business.dat", "user_user.dat", "user_compliment.dat", "business_category.dat", "business_city.dat",
)  # fmt: skip
FILES = {
    RATINGS: "3\t20\t5\n1\t20\t4\n1\t10\t1\n",
    FRIENDS: "1\t3\t1\n3\t1\t1\n",
    COMPLIMENTS: "3\t11\t1\n3\t1\t1\n",
    CATEGORIES: "20\t7\t1\n20\t2\t1\n",
    CITIES: "20\t31\t1\n",
}


converted = partial(formats.converted, yelp_hin, options=NONE)


def test_every_field_arrives(folder: Path) -> None:
    raw = converted(folder)
    assert raw.scan("interactions").collect().rows() == [(3, 20, 5, None), (1, 20, 4, None), (1, 10, 1, None)]
    assert raw.scan("items").collect().rows() == [(10, None, []), (20, 31, [2, 7])]
    assert raw.scan("social").collect().rows() == [(1, 3, "friend"), (3, 1, "friend")]
    users = raw.scan("users").collect()
    assert users.columns == ["user", *(f"compliment-{number}" for number in range(1, 12))]
    assert users.rows() == [(1, *["no"] * 11), (3, "yes", *["no"] * 9, "yes")]
    assert (raw.schema.time, raw.schema.unique_pairs) == ("none", True)


def test_the_place_in_the_file_counts_as_time_only_where_that_is_said(folder: Path) -> None:
    raw = converted(folder, options=ORDER)
    assert raw.schema.time == "order"
    assert raw.scan("interactions").select("user", "item", "position").collect().rows() == [
        (3, 20, 0),
        (1, 20, 1),
        (1, 10, 2),
    ]
    assert "position" not in converted(folder, options=NONE).scan("interactions").collect_schema()
    with pytest.raises(ValidationError, match="time"):
        ReadOptions()


def test_the_real_files(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(yelp_hin, tmp_path, mirror)
    assert sum(file.stat().st_size for file in folder.iterdir()) == SOURCE.size
    raw = converted(folder)
    ratings, items, social, users = (raw.scan(name).collect() for name in ("interactions", "items", "social", "users"))
    assert (len(ratings), len(users), len(items), len(social)) == (198_397, 16_239, 14_284, 158_590)
    assert social["source"].n_unique() == 10_580
    backwards = social.select(source="target", target="source")
    assert len(social.join(backwards, on=["source", "target"], how="semi")) == len(social)
    received = users.select(pl.sum_horizontal(pl.col(feature.name) == "yes" for feature in FEATURES)).to_series()
    assert (received.sum(), (received > 0).sum()) == (76_875, 14_411)
    assert (items["city"].n_unique() - 1, items["city"].null_count()) == (47, 14_284 - 14_267)
    assert items["categories"].list.len().sum() == 40_009
    assert items["categories"].explode().drop_nulls().n_unique() == 511
    everybody = pl.DataFrame({"id": range(16_239), "original": users["user"]})
    assert profiles(raw, everybody)[0]["compliment-1"].null_count() == 0
