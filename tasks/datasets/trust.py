"""Ciao and Epinions (Tang et al., 2012): ratings of products and trust between users, each in two releases.

Their files are matrices of MATLAB 5 to 7.2, as scipy reads them. scipy takes a file at its word: on a corrupt one it
may end the process. What is read has passed its checksum, or was placed by the user where none is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import io

from tasks.core.contracts import RatingScale
from tasks.core.errors import DamagedError, DataError
from tasks.core.raw import write_raw
from tasks.datasets.fetch import NoOptions, Options, Places, Source, by_option, copy_files, form_files
from tasks.datasets.files import SECONDS, Column, check
from tasks.datasets.text import allow

PAGE = "https://www.cse.msu.edu/~tangjili/trust.html"
SCALE = RatingScale(low=1, high=5, step=1)
MAX_BYTES = 1 << 30
"""Limit on the size of a matrix with 8 bytes a number."""
_TEXT = 116  # bytes of text that a file begins with
_NUMBERS = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_ID = Column(low=1)
_RATING = {"user": _ID, "item": _ID, "category": _ID, "rating": Column(low=0, high=5), "helpfulness": Column(low=0)}
_TRUST = {"source": _ID, "target": _ID}
_SLOT = {"slot": Column(low=1, high=11)}
"""The authors cut the whole time into eleven parts (eTrust)."""
_TERMS = (
    "No licence is stated: for research; publications must cite J. Tang, H. Gao and H. Liu, mTrust: Discerning "
    "Multi-Faceted Trust in a Connected World, WSDM 2012, https://doi.org/10.1145/2124295.2124309"
)


class ReleaseOptions(Options):
    """Which release."""

    release: Literal["plain", "timestamps"]
    """Ciao: `plain` has no times; the ratings are the same. Epinions: `timestamps` has time slots 1 to 11 for ratings
    and trust."""


@dataclass(frozen=True)
class Matrix:
    """A file of which one variable is read: a matrix of whole numbers."""

    file: str
    """Its name in the folder of the data set."""
    variable: str
    columns: Mapping[str, Column]
    """Of the matrix, in their order, and which values each may have."""
    minimum: int | None = None
    """How many of them there must be, where releases differ (default: all); the others are then left out."""

    def read(self, folder: Path) -> pl.DataFrame:
        """The matrix as a table: int64 columns, rows in MATLAB's order, from 1.

        Raises:
            DataError: the file is missing, not of MATLAB 5 to 7.2, or larger than the limit; the variable is missing,
                no matrix of real numbers, or of another width; a value is not a whole number, or not allowed.
        """
        path = folder / self.file
        where, again = f"{path}: variable {self.variable!r}", "is it the right file?"
        widths = range(len(self.columns) if self.minimum is None else self.minimum, len(self.columns) + 1)
        try:
            with path.open("rb") as file:
                variables = {name: (shape, kind) for name, shape, kind in io.whosmat(file)}
                if self.variable not in variables:
                    raise DataError(f"{where} is not among its variables ({', '.join(variables)}); {again}")
                shape, kind = variables[self.variable]
                if kind not in _NUMBERS:
                    raise DataError(f"{where} is of type {kind}, not real numbers; {again}")
                size = " x ".join(map(str, shape))
                if len(shape) != 2 or shape[1] not in widths or not shape[0]:
                    wanted = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
                    raise DataError(
                        f"{where} is {size}, not rows of {wanted} columns ({', '.join(self.columns)}); {again}"
                    )
                if 8 * shape[0] * shape[1] > MAX_BYTES:
                    raise DataError(f"{where} is {size}, more than the limit of {MAX_BYTES:,} bytes")
                matrix = io.loadmat(file, variable_names=[self.variable])[self.variable]
        except FileNotFoundError:
            raise DamagedError(f"{path}: not found; run the download stage again") from None
        except DataError:
            raise
        except Exception as error:  # of any kind, where a file is not what its bytes say
            why = " ".join(str(error).split())
            raise DataError(
                f"{path}: is not a whole .mat file of MATLAB 5 to 7.2 ({why}); get the file again"
            ) from error
        if matrix.dtype.kind == "c":
            raise DataError(f"{where} is of complex numbers, not real ones; {again}")
        columns = dict(list(self.columns.items())[: matrix.shape[1]])
        table = pl.DataFrame({name: matrix[:, number] for number, name in enumerate(columns)})
        for name in columns:
            integral = pl.col(name) == pl.col(name).cast(pl.Int64, strict=False)
            allow(path, table, name, integral.fill_null(False), "a whole number")
        table = table.cast(pl.Int64)
        check(path, table, columns)
        return table

    def write(self, folder: Path, table: pl.DataFrame, kind: type[np.integer], header: str) -> None:
        """Write the file of a table's rows, whose columns are the first of `columns` in any order.

        Args:
            kind: of the numbers.
            header: text that the file begins with; of it 116 bytes are kept.
        """
        path, columns = folder / self.file, [name for name in self.columns if name in table.columns]
        matrix = np.asfortranarray(table.select(columns).to_numpy().astype(kind))
        io.savemat(path, {self.variable: matrix}, do_compression=True)
        with path.open("r+b") as file:  # in place of scipy's, which says when the file was written
            file.write(header.encode().ljust(_TEXT)[:_TEXT])


@dataclass(frozen=True)
class TrustNetwork:
    """One of the two data sets."""

    SOURCE: Source
    """The usual release."""
    source: Callable[[Any], Source]
    """That of a release."""
    releases: Mapping[str, tuple[Matrix, Matrix]]
    """Release -> ratings and trust."""
    more: tuple[str, ...] = ()
    """Columns of both tables, null in a release that has none."""
    ObtainOptions = ReleaseOptions
    ReadOptions = NoOptions

    def obtain(self, folder: Path, places: Places, options: ReleaseOptions) -> None:
        """Fill `folder` with the files of the release; errors as in `copy_files`."""
        copy_files(self.source(options).files, folder, places)

    def convert(self, folder: Path, destination: Path, _: NoOptions) -> None:
        """Write interactions (with `category` and `helpfulness`, int64) and social (`trust`: source trusts target).

        Everything is as published: 34 of Ciao's ratings are 0, which the scale does not have, rows repeat a user and
        item, and users trust themselves. A time slot is no time: it is a column of its own, `timestamp` is null, and
        the schema's `time` is "none", since most of a user's ratings share a slot and nothing says which came first.
        Copies of Epinions' plain release have four to six columns; what is not there is null.

        Trap: the two files of Epinions with time slots number their users independently. Who trusts whom there has no
        more to do with what they rated than chance has it (a test shows it), and no map of the numbers was published.
        """
        there = [matrices for matrices in self.releases.values() if (folder / matrices[0].file).is_file()]
        if len(there) != 1:
            names = " or ".join(ratings.file for ratings, _ in self.releases.values())
            raise DamagedError(f"{folder}: of {names} there are {len(there)}, not 1; run the download stage again")
        ratings, trust = (matrix.read(folder) for matrix in there[0])
        columns = ("user", "item", "rating", "timestamp", "category", "helpfulness", *self.more)
        social = trust.with_columns(relation=pl.lit("trust"))
        write_raw(
            destination,
            {
                "interactions": _with_null(ratings, columns),
                "social": _with_null(social, ("source", "target", "relation", *self.more)),
            },
            scale=SCALE,
            unrated=0,
            time="seconds" if "timestamp" in ratings.columns else "none",
        )


def _with_null(table: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """These columns; one that is not there is null."""
    nothing = pl.lit(None, pl.Int64)
    return table.select(name if name in table.columns else nothing.alias(name) for name in columns)


_PLAIN, _TIMED, _TRUST_FILE = form_files(
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
_CIAO = Source(
    name="ciao",
    address=PAGE,
    holds="284,086 ratings by 7,375 users of 105,114 products; 111,781 trust relations",
    entry="{source: ciao, obtain: {release: plain}, format: ciao, read: {}}",
    files=(_PLAIN, _TRUST_FILE),
    licence="Ciao, collected by J. Tang, H. Gao and H. Liu.",
    terms=f"{_TERMS}. Do not redistribute.",
)
PLAIN_TRUST = Matrix("trustnetwork.mat", "trustnetwork", _TRUST)
CIAO = TrustNetwork(
    _CIAO,
    by_option("release", {"plain": _CIAO, "timestamps": replace(_CIAO, files=(_TIMED, _TRUST_FILE))}),
    {
        "plain": (Matrix("rating.mat", "rating", _RATING), PLAIN_TRUST),
        "timestamps": (Matrix("rating_with_timestamp.mat", "rating", _RATING | {"timestamp": SECONDS}), PLAIN_TRUST),
    },
)
_FILES = form_files(
    "epinions",
    PAGE,
    "{} of the Epinions data set",
    {
        "rating.mat": None,  # no checksum is published
        "trustnetwork.mat": (731_441, "9cd648ab98c2e02799bfed0ae186dbc8736e97178d18bf471cc168770f39cf0a"),
        "rating_with_timestamp.mat": (3_704_431, "a92e055b71b2e6ca70875979af79b90ef23360f4573204cade9a381ac1958509"),
        "epinion_trust_with_timestamp.mat": (
            596_309, "ec7f46784b8f03fa3c1cadea85e0f3991af5aec8629e7124fdd03dfedd5f6ace",
        ),
    },
)  # fmt: skip
_EPINIONS = Source(
    name="epinions",
    address=PAGE,
    holds="922,267 ratings by 22,164 users of 296,277 products in 11 time slots; 300,548 trust relations",
    entry="{source: epinions, obtain: {release: timestamps}, format: epinions, read: {}}",
    files=_FILES[2:],
    licence="Epinions, collected by J. Tang, H. Gao, H. Liu and A. Das Sarma.",
    terms=(
        f"{_TERMS}, and, for the time slots, J. "
        "Tang et al., eTrust: Understanding Trust Evolution in an Online World, KDD 2012, "
        "https://doi.org/10.1145/2339530.2339574. Do not redistribute."
    ),
)
_SLOTTED = _RATING | _SLOT
EPINIONS = TrustNetwork(
    _EPINIONS,
    by_option(
        "release",
        {
            "plain": replace(_EPINIONS, holds="ratings of products; 355,754 trust relations", files=_FILES[:2]),
            "timestamps": _EPINIONS,
        },
    ),
    {
        "plain": (Matrix("rating.mat", "rating", _SLOTTED, minimum=4), PLAIN_TRUST),
        "timestamps": (
            Matrix("rating_with_timestamp.mat", "rating", _SLOTTED),
            Matrix("epinion_trust_with_timestamp.mat", "trust", _TRUST | _SLOT),
        ),
    },
    ("slot",),
)
