"""Foursquare and Twitter (Zhang et al., 2017) in the text layout of DP-CroSUE's release (Ren et al., 2022).

Written from a description of the layout and from what the authors' code reads, without a copy of the files. Text is
UTF-8 without headers, fields are separated by tabs, and lines end in a line feed; a bare carriage return belongs to
its field. Files, below the folder of the data set:

foursquare/users/user            21 fields (one row may end after 11): 0 user, 1 profile URL, 2 name, 3 the word null,
                                 4 home city, 5-6 counts, 7 Twitter URL, 8 Facebook URL, 9-20 counts, of which 12-14 are
                                 the user's attributes. All but 0 and 3 may be empty. Counts may have thousands commas.
foursquare/users/user_following  follower, followee: users of `user`
foursquare/tips/user_tip         user, tip id
foursquare/tips/tipcleaned       tip id, two tabs, text (UTF-8 or Latin-1, never both; the text may be empty)
foursquare/labels.tsv            as below
twitter/user                     9 fields: user, numeric id, name, biography, location, URL, tweets, following,
                                 followers, the last three with thousands commas; 2-5 may be empty
twitter/following                follower, followee: users (names) of `user`
twitter/userTweet                user (name), tweet id
twitter/tweetcleaned             tweet id, two tabs, text, as tipcleaned
twitter/labels.tsv               as below

labels.tsv has a header, user, gender, occupation_0 to occupation_17, interest_0 to interest_8, and a row for each user
of whom something is known: 0 or 1, or all fields of a kind (gender, occupation, interest) empty where that is not
known. The authors keep these as Python pickles, which run code when they are opened: write them into this table.
Other files of the release (users/userbio, whose records end in a bare carriage return, and tips/tip_loc) are not read:
nothing that names or places a person leaves this module.

Two users are the same person where the Foursquare user's Twitter URL ends in the Twitter user's name, case ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from tasks.core.errors import DataError
from tasks.core.raw import write_raw
from tasks.datasets import allowed
from tasks.datasets.accounts import BLMNE, GENDER, LICENCE, NAMED, labels_table, read_labels, replace_ids, write_network
from tasks.datasets.fetch import NoOptions, Source, copied, form_files
from tasks.datasets.files import Column, TextTable, check
from tasks.datasets.text import LATIN_1_OR_UTF_8, content, require_unique

PAGE = "https://github.com/RingBDStack/DP-CroSUE"
OCCUPATIONS = 18
INTERESTS = 9
GROUPS = {"gender": 1, "occupation": OCCUPATIONS, "interest": INTERESTS}
COUNTS = {"count_a": 12, "count_b": 13, "count_c": 14}
"""Names of a Foursquare user's counts -> their fields. Which count is of what is not published."""
TWITTER_COUNTS = ("tweets", "following", "followers")
_COUNT = Column(
    pattern=r"^([0-9]{1,3}(,[0-9]{3}){1,5}|[0-9]{1,18})$",
    what=allowed.COUNT,
    empty=True,
)
_FULL, _EMPTY = Column(), Column(empty=True)
_SHORT = 11  # fields of the row that may end early
PEOPLE = TextTable(
    "foursquare/users/user",
    {
        "user": _FULL,
        **dict.fromkeys(("profile", "name"), _EMPTY),
        "always_null": Column(values=("null",)),
        "city": _EMPTY,
        **dict.fromkeys(("count_5", "count_6"), _COUNT),
        **dict.fromkeys(("twitter", "facebook"), _EMPTY),
        **dict.fromkeys((f"count_{number}" for number in range(9, 21)), _COUNT),
    },
    "\t",
    unique=("user",),
)
ACCOUNTS = TextTable(
    "twitter/user",
    {
        "user": _FULL,
        "id": Column(pattern=r"^[0-9]{1,19}$", what="a whole number"),
        **dict.fromkeys(("name", "biography", "location", "url"), _EMPTY),
        **dict.fromkeys(TWITTER_COUNTS, replace(_COUNT, empty=False)),
    },
    "\t",
    unique=("id",),
)


@dataclass(frozen=True)
class Network:
    """The files of a network, and the names of its users' counts."""

    users: TextTable
    counts: tuple[str, ...]
    follows: TextTable
    owners: TextTable
    texts: TextTable
    labels: TextTable


def _network(users: TextTable, counts: tuple[str, ...], follows: str, owners: str, texts: str, labels: str) -> Network:
    return Network(
        users,
        counts,
        TextTable(follows, {"follower": _FULL, "followee": _FULL}, "\t"),
        TextTable(owners, {"user": _FULL, "post": _FULL}, "\t", unique=("post",)),
        TextTable(texts, {"post": _FULL, "text": _EMPTY}, "\t\t", encoding=LATIN_1_OR_UTF_8, unique=("post",)),
        labels_table(labels, GROUPS, pl.String),
    )


