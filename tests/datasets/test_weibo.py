import io
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.datasets import weibo
from tasks.datasets.accounts import simhash
from tasks.datasets.weibo import COLUMNS, INTERESTS, OCCUPATIONS
from tests.datasets import formats
from tests.datasets.formats import write

LABELS = [f"interests_{n}" for n in range(INTERESTS)]
HEADER = f",Unnamed: 0,{','.join(COLUMNS)}"
KNOWN = "\t".join(
    ["user", *(f"occupation_{n}" for n in range(OCCUPATIONS)), *(f"interest_{n}" for n in range(INTERESTS))]
)


def person(user: str, name: str, gender: str, counts: str, brief: str = "无") -> str:
    return f"0,7,{user},{name},{gender},北京,海淀,{brief},1990-01-01,1,,http://x.example/{user},{counts},,"


def labels(user: str, occupation: str, interest: str) -> str:
    many = [[*text] if text else [""] * size for text, size in ((occupation, OCCUPATIONS), (interest, INTERESTS))]
    return "\t".join([user, *many[0], *many[1]])


def array(*pairs: tuple[int, int], kind: type[np.generic] = np.int64) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array(pairs, dtype=kind))
    return out.getvalue()


ADA = person("1001", "小明在北京", "女", "12,3.0,4")
BOB = person("1002", "bob", "男", ",,", '"two\nlines, a comma and a ""mark"""')
CY = person("1003", "", "", "1,2,3")
FILES: dict[str, list[str] | bytes] = {
    "user_info1.csv": [HEADER, ADA, BOB, CY],
    "user_info2.csv": [HEADER.replace(",Unnamed: 0", "a,b"), person("1003", "cy", "男", "1,2,3"), ADA],
    "newrel1.npy": array((1001, 1002), (1003, 1001), (1003, 1001), (1002, 1002)),
    "newrel2.npy": array((1001, 1003), kind=np.int32),
    "cleaned_blog1.csv": [",user_id,con", "0,1002,你好", '1,1001,"一, 二\n三"', "2,1003,"],
    "cleaned_blog2.csv": ["con,x,user_id", "好,,1003"],
    "labels1.tsv": [KNOWN, labels("1001", "1" + "0" * 13, "0" * 9 + "1"), labels("1002", "", "1" * 10)],
    "labels2.tsv": [KNOWN, labels("1003", "11" + "0" * 12, "")],
}


converted = partial(formats.converted, weibo)
refused = partial(formats.refused, weibo)


def test_every_value_arrives_under_new_numbers(folder: Path) -> None:
    raw = converted(folder)
    first, second = (raw.network(name) for name in ("weibo1", "weibo2"))
    users = first.scan("users").collect()
    [ada], [bob], [cy] = (
        users.filter(condition)["user"].to_list()
        for condition in (pl.col("tweets") == 12, pl.col("tweets").is_null(), pl.col("tweets") == 1)
    )
    assert sorted([ada, bob, cy]) == [0, 1, 2]
    shown = users.select("user", "tweets", "follows", "fans", "gender", "occupation").rows()
    assert shown == sorted([(ada, 12, 3, 4, "女", "0"), (bob, None, None, None, "男", None), (cy, 1, 2, 3, None, None)])
    bits = users.filter(pl.col("user") == ada).select("^simhash_.*$")
    assert bits.equals(simhash(pl.Series(["小明在北京"])))
    follows = [(ada, bob, "follow"), (cy, ada, "follow"), (cy, ada, "follow"), (bob, bob, "follow")]
    assert first.scan("social").collect().rows() == sorted(follows)
    assert first.scan("posts").collect().rows() == sorted([(bob, "你好"), (ada, "一, 二\n三")])
    interests = {user: values for user, *values in first.scan("labels").select("user", *LABELS).collect().rows()}
    assert interests == {ada: [0] * 9 + [1], bob: [1] * 10, cy: [None] * 10}

    others = second.scan("users").collect()
    [ada2], [cy2] = (others.filter(pl.col("tweets") == tweets)["user"].to_list() for tweets in (12, 1))
    assert others.filter(pl.col("user") == cy2)["occupation"].to_list() == ["several"]
    assert second.scan("social").collect().rows() == [(ada2, cy2, "follow")]
    assert second.scan("posts").collect().rows() == [(cy2, "好")]
    assert raw.scan("anchors").collect().rows() == sorted([(ada, ada2), (cy, cy2)])


