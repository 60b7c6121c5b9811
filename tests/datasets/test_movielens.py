import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.core.errors import ByHandError, DataError
from tasks.core.raw import RawTables
from tasks.datasets.fetch import NoOptions
from tasks.datasets.movielens import LATEST_SMALL, ML_1M, ML_20M, ML_100K, ArchiveOptions, Release, TimeOptions
from tests.datasets import formats

GENRES = ("unknown", "Action", "Drama")
SECONDS, ORDER = TimeOptions(time="seconds"), TimeOptions(time="order")
SMALL = {
    "ml_100k": {
        "u.data": "1\t10\t5\t881250949\n2\t10\t3\t881250950\n1\t20\t1\t881250951\n",
        "u.user": "1|24|M|technician|85711\n2|53|F|other|\n",
        "u.item": "10|Mis\xe9rables, Les (1995)|01-Jan-1995||http://x|0|1|1\n20|unknown||||1|0|0\n",
        "u.genre": "unknown|0\nAction|1\nDrama|2\n\n",
        "u.occupation": "other\ntechnician\n",
    },
    "ml_1m": {
        "ratings.dat": "1::10::5::978300760\n2::10::3::978300761\n1::20::1::978300762\n",
        "users.dat": "1::F::1::10::48067\n2::M::56::0::70072-1234\n",
        "movies.dat": "10::Mis\xe9rables, Les (1995)::Drama|Musical\n20::Toy Story (1995)::Animation\n",
    },
    "ml_20m": {
        "ratings.csv": "userId,movieId,rating,timestamp\n1,10,4.5,964982703\n1,20,0.5,964982704\n2,10,5.0,964982705\n",
        "movies.csv": 'movieId,title,genres\n10,"11\'09""01, The é",Drama|War\n20,Jumanji (1995),(no genres listed)\n',
    },
}
ENCODING = {"ml_100k": "latin-1", "ml_1m": "latin-1", "ml_20m": "utf-8"}
NO_TIMES = "1::10::5\n2::10::3\n1::20::1\n"
RELEASES: dict[str, tuple[Release, Any]] = {
    "ml_100k": (ML_100K, NoOptions()), "ml_1m": (ML_1M, SECONDS), "ml_20m": (ML_20M, NoOptions()),
}  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    for release, files in SMALL.items():
        for name, content in files.items():
            formats.write(tmp_path / release, name, content.encode(ENCODING[release]))
    return {release: tmp_path / release for release in SMALL}


def converted(folder: Path, name: str, options: Any = None) -> RawTables:
    release, default = RELEASES[name]
    return formats.converted(release, folder, options or default)


def refused(folder: Path, name: str, match: str, options: Any = None) -> None:
    release, default = RELEASES[name]
    formats.refused(release, folder, match, options or default)


def test_every_field_of_100k_arrives(folders: dict[str, Path]) -> None:
    raw = converted(folders["ml_100k"], "ml_100k")
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


def rows(tables: RawTables, name: str, *columns: str) -> list[tuple[object, ...]]:
    return tables.scan(name).select(columns).collect().rows()


def test_every_field_of_1m_arrives(folders: dict[str, Path]) -> None:
    tables = converted(folders["ml_1m"], "ml_1m")
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


def test_without_time_stamps_the_order_of_lines_is_the_time_if_asked_for(folders: dict[str, Path]) -> None:
    (folders["ml_1m"] / "ratings.dat").write_text(NO_TIMES)
    refused(folders["ml_1m"], "ml_1m", r"ratings.dat:1: 3 fields, so this copy has no time stamps; .* `time: order`")
    tables = converted(folders["ml_1m"], "ml_1m", ORDER)
    assert tables.schema.time == "order"
    assert rows(tables, "interactions", "user", "item", "rating", "timestamp", "position") == [
        (1, 10, 5.0, None, 0), (2, 10, 3.0, None, 1), (1, 20, 1.0, None, 2),
    ]  # fmt: skip
    (folders["ml_1m"] / "ratings.dat").write_text(NO_TIMES + "2::20::5::978300760\n")
    refused(folders["ml_1m"], "ml_1m", "ratings.dat:4: 4 fields instead of 3", ORDER)


def test_every_field_of_20m_arrives(folders: dict[str, Path]) -> None:
    tables = converted(folders["ml_20m"], "ml_20m")
    assert tables.scan("interactions").collect().rows() == [
        (1, 10, 4.5, 964982703), (1, 20, 0.5, 964982704), (2, 10, 5.0, 964982705),
    ]  # fmt: skip
    assert tables.scan("items").collect().rows() == [
        (10, "11'09\"01, The é", "Drama|War"),
        (20, "Jumanji (1995)", "(no genres listed)"),
    ]
    schema = tables.schema
    assert (schema.tables, schema.features, schema.time) == (("interactions", "items"), (), "seconds")
    assert schema.unique_pairs
    assert schema.scale.levels == (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)


