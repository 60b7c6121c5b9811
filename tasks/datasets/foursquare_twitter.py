"""Foursquare and Twitter as DP-CroSUE released them (Ren et al., 2022), pseudonymised: no names, places or texts.

Ids are those of a random permutation. What was taken away must not be looked for: never try to find out who somebody
is, and never join this with other data about the same networks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.contracts import Feature
from tasks.datasets.accounts import GENDER, SIMHASH, occupation, occupation_feature, require_known
from tasks.datasets.fetch import FormFile, NoOptions, Places, Source, copy_verified
from tasks.datasets.tables import from_arrow
from tasks.datasets.text import allow, require_unique
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://github.com/RingBDStack/DP-CroSUE"


def _file(name: str, size: int, sha256: str) -> FormFile:
    place = f"foursquare-twitter/{name}"
    what = f"{name}, made of the release by whoever keeps the mirror: the page has no pseudonymised copy"
    return FormFile(name=place, page=PAGE, what=what, mirror_path=place, size=size, sha256=sha256)


FILES = (
    _file("anchors.parquet", 13_445, "08db74ec90e3b675203a85443a75689994ab28d8f651b03b2eb959db66dae447"),
    _file("foursquare_follows.parquet", 170_358, "0610982973d1565f40d9044a76fe3e00ddd762ae03bb854705a71d4cb0940b96"),
    _file(
        "foursquare_text_vectors.parquet", 3_343_356, "85f725d92a32a6c8359dc9fea14aa63ff9c07448bae267cb9943b5d5eebae861"
    ),
    _file("foursquare_users.parquet", 95_092, "581f4f2e77475429a994d09895a275d9cf56b9d274dcdcb897af9be6c5ab0479"),
    _file("twitter_users.parquet", 92_255, "674cd0e80cbc15b12af11822ebebfee5539f818a7f6aba8b6dd2b9608129512e"),
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
        "not try to identify anybody. Publications should cite J. Ren et al., Cross-Network Social User Embedding with "
        "Hybrid Differential Privacy Guarantees, CIKM 2022, and J. Zhang et al., BL-MNE, ICDM 2017."
    ),
)
ObtainOptions = ReadOptions = NoOptions

OCCUPATIONS, INTERESTS, VECTOR = 18, 9, 300
COUNTS = ("count_a", "count_b", "count_c")
"""Three counts of a Foursquare profile. Which is which is not said."""
LABELS = tuple(f"interests_{number}" for number in range(INTERESTS))
_HASH = {feature.name: pl.Int64() for feature in SIMHASH}
_INDICATORS = {"occupation": OCCUPATIONS, "interests": INTERESTS, "interests_joint": INTERESTS}
_FOURSQUARE: dict[str, pl.DataType] = {
    "user": pl.Int64(),
    **_HASH,
    **dict.fromkeys((*COUNTS, "tips", "gender"), pl.Int64()),
    **dict.fromkeys(_INDICATORS, pl.List(pl.Int64)),
}
_TWITTER_COUNTS = ("tweets", "following", "followers")
_TWITTER: dict[str, pl.DataType] = {"user": pl.Int64(), **_HASH, **dict.fromkeys(_TWITTER_COUNTS, pl.Int64())}
_VECTORS: dict[str, pl.DataType] = {"user": pl.Int64()} | {f"v{n}": pl.Float32() for n in range(VECTOR)}


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with `FILES`.

    Raises:
        DataError: a file cannot be had, or is not the one that is known.
    """
    copy_verified(FILES, folder, places)


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write anchors (source: Foursquare, target: Twitter) and the networks `foursquare` and `twitter` into `place`.

    foursquare: users with SimHash, three counts (null where missing), gender and occupation as features, and beside
    them `tips` (how many the user wrote; not among the authors' attributes) and `occupations`, a list of 18 indicators,
    null where not known. More than one may be set; the feature is then `several`. social: `follow`. vectors: of those
    whose texts have one. labels: `interests_*`, which the authors evaluate on; and, not in the schema, `joint_*`, the
    release's second set.
    twitter: users with SimHash and three counts. The release has no gender, occupation or interests of them, and their
    follows and texts are not here.

    Raises:
        DataError: a file is missing or unreadable; a column is missing, unexpected or of another type; a value is
            missing or not allowed, or a vector not finite; a user, anchor or vector is there twice; an unknown user is
            named (names file and row, counted from 1).
    """
    path, seen = folder / "foursquare_users.parquet", folder / "twitter_users.parquet"
    users = _read(path, _FOURSQUARE, may_be_null={*COUNTS, "gender", *_INDICATORS})
    _check_users(path, users, (*COUNTS, "tips"))
    allow(path, users, "gender", pl.col("gender").is_in([0, 1]), "0 or 1")
    for name, size in _INDICATORS.items():
        _check_indicators(path, users[name], size)
    twitter = _read(seen, _TWITTER)
    _check_users(seen, twitter, _TWITTER_COUNTS)

    follows_path = folder / "foursquare_follows.parquet"
    follows = _read(follows_path, {"follower": pl.Int64(), "followee": pl.Int64()})
    for name in follows.columns:
        require_known(follows_path, follows, name, users["user"], path.name)
    vectors_path = folder / "foursquare_text_vectors.parquet"
    vectors = _read(vectors_path, _VECTORS)
    numbers = list(_VECTORS)[1:]
    if not vectors.select(pl.all_horizontal(pl.col(numbers).is_finite().all())).item():
        for name in numbers:
            allow(vectors_path, vectors, name, pl.col(name).is_finite(), "a finite number")
    require_known(vectors_path, vectors, "user", users["user"], path.name)
    require_unique(vectors_path, vectors, ["user"])
    anchors_path = folder / "anchors.parquet"
    anchors = _read(anchors_path, {"foursquare": pl.Int64(), "twitter": pl.Int64()})
    for name, people, where in (("foursquare", users, path), ("twitter", twitter, seen)):
        require_known(anchors_path, anchors, name, people["user"], where.name)
        require_unique(anchors_path, anchors, [name])

    anchors.select(source="foursquare", target="twitter").write_parquet(place / "anchors.parquet")
    write_raw_schema(RawSchema(tables=("anchors",), networks=("foursquare", "twitter")), place)
    (place / "foursquare").mkdir()
    _write_users(place / "foursquare", users)
    social = follows.select(source="follower", target="followee", relation=pl.lit("follow"))
    social.write_parquet(place / "foursquare/social.parquet")
    vectors.select("user", vector=pl.concat_arr(numbers)).write_parquet(place / "foursquare/vectors.parquet")
    features = (*SIMHASH, *_numbers(COUNTS), GENDER, occupation_feature(OCCUPATIONS))
    tables = ("labels", "social", "users", "vectors")
    write_raw_schema(RawSchema(tables=tables, features=features, labels=LABELS), place / "foursquare")
    (place / "twitter").mkdir()
    twitter.write_parquet(place / "twitter/users.parquet")
    write_raw_schema(RawSchema(tables=("users",), features=(*SIMHASH, *_numbers(_TWITTER_COUNTS))), place / "twitter")


def _numbers(names: tuple[str, ...]) -> tuple[Feature, ...]:
    return tuple(Feature(name=name, kind="numeric") for name in names)


def _write_users(place: Path, users: pl.DataFrame) -> None:
    people = users.with_columns(
        pl.col("gender").cast(pl.String), occupation=occupation(pl.col("occupation")), occupations="occupation"
    )
    people.drop("interests", "interests_joint").write_parquet(place / "users.parquet")
    interests = {
        f"{new}_{number}": pl.col(name).list.get(number).cast(pl.Int8)
        for name, new in (("interests", "interests"), ("interests_joint", "joint"))
        for number in range(INTERESTS)
    }
    users.select("user", **interests).write_parquet(place / "labels.parquet")


def _check_users(path: Path, users: pl.DataFrame, counts: tuple[str, ...]) -> None:
    for name in ("user", *counts):
        allow(path, users, name, pl.col(name) >= 0, "0 or more")
    require_unique(path, users, ["user"])
    for feature in SIMHASH:
        allow(path, users, feature.name, pl.col(feature.name).is_in([0, 1]), "0 or 1")


def _check_indicators(path: Path, lists: pl.Series, size: int) -> None:
    text = pl.col(lists.name)
    right, what = text.str.contains(f"^[01]{{{size}}}$"), f"{size} times 0 or 1"
    if lists.name == "occupation":
        right, what = right & text.str.contains("1"), f"{what} and 1 at least once"
    allow(path, lists.cast(pl.List(pl.String)).list.join("").to_frame(), lists.name, right, what)


def _read(path: Path, columns: Mapping[str, pl.DataType], may_be_null: Collection[str] = ()) -> pl.DataFrame:
    """A Parquet file with exactly these columns."""
    try:
        table = from_arrow(pq.ParquetFile(path).read())  # polars panics where a file is not what its footer says
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        why = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable Parquet file ({why}); run the download stage again") from error
    if missing := [name for name in columns if name not in table.columns]:
        raise DataError(f"{path}: column {missing[0]!r} is missing; is it the right file?")
    if extra := [name for name in table.columns if name not in columns]:
        raise DataError(f"{path}: column {extra[0]!r} is not expected; is it the right file?")
    for name, kind in columns.items():
        if table.schema[name] != kind:
            raise DataError(f"{path}: column {name!r} is {table.schema[name]}, not {kind}; is it the right file?")
        if name not in may_be_null and table[name].null_count():
            raise DataError(f"{path}:{table[name].is_null().arg_true()[0] + 1}: {name} is missing")
    if table.is_empty():
        raise DataError(f"{path}: has no rows; run the download stage again")
    return table.select(*columns)
