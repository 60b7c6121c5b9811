from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets import tmall
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import tmall as replica_tmall
from tasks.datasets.synthetic.tmall import ObtainOptions, obtain, sizes
from tasks.raw import read_raw
from tests.datasets.learnable import matrix, recalls


def options(scale: float, seed: int = 4) -> ObtainOptions:
    return ObtainOptions.model_validate({"scale": scale, "seed": seed})


def generated(folder: Path, wanted: ObtainOptions) -> Path:
    folder.mkdir()
    obtain(folder, Places(None, folder, folder), wanted)
    return folder


def converted(folder: Path) -> dict[str, pl.DataFrame]:
    place = folder.with_name(f"{folder.name}-tables")
    place.mkdir()
    tmall.convert(folder, place, tmall.ReadOptions(layout="official"))
    raw = read_raw(place)
    return {table: raw.scan(table).collect() for table in raw.schema.tables}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4,242 users, 34,481 items, 549,253 rows."""
    return generated(tmp_path_factory.mktemp("replica") / "tmall", options(0.01))


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return converted(folder)


@pytest.mark.parametrize("scale", [0.00001, 0.002, 0.01])
def test_a_small_replica_is_read_as_the_real_one_is(tmp_path: Path, scale: float) -> None:
    folder = generated(tmp_path / "tmall", options(scale))
    log = converted(folder)["interactions"]
    names = {"user_log_format1.csv", "user_info_format1.csv", "NOTE"}
    assert {file.name for file in folder.iterdir()} == names
    assert (*log.select(pl.col("user", "item").n_unique()).row(0), len(log)) == sizes(options(scale))


def test_at_scale_one_the_sizes_are_the_published_ones() -> None:
    assert sizes(options(1.0)) == (424_170, 1_090_390, 54_925_330)
    assert sum(replica_tmall.ACTIONS) == 54_925_330
    assert "54,925,330 synthetic" in replica_tmall.source(options(1.0)).holds


def test_actions_ages_and_genders_have_the_published_shares(tables: dict[str, pl.DataFrame], folder: Path) -> None:
    log = tables["interactions"]
    actions = np.bincount(log["action"]) / len(log)
    np.testing.assert_allclose(actions, np.array(replica_tmall.ACTIONS) / replica_tmall.ROWS, atol=0.001)
    people = pl.read_csv(folder / "user_info_format1.csv")
    for column, counts in (("age_range", replica_tmall.AGES), ("gender", replica_tmall.GENDERS)):
        actual = [(people[column] == number).sum() / len(people) for number in range(len(counts))]
        np.testing.assert_allclose(actual, np.array(counts) / replica_tmall.USERS, atol=0.025)
        blank = people[column].null_count() / len(people)
        assert blank == pytest.approx(1 - sum(counts) / replica_tmall.USERS, abs=0.005)
        assert blank > 0


def test_the_log_runs_to_the_rush_of_11_november(tables: dict[str, pl.DataFrame]) -> None:
    day = tables["interactions"]["day"]
    assert (day.min(), day.max(), day.n_unique()) == (511, 1111, 185)
    assert (day == 1111).mean() == pytest.approx(0.19, abs=0.02)
    assert day.is_between(1101, 1107).mean() == pytest.approx(0.1, abs=0.02)


def test_popularity_and_activity_have_long_tails(tables: dict[str, pl.DataFrame]) -> None:
    items, users = (np.sort(tables["interactions"].group_by(name).len()["len"].to_numpy()) for name in ("item", "user"))
    assert items[-len(items) // 10 :].sum() > 0.5 * items.sum()
    assert users.mean() > 1.7 * np.median(users)
    assert users[0] >= replica_tmall.LEAST


def test_an_item_is_always_the_same_article(tables: dict[str, pl.DataFrame]) -> None:
    log = tables["interactions"]
    kinds = log.group_by("item").agg(pl.col("category", "seller", "brand").n_unique())
    assert (kinds.select("category", "seller", "brand").to_numpy() == 1).all()
    assert log.group_by("brand").len().filter(pl.col("brand").is_null())["len"].item() < 0.01 * len(log)
    numbers = log.select(pl.col("category", "seller").n_unique()).row(0)
    assert numbers == (round(replica_tmall.CATEGORIES / 10), round(replica_tmall.SELLERS / 10))


def test_rows_of_a_day_are_often_of_one_category_and_items_come_again(tables: dict[str, pl.DataFrame]) -> None:
    log = tables["interactions"].with_columns(tie=pl.int_range(pl.len()).shuffle(seed=0))
    log = log.sort("user", "timestamp", "tie")
    same = ((log["category"] == log["category"].shift()) & (log["user"] == log["user"].shift())).mean()
    assert same > 0.3 > 5 * (log["category"] == log["category"].shuffle(seed=0)).mean()
    assert 0.5 < log.select("user", "item").n_unique() / len(log) < 0.8


@pytest.mark.parametrize(("attribute", "margin"), [("gender", 0.08), ("age", 0.04)])
def test_what_is_clicked_gives_attributes_away(tables: dict[str, pl.DataFrame], attribute: str, margin: float) -> None:
    counts = tables["interactions"].group_by("user", "category").len()
    users = tables["users"].filter(pl.col(attribute).is_not_null()).with_row_index("row")
    rows = counts.join(users.select("row", "user"), on="user").sort("row")
    looks = np.zeros((len(users), counts["category"].max() + 1))  # type: ignore[operator]
    looks[rows["row"], rows["category"]] = np.log1p(rows["len"].to_numpy())
    labels = users[attribute].to_numpy()
    majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(RidgeClassifier(alpha=100), looks, labels, cv=folds).mean() > majority + margin


def test_taste_is_personal_so_a_model_of_items_beats_popularity(tables: dict[str, pl.DataFrame]) -> None:
    model, popularity, chance = recalls(matrix(tables["interactions"], n_items=500))
    assert model > 1.5 * popularity > 2 * chance


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in generated(tmp_path / name, options(0.002, seed)).iterdir()}

    first = content("first", 5)
    assert first == content("again", 5)
    assert first["user_log_format1.csv"] != content("other", 6)["user_log_format1.csv"]


def test_blocks_leave_no_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_tmall, "BLOCK", 3_000)
    log = converted(generated(tmp_path / "tmall", options(0.002)))["interactions"]
    assert (*log.select(pl.col("user", "item").n_unique()).row(0), len(log)) == sizes(options(0.002))


def test_it_says_that_it_is_synthetic(folder: Path) -> None:
    assert (folder / "NOTE").read_text().startswith("SYNTHETIC DATA\n")
    assert replica_tmall.SOURCE.synthetic
    assert "SYNTHETIC" in replica_tmall.SOURCE.licence


@pytest.mark.parametrize("scale", [0.0, float("inf"), "1"])
def test_a_scale_that_means_nothing_is_refused(scale: object) -> None:
    with pytest.raises(ValueError, match="scale"):
        ObtainOptions.model_validate({"scale": scale, "seed": 1})
