"""What holds for all formats of text: line ends, blocks, and files that are empty, missing or something else."""

from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.datasets import text
from tests.datasets import formats
from tests.datasets.test_foursquare_twitter_text import ADA, SHORT, person
from tests.datasets.test_yelp import ANN, EVE, REVIEW, USER, changed
from tests.fuzz.samples import Sample, samples, write

FORMATS = {
    name: sample for name, sample in samples().items() if name not in ("archive", "params", "glove", "custom, parquet")
}
FILES = [(name, file) for name, sample in FORMATS.items() for file in sample.files]
TEXT = [(name, file) for name, file in FILES if not file.endswith(".npy")]


def read(sample: Sample, folder: Path) -> dict[Path, pl.DataFrame]:
    target = folder.with_name("tables")
    target.mkdir(exist_ok=True)
    sample.read(folder, target)
    return {path.relative_to(target): pl.read_parquet(path) for path in sorted(target.rglob("*.parquet"))}


def refused(name: str, folder: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(FORMATS[name], folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_line_ends_a_missing_last_one_and_blocks_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder, sample = tmp_path / "raw", FORMATS[name]
    write(sample, folder)
    expected = read(sample, folder)
    monkeypatch.setattr(text, "BLOCK", 30)
    for end in (b"\n", b"\r\n"):
        for file, content in sample.files.items():
            if (name, file) in TEXT and name != "weibo":  # whose fields have line ends
                (folder / file).write_bytes(content.rstrip(b"\n").replace(b"\n", end))
        actual = read(sample, folder)
        assert actual.keys() == expected.keys()
        assert all(actual[path].equals(table) for path, table in expected.items())


@pytest.mark.parametrize(("name", "file"), FILES)
def test_an_empty_a_missing_and_a_binary_file_are_named(tmp_path: Path, name: str, file: str) -> None:
    folder = tmp_path / "raw"
    write(FORMATS[name], folder)
    for rubbish in (bytes(range(256)) * 20, bytes(range(1, 256)) * 20, b"\xff" * 100):
        (folder / file).write_bytes(rubbish)
        refused(name, folder, ":")
    for nothing in (b"", b"\n"):
        (folder / file).write_bytes(nothing)
        refused(name, folder, f"{file}(:1)?: is empty" if (name, file) in TEXT else f"{file}: ")
    (folder / file).unlink()
    if "combined_data" not in file:  # of which there may be fewer
        refused(name, folder, "no file of|not found")


TEXTS = "foursquare_twitter_text"
REFUSALS = [
    ("ml_100k", "u.data", 3, "1\t20\t6\t881250951", "rating is 6, not 1 to 5"),
    ("ml_100k", "u.data", 3, "1\t10\t4\t881250951", r"user 1, item 10 is repeated \(first on line 1\)"),
    ("ml_100k", "u.data", 2, "7\t10\t3\t881250950", "user is 7, not in u.user"),
    ("ml_100k", "u.user", 2, "2|53|F|pirate|94043", "occupation is 'pirate', not in u.occupation"),
    ("ml_1m", "users.dat", 2, "2::M::56::0::700\xe9", "byte 0xe9 is not utf-8"),
    ("ml_1m", "movies.dat", 2, "20::Toy\0Story::Animation", "holds a NUL byte; is it a text file"),
    ("ml_20m", "ratings.csv", 1, "user,item,rating,time", "the header is 'user,item,rating,time', not"),
    ("ml_20m", "ratings.csv", 3, "1,30,0.5,964982704", "item is 30, not in movies.csv"),
    ("ml_20m", "ratings.csv", 4, "1,10,3.0,1", r"user 1, item 10 is repeated \(first on line 2\)"),
    ("ml_20m", "movies.csv", 3, '20,"Jumanji (1995),Comedy', "a quoted field does not end on its line"),
    ("netflix", "movie_titles.csv", 2, "2,1990,", "line is '2,1990,', not"),
    ("netflix", "movie_titles.csv", 2, "1,1990,Rome", r"item 1 is repeated \(first on line 1\)"),
    ("netflix", "combined_data_1.txt", 1, "30,5,2005-09-06", "'30,5,2005-09-06' is not 'MovieID:'"),
    ("netflix", "combined_data_1.txt", 3, "10,1", "2 fields instead of 3"),
    ("netflix", "combined_data_1.txt", 6, "10,4,2004-02-2", "date is '2004-02-2', not a day"),
    ("netflix", "combined_data_1.txt", 6, "10,4,1904-02-29", "date is '1904-02-29', not a day between 1970"),
    ("netflix", "combined_data_1.txt", 4, "30,4,2004-02-29", r"item 1, user 30 is repeated \(first on line 2\)"),
    ("netflix", "combined_data_1.txt", 5, "1:", r"movie 1 is repeated \(first at .*combined_data_1.txt:1\)"),
    ("netflix", "combined_data_1.txt", 5, "7:", "movie 7 is not in movie_titles.csv"),
    ("netflix", "combined_data_1.txt", 5, "two:", "'two:' is neither 'MovieID:' nor 'CustomerID,Rating,Date'"),
    ("tmall", "user_log_format1.csv", 3, "7,500,12,90,33,230,0", "time_stamp is 230, not a month and day"),
    ("tmall", "user_log_format1.csv", 4, "4,500,12,90,33,1101,0", "user_id is 4, not a user of user_info_format1.csv"),
    ("tmall, small", "user_log_small.csv", 3, "7,5,1,9,3,07,131,0,5,2,x", "day is 131, not a day of its month"),
    ("yelp, strict", REVIEW, 2, changed(REVIEW, 2, stars=float("nan")), "is no whole JSON object .NaN is not a number"),
    ("yelp, strict", REVIEW, 2, changed(REVIEW, 2, date="2018-02-29"), "date is '2018-02-29', not a date such as"),
    ("yelp, strict", REVIEW, 2, changed(REVIEW, 2, user_id=17), "user_id is '17', not an id"),
    ("yelp, strict", REVIEW, 2, changed(REVIEW, 1), r"review_id r1-+ is repeated \(first on line 1\)"),
    ("yelp, strict", USER, 2, changed(USER, 2, fans=True), "fans is 'true', not an integer"),
    ("yelp, strict", USER, 2, changed(USER, 2, cool=None), "cool is missing"),
    ("yelp, strict", USER, 2, changed(USER, 2, friends=f"{ANN} {EVE}"), f"friends is '{ANN} {EVE}', not None or ids"),
    ("yelp, strict", USER, 2, changed(USER, 2, friends=[ANN, "x" * 9000]), r"friends is '\[.*', not None or ids"),
    ("yelp_hin", "business_category.dat", 2, "30\t2\t1", "business is 30, not a business of user_business.dat"),
    (TEXTS, "foursquare/users/user", 3, SHORT.replace("33", "34"), "11 fields instead of 21, as line 2"),
    (TEXTS, "foursquare/users/user", 1, ADA.replace("null", "no"), "always_null is 'no', not null"),
    (TEXTS, "foursquare/users/user", 1, ADA.replace("12,345", "12,34"), "count_12 is '12,34', not a count"),
    (TEXTS, "foursquare/users/user", 3, person("2", "", "x/ADAEX"), r"twitter adaex is repeated \(first on line 1\)"),
    (TEXTS, "foursquare/users/user_following", 2, "11\t99", "followee is '99', not a user of"),
    (TEXTS, "foursquare/tips/user_tip", 2, "44\tt1", r"post t1 is repeated \(first on line 1\)"),
    (TEXTS, "twitter/user", 2, "CY_cy\t7\t\t\t\t\t1\t2\t3", r"user cy_cy is repeated \(first on line 1\)"),
    ("ione", "twitter/following.number", 2, "-1 1", "follower is -1, not 0 or more"),
    ("custom", "interactions.csv", 3, "8,10,6,881250950", "stars is 6.0, not 1 to 5 in steps of 0.5"),
    ("custom", "interactions.csv", 3, "8, 10,4,881250950", "what is ' 10', not an id"),
    ("custom", "interactions.csv", 3, "6,10,4,881250950", r"who is '6', not a user of .*users.csv"),
    ("custom", "users.csv", 3, "7,53,M", r"id 7 is repeated \(first on line 2\)"),
    ("custom", "users.csv", 3, "8,530,M", "years is 530.0, not 0 to 120, as params.yaml says"),
    ("custom", "users.csv", 3, "8,53,W", r"sex is 'W', not one of F, M, \?, as params.yaml says"),
    ("custom", "social.csv", 2, "7,5,trusts", r"to is '5', not a user of .*users.csv"),
]


@pytest.mark.parametrize(("name", "file", "line", "wrong", "match"), REFUSALS)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_bad_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, line: int, wrong: str, match: str, size: int
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    write(FORMATS[name], tmp_path / "raw")
    formats.change_line(tmp_path / "raw" / file, line, wrong, "latin-1")
    refused(name, tmp_path / "raw", f"{file}:{line}: {match}")