def test_nothing_that_names_or_places_somebody_goes_further(folder: Path) -> None:
    formats.require_pseudonymous(converted(folder), 3)


def test_the_order_of_records_changes_nothing(folder: Path) -> None:
    first = converted(folder, name="first")
    for name, what in FILES.items():
        if isinstance(what, list):
            write(folder, name, what[:1] + what[1:][::-1])
    write(folder, "newrel1.npy", array((1002, 1002), (1003, 1001), (1001, 1002), (1003, 1001)))
    again = converted(folder, name="again")
    for network in (first.network("weibo1"), first.network("weibo2"), first):
        for table in network.schema.tables:
            other = again.folder / (network.folder / f"{table}.parquet").relative_to(first.folder)
            assert network.scan(table).collect().equals(pl.read_parquet(other)), (network.folder, table)


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(folder: Path) -> None:
    first = converted(folder, name="first").network("weibo1").scan("users").collect()
    plain = (folder / "user_info1.csv").read_bytes()
    (folder / "user_info1.csv").write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
    assert converted(folder, name="again").network("weibo1").scan("users").collect().equals(first)


BLOG = ",user_id,con"


@pytest.mark.parametrize(
    ("name", "what", "match"),
    [
        ("user_info1.csv", [HEADER, BOB, ADA + ","], "user_info1.csv:4: 18 fields instead of 17"),
        ("user_info1.csv", [f"{HEADER}\r{ADA}"], "user_info1.csv:1: lines end in a carriage return alone"),
        ("newrel1.npy", array((1001, 1002)).replace(b")", b"(", 1), "newrel1.npy: not a NumPy array of numbers"),
        (
            "user_info1.csv",
            [HEADER, ADA, BOB.replace('"""', '""')],
            "user_info1.csv:3: a quotation mark is in the wrong",
        ),
        ("user_info1.csv", [HEADER, BOB, ADA, ADA], r"user_info1.csv:5: _id 1001 is repeated \(first on line 4\)"),
        ("user_info1.csv", [HEADER, BOB, ADA.replace("1001", "1e3")], "user_info1.csv:4: _id is '1e3', not a whole"),
        ("user_info1.csv", [HEADER, BOB, ADA.replace("3.0", "3.5")], "csv:4: Num_Follows is '3.5', not a count"),
        (
            "cleaned_blog1.csv",
            [BLOG, '0,1001,"a\nb"', "1,99,x"],
            "blog1.csv:4: user_id is 99, not a user of user_info1",
        ),
        ("cleaned_blog1.csv", [BLOG, "0,x,a", "1,y,x"], r"blog1.csv:2: user_id is 'x', .* \(at least 2 such lines\)"),
        ("newrel1.npy", array((1001, 1002), (1001, 99)), "newrel1.npy:2: target is 99, not a user of user_info1.csv"),
        ("newrel1.npy", array((1001, 1002, 3)), r"newrel1.npy: holds int64 of shape \(1, 3\), not whole"),  # type: ignore[arg-type]
        ("newrel1.npy", array((1001, 1002)).replace(b"(1, 2)", b"(9999999999, 2)"), "not a NumPy array of numbers"),
        ("newrel1.npy", b"PK\x03\x04 and rubbish", "newrel1.npy: not a NumPy array of numbers"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, name: str, what: list[str] | bytes, match: str) -> None:
    write(folder, name, what)
    refused(folder, match)


def test_networks_without_a_common_user_are_refused(folder: Path) -> None:
    write(folder, "user_info2.csv", [HEADER, person("2001", "x", "", ",,"), person("2002", "y", "", ",,")])
    write(folder, "newrel2.npy", array((2001, 2002)))
    write(folder, "cleaned_blog2.csv", [BLOG, "0,2001,a"])
    write(folder, "labels2.tsv", [KNOWN, labels("2001", "", "1" * 10)])
    refused(folder, "no _id is in both files of users")
