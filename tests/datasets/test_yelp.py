import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from tasks.core.raw import RawTables
from tasks.datasets import yelp
from tasks.datasets.yelp import ObtainOptions, ReadOptions
from tests.datasets import formats

REVIEW, USER, BUSINESS = (f"yelp_academic_dataset_{kind}.json" for kind in ("review", "user", "business"))
EVERYTHING = ReadOptions(users=True, businesses=True, friends=True, outsiders="leave-out")
STRICT = EVERYTHING.model_copy(update={"outsiders": "refuse"})
REVIEWS_ALONE = ReadOptions(users=False, businesses=False, friends=False, outsiders="refuse")


def identifier(name: str) -> str:
    return name.ljust(22, "-")


ANN, BEN, EVE, CAFE, PUB, STRANGER = map(identifier, ("Ann", "Ben", "Eve", "Cafe", "Pub", "Stranger"))


def review(number: int, user: str, business: str, stars: float, date: str, **other: Any) -> dict[str, Any]:
    known = {"review_id": identifier(f"r{number}"), "user_id": user, "business_id": business, "stars": stars}
    return {**known, "useful": 0, "funny": -1, "cool": 0, "text": "Good \ud83d\n'cheap' {food}", "date": date, **other}


def user(name: str, friends: str | list[str], **other: Any) -> dict[str, Any]:
    numbers = {"review_count": 3, "useful": 40, "funny": 0, "cool": 7, "fans": 1, "average_stars": 3.5}
    return {"user_id": name, "name": "x", "elite": "", "friends": friends, "compliment_hot": 2, **numbers, **other}


def business(name: str, title: str, city: str) -> dict[str, Any]:
    return {"business_id": name, "name": title, "city": city, "stars": 4.5, "attributes": {"city": "no"}, "hours": None}


RECORDS = {
    REVIEW: [
        review(1, ANN, CAFE, 5.0, "2018-10-04 11:22:33"),
        review(2, BEN, CAFE, 1, "2005-05-11"),
        review(3, ANN, CAFE, 4.0, "2018-10-04 11:22:34"),
        review(4, EVE, PUB, 3.0, "2012-02-29 23:59:59"),
    ],
    USER: [
        user(ANN, f"{BEN}, {EVE}", review_count=9),
        user(BEN, "None", fans=0, average_stars=1),
        user(EVE, [ANN], useful=206296, average_stars=5.0),
    ],
    BUSINESS: [business(CAFE, "Café ☕", "Tampa"), business(PUB, "Pub", "St. Louis")],
}


def lines(records: Iterable[dict[str, Any]]) -> list[str]:
    return [json.dumps(record) for record in records]


FILES = {name: lines(records) for name, records in RECORDS.items()}
converted = partial(formats.converted, yelp, options=STRICT)
refused = partial(formats.refused, yelp, options=STRICT)


def changed(name: str, line: int, **fields: Any) -> str:
    """A line of the file `name` with other fields."""
    return json.dumps(RECORDS[name][line - 1] | fields)


def left_out(raw: RawTables) -> dict[str, int]:
    left_out: dict[str, int] = json.loads((raw.folder / "left_out.json").read_text())
    return left_out


def seconds(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp())


def test_every_record_arrives_in_the_order_of_the_files(folder: Path) -> None:
    raw = converted(folder)
    reviews = raw.scan("interactions").select("user", "item", "rating", "timestamp", "review").collect()
    assert reviews.rows() == [
        (ANN, CAFE, 5.0, seconds(2018, 10, 4, 11, 22, 33), identifier("r1")),
        (BEN, CAFE, 1.0, seconds(2005, 5, 11), identifier("r2")),
        (ANN, CAFE, 4.0, seconds(2018, 10, 4, 11, 22, 34), identifier("r3")),
        (EVE, PUB, 3.0, seconds(2012, 2, 29, 23, 59, 59), identifier("r4")),
    ]
    names = ("user", "review_count", "average_stars", "useful", "funny", "cool", "fans", "friends")
    assert raw.scan("users").select(names).collect().rows() == [
        (ANN, 9, 3.5, 40, 0, 7, 1, 2),
        (BEN, 3, 1.0, 40, 0, 7, 0, 0),
        (EVE, 3, 5.0, 206296, 0, 7, 1, 1),
    ]
    assert raw.scan("items").collect().rows() == [(CAFE, "Café ☕", "Tampa"), (PUB, "Pub", "St. Louis")]
    assert raw.scan("social").collect().rows() == [(ANN, BEN, "friend"), (ANN, EVE, "friend"), (EVE, ANN, "friend")]
    assert left_out(raw) == {"reviews": 0, "friends": 0}


