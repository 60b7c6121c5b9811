from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.io import savemat

from tasks.datasets import ciao
from tasks.datasets.ciao import ObtainOptions, convert, obtain, source
from tasks.datasets.fetch import NoOptions, Places
from tasks.errors import ByHandError, DataError
from tasks.raw import RawTables, read_raw

RATINGS = np.array([[1, 10, 3, 5, 2, 959670000], [2, 10, 3, 0, 1, 959670001], [1, 10, 3, 4, 7, 959670002]])
TRUST = np.array([[1, 2], [2, 3], [1, 2], [3, 3]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    (tmp_path / "tables").mkdir()
    return tmp_path / "raw"


def save(folder: Path, ratings: NDArray[np.int64] = RATINGS, trust: NDArray[np.int64] = TRUST) -> None:
    name = "rating.mat" if ratings.shape[1] < 6 else "rating_with_timestamp.mat"
    savemat(folder / name, {"rating": ratings}, do_compression=True)
    savemat(folder / "trustnetwork.mat", {"trustnetwork": trust}, do_compression=True)


def converted(folder: Path) -> RawTables:
    convert(folder, folder.parent / "tables", NoOptions())
    return read_raw(folder.parent / "tables")


def refused(folder: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        converted(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def real(mirror: Path, folder: Path, release: str) -> RawTables:
    options = ObtainOptions.model_validate({"release": release})
    obtain(folder, Places(str(mirror), folder.parent / "placed", folder.parent / "downloads"), options)
    return converted(folder)


def test_the_release_with_times_has_every_row_as_published(folder: Path) -> None:
    save(folder)
    raw = converted(folder)
    assert raw.schema.tables == ("interactions", "social")
    assert (raw.schema.time, raw.schema.unrated, raw.schema.features) == ("seconds", 0, ())
    actual = raw.scan("interactions").collect()
    assert actual.columns == ["user", "item", "rating", "timestamp", "category", "helpfulness"]
    assert actual.rows() == [
        (1, 10, 5.0, 959670000, 3, 2),
        (2, 10, 0.0, 959670001, 3, 1),
        (1, 10, 4.0, 959670002, 3, 7),
    ]
    assert raw.scan("social").collect().rows() == [
        (1, 2, "trust"), (2, 3, "trust"), (1, 2, "trust"), (3, 3, "trust"),
    ]  # fmt: skip


def test_the_plain_release_has_no_times(folder: Path) -> None:
    save(folder, RATINGS[:, :5])
    raw = converted(folder)
    assert raw.schema.time == "none"
    assert raw.scan("interactions").collect()["timestamp"].to_list() == [None] * 3


@pytest.mark.parametrize(
    ("row", "column", "value", "match"),
    [
        (2, 0, -3, r"rating_with_timestamp.mat: variable 'rating', row 3, column 1 \(user\) is -3, not 1 or more"),
        (1, 1, 0, r"row 2, column 2 \(item\) is 0, not 1 or more"),
        (0, 3, 6, r"row 1, column 4 \(rating\) is 6, not 0 to 5"),
        (0, 5, 959670000000, r"row 1, column 6 \(timestamp\) is 959670000000, not 0 to 4102444799"),
    ],
)
def test_a_bad_value_is_named(folder: Path, row: int, column: int, value: int, match: str) -> None:
    wrong = RATINGS.copy()
    wrong[row, column] = value
    save(folder, wrong)
    refused(folder, match)


def test_missing_files_both_releases_and_other_columns_are_named(folder: Path) -> None:
    refused(folder, "no rating.mat or rating_with_timestamp.mat is there; run the download stage again")
    save(folder)
    save(folder, RATINGS[:, :5])
    refused(folder, "both releases are there")
    (folder / "rating_with_timestamp.mat").unlink()
    save(folder, RATINGS[:, :4])
    refused(folder, r"variable 'rating' is 3 x 4, not rows of 5 columns \(user, item, category, rating, helpfulness\)")
    save(folder, RATINGS[:, :5], trust=np.array([[1, 2], [0, 3]]))
    refused(folder, r"trustnetwork.mat: variable 'trustnetwork', row 2, column 1 \(source\) is 0, not 1 or more")
    (folder / "trustnetwork.mat").unlink()
    refused(folder, "trustnetwork.mat: not found")


def test_without_mirror_or_placed_file_the_user_is_told_where_to_get_it(folder: Path) -> None:
    places = Places(None, folder.parent / "placed", folder.parent / "downloads")
    with pytest.raises(ByHandError, match=r"rating.mat of the Ciao data set\nput it at: .*placed/ciao/rating.mat"):
        obtain(folder, places, ObtainOptions(release="plain"))


def test_a_file_that_is_not_the_published_one_is_refused(folder: Path) -> None:
    mirror = folder.parent / "mirror"
    (mirror / "ciao").mkdir(parents=True)
    save(mirror / "ciao")
    places = Places(str(mirror), folder.parent / "placed", folder.parent / "downloads")
    with pytest.raises(DataError, match=r"rating_with_timestamp.mat: size is .* expected 1,529,576 bytes"):
        obtain(folder, places, ObtainOptions(release="timestamps"))


@pytest.mark.parametrize("release", ["plain", "timestamps"])
def test_the_real_files(mirror: Path, folder: Path, release: str) -> None:
    raw = real(mirror, folder, release)
    actual = raw.scan("interactions").collect()
    assert len(actual) == 284_086
    assert actual.select(pl.col("user", "item").n_unique()).row(0) == (7_375, 105_114)
    assert actual["rating"].value_counts(sort=True).rows()[-1] == (0.0, 34)
    assert len(actual) - actual.select("user", "item").n_unique() == 1_436
    assert raw.scan("social").collect().shape == (111_781, 3)
    times = {"plain": (None, None), "timestamps": (959_670_000, 1_302_591_600)}
    assert actual.select(low=pl.col("timestamp").min(), high=pl.col("timestamp").max()).row(0) == times[release]


def test_the_ids_of_trust_are_those_of_the_ratings(mirror: Path, folder: Path) -> None:
    """Who trusts whom rated the same products more often than who trusts somebody drawn at random."""
    raw = real(mirror, folder, "timestamps")
    pairs, ratings = raw.scan("social").collect(), raw.scan("interactions").collect()
    shuffled = pairs.with_columns(pl.col("target").shuffle(seed=0))
    assert shared(pairs, ratings) > 1.3 * shared(shuffled, ratings)


def shared(pairs: pl.DataFrame, ratings: pl.DataFrame) -> float:
    """Share of pairs of which both have rated a product."""
    mine = ratings.select("user", "item").unique()
    rated = (
        pairs.lazy()
        .with_row_index("pair")
        .select("pair", "source", "target")
        .join(mine.lazy(), left_on="source", right_on="user")
    )
    common = rated.join(mine.lazy(), left_on=["target", "item"], right_on=["user", "item"], how="semi")
    return common.select(pl.col("pair").n_unique()).collect().item() / len(pairs)


def test_the_source_names_the_files_of_each_release() -> None:
    assert source(ObtainOptions(release="plain")) == ciao.SOURCE
    timed = source(ObtainOptions(release="timestamps"))
    assert [file.mirror_path for file in timed.files] == ["ciao/rating_with_timestamp.mat", "ciao/trustnetwork.mat"]
    for described in (timed, ciao.SOURCE):
        assert described.size == sum(file.size or 0 for file in described.files)
    assert "WSDM 2012" in ciao.SOURCE.licence