def test_the_real_files_of_100k(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(ML_100K, tmp_path, mirror)
    assert {file.name for file in folder.iterdir()} == {Path(name).name for name in ML_100K.members}
    raw = converted(folder, "ml_100k")
    ratings, users, items = (raw.scan(name).collect() for name in ("interactions", "users", "items"))
    assert ratings.shape == (100_000, 4)
    assert ratings.select(pl.col("user", "item").n_unique()).row(0) == (943, 1682)
    assert (len(users), len(items), len(items.columns) - 5) == (943, 1682, 19)
    assert len(raw.schema.features[2].categories) == 21
    assert users["gender"].value_counts().sort("gender")["count"].to_list() == [273, 670]
    assert items.row(266, named=True)["release_date"] is None
    assert items["url"].null_count() == 3
    assert items.row(542, named=True)["title"] == "Misérables, Les (1995)"


def test_the_real_files_of_1m(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(ML_1M, tmp_path, mirror, ArchiveOptions(archive="no-timestamps"))
    assert "without their time stamps" in (folder / "NOTE").read_text()
    refused(folder, "ml_1m", "no time stamps")
    tables = converted(folder, "ml_1m", ORDER)
    everything = tables.scan("interactions").collect()
    levels = everything["rating"].value_counts().sort("rating")
    assert levels.rows() == [(1, 56_174), (2, 107_557), (3, 261_197), (4, 348_971), (5, 226_310)]
    assert everything.select(pl.col("user", "item").n_unique()).row(0) == (6040, 3706)
    users = tables.scan("users").collect()
    assert users["gender"].value_counts().sort("gender").rows() == [("F", 1709), ("M", 4331)]
    assert users.select(pl.col("age", "occupation").n_unique()).row(0) == (7, 21)
    assert tables.scan("items").collect().height == 3883

    folder = formats.obtained(ML_1M, tmp_path / "first", mirror, ArchiveOptions(archive="first-487650-rows"))
    tables = converted(folder, "ml_1m")
    first = tables.scan("interactions").collect()
    assert first["user"].unique().sort().to_list() == list(range(1, 3000))
    shared = ["user", "item", "rating"]
    assert first.select(shared).equals(everything.select(shared).head(487_650))
    assert first["timestamp"].is_between(956_703_932, 1_046_454_590).all()  # April 2000 to February 2003


def test_a_part_comes_from_a_mirror_alone(tmp_path: Path) -> None:
    with pytest.raises(ByHandError, match=r"the publisher has ml-1m\.zip"):
        formats.obtained(ML_1M, tmp_path, options=ArchiveOptions(archive="no-timestamps"))


@pytest.mark.skipif(not (shutil.which("zip") and shutil.which("unzip")), reason="zip and unzip are not installed")
def test_the_documentation_makes_both_parts_of_the_whole(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/data.md").read_text(encoding="utf-8")
    (block,) = [block for block in text.split("```")[1::2] if "unzip -q ml-1m.zip" in block]
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w") as source:
        for name, content in SMALL["ml_1m"].items():
            source.writestr(f"ml-1m/{name}", content.encode("latin-1"))
    subprocess.run(["bash", "-euc", block], cwd=tmp_path, check=True)
    made = {file.name: zipfile.ZipFile(file) for file in (tmp_path / "data/placed").iterdir()}
    assert {name: archive.read("ml-1m/ratings.dat").decode() for name, archive in made.items()} == {
        "ml-1m-first-487650-rows.zip": SMALL["ml_1m"]["ratings.dat"],
        "ml-1m-no-timestamps.zip": NO_TIMES,
    }


def test_the_real_files_of_the_small_data_set(mirror: Path, tmp_path: Path) -> None:
    folder = formats.obtained(LATEST_SMALL, tmp_path, mirror)
    assert sorted(file.name for file in folder.iterdir()) == ["README.txt", "movies.csv", "ratings.csv"]
    tables = converted(folder, "ml_20m")
    ratings = tables.scan("interactions").collect()
    assert ratings.select(pl.len(), pl.col("user").n_unique(), items=pl.col("item").n_unique()).row(0) == (
        100_836, 610, 9_724,
    )  # fmt: skip
    halves = ratings["rating"].value_counts().sort("rating")["count"].to_list()
    assert halves == [1370, 2811, 1791, 7551, 5550, 20047, 13136, 26818, 8551, 13211]
    titles = tables.scan("items").collect()
    assert titles.height == 9_742
    assert "11'09\"01 - September 11 (2002)" in titles["title"]


def test_an_archive_with_fewer_ratings_than_published_is_refused(tmp_path: Path) -> None:
    (tmp_path / "placed").mkdir()
    with zipfile.ZipFile(tmp_path / "placed/ml-20m.zip", "w") as archive:
        for name in ML_20M.members:
            archive.writestr(name, SMALL["ml_20m"]["ratings.csv"])
    with pytest.raises(DataError, match=r"ml-20m.zip: ratings.csv has 3 ratings, published are 20,000,263"):
        formats.obtained(ML_20M, tmp_path)
