import zipfile
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import yaml

from tasks.config.originals import publication
from tasks.config.params import load
from tasks.datasets import text
from tasks.datasets.fetch import NoOptions, Places
from tasks.datasets.movielens import LATEST_SMALL, ML_20M
from tasks.errors import DataError
from tests.datasets import formats
from tests.parameters import ROOT

SMALL = {
    "ratings.csv": "userId,movieId,rating,timestamp\n1,10,4.5,964982703\n1,20,0.5,964982704\n2,10,5.0,964982705\n",
    "movies.csv": 'movieId,title,genres\n10,"11\'09""01, The é",Drama|War\n20,Jumanji (1995),(no genres listed)\n',
}
RATINGS = [(1, 10, 4.5, 964982703), (1, 20, 0.5, 964982704), (2, 10, 5.0, 964982705)]


converted = partial(formats.converted, ML_20M)
refused = partial(formats.refused, ML_20M)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in SMALL.items():
        (tmp_path / name).write_bytes(content.encode())
    return tmp_path


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_field_arrives_however_the_lines_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: str, size: int
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    for name, content in SMALL.items():
        (folder / name).write_bytes(content.replace("\n", end).encode())
    tables = converted(folder)
    assert tables.scan("interactions").collect().rows() == RATINGS
    assert tables.scan("items").collect().rows() == [
        (10, "11'09\"01, The é", "Drama|War"),
        (20, "Jumanji (1995)", "(no genres listed)"),
    ]
    schema = tables.schema
    assert (schema.tables, schema.features, schema.time) == (("interactions", "items"), (), "seconds")
    assert schema.unique_pairs
    assert schema.scale is not None
    assert schema.scale.levels == (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)


@pytest.mark.parametrize(
    ("name", "line", "wrong", "match"),
    [
        ("ratings.csv", 1, "user,item,rating,time", "ratings.csv:1: the header is 'user,item,rating,time', not"),
        ("ratings.csv", 1, "1,30,5.0,964982700", "ratings.csv:1: the header is '1,30,5.0,964982700', not"),
        ("ratings.csv", 3, "1,20,nan,964982704", "ratings.csv:3: rating is nan, not 0.5 to 5 in steps of 0.5"),
        ("ratings.csv", 3, "1,20,0,964982704", "ratings.csv:3: rating is 0.0, not 0.5 to 5"),
        ("ratings.csv", 3, "1,20,5.5,964982704", "ratings.csv:3: rating is 5.5, not 0.5 to 5"),
        ("ratings.csv", 3, "1,20,4.2,964982704", "ratings.csv:3: rating is 4.2, not 0.5 to 5"),
        ("ratings.csv", 3, "-1,20,0.5,964982704", "ratings.csv:3: user is -1, not 1 or more"),
        ("ratings.csv", 3, "1,30,0.5,964982704", "ratings.csv:3: item is 30, not listed in movies.csv"),
        ("ratings.csv", 4, "1,10,3.0,1", r"ratings.csv:4: user 1, item 10 is repeated \(first on line 2\)"),
        ("movies.csv", 1, "id,title,genres", "movies.csv:1: the header is 'id,title,genres', not"),
        ("movies.csv", 3, '20,"Jumanji (1995),Comedy', "movies.csv:3: a quoted field does not end on its line"),
        ("movies.csv", 3, "10,Jumanji (1995),Comedy", r"movies.csv:3: item 10 is repeated \(first on line 2\)"),
        ("movies.csv", 3, "0,Jumanji (1995),Comedy", "movies.csv:3: item is 0, not 1 or more"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_bad_line_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, size: int, name: str, line: int, wrong: str, match: str
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    lines = SMALL[name].splitlines()
    lines[line - 1] = wrong
    (folder / name).write_bytes(("\n".join(lines) + "\n").encode())
    refused(folder, match)


def test_the_real_files_of_the_small_data_set(mirror: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ml-latest-small"
    folder.mkdir()
    places = Places(str(mirror), tmp_path / "placed", tmp_path / "downloads")
    LATEST_SMALL.obtain(folder, places, NoOptions())
    assert sorted(file.name for file in folder.iterdir()) == ["README.txt", "movies.csv", "ratings.csv"]
    tables = converted(folder)
    ratings = tables.scan("interactions").collect()
    assert ratings.select(pl.len(), pl.col("user").n_unique(), items=pl.col("item").n_unique()).row(0) == (
        100_836, 610, 9_724,
    )  # fmt: skip
    halves = ratings["rating"].value_counts().sort("rating")["count"].to_list()
    assert halves == [1370, 2811, 1791, 7551, 5550, 20047, 13136, 26818, 8551, 13211]
    titles = tables.scan("items").collect()
    assert titles.height == 9_742
    assert "11'09\"01 - September 11 (2002)" in titles["title"]


def placed(root: Path, ratings: str) -> None:
    path = root / "placed" / "ml-20m.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name in ML_20M.members:
            archive.writestr(name, ratings)


def test_an_archive_with_fewer_ratings_than_published_is_refused(tmp_path: Path) -> None:
    placed(tmp_path, SMALL["ratings.csv"])
    with pytest.raises(DataError, match=r"ml-20m.zip: ratings.csv has 3 ratings, published are 20,000,263"):
        ML_20M.obtain(tmp_path, Places(None, tmp_path / "placed", tmp_path / "downloads"), NoOptions())


def test_the_small_data_set_is_no_other_one_beside_printed_numbers() -> None:
    params = load(ROOT / "params.yaml")
    assert publication("dpvae-ml-latest-small", params) == LATEST_SMALL.SOURCE.name == "ml-latest-small"
    assert publication("dpvae-ml-20m", params) == ML_20M.SOURCE.name == "ml-20m"
    assert params.datasets["ml-latest-small"].model_dump(exclude_none=True) == yaml.safe_load(LATEST_SMALL.SOURCE.entry)
