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

The two are the same person where a Foursquare user's Twitter URL ends in the name of a Twitter user, case ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tasks.contracts import Feature
from tasks.datasets.accounts import (
    GENDER,
    SIMHASH,
    number_users,
    occupation,
    occupation_feature,
    read_labels,
    replace_ids,
    require_known,
    simhash,
)
from tasks.datasets.fetch import FormFile, NoOptions, Places, Source, copy
from tasks.datasets.text import LATIN_1_OR_UTF_8, allow, content, parse, read_table, require_unique
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://github.com/RingBDStack/DP-CroSUE"
FILES = (
    "foursquare/users/user",
    "foursquare/users/user_following",
    "foursquare/tips/user_tip",
    "foursquare/tips/tipcleaned",
    "foursquare/labels.tsv",
    "twitter/user",
    "twitter/following",
    "twitter/userTweet",
    "twitter/tweetcleaned",
    "twitter/labels.tsv",
)
OCCUPATIONS = 18
INTERESTS = 9
LABELS = tuple(f"interests_{number}" for number in range(INTERESTS))
COUNTS = {"count_a": 12, "count_b": 13, "count_c": 14}
"""Fields of a Foursquare user. Which count is which is not said."""
TWITTER_COUNTS = ("tweets", "following", "followers")


def _form(name: str) -> FormFile:
    place = f"foursquare-twitter-text/{name}"
    what = (
        "labels.tsv, made of the release's pickles"
        if name.endswith("labels.tsv")
        else f"dataset/{name} of the release, or of whoever has the data"
    )
    return FormFile(name=place, page=PAGE, what=what, mirror_path=place)


SOURCE = Source(
    name="foursquare-twitter-text",
    address=PAGE,
    synthetic=False,
    holds="5,392 users of Foursquare and 5,223 of Twitter, 3,388 of them both, with 664,271 posts and 241,892 follows",
    size=90_000_000,  # a guess from the number of posts: nobody publishes all of the files
    entry="{source: foursquare_twitter_text, obtain: {}, format: foursquare_twitter_text, read: {}}",
    files=tuple(_form(name) for name in FILES),
    licence=(
        "DP-CroSUE's page names no licence: for research. These files name people: do not redistribute them, and do "
        "not try to find out more about anybody. Publications should cite J. Ren et al., Cross-Network Social User "
        "Embedding with Hybrid Differential Privacy Guarantees, CIKM 2022, and J. Zhang et al., BL-MNE, ICDM 2017."
    ),
)
ObtainOptions = ReadOptions = NoOptions

_GROUPS = {"gender": 1, "occupation": OCCUPATIONS, "interest": INTERESTS}
_FIELDS, _SHORT = 21, 11
_COUNT = r"^([0-9]{1,3}(,[0-9]{3}){1,5}|[0-9]{1,18})$"
_FOURSQUARE = (
    "user", "profile", "name", "always_null", "city", "count_5", "count_6", "twitter", "facebook",
    *(f"count_{number}" for number in range(9, _FIELDS)),
)  # fmt: skip
_TWITTER = ("user", "id", "name", "biography", "location", "url", *TWITTER_COUNTS)


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with `FILES`.

    Raises:
        DataError: a file cannot be had.
    """
    for file, name in zip(SOURCE.files, FILES, strict=True):
        target = (folder / name).parent
        target.mkdir(parents=True, exist_ok=True)
        copy(file, target, places)


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write anchors (source: Foursquare, target: Twitter) and the networks `foursquare` and `twitter` into `place`.

    Users have new numbers (`accounts.number_users`). users: SimHash of the Foursquare name and of the Twitter user (its
    screen name), the counts (null where missing), gender and occupation (`several` where more than one is marked) as
    features; and, of Foursquare, `tips`, how many the user wrote. social: `follow`. posts: texts; a post without one
    is left out. labels: the interests. Rows are in the order of the new numbers and of the texts.

    Raises:
        DataError: a file is missing, empty, malformed or of mixed encodings; a count or label is not allowed; a user,
            post, text or label is repeated, also where only case differs between two Twitter users; an unknown user
            is named; two Foursquare users name one Twitter user as theirs (names file and line).
    """
    source, target = folder / "foursquare", folder / "twitter"
    people = _foursquare_users(source / "users/user")
    accounts = _twitter_users(target / "user")
    anchors = _anchors(source / "users/user", people, accounts)
    users = {
        "foursquare": number_users(people["user"], "foursquare"),
        "twitter": number_users(accounts["user"], "twitter"),
    }
    matched = replace_ids(replace_ids(anchors, users["foursquare"], "source"), users["twitter"], "target")
    matched.sort("source").write_parquet(place / "anchors.parquet")
    write_raw_schema(RawSchema(tables=("anchors",), networks=("foursquare", "twitter")), place)

    for network, table, counts, paths in (
        (
            "foursquare",
            people,
            tuple(COUNTS),
            ("users/user", "users/user_following", "tips/user_tip", "tips/tipcleaned"),
        ),
        ("twitter", accounts, TWITTER_COUNTS, ("user", "following", "userTweet", "tweetcleaned")),
    ):
        (place / network).mkdir()
        _network(folder / network, place / network, table, users[network], counts, paths)