@pytest.mark.parametrize(
    ("friends", "expected"),
    [
        ("", []),
        ("None", []),
        (BEN, [BEN]),
        (f"{BEN},{EVE}", [BEN, EVE]),
        ([], []),
        (["None"], []),
        ([BEN, EVE, BEN, ANN], [BEN, EVE, BEN, ANN]),
    ],
)
def test_friends_of_every_release_arrive_repeats_and_all(
    folder: Path, friends: str | list[str], expected: list[str]
) -> None:
    formats.change_line(folder / USER, 1, changed(USER, 1, friends=friends))
    raw = converted(folder)
    social = raw.scan("social").filter(pl.col("source") == ANN).collect()
    assert social["target"].to_list() == expected
    assert raw.scan("users").collect()["friends"].to_list() == [len(expected), 0, 1]


def test_without_files_of_users_and_businesses_there_are_reviews_alone(folder: Path) -> None:
    (folder / USER).unlink()
    (folder / BUSINESS).unlink()
    raw = converted(folder, options=REVIEWS_ALONE)
    assert raw.schema.tables == ("interactions",)
    assert raw.schema.features == ()
    assert len(raw.scan("interactions").collect()) == 4


def test_outsiders_are_left_out_and_counted_or_refused(folder: Path) -> None:
    formats.change_line(folder / USER, 2, changed(USER, 2, friends=f"{ANN}, {STRANGER}, {STRANGER}"))
    reviews = [*RECORDS[REVIEW][:2], review(8, STRANGER, CAFE, 2, "2012-01-01"), *RECORDS[REVIEW][2:]]
    formats.write(folder, REVIEW, lines([*reviews, review(9, ANN, STRANGER, 2, "2012-01-01")]))
    raw = converted(folder, options=EVERYTHING)
    assert left_out(raw) == {"reviews": 2, "friends": 2}
    actual = raw.scan("interactions").collect()["review"].to_list()
    assert actual == [identifier(f"r{number}") for number in (1, 2, 3, 4)]
    assert raw.scan("social").filter(pl.col("source") == BEN).collect()["target"].to_list() == [ANN]
    assert raw.scan("users").collect()["friends"].to_list() == [2, 3, 1]

    refused(folder, rf"{USER}:2: friend is '{STRANGER}', not in {USER}: .* \(at least 2 such lines\)")
    formats.write(folder, USER, FILES[USER])
    refused(folder, rf"{REVIEW}:6: business_id is '{STRANGER}', not in {BUSINESS}: take both files from one release")
    formats.write(folder, REVIEW, lines(reviews))
    refused(folder, rf"{REVIEW}:3: user_id is '{STRANGER}', not in {USER}: take both files from one release")


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda line: line[: len(line) // 2], "is no whole JSON object"),
        (lambda line: f"[{line}]", r"is '.*', not a JSON object"),
        (lambda line: f'{line[:-1]}, "a": {"[" * 100_000}', "is no whole JSON object"),
        (lambda line: f'{line[:-1]}, "a": {"[" * 100_000}{"]" * 100_000}}}', "is no whole JSON object"),
    ],
)
@pytest.mark.parametrize("line", [1, 2])
def test_a_line_that_is_no_object_is_named(folder: Path, name: str, wrong: Any, match: str, line: int) -> None:
    formats.change_line(folder / name, line, wrong(FILES[name][line - 1]))
    refused(folder, f"{name}:{line}: {match}")


def test_friends_need_users() -> None:
    with pytest.raises(ValidationError, match="friends are listed in the file of users"):
        ReadOptions(users=False, businesses=True, friends=True, outsiders="refuse")


def test_the_real_sample(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(yelp, tmp_path, mirror, ObtainOptions(part="sample"))
    assert {file.name for file in folder.iterdir()} == {REVIEW, BUSINESS}
    reviews = converted(folder, options=REVIEWS_ALONE).scan("interactions").collect()
    assert len(reviews) == 999
    assert reviews.select(pl.col("user", "item", "review").n_unique()).row(0) == (993, 822, 999)
    times = reviews["timestamp"].sort()
    days = [datetime.fromtimestamp(time, UTC).date().isoformat() for time in (times[0], times[-1])]
    assert days == ["2005-05-11", "2018-10-04"]

    known = REVIEWS_ALONE.model_copy(update={"businesses": True})
    refused(folder, rf"{REVIEW}:1: business_id is .*, not in {BUSINESS}: .* \(at least 922 such lines\)", options=known)
    raw = converted(folder, options=known.model_copy(update={"outsiders": "leave-out"}))
    assert left_out(raw) == {"reviews": 922, "friends": 0}
    assert raw.scan("interactions").collect()["item"].n_unique() == 63
    assert len(raw.scan("items").collect()) == 1000
