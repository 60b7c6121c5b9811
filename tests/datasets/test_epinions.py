from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.io import savemat

from tasks.datasets import epinions
from tasks.datasets.epinions import ObtainOptions, convert, obtain, source
from tasks.datasets.fetch import NoOptions, Places
from tasks.errors import ByHandError, DataError
from tasks.raw import RawTables, read_raw

RATINGS = np.array([[1, 10, 3, 5, 2, 11], [2, 10, 3, 4, 1, 1], [1, 10, 3, 4, 5, 1]])
TRUST = np.array([[1, 2, 11], [2, 3, 1], [3, 3, 1]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    (tmp_path / "tables").mkdir()
    return tmp_path / "raw"


def save(folder: Path, ratings: NDArray[np.int64] = RATINGS, trust: NDArray[np.int64] = TRUST) -> None:
    savemat(folder / "rating_with_timestamp.mat", {"rating": ratings}, do_compression=True)
    savemat(folder / "epinion_trust_with_timestamp.mat", {"trust": trust}, do_compression=True)


def save_plain(folder: Path, ratings: NDArray[np.int64]) -> None:
    savemat(folder / "rating.mat", {"rating": ratings}, do_compression=True)
    savemat(folder / "trustnetwork.mat", {"trustnetwork": TRUST[:, :2]}, do_compression=True)


def converted(folder: Path) -> RawTables:
    convert(folder, folder.parent / "tables", NoOptions())
    return read_raw(folder.parent / "tables")


def refused(folder: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        converted(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def places(folder: Path, mirror: Path | None) -> Places:
    return Places(mirror and str(mirror), folder.parent / "placed", folder.parent / "downloads")


def test_slots_are_columns_and_no_times(folder: Path) -> None:
    save(folder)
    raw = converted(folder)
    assert (raw.schema.time, raw.schema.unrated, raw.schema.tables) == ("none", 0, ("interactions", "social"))
    actual = raw.scan("interactions").collect()
    assert actual.columns == ["user", "item", "rating", "timestamp", "category", "helpfulness", "slot"]
    assert actual.rows() == [
        (1, 10, 5.0, None, 3, 2, 11),
        (2, 10, 4.0, None, 3, 1, 1),
        (1, 10, 4.0, None, 3, 5, 1),
    ]
    assert raw.scan("social").collect().rows() == [(1, 2, "trust", 11), (2, 3, "trust", 1), (3, 3, "trust", 1)]


@pytest.mark.parametrize(("width", "expected"), [(4, (None, None)), (5, (2, None)), (6, (2, 11))])
def test_the_plain_release_may_have_four_to_six_columns(
    folder: Path, width: int, expected: tuple[int | None, int | None]
) -> None:
    save_plain(folder, RATINGS[:, :width])
    raw = converted(folder)
    first = raw.scan("interactions").collect().row(0, named=True)
    assert (first["user"], first["item"], first["rating"], first["category"]) == (1, 10, 5.0, 3)
    assert (first["helpfulness"], first["slot"]) == expected
    assert raw.scan("social").collect()["slot"].to_list() == [None] * 3


def test_bad_values_and_missing_files_are_named(folder: Path) -> None:
    refused(folder, "no rating.mat or rating_with_timestamp.mat is there")
    save(folder, np.where(RATINGS == 11, 12, RATINGS))
    refused(folder, r"rating_with_timestamp.mat: variable 'rating', row 1, column 6 \(slot\) is 12, not 1 to 11")
    save(folder, RATINGS[:, :5])
    refused(folder, "variable 'rating' is 3 x 5, not rows of 6 columns")
    save(folder, trust=np.where(TRUST == 11, 0, TRUST))
    refused(folder, r"epinion_trust_with_timestamp.mat: variable 'trust', row 1, column 3 \(slot\) is 0, not 1 to 11")
    (folder / "epinion_trust_with_timestamp.mat").write_text("1 2 11\n")
    refused(folder, "epinion_trust_with_timestamp.mat: is not a .mat file")
    save_plain(folder, RATINGS[:, :4])
    refused(folder, "both releases are there")
    (folder / "rating_with_timestamp.mat").unlink()
    save_plain(folder, RATINGS[:, :3])
    refused(folder, "variable 'rating' is 3 x 3, not rows of 4 to 6 columns")


def test_the_plain_ratings_have_to_be_placed_by_hand(mirror: Path, folder: Path) -> None:
    plain = ObtainOptions(release="plain")
    with pytest.raises(ByHandError, match=r"put it at: .*placed/epinions/rating.mat"):
        obtain(folder, places(folder, mirror), plain)
    (folder.parent / "placed" / "epinions").mkdir(parents=True)
    savemat(folder.parent / "placed" / "epinions" / "rating.mat", {"rating": RATINGS[:, :5]})
    obtain(folder, places(folder, mirror), plain)
    raw = converted(folder)
    assert len(raw.scan("interactions").collect()) == 3
    trust = raw.scan("social").collect()
    assert len(trust) == 355_754
    assert trust.filter(pl.col("source") == pl.col("target")).height == 224


def test_the_real_files(mirror: Path, folder: Path) -> None:
    obtain(folder, places(folder, mirror), ObtainOptions(release="timestamps"))
    raw = converted(folder)
    actual, trust = raw.scan("interactions").collect(), raw.scan("social").collect()
    assert len(actual) == 922_267
    assert actual.select(pl.col("user", "item").n_unique()).row(0) == (22_164, 296_277)
    assert len(actual) - actual.select("user", "item").n_unique() == 9_826
    assert actual.select(low=pl.col("rating").min(), high=pl.col("rating").max()).row(0) == (1, 5)
    assert actual["slot"].unique().sort().to_list() == list(range(1, 12))
    assert len(trust) == 300_548
    assert trust.filter(pl.col("source") == pl.col("target")).height == 155
    assert len(trust) - trust.select("source", "target").n_unique() == 457


def test_the_ids_of_trust_with_slots_are_not_those_of_the_ratings(mirror: Path, folder: Path) -> None:
    """How much a user rates says nothing about how many the user of this number trusts.

    On Ciao, whose files belong together, this rank correlation is 0.59.
    """
    obtain(folder, places(folder, mirror), ObtainOptions(release="timestamps"))
    raw = converted(folder)
    rated = raw.scan("interactions").group_by("user").agg(rated=pl.len())
    trusts = raw.scan("social").group_by("source").agg(trusts=pl.len())
    both = trusts.join(rated, left_on="source", right_on="user")
    rank = both.select(pl.corr("rated", "trusts", method="spearman")).collect().item()
    assert abs(rank) < 0.05


def test_the_source_names_the_files_of_each_release() -> None:
    assert source(ObtainOptions(release="timestamps")) == epinions.SOURCE
    plain = source(ObtainOptions(release="plain"))
    assert [file.mirror_path for file in plain.files] == ["epinions/rating.mat", "epinions/trustnetwork.mat"]
    assert epinions.SOURCE.size == sum(file.size or 0 for file in epinions.SOURCE.files)
    assert "KDD 2012" in epinions.SOURCE.licence
