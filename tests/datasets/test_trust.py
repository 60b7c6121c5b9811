from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.io import savemat

from tasks.core.errors import ByHandError, DataError
from tasks.core.raw import RawTables
from tasks.datasets import trust
from tasks.datasets.files import Column
from tasks.datasets.trust import CIAO, EPINIONS, Matrix, ReleaseOptions
from tests.datasets import formats

Table = NDArray[np.int64]
RATINGS = {
    "ciao": np.array([[1, 10, 3, 5, 2, 959670000], [2, 10, 3, 0, 1, 959670001], [1, 10, 3, 4, 7, 959670002]]),
    "epinions": np.array([[1, 10, 3, 5, 2, 11], [2, 10, 3, 4, 1, 1], [1, 10, 3, 4, 5, 1]]),
}
TRUST = np.array([[1, 2, 11], [2, 3, 1], [3, 3, 1]])
TIMED = "rating_with_timestamp.mat"
TRUST_FILES = {"ciao": ("trustnetwork.mat", "trustnetwork"), "epinions": ("epinion_trust_with_timestamp.mat", "trust")}
PLAIN, TIMES = ReleaseOptions(release="plain"), ReleaseOptions(release="timestamps")


NETWORKS = {"ciao": CIAO, "epinions": EPINIONS}


def save(folder: Path, name: str, ratings: Table | None = None, trust: Table = TRUST) -> None:
    """The release with times, or slots."""
    savemat(folder / TIMED, {"rating": RATINGS[name] if ratings is None else ratings}, do_compression=True)
    file, variable = TRUST_FILES[name]
    savemat(folder / file, {variable: trust[:, :2] if name == "ciao" else trust}, do_compression=True)


def save_plain(folder: Path, ratings: Table) -> None:
    savemat(folder / "rating.mat", {"rating": ratings}, do_compression=True)
    savemat(folder / "trustnetwork.mat", {"trustnetwork": TRUST[:, :2]}, do_compression=True)


def converted(folder: Path, name: str) -> RawTables:
    return formats.converted(NETWORKS[name], folder)


def refused(folder: Path, name: str, match: str) -> None:
    formats.refused(NETWORKS[name], folder, match)


def real(mirror: Path, folder: Path, name: str, release: ReleaseOptions = TIMES) -> tuple[pl.DataFrame, pl.DataFrame]:
    raw = converted(formats.obtained(NETWORKS[name], folder.parent, mirror, release), name)
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
    ("name", "value", "match"),
    [("ciao", 959670000000, "timestamp is 959670000000, not seconds"), ("epinions", 12, "slot is 12, not 1 to 11")],
)
def test_a_bad_time_is_named(folder: Path, name: str, value: int, match: str) -> None:
    wrong = RATINGS[name].copy()
    wrong[0, 5] = value
    save(folder, name, wrong)
    refused(folder, name, f"{TIMED}:1: {match}")


@pytest.mark.parametrize("name", RATINGS)
def test_missing_files_both_releases_and_other_columns_are_named(folder: Path, name: str) -> None:
    refused(folder, name, f"of rating.mat or {TIMED} there are 0, not 1; run the download stage again")
    save(folder, name, RATINGS[name][:, :5])
    refused(folder, name, "variable 'rating' is 3 x 5, not rows of 6 columns")
    save(folder, name, trust=np.where(TRUST == 2, 0, TRUST))
    file = TRUST_FILES[name][0]
    refused(folder, name, f"{file}:2: source is 0, not 1 or more")
    (folder / file).unlink()
    refused(folder, name, f"{file}: not found")
    save_plain(folder, RATINGS[name][:, :3])
    refused(folder, name, "there are 2, not 1")
    (folder / TIMED).unlink()
    wanted = "5 columns" if name == "ciao" else "4 to 6 columns"
    refused(folder, name, rf"variable 'rating' is 3 x 3, not rows of {wanted} \(user, item, category, rating, help")


