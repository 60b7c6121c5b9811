from functools import partial
from pathlib import Path

import polars as pl

from tasks.datasets import ione
from tasks.datasets.ione import ANCHORS, TENTHS
from tests.datasets import formats

TRUTH = f"{ANCHORS}/groundtruth.number"


def training(tenths: int) -> str:
    return f"{ANCHORS}/groundtruth.{tenths}.foldtrain.train.number"


FILES = {
    "foursquare/following.number": "0 1\n1 5\n5 0\n5 0\n5 5\n2 0\n",
    "twitter/following.number": "2 0\n0 1\n1 2\n7 1\n",
    TRUTH: "2\n0\n1\n",
    **{training(tenths): "1\n" for tenths in TENTHS},
    training(9): "1\n2\n",
}


converted = partial(formats.converted, ione)


def test_what_is_published_arrives(folder: Path) -> None:
    raw = converted(folder)
    assert raw.schema.networks == ("foursquare", "twitter")
    foursquare, twitter = (raw.network(name) for name in raw.schema.networks)
    assert foursquare.scan("users").collect()["user"].to_list() == [0, 1, 2, 5]
    assert twitter.scan("users").collect()["user"].to_list() == [0, 1, 2, 7]
    follows = foursquare.scan("social").collect()
    assert follows.select("source", "target").rows() == [(0, 1), (1, 5), (5, 0), (5, 0), (5, 5), (2, 0)]
    assert follows["relation"].unique().to_list() == ["follow"]
    anchors = raw.scan("anchors").collect()
    assert anchors.select("source", "target", "train_1", "train_9").rows() == [
        (0, 0, False, False),
        (1, 1, True, True),
        (2, 2, False, True),
    ]


def test_the_real_files(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(ione, tmp_path, mirror)
    raw = converted(folder)
    actual = {
        name: (raw.network(name).scan("users").collect().height, raw.network(name).scan("social").collect().height)
        for name in raw.schema.networks
    }
    assert actual == {"foursquare": (5_313, 76_972), "twitter": (5_120, 164_919)}
    anchors = raw.scan("anchors").collect()
    assert anchors.height == 1_609
    training = anchors.select(pl.col("^train_.*$").sum()).row(0)
    assert training == (168, 349, 470, 624, 812, 968, 1_135, 1_282, 1_451)
