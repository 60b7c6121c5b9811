"""Foursquare and Twitter as DP-CroSUE released them (Ren et al., 2022), pseudonymised: no names, places or texts.

Ids are those of a random permutation. What was taken away must not be looked for: never try to identify a
person, and never join this with other data about the same networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from tasks.contracts import Feature
from tasks.datasets.accounts import GENDER, SIMHASH, occupation, occupation_feature
from tasks.datasets.fetch import NoOptions, Source, copied, form_files
from tasks.datasets.files import Column, Listed, check
from tasks.datasets.tables import UNREADABLE
from tasks.datasets.text import allow, require_unique
from tasks.errors import DataError
from tasks.raw import write_raw

PAGE = "https://github.com/RingBDStack/DP-CroSUE"


FILES = form_files(
    "foursquare-twitter",
    PAGE,
    "{}, made of the release by anyone who keeps the mirror: the page has no pseudonymised copy",
    {
        "anchors.parquet": (13_445, "08db74ec90e3b675203a85443a75689994ab28d8f651b03b2eb959db66dae447"),
        "foursquare_follows.parquet": (170_358, "0610982973d1565f40d9044a76fe3e00ddd762ae03bb854705a71d4cb0940b96"),
        "foursquare_text_vectors.parquet": (
            3_343_356,
            "85f725d92a32a6c8359dc9fea14aa63ff9c07448bae267cb9943b5d5eebae861",
        ),
        "foursquare_users.parquet": (95_092, "581f4f2e77475429a994d09895a275d9cf56b9d274dcdcb897af9be6c5ab0479"),
        "twitter_users.parquet": (92_255, "674cd0e80cbc15b12af11822ebebfee5539f818a7f6aba8b6dd2b9608129512e"),
    },
)
SOURCE = Source(
    name="foursquare-twitter",
    address=PAGE,
    synthetic=False,
    holds=(
        "5,392 users of Foursquare with 76,972 follows, 5,223 of Twitter without; 3,282 are both; profile counts; "
        "gender, occupation, interests and text vectors of some of Foursquare; pseudonymised"
    ),
    size=3_714_506,
    entry="{source: foursquare_twitter, obtain: {}, format: foursquare_twitter, read: {}}",
    files=FILES,
    licence=(
        "DP-CroSUE's page names no licence: for research. Pseudonymous is not anonymous: do not redistribute, and do "
        "not try to identify anyone. Publications should cite J. Ren et al., Cross-Network Social User Embedding with "
        "Hybrid Differential Privacy Guarantees, CIKM 2022, and J. Zhang et al., BL-MNE, ICDM 2017."
    ),
)
ObtainOptions = ReadOptions = NoOptions

OCCUPATIONS, INTERESTS, VECTOR = 18, 9, 300
COUNTS = ("count_a", "count_b", "count_c")
"""Three counts of a Foursquare profile. Which is which is not said."""
LABELS = tuple(f"interests_{number}" for number in range(INTERESTS))
_INDICATORS = {"occupation": OCCUPATIONS, "interests": INTERESTS, "interests_joint": INTERESTS}
_TWITTER_COUNTS = ("tweets", "following", "followers")
_NUMBER, _BIT = Column(pl.Int64, 0), Column(pl.Int64, values=(0, 1))
_HASH = dict.fromkeys((feature.name for feature in SIMHASH), _BIT)
_LARGEST = float(np.finfo(np.float32).max)
_FOURSQUARE = (
    {"user": _NUMBER, **_HASH, **dict.fromkeys(COUNTS, replace(_NUMBER, empty=True)), "tips": _NUMBER}
    | {"gender": replace(_BIT, empty=True)}
    | dict.fromkeys(_INDICATORS, Column(pl.List(pl.Int64), empty=True))
)
_TWITTER = {"user": _NUMBER, **_HASH, **dict.fromkeys(_TWITTER_COUNTS, _NUMBER)}
_FINITE = Column(pl.Float32, -_LARGEST, _LARGEST, what="a finite number")
_VECTORS = {"user": Column(pl.Int64), **dict.fromkeys((f"v{n}" for n in range(VECTOR)), _FINITE)}
obtain = copied(lambda _: SOURCE)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write anchors (source: Foursquare, target: Twitter) and both networks, each in a folder of its own.

    foursquare: users with SimHash, three counts (null where missing), gender and occupation as features, and next to
    them `tips` (how many the user wrote; not among the authors' attributes) and `occupations`, a list of 18 indicators,
    null where not known. More than one may be set; the feature is then `several`. social: `follow`. vectors: of those
    whose texts have one. labels: `interests_*`, which the authors evaluate on; and, not in the schema, `joint_*`, the
    release's second set.
    twitter: users with SimHash and three counts. The release has no gender, occupation or interests of them, and their
    follows and texts are not here.
    """
    people, accounts = "foursquare_users.parquet", "twitter_users.parquet"
    users = _read(folder / people, _FOURSQUARE, ["user"])
    for name, size in _INDICATORS.items():
        _check_indicators(folder / people, users[name], size)
    twitter = _read(folder / accounts, _TWITTER, ["user"])
    member, account = (users["user"], f"a user of {people}"), (twitter["user"], f"a user of {accounts}")
    pair = {"follower": Column(pl.Int64), "followee": Column(pl.Int64)}
    follows = _read(folder / "foursquare_follows.parquet", pair, [], {"follower": member, "followee": member})
    vectors = _read(folder / "foursquare_text_vectors.parquet", _VECTORS, ["user"], {"user": member})
    pair = {"foursquare": Column(pl.Int64), "twitter": Column(pl.Int64)}
    anchors = _read(folder / "anchors.parquet", pair, list(pair), {"foursquare": member, "twitter": account})

    anchors = anchors.select(source="foursquare", target="twitter")
    write_raw(destination, {"anchors": anchors}, networks=("foursquare", "twitter"))
    profiles = users.drop("interests", "interests_joint").with_columns(
        pl.col("gender").cast(pl.String), occupation=occupation(pl.col("occupation")), occupations="occupation"
    )
    interests = {
        f"{new}_{number}": pl.col(name).list.get(number).cast(pl.Int8)
        for name, new in (("interests", "interests"), ("interests_joint", "joint"))
        for number in range(INTERESTS)
    }
    write_raw(
        destination / "foursquare",
        {
            "users": profiles,
            "labels": users.select("user", **interests),
            "social": follows.select(source="follower", target="followee", relation=pl.lit("follow")),
            "vectors": vectors.select("user", vector=pl.concat_arr(vectors.columns[1:])),
        },
        features=(*SIMHASH, *_numbers(COUNTS), GENDER, occupation_feature(OCCUPATIONS)),
        labels=LABELS,
    )
    write_raw(destination / "twitter", {"users": twitter}, features=(*SIMHASH, *_numbers(_TWITTER_COUNTS)))