def test_the_plain_ratings_of_epinions_have_to_be_placed_by_hand(mirror: Path, folder: Path) -> None:
    with pytest.raises(ByHandError, match=r"put it at: .*placed/epinions/rating.mat"):
        formats.obtained(EPINIONS, folder.parent, mirror, PLAIN)
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


# How a matrix is read.

RATING = Matrix("rating.mat", "rating", {"user": Column(low=1), "item": Column(low=1), "rating": Column(low=0, high=5)})
MATRIX = np.array([[1, 10, 5], [2, 10, 3], [1, 20, 0]])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rating.mat"


def write_matrix(path: Path, value: object = MATRIX, *, name: str = "rating", compressed: bool = True) -> None:
    savemat(path, {name: value}, do_compression=compressed)


def unread(path: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        RATING.read(path.parent)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "uint16", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("compressed", [True, False])
def test_whole_numbers_of_any_type_arrive(path: Path, kind: str, compressed: bool) -> None:
    write_matrix(path, MATRIX.astype(kind), compressed=compressed)
    table = RATING.read(path.parent)
    assert table.columns == ["user", "item", "rating"]
    assert [str(column) for column in table.dtypes] == ["Int64"] * 3
    assert (table.to_numpy() == MATRIX).all()


@pytest.mark.parametrize(
    ("row", "column", "value", "match"),
    [
        (3, 2, np.nan, "3: item is nan, not a whole number"),
        (2, 3, 3.5, "2: rating is 3.5, not a whole number"),
        (2, 1, 0, "2: user is 0, not 1 or more"),
    ],
)
def test_a_bad_value_of_a_matrix_is_named(path: Path, row: int, column: int, value: float, match: str) -> None:
    wrong = MATRIX.astype(float)
    wrong[row - 1, column - 1] = value
    write_matrix(path, wrong)
    unread(path, f"rating.mat:{match}")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (MATRIX.astype(np.uint64) + np.uint64(2**63), "is 9223372036854775809, not a whole number"),
        ("text", "is of type char, not real numbers"),
        (scipy.sparse.csc_array(MATRIX.astype(float)), "is of type sparse, not real numbers"),
        (MATRIX * 1j, "is of complex numbers, not real ones"),
        (MATRIX.T[:, :2], "is 3 x 2, not rows of 3 columns"),
    ],
)
def test_what_is_no_matrix_of_whole_numbers_is_refused(path: Path, value: ArrayLike, match: str) -> None:
    write_matrix(path, value)
    unread(path, match)


def test_another_variable_is_named(path: Path) -> None:
    unread(path, "not found; run the download stage again")
    write_matrix(path, name="trust")
    unread(path, r"variable 'rating' is not among its variables \(trust\)")


@pytest.mark.parametrize(
    "content", [b"", b"user,item,rating\n1,10,5\n" * 20, b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400)]
)
def test_what_is_no_mat_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    unread(path, "is not a whole .mat file of MATLAB 5 to 7.2")


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_cut_anywhere_is_refused(path: Path, compressed: bool) -> None:
    write_matrix(path, compressed=compressed)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        unread(path, "is not a whole .mat file|not among its variables")


def test_a_matrix_that_grows_in_memory_is_refused_before_it_unpacks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MAX_BYTES", 1_000_000)
    write_matrix(path, np.ones((100_000, 3), dtype=np.uint8))
    unread(path, "is 100000 x 3, more than the limit of 1,000,000 bytes")


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_what_is_written_is_read_back_and_says_what_it_is(path: Path, kind: type[np.integer[Any]]) -> None:
    table = pl.DataFrame({"rating": [5, 0], "item": [10, 300], "user": [1, 2]})
    first, again = (
        RATING.write(path.parent, table, kind, "MATLAB 5.0, of the test") or path.read_bytes() for _ in "12"
    )
    assert first == again
    assert first.startswith(b"MATLAB 5.0, of the test   ")
    assert RATING.read(path.parent).equals(table.select("user", "item", "rating"))
