"""Weibo in two networks that share users, in the files that the code of DP-CroSUE (Ren et al., 2022) reads.

Nothing but the two files of users was ever published, so the rest is written from that code. For N = 1, 2:

user_infoN.csv      CSV (RFC 4180, UTF-8) with a header of 17 columns: two index columns of any name (one may be empty),
                    then _id, NickName, Gender, Province, City, BriefIntroduction, Birthday, VIPlevel, Authentication,
                    URL, Num_Tweets, Num_Follows, Num_Fans, SexOrientation, Sentiment. _id is a whole number. Gender is
                    男, 女 or empty; the three numbers are whole, may be written 12.0, and may be empty.
newrelN.npy         NumPy array (m, 2) of whole numbers: _id of the follower and of the one who is followed
cleaned_blogN.csv   CSV with a header in which there are user_id (an _id) and con, the text; other columns do not matter
labelsN.tsv         tab-separated, with a header: user (an _id), occupation_0 to occupation_13, interest_0 to
                    interest_9, and a row for each user of whom something is known: 0 or 1, or all fields of a kind
                    (occupation, interest) empty where that is not known

CSV fields may be quoted with " and then hold commas, line ends and doubled quotation marks. The authors keep labels as
Python pickles, which run code when they are opened: write them into this table. The ten interests are, in the order of
the paper, travel, art, health, food, technology, sports, business, politics, game and fashion.

A person has the same _id in both networks.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
import polars as pl

from tasks.contracts import Feature
from tasks.datasets.accounts import (
    SIMHASH,
    UNKNOWN,
    number_users,
    occupation,
    occupation_feature,
    read_labels,
    replace_ids,
    require_known,
    simhash,
)
from tasks.datasets.fetch import FormFile, NoOptions, Places, Source, copy
from tasks.datasets.text import SHOWN, content
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://github.com/RingBDStack/DP-CroSUE"
NETWORKS = ("weibo1", "weibo2")
FILES = ("user_info{}.csv", "newrel{}.npy", "cleaned_blog{}.csv", "labels{}.tsv")
"""Of each network: {} is 1 or 2."""
COLUMNS = (
    "_id", "NickName", "Gender", "Province", "City", "BriefIntroduction", "Birthday", "VIPlevel", "Authentication",
    "URL", "Num_Tweets", "Num_Follows", "Num_Fans", "SexOrientation", "Sentiment",
)  # fmt: skip
"""Of a file of users, behind two index columns."""
OCCUPATIONS = 14
INTERESTS = 10
LABELS = tuple(f"interests_{number}" for number in range(INTERESTS))
GENDERS = ("女", "男")
COUNTS = {"tweets": "Num_Tweets", "follows": "Num_Follows", "fans": "Num_Fans"}
FEATURES = (
    *SIMHASH,
    *(Feature(name=name, kind="numeric") for name in COUNTS),
    Feature(name="gender", kind="categorical", categories=(*GENDERS, UNKNOWN), sensitive=True, unknown=UNKNOWN),
    occupation_feature(OCCUPATIONS),
)


def _form(name: str) -> FormFile:
    public = "dataset/weibo of the page has it" if name.startswith("user_info") else "not published: ask the authors"
    if name.startswith("labels"):
        public = "to be made of their pickles, which are not published: ask the authors"
    return FormFile(name=f"weibo/{name}", page=PAGE, what=f"{name} ({public})", mirror_path=f"weibo/{name}")


SOURCE = Source(
    name="weibo",
    address=PAGE,
    synthetic=False,
    holds="two networks of 8,117 and 8,539 users, 2,969 of them both, with 12,000 follows each and 312,564 posts",
    size=60_000_000,  # a guess from the number of posts, which nobody publishes
    entry="{source: weibo, obtain: {}, format: weibo, read: {}}",
    files=tuple(_form(name.format(number)) for number in (1, 2) for name in FILES),
    licence=(
        "DP-CroSUE's page names no licence: for research. These files name people: do not redistribute them, and do "
        "not try to find out more about anybody. Publications should cite J. Ren et al., Cross-Network Social User "
        "Embedding with Hybrid Differential Privacy Guarantees, CIKM 2022."
    ),
)
ObtainOptions = ReadOptions = NoOptions
_GROUPS = {"occupation": OCCUPATIONS, "interest": INTERESTS}
_ID = "^[0-9]{1,18}$"
_COUNT = r"^[0-9]{1,15}(\.0*)?$"


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with the files of both networks.

    Raises:
        DataError: a file cannot be had.
    """
    for file in SOURCE.files:
        copy(file, folder, places)


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write anchors (source: `weibo1`, target: `weibo2`) and both networks into `place`.

    Users have new numbers, of their own in each network (`accounts.number_users`). users: SimHash of the nickname (null
    where there is none), three counts (null where missing), gender and occupation (`several` where more than one is
    marked) as features, and `occupations`, the indicators. social: `follow`. posts: texts; a post without one is left
    out. labels: the interests. Rows are in the order of the new numbers and of the texts.

    Raises:
        DataError: a file is missing, empty or malformed; an id, gender, count or label is not allowed; a user is
            repeated; an unknown user is named (names file and line, of newrel the row from 1).
    """
    numbers = {}
    for number, network in enumerate(NETWORKS, start=1):
        (place / network).mkdir()
        users, follows, posts, labels = (folder / name.format(number) for name in FILES)
        numbers[network] = _network(users, follows, posts, labels, place / network)
    first, second = numbers.values()
    anchors = first.join(second, on="id").select(source="number", target="number_right").sort("source")
    if anchors.is_empty():
        raise DataError(f"{folder}: no _id is in both files of users; are these two parts of one data set?")
    anchors.write_parquet(place / "anchors.parquet")
    write_raw_schema(RawSchema(tables=("anchors",), networks=NETWORKS), place)


def _network(users: Path, follows: Path, posts: Path, labels: Path, place: Path) -> pl.DataFrame:
    """Read one network and write its raw tables.

    Returns:
        id and number of its users.
    """
    people = _people(users)
    numbers = number_users(people["user"], place.name)
    links = _read_follows(follows, people["user"], users.name)
    texts = _read_csv(posts, ("user_id", "con"))
    _allow(posts, texts, "user_id", pl.col("user_id").str.contains(_ID).fill_null(False), "a whole number")
    texts = texts.with_columns(pl.col("user_id").cast(pl.Int64))
    wrote = pl.col("user_id").is_in(people["user"].implode())
    _allow(posts, texts, "user_id", wrote, f"a user of {users.name}")
    labelled = read_labels(labels, _GROUPS, people["user"], users.name)

    social = replace_ids(links, numbers, "source", "target").with_columns(relation=pl.lit("follow"))
    social.sort("source", "target").write_parquet(place / "social.parquet")
    written = replace_ids(texts.drop_nulls("con"), numbers, "user_id").select(user="user_id", text="con")
    written.sort("user", "text").write_parquet(place / "posts.parquet")
    table = pl.concat([people, simhash(people["name"])], how="horizontal").join(labelled, on="user", how="left")
    table = replace_ids(table, numbers, "user").sort("user")
    table.select(
        "user",
        *(feature.name for feature in SIMHASH),
        *COUNTS,
        "gender",
        occupation=occupation(pl.col("occupation")),
        occupations="occupation",
    ).write_parquet(place / "users.parquet")
    interests = {name: pl.col("interest").list.get(number) for number, name in enumerate(LABELS)}
    table.select("user", **interests).write_parquet(place / "labels.parquet")
    tables = ("labels", "posts", "social", "users")
    write_raw_schema(RawSchema(tables=tables, features=FEATURES, labels=LABELS), place)
    return numbers


def _people(path: Path) -> pl.DataFrame:
    """user, name, gender and the counts; one row per record of the file."""
    table = _read_csv(path, COLUMNS, before=2)
    _allow(path, table, "_id", pl.col("_id").str.contains(_ID).fill_null(False), "a whole number")
    _allow(path, table, "Gender", pl.col("Gender").is_in(GENDERS), " or ".join(GENDERS))
    for name in COUNTS.values():
        _allow(path, table, name, pl.col(name).str.contains(_COUNT), "a count")
    counts = {new: pl.col(name).cast(pl.Float64).cast(pl.Int64) for new, name in COUNTS.items()}
    people = table.select("line", user=pl.col("_id").cast(pl.Int64), name="NickName", gender="Gender", **counts)
    repeated = people.filter(pl.col("user").is_duplicated())
    if len(repeated):
        lines = repeated.filter(pl.col("user") == repeated["user"][0])["line"]
        raise DataError(
            f"{path}:{lines[1]}: _id {repeated['user'][0]} is repeated (first on line {lines[0]}); keep one of these"
        )
    return people.drop("line")


def _read_follows(path: Path, users: pl.Series, where: str) -> pl.DataFrame:
    try:
        # Mapped, so that a header that claims more than the file has is found out before memory is taken.
        pairs = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    except (ValueError, EOFError, OSError, SyntaxError, BadZipFile, TokenError, RecursionError) as error:
        why = " ".join(str(error).split())[:SHOWN]
        raise DataError(f"{path}: not a NumPy array of numbers ({why}); run the download stage again") from error
    if not isinstance(pairs, np.ndarray) or pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        content = f"{pairs.dtype} of shape {pairs.shape}" if isinstance(pairs, np.ndarray) else "several arrays"
        raise DataError(f"{path}: holds {content}, not whole numbers of shape (m, 2); is it the right file?")
    if not len(pairs):
        raise DataError(f"{path}: is empty; run the download stage again")
    table = pl.DataFrame({"source": pairs[:, 0].astype(np.int64), "target": pairs[:, 1].astype(np.int64)})
    for name in table.columns:
        require_known(path, table, name, users, where)
    return table


def _read_csv(path: Path, columns: tuple[str, ...], *, before: int | None = None) -> pl.DataFrame:
    """The wanted columns of a CSV, as text (null where empty), and `line`, on which a record begins.

    Args:
        before: the header is so many columns of any name and then `columns`; None: `columns` are somewhere in it.

    Raises:
        DataError: as `content`; another header; a record has more or fewer fields; a quoted field does not end.
    """
    head, _, body = content(path).removeprefix("\ufeff").partition("\n")
    if "\r" in head.removesuffix("\r"):
        raise DataError(f"{path}:1: lines end in a carriage return alone; save the file with other line ends")
    header = next(csv.reader([head.removesuffix("\r")]), [])
    right = (
        sorted(name for name in header if name in columns) == sorted(columns)
        if before is None
        else tuple(header[before:]) == columns
    )
    if not right:
        names = f"{'' if before is None else f'{before} index columns, '}{', '.join(columns)}"
        raise DataError(f"{path}:1: the header is {head[:SHOWN]!r}, not {names}; is it the right file?")
    if not body.strip():
        raise DataError(f"{path}: has a header and nothing else; run the download stage again")
    body = body.removesuffix("\n") + "\n"
    places = {name: str(place) for place, name in enumerate(header) if name in columns}
    # An index column may have an empty name, or that of another, so fields are known by their place.
    types = dict.fromkeys(map(str, range(len(header))), pl.String)
    try:
        table = pl.read_csv(body.encode(), has_header=False, schema=types)
    except pl.exceptions.PolarsError as error:
        raise _complaint(path, body, len(header)) from error
    # What polars lets pass: fields missing at the end of a record, and quotation marks where none may be.
    bare = re.sub('"[^"]*"', "", body)
    if '"' in bare or bare.count(",") != len(table) * (len(header) - 1) or bare.count("\n") != len(table):
        raise _complaint(path, body, len(header))
    inside = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0).cast(pl.Int64))
    line = 2 + pl.int_range(pl.len()) + inside.cum_sum() - inside
    return table.select(
        line.alias("line"), *(pl.col(place).replace("", None).alias(name) for name, place in places.items())
    )


def _complaint(path: Path, body: str, expected: int) -> DataError:
    """The slow way through records that could not be read: find the first one at fault."""
    records = csv.reader(io.StringIO(body, newline=""), strict=True)
    line = 2
    try:
        for fields in records:
            if len(fields) != expected:
                return DataError(f"{path}:{line}: {len(fields)} fields instead of {expected}")
            line = records.line_num + 2
    except csv.Error:
        return DataError(f"{path}:{line}: a quotation mark is in the wrong place, or missing")
    return DataError(f"{path}: has a quotation mark in a field that is not quoted; get the file again")


def _allow(path: Path, table: pl.DataFrame, column: str, right: pl.Expr, what: str) -> None:
    """As `text.allow`, for records that may go over several lines."""
    wrong = table.filter(~right)
    if len(wrong):
        value = wrong[column][0]
        shown = "empty" if value is None else repr(value[:SHOWN] if isinstance(value, str) else value)
        more = f" ({len(wrong)} such records)" if len(wrong) > 1 else ""
        raise DataError(f"{path}:{wrong['line'][0]}: {column} is {shown}, not {what}{more}")
