"""A synthetic replica of Foursquare-Twitter in the text layout of DP-CroSUE's release, at any scale.

The layout is the one that `tasks.datasets.foursquare_twitter_text` reads, with the traps of the published files: bare
carriage returns inside fields, thousands commas, users without posts, tips without text, links to accounts that are
not in the data.

Sizes are those of the paper (DP-CroSUE, Table 1; IONE's release has one Twitter connection less, and so has this).
Of how many Twitter users labels are known was not published: the shares of Foursquare's are taken.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tasks.datasets.files import TextTable
from tasks.datasets.foursquare_twitter_text import ACCOUNTS, NETWORKS, PEOPLE
from tasks.datasets.synthetic.generator import Replica
from tasks.datasets.synthetic.networks import Pair, PairDescription, PairOptions, handles, random_mask

# The topics are the paper's without fashion (the release has nine); their order in the release is not known.
FOURSQUARE_TWITTER = PairDescription(
    name="Foursquare-Twitter's text layout", size=82_000_000,
    users=(5_392, 5_223), anchors=3_388, follows=(76_972, 164_919), posts=(48_756, 615_515),
    reciprocity=(0.59, 0.42), writers=(0.56, 0.95),
    labelled={"gender": 2_224 / 5_392, "occupation": 316 / 5_392, "interest": 3_637 / 5_392},
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


def _write(folder: Path, pair: Pair, _: PairOptions) -> None:
    names = handles(pair.rng, pair.members[1])
    people = _foursquare(pair, names)
    PEOPLE.write(folder, [people])
    ACCOUNTS.write(folder, [_twitter(pair, names)])
    for k, (users, files) in enumerate(zip((people["user"], names), NETWORKS.values(), strict=True)):
        ends = {name: users.gather(end) for name, end in zip(files.follows.columns, pair.links[k], strict=True)}
        files.follows.write(folder, [pl.DataFrame(ends)])
        files.labels.write(folder, [pair.labels(k, users)])
        _write_posts(folder, pair, k, users, files.owners, files.texts)


def _with_commas(number: pl.Series) -> pl.Series:
    """Counts as text with thousands commas."""
    return number.map_elements("{:,}".format, pl.String)


def _cities(pair: Pair, k: int) -> pl.Series:
    return pl.Series(CITIES).gather(pair.people.community[pair.members[k]] % len(CITIES))


def _foursquare(pair: Pair, twitter: pl.Series) -> pl.DataFrame:
    """The file of users; twitter: names of the other network's users."""
    rng, members, n = pair.rng, pair.members[0], len(pair.members[0])
    plain = handles(rng, members, unrelated=0)
    numbers = pl.Series(10_000 + rng.permutation(10 * n)[:n]).cast(pl.String)
    without = random_mask(rng, n, 0.3)  # users who chose no name for their address
    other = pl.Series(members).replace_strict(pair.members[1], twitter, default=None)
    # Of those who are not in the Twitter data some link to an account all the same.
    absent = (handles(rng, members, unrelated=1.0) + "_x").set(~random_mask(rng, n, 0.3), None)
    loud = random_mask(rng, n, 0.3)
    counts = {name: pair.count(10, n, 0.5) for name in PEOPLE.columns if name.startswith("count_")}
    for name, degrees, share in zip(("count_13", "count_14"), pair.degrees(0), (0.63, 0.56), strict=True):
        counts[name] = pair.count(1.0 + degrees, n, share)
    counts["count_12"] = pair.count(3_000, n, 0.04)
    return pl.select(
        user=pl.when(without).then("user/" + numbers).otherwise(plain),
        name=plain,
        always_null=pl.lit("null"),
        city=_cities(pair, 0),
        twitter="http://twitter.com/" + pl.coalesce(pl.when(loud).then(other.str.to_uppercase()), other, absent),
        facebook=pl.lit(None, pl.String),
    ).with_columns(
        profile="http://foursquare.com/" + pl.col("user"),
        **{name: _with_commas(count) for name, count in counts.items()},
    )


def _twitter(pair: Pair, names: pl.Series) -> pl.DataFrame:
    """The file of users; a carriage return belongs to its field."""
    rng, n = pair.rng, len(names)
    broken = pl.Series(np.where(rng.random(n) < 0.02, "\r", " "))
    follows, followed = pair.degrees(1)
    interest = pl.Series([*FOURSQUARE_TWITTER.topics]).gather(pair.favourite(1))
    return pl.DataFrame(
        {
            "user": names,
            "id": 1_000_000 + rng.permutation(20 * n)[:n],
            "name": names.str.to_titlecase().set(random_mask(rng, n, 0.01), None),
            "biography": ("Synthetic." + broken + interest).set(random_mask(rng, n, 0.2), None),
            "location": (_cities(pair, 1) + broken + "area").set(random_mask(rng, n, 0.3), None),
            "url": ("http://example.org/" + names).set(random_mask(rng, n, 0.6), None),
            "tweets": _with_commas(pair.count(2_700, n)),
            "following": _with_commas(pair.count(30.0 * (1 + follows), n)),
            "followers": _with_commas(pair.count(100.0 * (1 + followed), n)),
        }
    )


def _write_posts(folder: Path, pair: Pair, k: int, users: pl.Series, owners: TextTable, texts: TextTable) -> None:
    """Write who posted what, and the texts in another order, a block at a time."""
    rng, number = pair.rng, pair.numbers_of_posts(k)
    first_id = int(rng.integers(10**6, 10**7))
    (folder / owners.name).parent.mkdir(exist_ok=True)
    with (folder / owners.name).open("wb") as of_owners, (folder / texts.name).open("wb") as of_texts:
        for post, author, text in pair.posts(k, number):
            empty = random_mask(rng, len(post), 0.002)  # cleaning left nothing of these
            columns = {"user": users.gather(author), "post": first_id + 3 * post, "text": text.set(empty, None)}
            table = pl.DataFrame(columns)
            owners.append(of_owners, table)
            texts.append(of_texts, table[rng.permutation(len(post))])


REPLICA = Replica(
    "twin-foursquare-twitter",
    "5,392 synthetic Foursquare users with 48,756 posts, 5,223 synthetic Twitter users with 615,515 posts, "
    "3,388 of them the same; whom they follow, gender, occupation, interests",
    "obtain: {scale: 1.0, seed: 2017}, format: foursquare_twitter_text, read: {}",
    {"": FOURSQUARE_TWITTER},
    PairOptions,
    Pair,
    _write,
)
