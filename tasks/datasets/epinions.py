"""Epinions (Tang et al., 2012): ratings of products and trust between users, plain or in eleven time slots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from tasks.contracts import RatingScale
from tasks.datasets.fetch import NoOptions, Options, Source, copied, form_files
from tasks.datasets.matlab import Matrix, Range, read_release
from tasks.raw import write_raw

PAGE = "https://www.cse.msu.edu/~tangjili/trust.html"


FILES = form_files(
    "epinions",
    PAGE,
    "{} of the Epinions data set",
    {
        "rating.mat": None,  # nobody has published its checksum
        "trustnetwork.mat": (731_441, "9cd648ab98c2e02799bfed0ae186dbc8736e97178d18bf471cc168770f39cf0a"),
        "rating_with_timestamp.mat": (3_704_431, "a92e055b71b2e6ca70875979af79b90ef23360f4573204cade9a381ac1958509"),
        "epinion_trust_with_timestamp.mat": (
            596_309,
            "ec7f46784b8f03fa3c1cadea85e0f3991af5aec8629e7124fdd03dfedd5f6ace",
        ),
    },
)
PLAIN, TIMED = FILES[:2], FILES[2:]
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
_TRUST: dict[str, Range] = {"source": (1, None), "target": (1, None)}
RELEASES = {
    "plain": (Matrix("rating.mat", "rating", _RATING, minimum=4), Matrix("trustnetwork.mat", "trustnetwork", _TRUST)),
    "timestamps": (
        Matrix("rating_with_timestamp.mat", "rating", _RATING),
        Matrix("epinion_trust_with_timestamp.mat", "trust", _TRUST | {"slot": SLOTS}),
    ),
}
VARIANTS = {
    "timestamps": SOURCE,
    "plain": replace(
        SOURCE,
        holds="ratings of products; 355,754 trust relations",
        size=sum(file.size or 0 for file in PLAIN),
        files=PLAIN,
    ),
}


def source(options: ObtainOptions) -> Source:
    """What is said about a release."""
    return VARIANTS[options.release]


obtain = copied(source)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write interactions (with `category`, `helpfulness` and `slot`, int64) and social (with `slot`).

    A time slot is no time: it is a column of its own, `timestamp` is null, and the schema's `time` is "none", since
    most of a user's ratings share a slot and nothing says which of them came first. Copies of the plain release have
    four to six columns; what is not there is null. All rows are as published: repeated rows and self-loops stay.

    Trap: the two files of the release with time slots number their users independently. Who trusts whom there has no
    more to do with what they rated than chance has it (a test shows it), and no map between the numbers was published.

    Raises:
        DataError: a file is missing, is not what `Matrix.read` takes, or both releases are there.
    """
    ratings, trust = read_release(folder, RELEASES)
    nothing = pl.lit(None, pl.Int64)
    ratings = ratings.with_columns(timestamp=nothing, **dict.fromkeys(_RATING.keys() - set(ratings.columns), nothing))
    if "slot" not in trust.columns:
        trust = trust.with_columns(slot=nothing)
    write_raw(
        destination,
        {
            "interactions": ratings.select("user", "item", "rating", "timestamp", "category", "helpfulness", "slot"),
            "social": trust.select("source", "target", pl.lit("trust").alias("relation"), "slot"),
        },
        scale=SCALE,
        unrated=0,
    )
