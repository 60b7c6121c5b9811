from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import io
from scipy.sparse import csr_array

from tasks.datasets import SOURCES
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import trust as replica_trust
from tasks.datasets.synthetic.trust import LAYOUTS, ObtainOptions, obtain
from tasks.raw import RawTables, read_raw

RELEASES = [(layout, release) for layout, known in LAYOUTS.items() for release in known.trust]


def made(folder: Path, layout: str, release: str, scale: float, seed: int = 1) -> Path:
    folder.mkdir(parents=True)
    options = {"layout": layout, "release": release, "scale": scale, "seed": seed}
    obtain(folder, Places(None, folder, folder), ObtainOptions.model_validate(options))
    return folder


def converted(folder: Path, layout: str) -> RawTables:
    """Through the reader of the real data set."""
    reader = import_module(f"tasks.datasets.{layout}")
    place = folder / "tables"
    place.mkdir()
    reader.convert(folder, place, reader.ReadOptions())
    return read_raw(place)


@pytest.fixture(scope="module")
def ciao(tmp_path_factory: pytest.TempPathFactory) -> RawTables:
    """Ciao with times, scale 1."""
    return converted(made(tmp_path_factory.mktemp("replica") / "ciao", "ciao", "timestamps", 1.0), "ciao")


def test_at_scale_1_it_has_the_published_sizes_and_traps(ciao: RawTables) -> None:
    """The figures of the real release, as counted in its files."""
    ratings = ciao.scan("interactions").collect()
    assert len(ratings) == 284_086
    assert ratings["user"].n_unique() == ratings["user"].max() == 7_375
    assert ratings["item"].n_unique() == 105_114
    assert ratings["item"].max() == 106_797
    assert ratings["category"].unique().sort().to_list() == list(range(1, 29))
    assert (ratings["timestamp"].min(), ratings["timestamp"].max()) == (959_670_000, 1_302_591_600)
    assert (ratings["rating"] == 0).sum() == 34
    assert len(ratings) - len(ratings.unique(["user", "item"])) == 1_436
    columns = ["user", "item", "category", "rating", "helpfulness"]
    assert len(ratings) - len(ratings.unique(columns)) == pytest.approx(652, abs=5)
    assert len(ratings) - len(ratings.unique([*columns, "timestamp"])) == pytest.approx(190, abs=5)
    assert (ratings.group_by("item").agg(pl.col("category").n_unique())["category"] > 1).sum() == 105
    assert ratings.group_by("user").len()["len"].min() >= 4
    assert ratings["timestamp"].is_sorted()
    social = ciao.scan("social").collect()
    assert len(social) == len(social.unique()) == 111_781
    assert social["source"].max() <= 7_375


def test_activity_and_popularity_have_tails(ciao: RawTables) -> None:
    ratings = ciao.scan("interactions").collect()
    activity, popularity = (ratings.group_by(name).len()["len"] for name in ("user", "item"))
    assert activity.quantile(0.99) > 10 * activity.median()
    assert (popularity == 1).mean() == pytest.approx(0.64, abs=0.05)  # as the real one
    assert popularity.max() > 400


@pytest.fixture(scope="module")
def social(ciao: RawTables) -> tuple[pl.DataFrame, csr_array, csr_array, NDArray[np.int64], NDArray[np.int64]]:
    """Ratings; which and how (residuals) users rated; relations, and relations joined at random (same degrees)."""
    ratings = ciao.scan("interactions").filter(pl.col("rating") > 0).unique(["user", "item"], keep="first").collect()
    edges = ciao.scan("social").select("source", "target").collect().sample(20_000, seed=0).to_numpy()
    chance = np.stack([edges[:, 0], np.random.default_rng(0).permutation(edges[:, 1])], axis=1)
    chance = chance[chance[:, 0] != chance[:, 1]]  # users agree with themselves

    def damped(column: str) -> pl.Expr:
        return (pl.col("residual").sum() / (pl.len() + 5)).over(column)

    ratings = ratings.with_columns(residual=pl.col("rating") - pl.col("rating").mean())
    ratings = ratings.with_columns(residual=pl.col("residual") - damped("item"))
    ratings = ratings.with_columns(residual=pl.col("residual") - damped("user"))
    at = (ratings["user"].to_numpy(), ratings["item"].to_numpy())
    rated = csr_array((np.ones(len(ratings)), at))
    return ratings, rated, csr_array((ratings["residual"].to_numpy(), at)), edges, chance


def test_users_rate_what_those_whom_they_trust_have_rated(social) -> None:  # type: ignore[no-untyped-def]
    _, rated, _, edges, chance = social

    def common(pairs: NDArray[np.int64]) -> float:
        return float(rated[pairs[:, 0]].multiply(rated[pairs[:, 1]]).sum() / len(pairs))

    assert common(edges) > 1.6 * common(chance)  # the real one: 2.02 and 1.19


def test_users_rate_as_those_whom_they_trust_beyond_what_product_and_user_explain(social) -> None:  # type: ignore[no-untyped-def]
    _, rated, residual, edges, chance = social

    def correlation(pairs: NDArray[np.int64]) -> float:
        first, second = residual[pairs[:, 0]], residual[pairs[:, 1]]
        both = rated[pairs[:, 0]].multiply(rated[pairs[:, 1]])
        deviation = np.sqrt(first.multiply(first).multiply(both).sum() * second.multiply(second).multiply(both).sum())
        return float(first.multiply(second).sum() / deviation)

    assert correlation(edges) > 0.1
    assert correlation(edges) > correlation(chance) + 0.05