def _network(
    folder: Path,
    place: Path,
    people: pl.DataFrame,
    numbers: pl.DataFrame,
    counts: tuple[str, ...],
    paths: tuple[str, ...],
) -> None:
    """Read what a network has beside its users, whose names are replaced here, and write its raw tables."""
    users_file, follows_file, owners_file, texts_file = paths
    follows = _pairs(
        folder / follows_file, "follower", "followee", ("follower", "followee"), people["user"], users_file
    )
    owners = _pairs(folder / owners_file, "user", "post", ("user",), people["user"], users_file)
    require_unique(folder / owners_file, owners, ["post"])
    texts = _texts(folder / texts_file)
    known_labels = read_labels(folder / "labels.tsv", _GROUPS, people["user"], users_file)

    social = replace_ids(follows, numbers, "follower", "followee")
    social = social.select(source="follower", target="followee", relation=pl.lit("follow")).sort("source", "target")
    social.write_parquet(place / "social.parquet")
    posts = replace_ids(owners.join(texts, on="post"), numbers, "user").select("user", "text").sort("user", "text")
    posts.write_parquet(place / "posts.parquet")
    written = owners.group_by("user").agg(tips=pl.len().cast(pl.Int64))
    table = pl.concat([people.select("user", *counts), simhash(people["screen_name"])], how="horizontal")
    table = table.join(known_labels, on="user", how="left").join(written, on="user", how="left")
    table = replace_ids(table, numbers, "user").sort("user")
    table.select(
        "user",
        *(feature.name for feature in SIMHASH),
        *counts,
        gender=pl.col("gender").list.first().cast(pl.String),
        occupation=occupation(pl.col("occupation")),
        occupations="occupation",
        tips=pl.col("tips").fill_null(0),
    ).write_parquet(place / "users.parquet")
    interests = {name: pl.col("interest").list.get(number) for number, name in enumerate(LABELS)}
    table.select("user", **interests).write_parquet(place / "labels.parquet")
    numeric = tuple(Feature(name=name, kind="numeric") for name in counts)
    features = (*SIMHASH, *numeric, GENDER, occupation_feature(OCCUPATIONS))
    tables = ("labels", "posts", "social", "users")
    write_raw_schema(RawSchema(tables=tables, features=features, labels=LABELS), place)


def _foursquare_users(path: Path) -> pl.DataFrame:
    """user, screen_name, twitter (URL) and the counts; one row per line of the file."""
    lines = pl.Series(content(path).removesuffix("\n").split("\n"))
    short = (lines.str.count_matches("\t", literal=True) == _SHORT - 1).arg_true()
    if len(short) > 1:
        raise DataError(
            f"{path}:{short[1] + 1}: {_SHORT} fields instead of {_FIELDS}, as line {short[0] + 1} has; only one may"
        )
    missing = "\t" * (_FIELDS - _SHORT)
    text = "\n".join(lines.scatter(short, lines[short].str.strip_suffix("\r") + missing)) + "\n"
    table = _parse(path, text, _FOURSQUARE, {"user", "always_null"})
    allow(path, table, "always_null", pl.col("always_null") == "null", "null, which field 3 always is")
    require_unique(path, table, ["user"])
    table = _counts(path, table, [name for name in _FOURSQUARE if name.startswith("count_")])
    counts = {name: f"count_{field}" for name, field in COUNTS.items()}
    return table.select("user", "twitter", screen_name="name", **counts)


def _twitter_users(path: Path) -> pl.DataFrame:
    """user, screen_name (the same), lower and the counts; one row per line of the file."""
    table = _parse(path, content(path), _TWITTER, {"user", "id", *TWITTER_COUNTS})
    allow(path, table, "id", pl.col("id").str.contains(r"^[0-9]{1,19}$"), "a whole number")
    require_unique(path, table, ["id"])
    table = _counts(path, table, TWITTER_COUNTS).with_columns(
        screen_name="user", lower=pl.col("user").str.to_lowercase()
    )
    require_unique(path, table.select(user="lower"), ["user"])
    return table.select("user", "screen_name", "lower", *TWITTER_COUNTS)


def _parse(path: Path, text: str, columns: tuple[str, ...], required: set[str]) -> pl.DataFrame:
    may_be_empty = [name for name in columns if name not in required]
    return parse(path, text.encode(), "\t", dict.fromkeys(columns, pl.String), may_be_empty=may_be_empty)


def _counts(path: Path, table: pl.DataFrame, names: tuple[str, ...] | list[str]) -> pl.DataFrame:
    for name in names:
        allow(path, table, name, pl.col(name).str.contains(_COUNT), "a count, with commas between thousands or without")
    return table.with_columns(pl.col(names).str.replace_all(",", "", literal=True).cast(pl.Int64))


def _anchors(path: Path, people: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """source and target, names, where a Twitter URL's last part is a Twitter user."""
    last = pl.col("twitter").str.extract("/([^/]+)/?$").str.to_lowercase()
    named = people.with_columns(lower=last).join(
        accounts.select("lower", target="user"), on="lower", how="left", maintain_order="left"
    )
    once_ = named.with_row_index("line", 1).filter(pl.col("target").is_not_null())
    repeated = once_.filter(pl.col("target").is_duplicated())
    if len(repeated):
        first = repeated.filter(pl.col("target") == repeated["target"][0])
        raise DataError(
            f"{path}:{first['line'][1]}: twitter {first['target'][0]} is repeated (first on line {first['line'][0]}); "
            "an account is one person's: keep one of these URLs"
        )
    return once_.select(source="user", target="target")


def _pairs(path: Path, first: str, second: str, users: tuple[str, ...], people: pl.Series, where: str) -> pl.DataFrame:
    table = read_table(path, "\t", {first: pl.String, second: pl.String})
    for name in users:
        require_known(path, table, name, people, where)
    return table


def _texts(path: Path) -> pl.DataFrame:
    """post and text (empty where there is none), each post once."""
    columns: Mapping[str, type[pl.DataType]] = {"post": pl.String, "text": pl.String}
    table = read_table(path, "\t\t", columns, encoding=LATIN_1_OR_UTF_8, may_be_empty={"text"})
    require_unique(path, table, ["post"])
    return table.drop_nulls("text")
