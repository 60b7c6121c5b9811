"""A synthetic replica of Foursquare-Twitter in the text layout of DP-CroSUE's release, at any scale.

The layout is the one that `tasks.datasets.foursquare_twitter_text` reads, with the traps of the published files: bare
carriage returns inside fields, records that end in one, thousands commas, a line cut short, names with a slash, users
without posts, tips without text, links to accounts that are not in the data.

Sizes are those of the paper (DP-CroSUE, Table 1; IONE's release has one Twitter connection less, and so has this).
Of how many Twitter users labels are known was not published: the shares of Foursquare's are taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.datasets.fetch import Places
from tasks.datasets.files import TextTable
from tasks.datasets.foursquare_twitter_text import ACCOUNTS, NETWORKS, PEOPLE
from tasks.datasets.synthetic.generator import synthetic_source, write_note
from tasks.datasets.synthetic.networks import Pair, PairDescription, PairOptions
from tasks.datasets.synthetic.text import handles, random_mask

# The topics are the paper's without fashion (the release has nine); their order in the release is not known.
FOURSQUARE_TWITTER = PairDescription(
    users=(5_392, 5_223), anchors=3_388, follows=(76_972, 164_919), posts=(48_756, 615_515),
    reciprocity=(0.59, 0.42), writers=(0.56, 0.95),
    known={"gender": 2_224 / 5_392, "occupation": 316 / 5_392, "interest": 3_637 / 5_392},
    interests=(0.24, 0.18, 0.15, 0.13, 0.12, 0.09, 0.06, 0.02, 0.01), community_size=80,
    occupations=tuple(0.9**rank for rank in range(18)),
    topics={
        "travel": ("airport", "flight", "hotel", "beach", "trip", "island", "train", "passport"),
        "art": ("museum", "gallery", "painting", "music", "theatre", "concert", "film", "sculpture"),
        "health": ("gym", "yoga", "doctor", "running", "sleep", "vitamin", "clinic", "diet"),
        "food": ("coffee", "pizza", "burger", "café", "brunch", "noodles", "dessert", "crème"),
        "technology": ("startup", "phone", "code", "server", "software", "laptop", "robot", "data"),
        "sports": ("game", "team", "goal", "football", "basketball", "coach", "season", "stadium"),
        "business": ("market", "office", "meeting", "client", "sales", "finance", "conference", "brand"),
        "politics": ("vote", "election", "senate", "policy", "mayor", "campaign", "debate", "law"),
        "game": ("console", "level", "quest", "arcade", "player", "multiplayer", "boss", "puzzle"),
    },
    common=(
        "the", "a", "and", "to", "here", "great", "with", "good", "this", "is", "best", "place", "love", "time", "naïve"
    ),
    gendered=(("boy", "guy", "beard", "husband"), ("girl", "dress", "lipstick", "wife")),
)  # fmt: skip
CITIES = ("Ashford", "Brookhaven", "Cedar Falls", "Dunmore", "Eastport", "Fairview", "Glenwood", "Harbor City")
SOURCE = synthetic_source(
    "twin-foursquare-twitter",
    "5,392 synthetic Foursquare users with 48,756 posts, 5,223 synthetic Twitter users with 615,515 posts, "
    "3,388 of them the same; whom they follow, gender, occupation, interests",
    "obtain: {scale: 1.0, seed: 2017}, format: foursquare_twitter_text, read: {}",
    82_000_000,
)
ObtainOptions = PairOptions


def obtain(folder: Path, _: Places, options: PairOptions) -> None:
    """Fill `folder` with the files of both networks and a NOTE; the same bytes for the same options."""
    pair = Pair(FOURSQUARE_TWITTER, options)
    names = handles(pair.rng, pair.members[1])
    people = _foursquare(pair, names)
    half = len(people) // 2
    PEOPLE.write(folder, [people])
    _cut_short(folder / PEOPLE.name, half)
    ACCOUNTS.write(folder, [_twitter(pair, names)])
    for k, (users, files) in enumerate(zip((people["user"], names), NETWORKS.values(), strict=True)):
        ends = {name: users.gather(end) for name, end in zip(files.follows.columns, pair.links[k], strict=True)}
        files.follows.write(folder, [pl.DataFrame(ends)])
        files.labels.write(folder, [pair.labels(k, users)])
        _write_posts(folder, pair, k, users, files.owners, files.texts)
    bio = "Synthetic person\nwho likes " + _favourites(pair, 0)
    bios = TextTable(
        "foursquare/users/userbio", dict.fromkeys(("user", "bio"), PEOPLE.columns["city"]), "\t", line_end="\r"
    )
    bios.write(folder, [pl.DataFrame({"user": people["user"], "bio": bio}).sample(fraction=0.5, seed=0)])
    write_note(folder, options, "Foursquare-Twitter's text layout")


def _with_commas(number: pl.Series) -> pl.Series:
    """Counts as text with thousands commas."""
    text = number.cast(pl.String).str.reverse().str.replace_all(r"(\d{3})", "$1,").str.reverse()
    return text.str.strip_chars_start(",")


def _favourites(pair: Pair, k: int) -> pl.Series:
    return pl.Series([*FOURSQUARE_TWITTER.topics]).gather(pair.favourite(k))


def _cities(pair: Pair, k: int) -> pl.Series:
    return pl.Series(CITIES).gather(pair.people.community[pair.members[k]] % len(CITIES))


def _foursquare(pair: Pair, twitter: pl.Series) -> pl.DataFrame:
    """The file of users; twitter: names of the other network's users."""
    rng, members, n = pair.rng, pair.members[0], len(pair.members[0])
    plain = handles(rng, members, change=0, unrelated=0)
    numbers = pl.Series(10_000 + rng.permutation(10 * n)[:n]).cast(pl.String)
    without, slashed = random_mask(rng, n, 0.3), random_mask(rng, n, 0.01)  # users who chose no name for their address
    known_as = pl.DataFrame({"person": pair.members[1], "twitter": twitter})
    other = pl.DataFrame({"person": members}).join(known_as, on="person", how="left", maintain_order="left")["twitter"]
    # Of those who are not in the Twitter data some link to an account all the same.
    absent = (handles(rng, members, unrelated=1.0) + "_x").set(~random_mask(rng, n, 0.3), None)
    loud = random_mask(rng, n, 0.3)
    facebook = "http://www.facebook.com/profile.php?id=" + pl.Series(rng.permutation(n)).cast(pl.String)
    follows, followed = pair.degrees(0)
    attributes: dict[str, tuple[NDArray[Any] | float, float]] = {
        "count_12": (3_000, 0.04),
        "count_13": (1.0 + follows, 0.63),
        "count_14": (1.0 + followed, 0.56),
    }
    others = {name: (10, 0.5) for name in PEOPLE.columns if name.startswith("count_")}
    counts = {name: _with_commas(pair.count(base, n, known)) for name, (base, known) in (others | attributes).items()}
    table = pl.select(
        user=pl.when(without).then("user/" + numbers).otherwise(plain),
        name=pl.when(slashed).then(plain + "/" + numbers).otherwise(plain),
        always_null=pl.lit("null"),
        city=_cities(pair, 0),
        twitter="http://twitter.com/" + pl.coalesce(pl.when(loud).then(other.str.to_uppercase()), other, absent),
        facebook=facebook.set(~random_mask(rng, n, 0.3), None),
    )
    return table.with_columns(profile="http://foursquare.com/" + pl.col("user"), **counts)


