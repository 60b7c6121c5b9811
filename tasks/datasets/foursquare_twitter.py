"""Foursquare and Twitter as DP-CroSUE released them (Ren et al., 2022), pseudonymised: no names, places or texts.

Ids are those of a random permutation. What was taken away must not be looked for: never try to identify a
person, and never join this with other data about the same networks. All files have passed their checksums.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tasks.core.contracts import Feature
from tasks.core.raw import write_raw
from tasks.datasets.accounts import BLMNE, GENDER, LICENCE, SIMHASH, occupation, occupation_feature
from tasks.datasets.fetch import NoOptions, Source, copied, form_files

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
    holds=(
        "5,392 users of Foursquare with 76,972 follows, 5,223 of Twitter without; 3,282 are both; profile counts; "
        "gender, occupation, interests and text vectors of some of Foursquare; pseudonymised"
    ),
    entry="{source: foursquare_twitter, obtain: {}, format: foursquare_twitter, read: {}}",
    files=FILES,
    licence=LICENCE,
    terms=f"Pseudonymous is not anonymous: do not redistribute, and do not try to identify anyone. {BLMNE}",
)
ObtainOptions = ReadOptions = NoOptions
obtain = copied(lambda _: SOURCE)

OCCUPATIONS, INTERESTS, VECTOR = 18, 9, 300
COUNTS = ("count_a", "count_b", "count_c")
"""Three counts of a Foursquare profile. Which is which is not said."""
LABELS = tuple(f"interests_{number}" for number in range(INTERESTS))


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
    users, follows, vectors, twitter, anchors = (
        pl.read_parquet(folder / f"{name}.parquet")
        for name in ("foursquare_users", "foursquare_follows", "foursquare_text_vectors", "twitter_users", "anchors")
    )
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
            "vectors": vectors.select("user", vector=pl.concat_arr(f"v{number}" for number in range(VECTOR))),
        },
        features=(*SIMHASH, *_numbers(COUNTS), GENDER, occupation_feature(OCCUPATIONS)),
        labels=LABELS,
    )
    write_raw(
        destination / "twitter",
        {"users": twitter},
        features=(*SIMHASH, *_numbers(("tweets", "following", "followers"))),
    )


def _numbers(names: tuple[str, ...]) -> tuple[Feature, ...]:
    return tuple(Feature(name=name, kind="numeric") for name in names)
