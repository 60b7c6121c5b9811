from functools import partial
from pathlib import Path

import polars as pl

from tasks.datasets import foursquare_twitter_text
from tasks.datasets.accounts import simhash
from tasks.datasets.foursquare_twitter_text import INTERESTS, OCCUPATIONS
from tests.datasets import formats
from tests.datasets.formats import write

LABELS = [f"interests_{n}" for n in range(INTERESTS)]
COUNTS = ["", "1", "2", "12,345", "", "7", "", "", "", "", "", "9"]  # fields 9 to 20


def person(user: str, name: str, twitter: str) -> str:
    url = f"https://foursquare.example/{user}"
    fields = [user, url, name, "null", "Gotham/Ciudad", "3", "1,200", twitter, "https://fb.example/x", *COUNTS]
    return "\t".join(fields)


def labels(user: str, gender: str, occupation: str, interest: str) -> str:
    many = [[*text] if text else [""] * size for text, size in ((occupation, OCCUPATIONS), (interest, INTERESTS))]
    return "\t".join([user, gender, *many[0], *many[1]])


HEADER = "\t".join(
    ["user", "gender", *(f"occupation_{n}" for n in range(OCCUPATIONS)), *(f"interest_{n}" for n in range(INTERESTS))]
)
ADA = person("11", "Ada Ex/ample", "http://twitter.com/AdaEx")
SHORT = "\t".join(person("33", "Zed Shortrow", "").split("\t")[:11])
FILES = {
    "foursquare/users/user": [
        ADA,
        SHORT,
        person("user/22", "Bob Inv\u00e9nted", "https://twitter.com/nobody_here"),
        person("44", "", "http://www.twitter.com/#!/cy_cy/"),
    ],
    "foursquare/users/user_following": ["11\tuser/22", "44\t11", "44\t44", "44\t11"],
    "foursquare/tips/user_tip": ["11\tt1", "user/22\tt2", "11\tt3"],
    "foursquare/tips/tipcleaned": ["t3\t\tNice\ttea", "t1\t\tGood coffee", "t9\t\tNobody's", "t2\t\t"],
    "foursquare/labels.tsv": [HEADER, labels("11", "1", "0" * 17 + "1", ""), labels("44", "", "", "100000001")],
    "twitter/user": [
        "cy_cy\t900\tCy\rof Two Lines\tBio\rgraphy\tNowhere\thttp://cy.example\t1,234\t0\t12,345,678",
        "adaex\t901\tAda\t\t\t\t5\t6\t7",
    ],
    "twitter/following": ["cy_cy\tadaex"],
    "twitter/userTweet": ["adaex\t5001", "cy_cy\t5002"],
    "twitter/tweetcleaned": ["5001\t\tcr\u00e8me\rbrul\u00e9e", "5002\t\t\u201chello\u201d"],
    "twitter/labels.tsv": [HEADER, labels("adaex", "0", "11" + "0" * 16, "000000000")],
}


converted = partial(formats.converted, foursquare_twitter_text)


def test_every_value_arrives_under_new_numbers(folder: Path) -> None:
    raw = converted(folder)
    foursquare, twitter = raw.network("foursquare"), raw.network("twitter")
    users = foursquare.scan("users").collect()
    assert sorted(users["user"].to_list()) == [0, 1, 2, 3]
    shown = users.select("count_a", "count_b", "count_c", "tips", "gender", "occupation").rows()
    assert sorted(shown, key=str) == sorted(
        [
            (12_345, None, 7, 2, "1", "17"),
            (None, None, None, 0, None, None),
            (12_345, None, 7, 1, None, None),
            (12_345, None, 7, 0, None, None),
        ],
        key=str,
    )
    [ada] = users.filter(pl.col("gender") == "1")["user"].to_list()
    [bob] = users.filter(pl.col("tips") == 1)["user"].to_list()
    [zed] = users.filter(pl.col("count_a").is_null())["user"].to_list()
    [cy] = {0, 1, 2, 3} - {ada, bob, zed}
    follows = foursquare.scan("social").collect()
    expected = [(ada, bob, "follow"), (cy, ada, "follow"), (cy, ada, "follow"), (cy, cy, "follow")]
    assert follows.rows() == sorted(expected)
    assert foursquare.scan("posts").collect().rows() == [(ada, "Good coffee"), (ada, "Nice\ttea")]
    interests = foursquare.scan("labels").collect().filter(pl.col(LABELS[0]).is_not_null())
    assert interests.rows() == [(cy, 1, 0, 0, 0, 0, 0, 0, 0, 1)]

    accounts = twitter.scan("users").collect().sort("tweets")
    assert accounts.select("tweets", "following", "followers", "gender", "occupation").rows() == [
        (5, 6, 7, "0", "several"),
        (1_234, 0, 12_345_678, None, None),
    ]
    tweeter, teller = accounts["user"].to_list()
    assert twitter.scan("social").collect().rows() == [(teller, tweeter, "follow")]
    assert twitter.scan("posts").collect().sort("text").rows() == [
        (tweeter, "cr\u00e8me\rbrul\u00e9e"),
        (teller, "\u201chello\u201d"),
    ]
    assert raw.scan("anchors").collect().rows() == sorted([(ada, tweeter), (cy, teller)])


def test_simhash_is_of_the_name_and_of_the_screen_name(folder: Path) -> None:
    raw = converted(folder)
    for network, names in (
        ("foursquare", ["Ada Ex/ample", "Bob Inv\u00e9nted", "Zed Shortrow", None]),
        ("twitter", ["adaex", "cy_cy"]),
    ):
        actual = raw.network(network).scan("users").select("^simhash_.*$").collect()
        assert sorted(actual.rows(), key=str) == sorted(simhash(pl.Series(names)).rows(), key=str)


def test_nothing_that_names_or_places_somebody_goes_further(folder: Path) -> None:
    write(folder, "foursquare/tips/tipcleaned", ["t1\t\ttext"])
    formats.require_pseudonymous(converted(folder), 4)


def test_texts_may_be_latin_1(folder: Path) -> None:
    (folder / "twitter/tweetcleaned").write_bytes("5001\t\tcr\u00e8me\n".encode("latin-1"))
    assert converted(folder).network("twitter").scan("posts").collect()["text"].to_list() == ["cr\u00e8me"]
