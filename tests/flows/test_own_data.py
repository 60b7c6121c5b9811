"""`dprec init`: own files become a data set, a protocol and a suite, and nothing is written where anything is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from flows import own_data
from flows.own_data import begin
from tasks.config import params
from tasks.config.references import check
from tasks.datasets.custom import ObtainOptions, ReadOptions, convert, obtain
from tasks.datasets.fetch import Places
from tasks.errors import ConfigurationError, DataError
from tasks.external.reading import Names
from tasks.raw import read_raw
from tests.flows.conftest import ROOT

USUAL = Names()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the real params.yaml and no suite, and a shop's files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    (tmp_path / "suites").mkdir()
    rng = np.random.default_rng(0)
    pairs = pl.DataFrame({"customer_id": rng.integers(0, 40, 900), "product": rng.integers(100, 160, 900)}).unique()
    times = [f"2024-05-{1 + n % 28:02}T18:30:00" for n in range(len(pairs))]
    stars = rng.integers(1, 6, len(pairs)) / 2
    pairs.with_columns(stars=stars, when=pl.Series(times)).write_csv("ratings.csv")
    people = {
        "Customer": range(40),
        "age": 18 + np.arange(40) % 30,
        "plan": ["", "basic", "premium", "basic"] * 10,
        "name": [f"person {n}" for n in range(40)],
    }
    pl.DataFrame(people).write_csv("people.csv")
    return tmp_path


def state(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_own_files_become_a_suite_that_reads_them(shop: Path) -> None:
    before = (shop / "params.yaml").read_text()
    written = begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    assert Path("suites/shop/dvc.yaml") in written.files
    loaded = params.load()
    check(loaded)
    after = (shop / "params.yaml").read_text().splitlines(keepends=True)
    assert [line for line in before.splitlines(keepends=True) if line not in after] == [], "all else is as it was"
    assert loaded.processed["shop"].protocol == "gerai"
    models = {experiment.model for experiment in loaded.suites["shop"].experiments.values()}
    assert models == {"popularity", "ease", "bpr", "dp-popularity", "dpals", "dpae"}

    dataset = loaded.datasets["shop"]
    options = ObtainOptions.model_validate(dataset.obtain)
    assert (options.synthetic, options.licence) == (False, own_data.LICENCE)
    (shop / "raw").mkdir()
    (shop / "tables").mkdir()
    obtain(shop / "raw", Places(None, shop, shop), options)
    read = ReadOptions.model_validate(dataset.read)
    assert (read.interactions.timestamp, read.time) == ("when", "iso")
    assert read.rating_scale is not None
    assert read.rating_scale.model_dump() == {"low": 0.5, "high": 2.5, "step": 0.5}
    convert(shop / "raw", shop / "tables", read)
    assert read_raw(shop / "tables").scan("users").collect().height == 40
    assert read.users is not None
    assert {feature.name: (feature.kind, feature.sensitive) for feature in read.users.features} == {
        "age": ("numeric", False),
        "plan": ("categorical", True),
    }
    assert "name: left out, it has 40 different values" in written.taken


@pytest.mark.usefixtures("shop")
def test_what_is_read_off_the_data_is_not_written_as_known() -> None:
    """Bounds and categories in the parameters count as known without the data; the ledger then names no leak."""
    begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    users = ReadOptions.model_validate(params.load().datasets["shop"].read).users
    assert users is not None
    assert {(each.low, each.high, each.categories) for each in users.features} == {(None, None, None)}


@pytest.mark.usefixtures("shop")
def test_without_users_nothing_is_attacked() -> None:
    begin("shop", Path("ratings.csv"), None, USUAL)
    assert params.load().suites["shop"].attack is None


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("time", ["seconds", "milliseconds", "none"])
def test_a_parquet_file_without_ratings(time: str) -> None:
    rows = pl.read_csv("ratings.csv").drop("when", "stars")
    if time != "none":
        stamps = (1_717_180_200 + np.arange(len(rows))) * (1000 if time == "milliseconds" else 1)
        rows = rows.with_columns(ts=pl.Series(stamps))
    rows.write_parquet("ratings.parquet")
    begin("shop", Path("ratings.parquet"), None, USUAL)
    read = ReadOptions.model_validate(params.load().datasets["shop"].read)
    assert (read.separator, read.rating_scale, read.time) == (None, None, time)


@pytest.mark.parametrize(
    ("name", "ratings", "people", "message"),
    [
        ("x; touch y", "ratings.csv", None, "no name; it takes small letters"),
        ("demo", "ratings.csv", None, "there is a data set 'demo' already"),
        ("shop", "none.csv", None, r"none\.csv: no such file"),
        ("shop", "people.csv", None, r"people\.csv:1: no column is recognised as the item"),
        ("shop", "ratings.csv", "plans.csv", r"plans\.csv:1: no column is recognised as the user"),
        ("shop", "ratings.csv", "people.tsv", r"people\.tsv: its fields are separated otherwise"),
    ],
)
def test_nothing_is_written_where_anything_is_wrong(
    shop: Path, name: str, ratings: str, people: str | None, message: str
) -> None:
    pl.read_csv("people.csv").drop("Customer").write_csv("plans.csv")
    pl.read_csv("people.csv").write_csv("people.tsv", separator="\t")
    before = state(shop)
    with pytest.raises((ConfigurationError, DataError), match=message):
        begin(name, Path(ratings), Path(people) if people else None, USUAL)
    assert state(shop) == before


def test_parameters_that_are_refused_are_taken_back(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_data, "SUITE", own_data.SUITE.replace("model: ease", "model: easy"))
    before = state(shop)
    with pytest.raises(ConfigurationError, match=re.escape("suites/shop/params.yaml: experiments.shop-ease")):
        begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    assert state(shop) == before
    assert not (shop / "suites" / "shop").exists()
