"""Epinions (Tang et al., 2012): ratings of products and trust between users, plain or in eleven time slots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from tasks.contracts import RatingScale
from tasks.datasets.fetch import FormFile, NoOptions, Options, Places, Source, copy_verified
from tasks.datasets.matlab import Range, read_matrix
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://www.cse.msu.edu/~tangjili/trust.html"


def _file(name: str, size: int | None = None, sha256: str | None = None) -> FormFile:
    return FormFile(
        name=f"epinions/{name}",
        page=PAGE,
        what=f"{name} of the Epinions data set",
        mirror_path=f"epinions/{name}",
        size=size,
        sha256=sha256,
    )


PLAIN = (
    _file("rating.mat"),  # nobody has published its checksum
    _file("trustnetwork.mat", 731_441, "9cd648ab98c2e02799bfed0ae186dbc8736e97178d18bf471cc168770f39cf0a"),
)
TIMED = (
    _file("rating_with_timestamp.mat", 3_704_431, "a92e055b71b2e6ca70875979af79b90ef23360f4573204cade9a381ac1958509"),
    _file(
        "epinion_trust_with_timestamp.mat", 596_309, "ec7f46784b8f03fa3c1cadea85e0f3991af5aec8629e7124fdd03dfedd5f6ace"
    ),
)
SOURCE = Source(
    name="epinions",
    address=PAGE,
    synthetic=False,
    holds="922,267 ratings by 22,164 users of 296,277 products in 11 time slots; 300,548 trust relations",
    size=4_300_740,
    entry="{source: epinions, obtain: {release: timestamps}, format: epinions, read: {}}",
    files=TIMED,
    licence=(
        "Epinions, collected by J. Tang, H. Gao, H. Liu and A. Das Sarma. No licence is stated: for research; "
        "publications must cite J. Tang, H. Gao and H. Liu, mTrust: Discerning Multi-Faceted Trust in a Connected "
        "World, WSDM 2012, https://doi.org/10.1145/2124295.2124309, and, for the time slots, J. Tang et al., eTrust: "
        "Understanding Trust Evolution in an Online World, KDD 2012, https://doi.org/10.1145/2339530.2339574. "
        "Do not redistribute."
    ),
)


class ObtainOptions(Options):
    """Which release."""

    release: Literal["plain", "timestamps"]
    """`timestamps` has time slots 1 to 11 for ratings and trust."""


ReadOptions = NoOptions
SCALE = RatingScale(low=1, high=5, step=1)
SLOTS: Range = (1, 11)
"""The authors cut the whole time into eleven parts (eTrust)."""
_RATING: dict[str, Range] = {
    "user": (1, None),
    "item": (1, None),
    "category": (1, None),
    "rating": (0, 5),
    "helpfulness": (0, None),
    "slot": SLOTS,
}
_TRUST: dict[str, Range] = {"source": (1, None), "target": (1, None), "slot": SLOTS}


def source(options: ObtainOptions) -> Source:
    """What is said about a release."""
    if options.release == "timestamps":
        return SOURCE
    return replace(
        SOURCE,
        holds="ratings of products; 355,754 trust relations",
        size=sum(file.size or 0 for file in PLAIN),
        files=PLAIN,
    )


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Put the release's two files into `folder`.

    Raises:
        DataError: a file cannot be had, or is not the published one.
    """
    copy_verified(source(options).files, folder, places)


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write interactions (with `category`, `helpfulness` and `slot`, int64) and social (with `slot`).

    A time slot is no time: it is a column of its own, `timestamp` is null, and the schema's `time` is "none", since
    most of a user's ratings share a slot and nothing says which of them came first. Copies of the plain release have
    four to six columns; what is not there is null. All rows are as published: repeated rows and self-loops stay.

    Trap: the two files of the release with time slots number their users independently. Who trusts whom there has no
    more to do with what they rated than chance has it (a test shows it), and no map between the numbers was published.

    Raises:
        DataError: a file is missing, is not what `matlab.read_matrix` takes, or both releases are there.
    """
    releases = [name for name in ("rating.mat", "rating_with_timestamp.mat") if (folder / name).is_file()]
    if len(releases) != 1:
        what = "both releases are" if releases else "no rating.mat or rating_with_timestamp.mat is"
        raise DataError(f"{folder}: {what} there; run the download stage again")
    if releases[0] == "rating.mat":
        ratings = read_matrix(folder / "rating.mat", "rating", _RATING, least=4)
        pairs = {name: allowed for name, allowed in _TRUST.items() if name != "slot"}
        trust = read_matrix(folder / "trustnetwork.mat", "trustnetwork", pairs)
    else:
        ratings = read_matrix(folder / "rating_with_timestamp.mat", "rating", _RATING)
        trust = read_matrix(folder / "epinion_trust_with_timestamp.mat", "trust", _TRUST)
    nothing = pl.lit(None, pl.Int64)
    absent = {name: nothing for name in _RATING if name not in ratings.columns}
    ratings = ratings.with_columns(pl.col("rating").cast(pl.Float32), timestamp=nothing, **absent)
    ratings = ratings.select("user", "item", "rating", "timestamp", "category", "helpfulness", "slot")
    ratings.write_parquet(place / "interactions.parquet")
    if "slot" not in trust.columns:
        trust = trust.with_columns(slot=nothing)
    trust = trust.select("source", "target", pl.lit("trust").alias("relation"), "slot")
    trust.write_parquet(place / "social.parquet")
    write_raw_schema(RawSchema(tables=("interactions", "social"), scale=SCALE, unrated=0), place)