def _cut_short(path: Path, line: int) -> None:
    """Cut a line after eleven fields, as one of the published file is."""
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[line] = "\t".join(lines[line].split("\t")[:11])
    path.write_text("\n".join(lines), encoding="utf-8")


def _twitter(pair: Pair, names: pl.Series) -> pl.DataFrame:
    """The file of users; a carriage return belongs to its field."""
    rng, n = pair.rng, len(names)
    broken = pl.Series(np.where(rng.random(n) < 0.02, "\r", " "))
    follows, followed = pair.degrees(1)
    return pl.DataFrame(
        {
            "user": names,
            "id": 1_000_000 + rng.permutation(20 * n)[:n],
            "name": names.str.replace("_", " ").str.to_titlecase().set(random_mask(rng, n, 0.01), None),
            "biography": ("Synthetic." + broken + _favourites(pair, 1)).set(random_mask(rng, n, 0.2), None),
            "location": (_cities(pair, 1) + broken + "area").set(random_mask(rng, n, 0.3), None),
            "url": ("http://example.org/" + names).set(random_mask(rng, n, 0.6), None),
            "tweets": _with_commas(pair.count(2_700, n)),
            "following": _with_commas(pair.count(30.0 * (1 + follows), n)),
            "followers": _with_commas(pair.count(100.0 * (1 + followed), n)),
        }
    )


def _write_posts(folder: Path, pair: Pair, k: int, users: pl.Series, owners: TextTable, texts: TextTable) -> None:
    """Write who posted what, and the texts in another order, a block at a time; and where tips are of."""
    rng, number = pair.rng, pair.numbers_of_posts(k)
    first_id = int(rng.integers(10**6, 10**7))
    tips = TextTable("foursquare/tips/tip_loc", dict.fromkeys(("post", "venue"), owners.columns["post"]), "\t")
    written = [owners, texts, tips] if k == 0 else [owners, texts]
    for file in written:
        file.write(folder, [])
    for post, author, text in pair.posts(k, number):
        table = pl.DataFrame(
            {
                "user": users.gather(author),
                "post": first_id + 3 * post,
                "text": text.set(random_mask(rng, len(post), 0.002), None),  # cleaning left nothing of these
                "venue": "venue" + pl.Series(rng.integers(0, 1 + number.sum() // 4, len(post))).cast(pl.String),
            }
        )
        order = rng.permutation(len(post))
        for file in written:
            with (folder / file.name).open("ab") as out:
                file.append(out, table[order] if file is texts else table)
