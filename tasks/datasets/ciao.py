"""Ciao (Tang et al., 2012): ratings of products and trust between users, in two releases of the same ratings."""

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


PLAIN, TIMED, TRUST_FILE = form_files(
    "ciao",
    PAGE,
    "{} of the Ciao data set",
    {
        "rating.mat": (1_084_296, "aa793568686285a93286ba9e56954fcce347370ad2e58c785760362ab12d2c2c"),
        "rating_with_timestamp.mat": (1_529_576, "488e9aa5f60e6a52a972795b6402f922fc0d9d273152f4d124a5c5bdefb86a71"),
        "trustnetwork.mat": (204_371, "0a8963ed22e6b534ce8d14e478f54ce0af6f5a3440a67ed5a35e62486580ce3a"),
    },
)
"""Both releases have the same trust, as the authors' README says. Copies of the second one come with a trust.mat of
users 1 to 2378, whose ids are not those of the ratings: who trusts whom there has next to no product in common beyond
chance."""

SOURCE = Source(
    name="ciao",
    address=PAGE,
    synthetic=False,
    holds="284,086 ratings by 7,375 users of 105,114 products; 111,781 trust relations",
    size=1_288_667,
    entry="{source: ciao, obtain: {release: plain}, format: ciao, read: {}}",
    files=(PLAIN, TRUST_FILE),
    licence=(
        "Ciao, collected by J. Tang, H. Gao and H. Liu. No licence is stated: for research; publications must cite "
        "J. Tang, H. Gao and H. Liu, mTrust: Discerning Multi-Faceted Trust in a Connected World, WSDM 2012, "
        "https://doi.org/10.1145/2124295.2124309. Do not redistribute."
    ),
)


class ObtainOptions(Options):
    """Which release."""

    release: Literal["plain", "timestamps"]
    """`plain` has no times; the ratings are the same."""


ReadOptions = NoOptions
SCALE = RatingScale(low=1, high=5, step=1)
LATEST = 4_102_444_799
"""Last second of 2099: what is later is no time in seconds."""
_COLUMNS: dict[str, Range] = {
    "user": (1, None),
    "item": (1, None),
    "category": (1, None),
    "rating": (0, 5),
    "helpfulness": (0, None),
}
TRUST = Matrix("trustnetwork.mat", "trustnetwork", {"source": (1, None), "target": (1, None)})
RELEASES = {
    "plain": (Matrix("rating.mat", "rating", _COLUMNS), TRUST),
    "timestamps": (Matrix("rating_with_timestamp.mat", "rating", _COLUMNS | {"timestamp": (0, LATEST)}), TRUST),
}


def source(options: ObtainOptions) -> Source:
    """What is said about a release."""
    files = (PLAIN if options.release == "plain" else TIMED, TRUST_FILE)
    return replace(SOURCE, files=files, size=sum(file.size or 0 for file in files))


obtain = copied(source)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write interactions (with `category` and `helpfulness`, int64) and social (`trust`: source trusts target).

    Everything is as published: 34 ratings are 0, which the scale does not have, and 1,436 rows repeat a user and item.

    Raises:
        DataError: a file is missing, is not what `Matrix.read` takes, or both releases are there.
    """
    ratings, trust = read_release(folder, RELEASES)
    timed = "timestamp" in ratings.columns
    if not timed:
        ratings = ratings.with_columns(timestamp=pl.lit(None, pl.Int64))
    write_raw(
        destination,
        {
            "interactions": ratings.select("user", "item", "rating", "timestamp", "category", "helpfulness"),
            "social": trust.with_columns(relation=pl.lit("trust")),
        },
        scale=SCALE,
        unrated=0,
        time="seconds" if timed else "none",
    )