def _numbers(names: tuple[str, ...]) -> tuple[Feature, ...]:
    return tuple(Feature(name=name, kind="numeric") for name in names)


def _check_indicators(path: Path, lists: pl.Series, size: int) -> None:
    text = pl.col(lists.name)
    right, what = text.str.contains(f"^[01]{{{size}}}$"), f"{size} times 0 or 1"
    if lists.name == "occupation":
        right, what = right & text.str.contains("1"), f"{what} and 1 at least once"
    allow(path, lists.cast(pl.List(pl.String)).list.join("").to_frame(), lists.name, right, what)


def _read(path: Path, columns: Mapping[str, Column], unique: list[str], listed: Listed | None = None) -> pl.DataFrame:
    """A Parquet file with exactly these columns, none of whose values is there twice in a column of `unique`."""
    try:
        table = pl.read_parquet(path, glob=False)
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    except UNREADABLE as error:
        why = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable Parquet file ({why}); run the download stage again") from error
    if missing := [name for name in columns if name not in table.columns]:
        raise DataError(f"{path}: column {missing[0]!r} is missing; is it the right file?")
    if extra := [name for name in table.columns if name not in columns]:
        raise DataError(f"{path}: column {extra[0]!r} is not expected; is it the right file?")
    for name, column in columns.items():
        if table.schema[name] != column.kind:
            raise DataError(
                f"{path}: column {name!r} is {table.schema[name]}, not {column.kind}; is it the right file?"
            )
        if not column.empty and table[name].null_count():
            raise DataError(f"{path}:{table[name].is_null().arg_true()[0] + 1}: {name} is missing")
    if table.is_empty():
        raise DataError(f"{path}: has no rows; run the download stage again")
    check(path, table, columns, listed)
    for name in unique:
        require_unique(path, table, [name])
    return table.select(*columns)
