"""IONE's Twitter and Foursquare (Liu et al., 2016): who follows whom, and 1,609 people who are in both networks.

Users are numbers. The 1,609 have the same number in both networks; any other number that occurs in both stands for two
people: an alignment must not look at the numbers. Never try to identify a person,
and never join this with other data about the networks. All files have passed their checksums.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tasks.core.raw import write_raw
from tasks.datasets.fetch import NoOptions, Source, copied, form_files
from tasks.datasets.files import Column, TextTable

PAGE = "https://github.com/ColaLL/IONE"
NETWORKS = ("foursquare", "twitter")
ANCHORS = "twitter_foursquare_groundtruth"
TENTHS = range(1, 10)
"""Of the anchors, about so many tenths are for training in the published splits."""
_FOLLOWS = {
    "foursquare": (731_368, "a84dcaa22f1b13a3a4d94a6721a8171233f5f5fb41b0683e29598af5eb754f16"),
    "twitter": (1_567_528, "f5d46a7d1b562d88cad72855145d6e4c995eedf58847959e068bb18dfaf87d13"),
}
_GROUNDTRUTH = {
    "": (6_935, "aeb36e39855c980d891d5e6a6d8b1ef22f0107fc60e9e9f06cfe639a3cb3c434"),
    "1.foldtrain.test.": (6_217, "5c77d2ed35edcf7a7dd4e94e7f8e3610bc7d4ec00639292f9e4b94a00095cc31"),
    "1.foldtrain.train.": (718, "50efefe5c4cbee00a05137d5ab53622834b7b99c39b043eb2c9f19b0681a59a3"),
    "2.foldtrain.test.": (5_430, "f0c2c595d5a378fbc98991cc73337ab3afa0bf7daae4010c88eb02cffd7f3a8b"),
    "2.foldtrain.train.": (1_505, "50a317f60f882b51dbbfeb73f9bc9e068e50961ea565537b2756e4d57999f45d"),
    "3.foldtrain.test.": (4_895, "e592c4172ebc43d28c0c60e9b4a8c6cde66120c296afc25d91dd51c0709a312d"),
    "3.foldtrain.train.": (2_040, "e7914d9fcf0bcb45046f5364dff4f076712bd335639ec2f0ea714a0ec37f5bbc"),
    "4.foldtrain.test.": (4_275, "f5553a4ddecc7f3c43de54f0a0e472d40053fadfd1deab4d3f8cef6ecd4cf775"),
    "4.foldtrain.train.": (2_660, "d087ccbd529277f873326dbda9d8ffc4260ef93db44ffa770acedeae887f1d1b"),
    "5.foldtrain.test.": (3_438, "086c0aba9a1c79612d51cb2c094420156ce8c1800ce7f52c4ec9a871a78e3213"),
    "5.foldtrain.train.": (3_497, "012fcf791573599eda48bf9fff6034ae385f7b19adadef0c7dc44f274f7d6cac"),
    "6.foldtrain.test.": (2_773, "d62e01a093aa63d61964eced42d2cea45467f53c3719ee695317ba4567c65941"),
    "6.foldtrain.train.": (4_162, "8adf9a25766ce4d04388c7c8c90e6fc9bf76a36eee3037aee92ff96c9fd92f1d"),
    "7.foldtrain.test.": (2_041, "d53b2589f8186e14458b8f9250477fc9483182098a4dffdad096b8ae8f32eba0"),
    "7.foldtrain.train.": (4_894, "d06a24461d25b4590407685f097c3089a82ef14ab34e200371fad4907df66a20"),
    "8.foldtrain.test.": (1_420, "b4f4af701230cf079c11e5c0893354a52390b276f9f1ea57e0d04792da29aaec"),
    "8.foldtrain.train.": (5_515, "e3b6df0939975dd057c204bb96e75ae907d955c34db2d86884f2d4788d09cc4c"),
    "9.foldtrain.test.": (681, "55a2ed44c5e75eefa1ec35ff0e689b0b457ef1ca353f0a8b3cb436efd26971c3"),
    "9.foldtrain.train.": (6_254, "3d8d430b6ae0e093b80b373806afebbfa0b6d4829a873272a2e73e4427107afd"),
}
FILES = form_files(
    "ione",
    PAGE,
    "AcrossNetworkEmbeddingData/{}",
    {f"{name}/following.number": content for name, content in _FOLLOWS.items()}
    | {f"{ANCHORS}/groundtruth.{name}number": content for name, content in _GROUNDTRUTH.items()},
    mirror="foursquare-twitter/ione-topology",
)
SOURCE = Source(
    name="ione",
    address=PAGE,
    holds="5,313 users of Foursquare with 76,972 follows, 5,120 of Twitter with 164,919; 1,609 are both",
    entry="{source: ione, obtain: {}, format: ione, read: {}}",
    files=FILES,
    licence=(
        "For research only, as its page says; publications must cite J. Zhang and P. S. Yu, Integrated Anchor and "
        "Social Link Predictions across Social Networks, IJCAI 2015, whose data these are, and should cite L. Liu et "
        "al., Aligning Users across Social Networks Using Network Embedding, IJCAI 2016."
    ),
    terms="Do not redistribute, and do not try to identify anyone.",
)
ObtainOptions = ReadOptions = NoOptions
obtain = copied(lambda _: SOURCE)
_ID = Column(pl.Int64, 0)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write the networks `foursquare` and `twitter` (users, social: `follow`) and the anchors into `destination`.

    users: those who follow or are followed. anchors: the same number as source (Foursquare) and target (Twitter), and
    `train_1` to `train_9`, whether an anchor is for training in the published split of so many tenths.
    """
    follows = {
        name: TextTable(f"{name}/following.number", {"follower": _ID, "followee": _ID}, " ").read(folder)
        for name in NETWORKS
    }

    def anchors(which: str) -> pl.Series:
        table = TextTable(f"{ANCHORS}/groundtruth.{which}number", {"user": _ID}, " ", unique=("user",))
        return table.read(folder)["user"]

    chosen = {
        f"train_{tenths}": pl.col("source").is_in(anchors(f"{tenths}.foldtrain.train.").implode()) for tenths in TENTHS
    }
    both = pl.DataFrame({"source": anchors("").sort()}).with_columns(target="source", **chosen)
    write_raw(destination, {"anchors": both}, networks=NETWORKS)
    for name, table in follows.items():
        users = pl.concat([table["follower"], table["followee"]]).unique().sort().alias("user")
        social = table.select(source="follower", target="followee", relation=pl.lit("follow"))
        write_raw(destination / name, {"users": users.to_frame(), "social": social})