NETWORKS = {
    "foursquare": _network(
        PEOPLE, tuple(COUNTS), "foursquare/users/user_following", "foursquare/tips/user_tip",
        "foursquare/tips/tipcleaned", "foursquare/labels.tsv",
    ),
    "twitter": _network(
        ACCOUNTS, TWITTER_COUNTS, "twitter/following", "twitter/userTweet", "twitter/tweetcleaned", "twitter/labels.tsv"
    ),
}  # fmt: skip
_DATA = "dataset/{} of the release, or of whoever has the data"
FILES = tuple(
    file
    for network in NETWORKS.values()
    for table in (network.users, network.follows, network.owners, network.texts, network.labels)
    for file in form_files(
        "foursquare-twitter-text",
        PAGE,
        "labels.tsv, made of the release's pickles: {}" if table is network.labels else _DATA,
        {table.name: None},
    )
)
SOURCE = Source(
    name="foursquare-twitter-text",
    address=PAGE,
    holds="5,392 users of Foursquare and 5,223 of Twitter, 3,388 of them both, with 664,271 posts and 241,892 follows",
    about=90_000_000,  # a guess from the number of posts: not all files are published
    entry="{source: foursquare_twitter_text, obtain: {}, format: foursquare_twitter_text, read: {}}",
    files=FILES,
    licence=LICENCE,
    terms=f"{NAMED} {BLMNE}",
)
ObtainOptions = ReadOptions = NoOptions
obtain = copied(lambda _: SOURCE)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write anchors (source: Foursquare, target: Twitter) and both networks, each in a folder of its own.

    Users have new numbers (`accounts.number_users`). users: SimHash of the Foursquare name and of the Twitter user (its
    screen name), the counts (null where missing), gender and occupation (`several` where more than one is marked) as
    features; and, of Foursquare, `tips`, how many the user wrote. social: `follow`. posts: texts; a post without one
    is left out. labels: the interests. Rows are in the order of the new numbers and of the texts.

    Raises:
        DataError: as all formats (`tasks.datasets`); two Foursquare users have the URL of the same Twitter user.
    """
    users = {"foursquare": _foursquare_users(folder), "twitter": _twitter_users(folder)}
    anchors = _anchors(folder / PEOPLE.name, *users.values())
    numbers = {}
    for network, files in NETWORKS.items():
        people, where = users[network], files.users.name.partition("/")[2]
        member = people["user"], f"a user of {where}"
        follows = files.follows.read(folder, {"follower": member, "followee": member})
        owners = files.owners.read(folder, {"user": member})
        texts = files.texts.read(folder).drop_nulls("text")
        labelled = read_labels(folder / files.labels.name, GROUPS, people["user"], where)
        written = owners.group_by("user").agg(tips=pl.len().cast(pl.Int64))
        table = people.join(labelled, on="user", how="left", maintain_order="left")
        table = table.join(written, on="user", how="left", maintain_order="left")
        table = table.with_columns(pl.col("gender").cast(pl.String), pl.col("tips").fill_null(0))
        numbers[network] = write_network(
            destination / network,
            table,
            follows.select(source="follower", target="followee"),
            owners.join(texts, on="post").select("user", "text"),
            counts=files.counts,
            gender=GENDER,
            groups=GROUPS,
            more=("tips",),
        )
    matched = replace_ids(replace_ids(anchors, numbers["foursquare"], "source"), numbers["twitter"], "target")
    write_raw(destination, {"anchors": matched.sort("source")}, networks=tuple(NETWORKS))


def _foursquare_users(folder: Path) -> pl.DataFrame:
    """user, twitter (URL), name and the counts; one row per line of the file."""
    path, size = folder / PEOPLE.name, len(PEOPLE.columns)
    lines = pl.Series(content(path).removesuffix("\n").split("\n"))
    short = (lines.str.count_matches("\t", literal=True) == _SHORT - 1).arg_true()
    if len(short) > 1:
        raise DataError(
            f"{path}:{short[1] + 1}: {_SHORT} fields instead of {size}, as line {short[0] + 1} has; only one may"
        )
    completed = lines[short].str.strip_suffix("\r") + "\t" * (size - _SHORT)
    table = PEOPLE.parse(path, ("\n".join(lines.scatter(short, completed)) + "\n").encode())
    check(path, table, PEOPLE.columns)
    require_unique(path, table, ["user"])
    counts = {name: _number(f"count_{field}") for name, field in COUNTS.items()}
    return table.select("user", "twitter", "name", **counts)


def _twitter_users(folder: Path) -> pl.DataFrame:
    """user, name (the same), lower (in lower case) and the counts; one row per line of the file."""
    table = ACCOUNTS.read(folder).with_columns(name="user", lower=pl.col("user").str.to_lowercase())
    require_unique(folder / ACCOUNTS.name, table.select(user="lower"), ["user"])
    return table.select("user", "name", "lower", *(_number(name) for name in TWITTER_COUNTS))


def _number(column: str) -> pl.Expr:
    return pl.col(column).str.replace_all(",", "", literal=True).cast(pl.Int64)


def _anchors(path: Path, people: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """source and target: a Foursquare user and the Twitter user that the last part of its Twitter URL names."""
    last = pl.col("twitter").str.extract("/([^/]+)/?$").str.to_lowercase()
    named = people.with_columns(lower=last).join(
        accounts.select("lower", target="user"), on="lower", how="left", maintain_order="left"
    )
    matched = named.with_row_index("line", 1).filter(pl.col("target").is_not_null())
    repeated = matched.filter(pl.col("target").is_duplicated())
    if len(repeated):
        first = repeated.filter(pl.col("target") == repeated["target"][0])
        raise DataError(
            f"{path}:{first['line'][1]}: twitter {first['target'][0]} is repeated (first on line {first['line'][0]}); "
            "an account is one person's: keep one of these URLs"
        )
    return matched.select(source="user", target="target")
