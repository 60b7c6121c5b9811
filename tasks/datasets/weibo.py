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
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
import polars as pl

from tasks.core.contracts import Feature
from tasks.core.errors import DamagedError, DataError
from tasks.core.raw import write_raw
from tasks.datasets.accounts import CITED, LICENCE, NAMED, UNKNOWN, labels_table, read_labels, write_network
from tasks.datasets.fetch import NoOptions, Source, copied, form_files
from tasks.datasets.files import Column, Listed, TextTable, check
from tasks.datasets.text import SHOWN, content, only_header, require_unique

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
GENDERS = ("女", "男")
COUNTS = {"tweets": "Num_Tweets", "follows": "Num_Follows", "fans": "Num_Fans"}
GENDER = Feature(name="gender", kind="categorical", categories=(*GENDERS, UNKNOWN), sensitive=True, unknown=UNKNOWN)
GROUPS = {"occupation": OCCUPATIONS, "interest": INTERESTS}
_ANY = Column(empty=True)
_ID = Column(pattern="^[0-9]{1,18}$", what="a whole number")
_COUNT = Column(pattern=r"^[0-9]{1,15}(\.0*)?$", what="a count", empty=True)
PEOPLE = TextTable(
    "user_info{}.csv",
    dict.fromkeys(("", "Unnamed: 0", *COLUMNS), _ANY)
    | {"_id": _ID, "Gender": Column(values=GENDERS, empty=True), **dict.fromkeys(COUNTS.values(), _COUNT)},
    headed=True,
    quoted=True,
    multiline=True,
)
POSTS = TextTable(
    "cleaned_blog{}.csv", {"": _ANY, "user_id": _ID, "con": _ANY}, headed=True, quoted=True, multiline=True
)
LABELS = labels_table("labels{}.tsv", GROUPS, pl.Int64)
_PUBLIC, _ASK = "{} (dataset/weibo of the page has it)", "{} (not published: ask the authors)"
_PICKLES = "{} (to be made of their pickles, which are not published: ask the authors)"


SOURCE = Source(
    name="weibo",
    address=PAGE,
    holds="two networks of 8,117 and 8,539 users, 2,969 of them both, with 12,000 follows each and 312,564 posts",
    about=60_000_000,  # a guess from the number of posts, which is not published
    entry="{source: weibo, obtain: {}, format: weibo, read: {}}",
    files=tuple(
        file
        for number in (1, 2)
        for name, what in zip(FILES, (_PUBLIC, _ASK, _ASK, _PICKLES), strict=True)
        for file in form_files("weibo", PAGE, what, {name.format(number): None})
    ),
    licence=LICENCE,
    terms=f"{NAMED} {CITED}.",
)
ObtainOptions = ReadOptions = NoOptions
obtain = copied(lambda _: SOURCE)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write anchors (source: `weibo1`, target: `weibo2`) and both networks into `destination`.

    Users have new numbers, of their own in each network (`accounts.number_users`). users: SimHash of the nickname (null
    where there is none), three counts (null where missing), gender and occupation (`several` where more than one is
    marked) as features, and `occupations`, the indicators. social: `follow`. posts: texts; a post without one is left
    out. labels: the interests. Rows are in the order of the new numbers and of the texts.
    """
    first, second = (
        _network(folder, destination / network, number) for number, network in enumerate(NETWORKS, start=1)
    )
    anchors = first.join(second, on="id").select(source="number", target="number_right").sort("source")
    if anchors.is_empty():
        raise DataError(f"{folder}: no _id is in both files of users; are these two parts of one data set?")
    write_raw(destination, {"anchors": anchors}, networks=NETWORKS)


def _network(folder: Path, destination: Path, number: int) -> pl.DataFrame:
    """Read one network and write its raw tables.

    Returns:
        id and number of its users.
    """
    users, links, posts, labels = (folder / name.format(number) for name in FILES)
    people = _people(users)
    member = people["user"], f"a user of {users.name}"
    follows = _read_follows(links, {"source": member, "target": member})
    texts = _read_csv(posts, POSTS, ("user_id", "con"))
    texts = texts.with_columns(pl.col("user_id").cast(pl.Int64))
    check(posts, texts, {}, {"user_id": member}, texts["line"])
    labelled = read_labels(labels, GROUPS, people["user"], users.name)
    people = people.join(labelled, on="user", how="left", maintain_order="left")
    written = texts.drop_nulls("con").select(user="user_id", text="con")
    return write_network(destination, people, follows, written, counts=tuple(COUNTS), gender=GENDER, groups=GROUPS)


def _people(path: Path) -> pl.DataFrame:
    """user, name, gender and the counts; one row per record of the file."""
    table = _read_csv(path, PEOPLE, COLUMNS)
    table = table.with_columns(pl.col("_id").cast(pl.Int64))
    require_unique(path, table, ["_id"], table["line"])
    counts = {new: pl.col(name).cast(pl.Float64).cast(pl.Int64) for new, name in COUNTS.items()}
    return table.select(user="_id", name="NickName", gender="Gender", **counts)


def _read_follows(path: Path, listed: Listed) -> pl.DataFrame:
    try:
        # Mapped, so that a header that claims more than the file has is found out before memory is taken.
        pairs = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DamagedError(f"{path}: not found; run the download stage again") from None
    except (ValueError, EOFError, OSError, SyntaxError, BadZipFile, TokenError, RecursionError) as error:
        why = " ".join(str(error).split())[:SHOWN]
        raise DamagedError(f"{path}: not a NumPy array of numbers ({why}); run the download stage again") from error
    if not isinstance(pairs, np.ndarray) or pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        content = f"{pairs.dtype} of shape {pairs.shape}" if isinstance(pairs, np.ndarray) else "several arrays"
        raise DataError(f"{path}: holds {content}, not whole numbers of shape (m, 2); is it the right file?")
    if not len(pairs):
        raise DamagedError(f"{path}: is empty; run the download stage again")
    table = pl.DataFrame({"source": pairs[:, 0].astype(np.int64), "target": pairs[:, 1].astype(np.int64)})
    check(path, table, {}, listed)
    return table


def _read_csv(path: Path, table: TextTable, columns: tuple[str, ...]) -> pl.DataFrame:
    """The wanted columns of a CSV (null where empty), and `line`, on which a record begins.

    columns: of `table`, whose file may have others, of any name, anywhere.

    Raises:
        DataError: as `TextTable.read`; another header; a quoted field does not end.
    """
    head, _, body = content(path).removeprefix("\ufeff").partition("\n")
    if "\r" in head.removesuffix("\r"):
        raise DataError(f"{path}:1: lines end in a carriage return alone; save the file with other line ends")
    header = next(csv.reader([head.removesuffix("\r")]), [])
    if sorted(name for name in header if name in columns) != sorted(columns):
        raise DataError(f"{path}:1: the header is {head[:SHOWN]!r}, not {', '.join(columns)}; is it the right file?")
    if not body.strip():
        raise only_header(path)
    # Another column may have an empty name, or that of yet another.
    wanted = [name if name in columns else f"{number}" for number, name in enumerate(header)]
    fields = {name: table.columns[name] if name in columns else _ANY for name in wanted}
    read = replace(table, columns=fields).parse(path, body.encode(), 2)
    inside = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0).cast(pl.Int64))
    line = 2 + pl.int_range(pl.len()) + inside.cum_sum() - inside
    rows = read.select(line.alias("line"), *(pl.col(name).replace("", None) for name in columns))
    check(path, rows, {name: table.columns[name] for name in columns}, first_line=rows["line"])
    return rows
