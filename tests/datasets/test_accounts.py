from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.datasets.accounts import number_users, occupation, occupation_feature, read_labels, simhash

GROUPS = {"gender": 1, "occupation": 3, "interest": 2}
HEADER = "user\tgender\toccupation_0\toccupation_1\toccupation_2\tinterest_0\tinterest_1\n"
USERS = pl.Series(["ann", "bob", "cy"])


@pytest.mark.parametrize(
    ("name", "value"),
    [  # what Simhash(name, f=32).value of the package simhash 2.1.2 is
        ("ada_lovelace", 4018985831),
        ("Max Müller", 552504513),
        ("ab", 2465262496),
        ("", 3975692926),
        ("!!!", 3975692926),
        ("小明在北京", 3684876421),
        ("A.B-C d!e", 102638093),
        ("aaaaaaaa", 1715324389),
        ("x" * 30, 1493660825),
        ("Élan Vital 9", 1379773405),
    ],
)
def test_simhash_is_that_of_the_package_the_authors_use(name: str, value: int) -> None:
    bits = simhash(pl.Series(["someone else", name, None])).row(1)
    assert sum(bit << place for place, bit in enumerate(bits)) == value


def test_simhash_of_nobody_is_missing_and_similar_names_are_near() -> None:
    names = pl.Series(["christopher_robin_milne", "christopher_robin_milnes", None, "winnie_the_pooh_bear_42"])
    bits = simhash(names)
    assert bits.row(2) == (None,) * 32
    near, other = (int((np.array(bits.row(0)) != np.array(bits.row(row))).sum()) for row in (1, 3))
    assert near < 8 < other


def test_numbers_do_not_depend_on_the_order_and_tell_nothing_of_it() -> None:
    ids = pl.Series("id", range(1_000))
    first, again = number_users(ids, "one"), number_users(ids.reverse(), "one")
    assert first.equals(again)
    assert first["number"].to_list() == list(range(1_000))
    other = number_users(ids, "other").rename({"number": "second"})
    both = first.join(other, on="id")
    bound = 4 / np.sqrt(1_000)  # 4 standard deviations of a correlation of independent orders
    for pair in (("id", "number"), ("number", "second")):
        assert abs(np.corrcoef(both[pair[0]], both[pair[1]])[0, 1]) < bound


def test_labels_arrive_as_lists(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(HEADER + "cy\t1\t0\t1\t0\t\t\nann\t\t\t\t\t0\t0\n")
    table = read_labels(path, GROUPS, USERS, "user")
    assert table.rows() == [("cy", 1, [0, 1, 0], None), ("ann", None, None, [0, 0])]


def test_an_occupation_is_its_number_several_or_missing() -> None:
    lists = pl.DataFrame({"list": [[0, 0, 1], [1, 0, 1], None, [1, 0, 0]]})
    actual = lists.select(occupation(pl.col("list"))).to_series().to_list()
    assert actual == ["2", "several", None, "0"]
    assert occupation_feature(3).categories == ("0", "1", "2", "several", "unknown")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("ann\t2\t\t\t\t\t", "labels.tsv:3: gender is 2, not 0 or 1"),
        ("ann\t\t1\t\t0\t\t", "labels.tsv:3: 2 of 3 occupation fields are filled"),
        ("ann\t\t0\t0\t0\t\t", "labels.tsv:3: no occupation is marked"),
        ("ann\t\t\t\t\t1\t", "labels.tsv:3: 1 of 2 interest fields are filled"),
        ("cy\t1\t\t\t\t\t", r"labels.tsv:3: user cy is repeated \(first on line 2\)"),
    ],
)
def test_a_bad_label_is_named(tmp_path: Path, line: str, match: str) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(f"{HEADER}cy\t1\t0\t1\t0\t\t\n{line}\n")
    with pytest.raises(DataError, match=match):
        read_labels(path, GROUPS, USERS, "user")
