import shutil
import subprocess
import zipfile
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from tasks.datasets.fetch import Places
from tasks.datasets.movielens import AGES, ML_1M, OCCUPATIONS, ArchiveOptions, TimeOptions
from tasks.errors import ByHandError, DataError
from tasks.raw import RawTables
from tests.datasets import formats

SECONDS, ORDER = TimeOptions(time="seconds"), TimeOptions(time="order")
SMALL = {
    "ratings.dat": "1::10::5::978300760\n2::10::3::978300761\n1::20::1::978300762\n",
    "users.dat": "1::F::1::10::48067\n2::M::56::0::70072-1234\n",
    "movies.dat": "10::Mis\xe9rables, Les (1995)::Drama|Musical\n20::Toy Story (1995)::Animation\n",
}
NO_TIMES = "1::10::5\n2::10::3\n1::20::1\n"


converted = partial(formats.converted, ML_1M, options=SECONDS)
refused = partial(formats.refused, ML_1M, options=SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in SMALL.items():
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    return tmp_path


def rows(tables: RawTables, name: str, *columns: str) -> list[tuple[object, ...]]:
    return tables.scan(name).select(columns).collect().rows()


def test_every_field_arrives(folder: Path) -> None:
    tables = converted(folder)
    assert tables.schema.time == "seconds"
    assert tables.schema.unique_pairs
    assert tables.scan("interactions").collect().rows() == [
        (1, 10, 5.0, 978300760), (2, 10, 3.0, 978300761), (1, 20, 1.0, 978300762),
    ]  # fmt: skip
    assert rows(tables, "users", "user", "gender", "age", "occupation", "zip_code") == [
        (1, "F", "under-18", "K-12 student", "48067"),
        (2, "M", "56+", "other or not specified", "70072-1234"),
    ]
    assert rows(tables, "items", "item", "title", "genres")[0] == (10, "Misérables, Les (1995)", "Drama|Musical")


def test_every_code_of_the_readme_has_its_category(folder: Path) -> None:
    people = [(age, code) for age in AGES for code in range(21)]
    lines = [f"{user}::F::{age}::{code}::0" for user, (age, code) in enumerate(people, start=1)]
    (folder / "users.dat").write_text("\n".join(lines))
    actual = rows(converted(folder), "users", "age", "occupation")
    assert actual == [(AGES[age], OCCUPATIONS[code]) for age, code in people]


def test_without_time_stamps_the_order_of_lines_is_the_time_if_asked_for(folder: Path) -> None:
    (folder / "ratings.dat").write_text(NO_TIMES)
    refused(folder, r"ratings.dat:1: 3 fields, so this copy has no time stamps; .* `time: order`")
    tables = converted(folder, options=ORDER)
    assert tables.schema.time == "order"
    assert rows(tables, "interactions", "user", "item", "rating", "timestamp", "position") == [
        (1, 10, 5.0, None, 0), (2, 10, 3.0, None, 1), (1, 20, 1.0, None, 2),
    ]  # fmt: skip


def test_time_stamps_that_are_there_are_not_replaced_by_the_order(folder: Path) -> None:
    refused(folder, r"ratings.dat:1: is not a copy without time stamps; say `time: seconds`", options=ORDER)


def test_neither_time_nor_archive_has_a_default() -> None:
    for options in (TimeOptions, ArchiveOptions):
        with pytest.raises(ValidationError):
            options()


@pytest.mark.parametrize(
    ("name", "line", "wrong", "match"),
    [
        ("ratings.dat", 3, "1::20::6::978300762", "ratings.dat:3: rating is 6, not 1 to 5"),
        ("ratings.dat", 3, "1::10::1::978300762", r"ratings.dat:3: user 1, item 10 is repeated \(first on line 1\)"),
        ("ratings.dat", 2, "7::10::3::978300761", "ratings.dat:2: user is 7, not listed in users.dat"),
        ("ratings.dat", 2, "-1::10::3::978300761", "ratings.dat:2: user is -1, not listed in users.dat"),
        ("ratings.dat", 2, "2::77::3::978300761", "ratings.dat:2: item is 77, not listed in movies.dat"),
        ("users.dat", 2, "2::X::56::0::70072", "users.dat:2: gender is 'X', not F or M"),
        ("users.dat", 2, "2::M::30::0::70072", "users.dat:2: age is 30, not one of the codes 1, 18, 25"),
        ("users.dat", 2, "2::M::56::21::70072", "users.dat:2: occupation is 21, not 0 to 20"),
        ("users.dat", 2, "1::M::56::0::70072", r"users.dat:2: user 1 is repeated \(first on line 1\)"),
        ("users.dat", 2, "0::M::56::0::70072", "users.dat:2: user is 0, not 1 or more"),
        ("users.dat", 2, "2::M::56::0::700\xe9", "users.dat:2: byte 0xe9 is not utf-8"),
        ("movies.dat", 2, "10::Toy Story (1995)::Animation", "movies.dat:2: item 10 is repeated"),
        ("movies.dat", 2, "20::Toy\0Story::Animation", "movies.dat:2: holds a NUL byte; is it a text file"),
        ("movies.dat", 2, "-20::Toy Story (1995)::Animation", "movies.dat:2: item is -20, not 1 or more"),
    ],
)
def test_a_bad_line_is_named(folder: Path, name: str, line: int, wrong: str, match: str) -> None:
    lines = SMALL[name].splitlines()
    lines[line - 1] = wrong
    (folder / name).write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    refused(folder, match)


def test_a_bad_line_without_time_stamps_is_named(folder: Path) -> None:
    (folder / "ratings.dat").write_text(NO_TIMES + "2::20::5::978300760\n")
    refused(folder, "ratings.dat:4: 4 fields instead of 3", options=ORDER)


def obtained(mirror: Path, root: Path, archive: str) -> Path:
    folder = root / archive
    folder.mkdir()
    ML_1M.obtain(folder, Places(str(mirror), root / "placed", root / "downloads"), ArchiveOptions(archive=archive))
    return folder


def test_the_real_files(mirror: Path, tmp_path: Path) -> None:
    folder = obtained(mirror, tmp_path, "no-timestamps")
    assert "without their time stamps" in (folder / "NOTE").read_text()
    refused(folder, "no time stamps")
    tables = converted(folder, options=ORDER)
    everything = tables.scan("interactions").collect()
    levels = everything["rating"].value_counts().sort("rating")
    assert levels.rows() == [(1, 56_174), (2, 107_557), (3, 261_197), (4, 348_971), (5, 226_310)]
    assert everything.select(pl.col("user", "item").n_unique()).row(0) == (6040, 3706)
    users = tables.scan("users").collect()
    assert users["gender"].value_counts().sort("gender").rows() == [("F", 1709), ("M", 4331)]
    assert users.select(pl.col("age", "occupation").n_unique()).row(0) == (7, 21)
    assert tables.scan("items").collect().height == 3883

    tables = converted(obtained(mirror, tmp_path, "first-487650-rows"))
    first = tables.scan("interactions").collect()
    assert first["user"].unique().sort().to_list() == list(range(1, 3000))
    shared = ["user", "item", "rating"]
    assert first.select(shared).equals(everything.select(shared).head(487_650))
    assert first["timestamp"].is_between(956_703_932, 1_046_454_590).all()  # April 2000 to February 2003


def test_a_copy_of_other_content_is_refused(mirror: Path, tmp_path: Path) -> None:
    placed = tmp_path / "placed"
    placed.mkdir()
    with (
        zipfile.ZipFile(mirror / "ml-1m" / "ml-1m-no-timestamps.zip") as real,
        zipfile.ZipFile(placed / "ml-1m.zip", "w") as other,
    ):
        for name in real.namelist():
            other.writestr(name, real.read(name))
    folder = tmp_path / "ml-1m"
    folder.mkdir()
    with pytest.raises(DataError, match=r"placed/ml-1m.zip: member 'ml-1m/ratings.dat' has SHA-256 2dad.*not the pub"):
        ML_1M.obtain(folder, Places(None, placed, tmp_path / "downloads"), ArchiveOptions(archive="official"))


def test_a_part_comes_from_a_mirror_alone(tmp_path: Path) -> None:
    places = Places(None, tmp_path / "placed", tmp_path / "downloads")
    with pytest.raises(ByHandError, match=r"the publisher has ml-1m\.zip"):
        ML_1M.obtain(tmp_path, places, ArchiveOptions(archive="no-timestamps"))


def test_a_part_is_not_described_as_the_whole() -> None:
    assert ML_1M.source(ArchiveOptions(archive="official")) == ML_1M.SOURCE
    part = ML_1M.source(ArchiveOptions(archive="first-487650-rows"))
    assert part.name == "ml-1m-first-487650-rows"
    assert "487,650 of 1,000,209" in part.holds
    assert "Harper" in part.licence


@pytest.mark.skipif(not (shutil.which("zip") and shutil.which("unzip")), reason="zip and unzip are not installed")
def test_the_documentation_makes_both_parts_of_the_whole(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/data.md").read_text(encoding="utf-8")
    (block,) = [block for block in text.split("```")[1::2] if "unzip -q ml-1m.zip" in block]
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w") as source:
        for name, content in SMALL.items():
            source.writestr(f"ml-1m/{name}", content.encode("latin-1"))
    subprocess.run(["bash", "-euc", block], cwd=tmp_path, check=True)
    made = {file.name: zipfile.ZipFile(file) for file in (tmp_path / "data/placed").iterdir()}
    assert {name: archive.read("ml-1m/ratings.dat").decode() for name, archive in made.items()} == {
        "ml-1m-first-487650-rows.zip": SMALL["ratings.dat"],
        "ml-1m-no-timestamps.zip": NO_TIMES,
    }
