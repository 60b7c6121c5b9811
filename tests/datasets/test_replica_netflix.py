from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.datasets import netflix
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import netflix as replica_netflix
from tasks.datasets.synthetic.netflix import FIRST_DAY, LAST_CUSTOMER, LAST_DAY, LEVELS, ObtainOptions, obtain, sizes
from tasks.raw import read_raw
from tests.datasets.learnable import matrix, recalls


def options(scale: float, layout: str = "combined", seed: int = 4) -> ObtainOptions:
    return ObtainOptions.model_validate({"layout": layout, "scale": scale, "seed": seed})


def generated(folder: Path, wanted: ObtainOptions) -> Path:
    folder.mkdir()
    obtain(folder, Places(None, folder, folder), wanted)
    return folder


def converted(folder: Path) -> dict[str, pl.DataFrame]:
    place = folder.with_name(f"{folder.name}-tables")
    place.mkdir()
    netflix.convert(folder, place, netflix.ReadOptions())
    raw = read_raw(place)
    return {table: raw.scan(table).collect() for table in raw.schema.tables}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """960 customers, 3,758 movies, 200,961 ratings."""
    return generated(tmp_path_factory.mktemp("replica") / "netflix", options(0.002))


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return converted(folder)


def test_a_small_replica_is_read_as_the_real_one_is(folder: Path, tables: dict[str, pl.DataFrame]) -> None:
    ratings = tables["interactions"]
    names = {f"combined_data_{number}.txt" for number in range(1, 5)} | {"movie_titles.csv", "NOTE"}
    assert {file.name for file in folder.iterdir()} == names
    actual = (*ratings.select(pl.col("user", "item").n_unique()).row(0), len(ratings))
    assert actual == sizes(options(0.002)) == (960, 3_758, 200_961)
    first, last = ((day - FIRST_DAY.fromordinal(719_163)).days * 86_400 for day in (FIRST_DAY, LAST_DAY))
    assert ratings["timestamp"].is_between(first, last).all()


def test_at_scale_one_the_sizes_are_the_published_ones() -> None:
    assert sizes(options(1.0)) == (480_189, 17_770, 100_480_507)
    assert "100,480,507 synthetic" in replica_netflix.source(options(1.0)).holds


def test_customer_ids_are_sparse_and_without_order(tables: dict[str, pl.DataFrame]) -> None:
    customers = tables["interactions"]["user"].unique(maintain_order=True).to_numpy()
    assert customers.max() == round(0.002 * LAST_CUSTOMER)
    assert len(customers) < customers.max() / 5
    assert abs(np.corrcoef(customers, np.arange(len(customers)))[0, 1]) < 0.2


def test_both_layouts_have_the_same_ratings(tmp_path: Path) -> None:
    single = generated(tmp_path / "single", options(0.0002, "training_set"))
    assert (single / "training_set" / "mv_0000077.txt").read_text().startswith("77:\n")
    combined = generated(tmp_path / "combined", options(0.0002))
    assert converted(single)["interactions"].equals(converted(combined)["interactions"])


def test_popularity_and_activity_have_long_tails(tables: dict[str, pl.DataFrame]) -> None:
    movies, customers = (
        np.sort(tables["interactions"].group_by(name).len()["len"].to_numpy()) for name in ("item", "user")
    )
    assert movies[-len(movies) // 10 :].sum() > 0.4 * movies.sum()
    assert np.mean(customers) / np.median(customers) == pytest.approx(209 / 96, rel=0.2)
    assert movies[0] >= 1


def test_levels_have_the_published_shares(tables: dict[str, pl.DataFrame]) -> None:
    shares = tables["interactions"]["rating"].value_counts(normalize=True).sort("rating")["proportion"]
    np.testing.assert_allclose(shares, LEVELS, atol=0.002)


def test_customers_come_on_a_few_days_each(tables: dict[str, pl.DataFrame]) -> None:
    own = tables["interactions"].group_by("user").agg(days=pl.col("timestamp").n_unique(), number=pl.len())
    assert own["number"].sum() / own["days"].sum() > 5
    years = tables["interactions"]["timestamp"] // (365 * 86_400)
    assert (years >= 34).mean() > 2 * (years <= 31).mean()  # it grows


def test_taste_is_personal_so_a_model_of_items_beats_popularity(tables: dict[str, pl.DataFrame]) -> None:
    model, popularity, chance = recalls(matrix(tables["interactions"], n_items=800))
    assert model > 1.15 * popularity > 4 * chance


def test_titles_have_commas_and_years_may_be_missing(folder: Path, tables: dict[str, pl.DataFrame]) -> None:
    titles = tables["items"]
    assert titles["title"].str.contains("Synthetic").all()
    assert titles["title"].str.contains(",").any()
    assert 0 < titles["year"].null_count() < 20
    assert (folder / "NOTE").read_text().startswith("SYNTHETIC DATA\n")
    assert replica_netflix.SOURCE.synthetic
    assert "SYNTHETIC" in replica_netflix.SOURCE.licence


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path, folder: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    assert content(folder) == content(generated(tmp_path / "again", options(0.002)))
    other = content(generated(tmp_path / "other", options(0.002, seed=5)))
    assert content(folder)["combined_data_1.txt"] != other["combined_data_1.txt"]


def test_blocks_leave_no_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_netflix, "BLOCK", 5_000)
    ratings = converted(generated(tmp_path / "netflix", options(0.0002)))["interactions"]
    assert (*ratings.select(pl.col("user", "item").n_unique()).row(0), len(ratings)) == sizes(options(0.0002))
    assert not ratings.select("user", "item").is_duplicated().any()


@pytest.mark.parametrize("scale", [0.0, 5.1, float("nan"), "1"])
def test_a_scale_that_means_nothing_or_has_no_ids_is_refused(scale: object) -> None:
    with pytest.raises(ValueError, match="scale"):
        ObtainOptions.model_validate({"layout": "combined", "scale": scale, "seed": 1})
