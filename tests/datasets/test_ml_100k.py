import zipfile
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tasks.datasets.fetch import NoOptions, Places
from tasks.datasets.movielens import ML_100K
from tasks.errors import DataError
from tests.datasets import formats

GENRES = ("unknown", "Action", "Drama")
SMALL = {
    "u.data": "1\t10\t5\t881250949\n2\t10\t3\t881250950\n1\t20\t1\t881250951\n",
    "u.user": "1|24|M|technician|85711\n2|53|F|other|\n",
    "u.item": "10|Mis\xe9rables, Les (1995)|01-Jan-1995||http://x|0|1|1\n20|unknown||||1|0|0\n",
    "u.genre": "unknown|0\nAction|1\nDrama|2\n\n",
    "u.occupation": "other\ntechnician\n",
}


converted = partial(formats.converted, ML_100K)
refused = partial(formats.refused, ML_100K)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in SMALL.items():
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    return tmp_path


def test_every_field_arrives(folder: Path) -> None:
    raw = converted(folder)
    assert raw.scan("interactions").collect().rows() == [
        (1, 10, 5.0, 881250949), (2, 10, 3.0, 881250950), (1, 20, 1.0, 881250951),
    ]  # fmt: skip
    columns = ["user", "years", "age", "gender", "occupation", "zip_code"]
    assert raw.scan("users").select(columns).collect().rows() == [
        (1, 24, "under-35", "M", "technician", "85711"),
        (2, 53, "over-45", "F", "other", None),
    ]
    items = raw.scan("items").collect()
    assert tuple(items.columns[5:]) == GENRES
    assert items.rows() == [
        (10, "Misérables, Les (1995)", "01-Jan-1995", None, "http://x", 0, 1, 1),
        (20, "unknown", None, None, None, 1, 0, 0),
    ]
    assert {feature.name: feature.categories for feature in raw.schema.features}["occupation"] == (
        "other",
        "technician",
    )


@pytest.mark.parametrize(
    ("name", "line", "wrong", "match"),
    [
        ("u.data", 3, "1\t20\t6\t881250951", "u.data:3: rating is 6, not 1 to 5"),
        ("u.data", 3, "1\t20\t0\t881250951", "u.data:3: rating is 0, not 1 to 5"),
        ("u.data", 3, "1\t10\t4\t881250951", r"u.data:3: user 1, item 10 is repeated \(first on line 1\)"),
        ("u.data", 2, "7\t10\t3\t881250950", "u.data:2: user is 7, not listed in u.user"),
        ("u.data", 2, "2\t77\t3\t881250950", "u.data:2: item is 77, not listed in u.item"),
        ("u.user", 2, "2|53|X|other|94043", "u.user:2: gender is 'X', not F or M"),
        ("u.user", 2, "2|53|F|pirate|94043", "u.user:2: occupation is 'pirate', not one of the 2 in u.occupation"),
        ("u.user", 2, "2|530|F|other|94043", "u.user:2: age is 530, not 1 to 120"),
        ("u.user", 2, "1|53|F|other|94043", r"u.user:2: user 1 is repeated \(first on line 1\)"),
        ("u.item", 2, "20|unknown||||1|0|2", "u.item:2: Drama is 2, not 0 or 1"),
        ("u.item", 2, "10|unknown||||1|0|0", "u.item:2: item 10 is repeated"),
    ],
)
def test_a_bad_line_is_named(folder: Path, name: str, line: int, wrong: str, match: str) -> None:
    lines = SMALL[name].splitlines()
    lines[line - 1] = wrong
    (folder / name).write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    refused(folder, match)


def test_the_real_files(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(ML_100K, tmp_path, mirror)
    assert {file.name for file in folder.iterdir()} == {Path(name).name for name in ML_100K.members}
    raw = converted(folder)
    ratings, users, items = (raw.scan(name).collect() for name in ("interactions", "users", "items"))
    assert ratings.shape == (100_000, 4)
    assert ratings.select(pl.col("user", "item").n_unique()).row(0) == (943, 1682)
    assert (len(users), len(items), len(items.columns) - 5) == (943, 1682, 19)
    assert len(raw.schema.features[2].categories) == 21
    assert users["gender"].value_counts().sort("gender")["count"].to_list() == [273, 670]
    assert items.row(266, named=True)["release_date"] is None
    assert items["url"].null_count() == 3
    assert items.row(542, named=True)["title"] == "Misérables, Les (1995)"


def test_a_placed_copy_of_other_content_is_refused(mirror: Path, tmp_path: Path) -> None:
    placed = tmp_path / "placed" / ML_100K.SOURCE.files[0].name
    placed.parent.mkdir()
    with zipfile.ZipFile(mirror / ML_100K.SOURCE.files[0].mirror_path) as real, zipfile.ZipFile(placed, "w") as other:
        for name in ML_100K.members:
            content = real.read(name)
            other.writestr(name, content[:-1] if name.endswith("u.user") else content)
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    with pytest.raises(DataError, match=r"placed/ml-100k.zip: member 'ml-100k/u.user' has SHA-256"):
        ML_100K.obtain(folder, Places(None, placed.parent, tmp_path / "downloads"), NoOptions())
