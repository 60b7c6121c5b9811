from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.io import savemat

from tasks.datasets.fetch import NoOptions, Places
from tasks.datasets.trust import CIAO, EPINIONS, ReleaseOptions, TrustNetwork
from tasks.errors import ByHandError, DataError
from tasks.raw import RawTables, read_raw

Table = NDArray[np.int64]
RATINGS = {
    "ciao": np.array([[1, 10, 3, 5, 2, 959670000], [2, 10, 3, 0, 1, 959670001], [1, 10, 3, 4, 7, 959670002]]),
    "epinions": np.array([[1, 10, 3, 5, 2, 11], [2, 10, 3, 4, 1, 1], [1, 10, 3, 4, 5, 1]]),
}
TRUST = np.array([[1, 2, 11], [2, 3, 1], [3, 3, 1]])
TIMED = "rating_with_timestamp.mat"
TRUST_FILES = {"ciao": ("trustnetwork.mat", "trustnetwork"), "epinions": ("epinion_trust_with_timestamp.mat", "trust")}
PLAIN, TIMES = ReleaseOptions(release="plain"), ReleaseOptions(release="timestamps")


def network(name: str) -> TrustNetwork:
    return {"ciao": CIAO, "epinions": EPINIONS}[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    (tmp_path / "tables").mkdir()
    return tmp_path / "raw"


def save(folder: Path, name: str, ratings: Table | None = None, trust: Table = TRUST) -> None:
    """The release with times, or slots."""
    savemat(folder / TIMED, {"rating": RATINGS[name] if ratings is None else ratings}, do_compression=True)
    file, variable = TRUST_FILES[name]
    savemat(folder / file, {variable: trust[:, :2] if name == "ciao" else trust}, do_compression=True)


def save_plain(folder: Path, ratings: Table) -> None:
    savemat(folder / "rating.mat", {"rating": ratings}, do_compression=True)
    savemat(folder / "trustnetwork.mat", {"trustnetwork": TRUST[:, :2]}, do_compression=True)


def converted(folder: Path, name: str) -> RawTables:
    network(name).convert(folder, folder.parent / "tables", NoOptions())
    return read_raw(folder.parent / "tables")


def refused(folder: Path, name: str, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        converted(folder, name)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def places(folder: Path, mirror: Path | None) -> Places:
    return Places(mirror and str(mirror), folder.parent / "placed", folder.parent / "downloads")


def real(mirror: Path, folder: Path, name: str, release: ReleaseOptions = TIMES) -> tuple[pl.DataFrame, pl.DataFrame]:
    network(name).obtain(folder, places(folder, mirror), release)
    raw = converted(folder, name)
    return raw.scan("interactions").collect(), raw.scan("social").collect()


def test_the_release_with_times_has_every_row_as_published(folder: Path) -> None:
    save(folder, "ciao")
    raw = converted(folder, "ciao")
    assert raw.schema.tables == ("interactions", "social")
    assert (raw.schema.time, raw.schema.unrated, raw.schema.features) == ("seconds", 0, ())
    actual = raw.scan("interactions").collect()
    assert actual.columns == ["user", "item", "rating", "timestamp", "category", "helpfulness"]
    assert actual.rows() == [
        (1, 10, 5.0, 959670000, 3, 2), (2, 10, 0.0, 959670001, 3, 1), (1, 10, 4.0, 959670002, 3, 7),
    ]  # fmt: skip
    assert raw.scan("social").collect().rows() == [(1, 2, "trust"), (2, 3, "trust"), (3, 3, "trust")]


def test_slots_are_columns_and_no_times(folder: Path) -> None:
    save(folder, "epinions")
    raw = converted(folder, "epinions")
    assert (raw.schema.time, raw.schema.unrated, raw.schema.tables) == ("none", 0, ("interactions", "social"))
    actual = raw.scan("interactions").collect()
    assert actual.columns == ["user", "item", "rating", "timestamp", "category", "helpfulness", "slot"]
    assert actual.rows() == [(1, 10, 5.0, None, 3, 2, 11), (2, 10, 4.0, None, 3, 1, 1), (1, 10, 4.0, None, 3, 5, 1)]
    assert raw.scan("social").collect().rows() == [(1, 2, "trust", 11), (2, 3, "trust", 1), (3, 3, "trust", 1)]


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("ciao", 5, {"timestamp": None, "helpfulness": 2}),
        ("epinions", 4, {"timestamp": None, "helpfulness": None, "slot": None}),
        ("epinions", 5, {"timestamp": None, "helpfulness": 2, "slot": None}),
        ("epinions", 6, {"timestamp": None, "helpfulness": 2, "slot": 11}),
    ],
)
def test_what_a_plain_release_has_not_is_null(folder: Path, name: str, width: int, expected: dict[str, Any]) -> None:
    save_plain(folder, RATINGS[name][:, :width])
    raw = converted(folder, name)
    assert raw.schema.time == "none"
    first = raw.scan("interactions").collect().row(0, named=True)
    assert first == {"user": 1, "item": 10, "rating": 5.0, "category": 3} | expected
    social = raw.scan("social").collect()
    assert social.columns == ["source", "target", "relation", *(["slot"] if name == "epinions" else [])]


