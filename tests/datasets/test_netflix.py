from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import ByHandError, DataError
from tasks.datasets import netflix, text
from tasks.datasets.netflix import COMBINED, TITLES, ObtainOptions
from tests.datasets import formats

COMBINED_1 = "1:\n30,5,2005-09-06\n10,1,1999-11-11\n20,3,2005-12-31\n2:\n10,4,2004-02-29\n"
COMBINED_2 = "3:\n10,2,2000-01-01\n2649429,4,2001-01-01\n"
FILES = {
    "movie_titles.csv": b"1,2003,Dinosaur Planet\n2,NULL,Rome, Pompeii\n3,1997,Caf\xe9\n4,2000,Never rated\n",
    "combined_data_1.txt": COMBINED_1,
    "combined_data_2.txt": COMBINED_2,
}


converted = partial(formats.converted, netflix)
refused = partial(formats.refused, netflix)


@pytest.fixture(params=["combined", "training_set"])
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def as_training_set(folder: Path) -> None:
    """The same ratings in the prize's own layout, a file per movie."""
    (folder / "training_set").mkdir()
    for path in sorted(folder.glob("combined_data_*.txt")):
        for line in path.read_text().splitlines():
            if line.endswith(":"):
                target = folder / "training_set" / f"mv_{int(line[:-1]):07}.txt"
            with target.open("a") as out:
                out.write(f"{line}\n")
        path.unlink()


def midnight(day: str) -> int:
    return (date.fromisoformat(day) - date(1970, 1, 1)).days * 86_400


RATINGS = [
    (30, 1, 5.0, midnight("2005-09-06")),
    (10, 1, 1.0, midnight("1999-11-11")),
    (20, 1, 3.0, midnight("2005-12-31")),
    (10, 2, 4.0, midnight("2004-02-29")),
    (10, 3, 2.0, midnight("2000-01-01")),
    (2649429, 3, 4.0, midnight("2001-01-01")),
]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_every_field_arrives_in_both_layouts(
    folder: Path, layout: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    if layout == "training_set":
        as_training_set(folder)
    tables = converted(folder)
    assert tables.scan("interactions").collect().rows() == RATINGS
    assert tables.scan("items").select("item", "year", "title").collect().rows() == [
        (1, 2003, "Dinosaur Planet"), (2, None, "Rome, Pompeii"), (3, 1997, "Café"), (4, 2000, "Never rated"),
    ]  # fmt: skip
    assert (tables.schema.tables, tables.schema.features) == (("interactions", "items"), ())
    assert tables.schema.time == "seconds"
    assert tables.schema.unique_pairs


def test_a_bad_line_of_the_prize_layout_is_named_with_its_file(folder: Path) -> None:
    as_training_set(folder)
    path = folder / "training_set" / "mv_0000002.txt"
    path.write_text("2:\n10,4,2004-02-29\n20,9,2004-02-29\n")
    refused(folder, "training_set/mv_0000002.txt:3: rating is 9, not 1 to 5")
    path.write_text("1:\n10,4,2004-02-29\n")
    refused(folder, r"mv_0000002.txt:1: movie 1 is repeated \(first at .*mv_0000001.txt:1\)")


def test_missing_files_are_named(folder: Path) -> None:
    for path in folder.glob("combined_data_*.txt"):
        path.unlink()
    refused(folder, r"no combined_data_\*.txt or training_set/mv_\*.txt; run the download stage again")


@pytest.fixture
def small_mirror(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror whose published data are the small files, in two combined files."""
    kept = folder.with_name("mirror") / "netflix"
    kept.mkdir(parents=True)
    for path in [*folder.glob("combined_data_*.txt"), folder / "movie_titles.csv"]:
        path.rename(kept / path.name)
    monkeypatch.setattr(netflix, "COMBINED", COMBINED[:2])
    monkeypatch.setattr(netflix, "TITLES", replace(TITLES, size=None, sha256=None))
    monkeypatch.setattr(netflix, "PUBLISHED", (6, 3))
    return kept.parent


def obtained(root: Path, mirror: Path, ratings: str) -> Path:
    return formats.obtained(netflix, root, mirror, ObtainOptions(ratings=ratings))


def test_whole_sets_are_counted_in_both_layouts(small_mirror: Path, layout: str, tmp_path: Path) -> None:
    if layout == "training_set":
        as_training_set(small_mirror / "netflix")
    folder = obtained(tmp_path, small_mirror, layout)
    assert converted(folder).scan("interactions").collect().rows() == RATINGS
    assert not (folder / "NOTE").exists()


def test_a_set_that_is_not_whole_is_refused(small_mirror: Path, layout: str, tmp_path: Path) -> None:
    (small_mirror / "netflix" / "combined_data_2.txt").write_text(COMBINED_2.splitlines(keepends=True)[0])
    if layout == "training_set":
        as_training_set(small_mirror / "netflix")
    with pytest.raises(DataError, match="have 4 ratings of 3 movies, published are 6 of 3; get them again, whole"):
        obtained(tmp_path, small_mirror, layout)


def test_what_is_not_there_is_asked_for(small_mirror: Path, layout: str, tmp_path: Path) -> None:
    (small_mirror / "netflix" / "combined_data_2.txt").unlink()
    with pytest.raises(ByHandError) as caught:
        obtained(tmp_path, small_mirror, layout)
    missing, *steps = str(caught.value).splitlines()
    assert str(small_mirror) in missing
    name = {"combined": "combined_data_2.txt", "training_set": "training_set"}[layout]
    assert steps[2] == f"put it at: {tmp_path}/placed/netflix/{name}"
    assert len(steps) == 3


def test_the_real_first_part(mirror: Path, tmp_path: Path) -> None:
    folder = obtained(tmp_path, mirror, "first-20-movies")
    assert "movies 1 to 20" in (folder / "NOTE").read_text()
    tables = converted(folder)
    ratings = tables.scan("interactions").collect()
    assert (ratings.height, ratings["user"].n_unique()) == (42_813, 38_152)
    per_movie = ratings["item"].value_counts().sort("item")
    assert per_movie["item"].to_list() == list(range(1, 21))
    assert per_movie["count"].to_list()[:8] == [547, 145, 2012, 142, 1140, 1019, 93, 14910]
    assert ratings["timestamp"].min() == midnight("2000-01-06")
    assert ratings.select((pl.col("timestamp") % 86_400 == 0).all()).item()
    titles = tables.scan("items").collect()
    assert titles.height == 17_770
    assert titles.filter(pl.col("year").is_null())["item"].to_list() == [4388, 4794, 7241, 10782, 15918, 16678, 17667]