def test_users_keep_to_categories_and_friends_to_the_same_ones(social) -> None:  # type: ignore[no-untyped-def]
    ratings, _, _, edges, chance = social
    profile = np.zeros((7_376, 29))
    np.add.at(profile, (ratings["user"].to_numpy(), ratings["category"].to_numpy()), 1)
    profile /= np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-9)

    def cosine(pairs: NDArray[np.int64]) -> float:
        return float((profile[pairs[:, 0]] * profile[pairs[:, 1]]).sum(axis=1).mean())

    assert cosine(edges) > cosine(chance) + 0.1  # the real one: 0.45 and 0.34


@pytest.mark.parametrize(("layout", "release"), RELEASES)
def test_the_real_data_sets_reader_takes_it_at_any_scale(layout: str, release: str, tmp_path: Path) -> None:
    known = LAYOUTS[layout]
    for scale in (0.0001, 0.003, 0.05):
        raw = converted(made(tmp_path / str(scale), layout, release, scale), layout)
        ratings, social = raw.scan("interactions").collect(), raw.scan("social").collect()
        assert len(ratings) >= 1
        assert len(social) >= 1
    assert len(ratings) == pytest.approx(known.ratings * 0.05, abs=1)
    assert ratings["item"].n_unique() == round(known.products * 0.05)
    assert ratings["user"].n_unique() == pytest.approx(known.users * 0.05, abs=3)
    assert ratings["user"].max() <= round(known.last_user * 0.05) + 1
    trust = known.trust[release][0]
    assert len(social) == pytest.approx(trust.relations * 0.05, abs=2)
    assert (social["source"] == social["target"]).sum() == pytest.approx(trust.loops * 0.05, abs=2)
    assert social.select("source", "target").is_duplicated().any() == (round(trust.repeats * 0.05) > 0)
    if layout == "epinions" and release == "timestamps":
        assert ratings["slot"].unique().sort().to_list() == social["slot"].unique().sort().to_list() == [*range(1, 12)]


@pytest.mark.parametrize(("layout", "release"), RELEASES)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(layout: str, release: str, tmp_path: Path) -> None:
    first, again, other = (
        {file.name: file.read_bytes() for file in made(tmp_path / name, layout, release, 0.01, seed).iterdir()}
        for name, seed in (("first", 5), ("again", 5), ("other", 6))
    )
    assert first == again
    assert all(first[name] != other[name] for name in first)


def test_both_releases_of_ciao_have_the_same_ratings(tmp_path: Path) -> None:
    plain, timed = (
        converted(made(tmp_path / release, "ciao", release, 0.02), "ciao").scan("interactions").drop("timestamp")
        for release in ("plain", "timestamps")
    )
    order = ["user", "item", "category", "rating", "helpfulness"]
    assert plain.sort(order).collect().equals(timed.sort(order).collect())


@pytest.mark.parametrize(
    ("layout", "release", "files"),
    [
        ("ciao", "plain", {"rating.mat": ("rating", 5, "int32"), "trustnetwork.mat": ("trustnetwork", 2, "uint16")}),
        (
            "ciao",
            "timestamps",
            {
                "rating_with_timestamp.mat": ("rating", 6, "int32"),
                "trustnetwork.mat": ("trustnetwork", 2, "uint16"),
                "trust.mat": ("trust", 2, "uint16"),
            },
        ),
        (
            "epinions",
            "timestamps",
            {
                "rating_with_timestamp.mat": ("rating", 6, "int32"),
                "epinion_trust_with_timestamp.mat": ("trust", 3, "uint16"),
            },
        ),
    ],
)
def test_files_variables_and_types_are_those_of_the_published_files(
    layout: str, release: str, files: dict[str, tuple[str, int, str]], tmp_path: Path, mirror: Path
) -> None:
    folder = made(tmp_path / "replica", layout, release, 0.01)
    assert {file.name for file in folder.iterdir()} == {*files, "NOTE"}
    for name, (variable, columns, kind) in files.items():
        for place in (folder, mirror / layout):
            matrix = io.loadmat(place / name)[variable]
            assert (matrix.shape[1], matrix.dtype.name) == (columns, kind)


def test_everything_says_that_it_is_synthetic(tmp_path: Path) -> None:
    folder = made(tmp_path / "replica", "epinions", "plain", 0.01)
    assert "SYNTHETIC" in (folder / "NOTE").read_text()
    for file in folder.glob("*.mat"):
        assert b"SYNTHETIC" in io.loadmat(file)["__header__"]
    assert replica_trust.SOURCE.synthetic
    assert "SYNTHETIC" in replica_trust.SOURCE.licence
    assert SOURCES["twin_trust"] == "tasks.datasets.synthetic.trust"


@pytest.mark.parametrize(
    "wrong", [{"scale": 0.0}, {"scale": -1.0}, {"scale": float("inf")}, {"scale": "1"}, {"seed": -1}, {"layout": "x"}]
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    options = {"layout": "ciao", "release": "plain", "scale": 1.0, "seed": 0}
    with pytest.raises(ValidationError):
        ObtainOptions.model_validate(options | wrong)