@pytest.mark.parametrize(
    ("name", "row", "column", "value", "match"),
    [
        ("ciao", 2, 0, -3, rf"{TIMED}: variable 'rating', row 3, column 1 \(user\) is -3, not 1 or more"),
        ("ciao", 1, 1, 0, r"row 2, column 2 \(item\) is 0, not 1 or more"),
        ("ciao", 0, 3, 6, r"row 1, column 4 \(rating\) is 6, not 0 to 5"),
        ("ciao", 0, 5, 959670000000, r"row 1, column 6 \(timestamp\) is 959670000000, not 0 to 4102444799"),
        ("epinions", 0, 5, 12, rf"{TIMED}: variable 'rating', row 1, column 6 \(slot\) is 12, not 1 to 11"),
    ],
)
def test_a_bad_value_is_named(folder: Path, name: str, row: int, column: int, value: int, match: str) -> None:
    wrong = RATINGS[name].copy()
    wrong[row, column] = value
    save(folder, name, wrong)
    refused(folder, name, match)


@pytest.mark.parametrize("name", RATINGS)
def test_missing_files_both_releases_and_other_columns_are_named(folder: Path, name: str) -> None:
    refused(folder, name, f"no rating.mat or {TIMED} is there; run the download stage again")
    save(folder, name, RATINGS[name][:, :5])
    refused(folder, name, "variable 'rating' is 3 x 5, not rows of 6 columns")
    save(folder, name, trust=np.where(TRUST == 2, 0, TRUST))
    file, variable = TRUST_FILES[name]
    refused(folder, name, rf"{file}: variable '{variable}', row 1, column 2 \(target\) is 0, not 1 or more")
    (folder / file).unlink()
    refused(folder, name, f"{file}: not found")
    save_plain(folder, RATINGS[name][:, :3])
    refused(folder, name, "both releases are there")
    (folder / TIMED).unlink()
    wanted = "5 columns" if name == "ciao" else "4 to 6 columns"
    refused(folder, name, rf"variable 'rating' is 3 x 3, not rows of {wanted} \(user, item, category, rating, help")


def test_the_plain_ratings_of_epinions_have_to_be_placed_by_hand(mirror: Path, folder: Path) -> None:
    with pytest.raises(ByHandError, match=r"put it at: .*placed/epinions/rating.mat"):
        EPINIONS.obtain(folder, places(folder, mirror), PLAIN)
    (folder.parent / "placed" / "epinions").mkdir(parents=True)
    savemat(folder.parent / "placed" / "epinions" / "rating.mat", {"rating": RATINGS["epinions"][:, :5]})
    ratings, trust = real(mirror, folder, "epinions", PLAIN)
    assert len(ratings) == 3
    assert len(trust) == 355_754
    assert trust.filter(pl.col("source") == pl.col("target")).height == 224


@pytest.mark.parametrize("release", [PLAIN, TIMES])
def test_the_real_files_of_ciao(mirror: Path, folder: Path, release: ReleaseOptions) -> None:
    actual, trust = real(mirror, folder, "ciao", release)
    assert len(actual) == 284_086
    assert actual.select(pl.col("user", "item").n_unique()).row(0) == (7_375, 105_114)
    assert actual["rating"].value_counts(sort=True).rows()[-1] == (0.0, 34)
    assert len(actual) - actual.select("user", "item").n_unique() == 1_436
    assert trust.shape == (111_781, 3)
    times = {"plain": (None, None), "timestamps": (959_670_000, 1_302_591_600)}
    assert actual.select(low=pl.col("timestamp").min(), high=pl.col("timestamp").max()).row(0) == times[release.release]


def test_the_real_files_of_epinions(mirror: Path, folder: Path) -> None:
    actual, trust = real(mirror, folder, "epinions")
    assert len(actual) == 922_267
    assert actual.select(pl.col("user", "item").n_unique()).row(0) == (22_164, 296_277)
    assert len(actual) - actual.select("user", "item").n_unique() == 9_826
    assert actual.select(low=pl.col("rating").min(), high=pl.col("rating").max()).row(0) == (1, 5)
    assert actual["slot"].unique().sort().to_list() == list(range(1, 12))
    assert len(trust) == 300_548
    assert trust.filter(pl.col("source") == pl.col("target")).height == 155
    assert len(trust) - trust.select("source", "target").n_unique() == 457


@pytest.mark.parametrize(("name", "low", "high"), [("ciao", 0.5, 0.7), ("epinions", -0.05, 0.05)])
def test_whose_trust_it_is(mirror: Path, folder: Path, name: str, low: float, high: float) -> None:
    """Who rates much trusts many on Ciao, whose files belong together; Epinions' number their users independently."""
    ratings, trust = real(mirror, folder, name)
    rated = ratings.group_by("user").agg(rated=pl.len())
    trusts = trust.group_by("source").agg(trusts=pl.len())
    both = trusts.join(rated, left_on="source", right_on="user")
    assert low < both.select(pl.corr("rated", "trusts", method="spearman")).item() < high
