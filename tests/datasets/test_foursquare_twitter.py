from functools import partial
from pathlib import Path

import polars as pl

from tasks.datasets import foursquare_twitter
from tasks.datasets.accounts import SIMHASH
from tasks.datasets.foursquare_twitter import INTERESTS, LABELS, OCCUPATIONS, VECTOR
from tests.datasets import formats

BITS = {feature.name: [0, 1, 1] for feature in SIMHASH}
USERS, TWITTER = "foursquare_users.parquet", "twitter_users.parquet"
FOLLOWS, VECTORS, ANCHORS = "foursquare_follows.parquet", "foursquare_text_vectors.parquet", "anchors.parquet"


def marked(size: int, *which: int) -> list[int]:
    return [int(number in which) for number in range(size)]


FILES = {
    USERS: pl.DataFrame(
        {
            "user": [0, 1, 2],
            **BITS,
            "count_a": [None, 7, None],
            "count_b": [1, 2, None],
            "count_c": [0, None, None],
            "tips": [5, 0, 1],
            "gender": [0, None, 1],
            "occupation": [marked(OCCUPATIONS, 17), marked(OCCUPATIONS, 0, 3), None],
            "interests": [marked(INTERESTS, 0, 8), None, marked(INTERESTS, 1)],
            "interests_joint": [marked(INTERESTS), marked(INTERESTS, 2), None],
        }
    ),
    TWITTER: pl.DataFrame(
        {"user": [0, 1, 3], **BITS, "tweets": [1, 2, 3], "following": [0, 0, 9], "followers": [4, 5, 6]}
    ),
    FOLLOWS: pl.DataFrame({"follower": [0, 1, 2], "followee": [1, 0, 0]}),
    VECTORS: pl.DataFrame({"user": [0, 2]} | {f"v{number}": [number / 2, -1.0] for number in range(VECTOR)}).cast(
        {f"v{number}": pl.Float32 for number in range(VECTOR)}
    ),
    ANCHORS: pl.DataFrame({"foursquare": [0, 2], "twitter": [3, 0]}),
}


converted = partial(formats.converted, foursquare_twitter)


def test_every_value_arrives(folder: Path) -> None:
    raw = converted(folder)
    foursquare, twitter = raw.network("foursquare"), raw.network("twitter")
    assert raw.scan("anchors").collect().rows() == [(0, 3), (2, 0)]
    users = foursquare.scan("users").collect()
    assert users.select("user", "count_a", "count_b", "count_c", "tips").rows() == [
        (0, None, 1, 0, 5),
        (1, 7, 2, None, 0),
        (2, None, None, None, 1),
    ]
    assert users["gender"].to_list() == ["0", None, "1"]
    assert users["occupation"].to_list() == ["17", "several", None]
    assert users["occupations"].to_list() == FILES[USERS]["occupation"].to_list()
    assert users["simhash_31"].to_list() == [0, 1, 1]
    labels = foursquare.scan("labels").collect()
    assert labels.select("user", *LABELS).rows() == [(0, *marked(9, 0, 8)), (1, *[None] * 9), (2, *marked(9, 1))]
    assert labels["joint_2"].to_list() == [0, 1, None]
    assert foursquare.scan("social").collect().rows() == [(0, 1, "follow"), (1, 0, "follow"), (2, 0, "follow")]
    vectors = foursquare.scan("vectors").collect()
    assert vectors["user"].to_list() == [0, 2]
    assert vectors["vector"].to_list() == [[number / 2 for number in range(VECTOR)], [-1.0] * VECTOR]
    assert twitter.scan("users").collect().select("user", "tweets", "following", "followers").rows() == [
        (0, 1, 0, 4),
        (1, 2, 0, 5),
        (3, 3, 9, 6),
    ]


def test_the_real_files(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(foursquare_twitter, tmp_path, mirror)
    raw = converted(folder)
    foursquare = raw.network("foursquare")
    tables = {name: foursquare.scan(name).collect() for name in foursquare.schema.tables}
    assert {name: table.height for name, table in tables.items()} == {
        "labels": 5_392,
        "social": 76_972,
        "users": 5_392,
        "vectors": 3_001,
    }
    assert raw.network("twitter").scan("users").collect().height == 5_223
    assert raw.scan("anchors").collect().height == 3_282
    users = tables["users"]
    known = users.select(pl.col("gender", "occupation", "count_a", "count_b", "count_c").count()).row(0)
    assert known == (2_224, 316, 242, 3_409, 3_007)
    assert (users["occupation"] == "several").sum() == 85
    assert tables["labels"].select(pl.col("interests_0", "joint_0").count()).row(0) == (3_637, 3_856)
