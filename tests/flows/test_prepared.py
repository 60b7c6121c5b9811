"""Suites that docs/ holds ready: `dprec run` takes them, whole or not at all."""

import shutil
from pathlib import Path

import pytest

from flows.prepared import take_prepared
from tasks.config.params import load
from tasks.errors import ConfigurationError
from tests import parameters


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's parameters, and what docs/ holds ready."""
    parameters.copy(tmp_path)
    for suite in ("ml-20m", "netflix"):
        shutil.copytree(parameters.ROOT / "docs" / suite, tmp_path / "docs" / suite)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_prepared_suite_is_copied_once(place: Path) -> None:
    known = load().suites.keys()
    take_prepared("ml-20m", wait=False)
    assert load().suites.keys() - known == {"ml-20m"}
    own = place / "suites/ml-20m/params.yaml"
    own.write_text(own.read_text("utf-8").replace("title: ", "title: My "), encoding="utf-8")
    take_prepared("ml-20m", wait=False)
    assert load().suites["ml-20m"].title.startswith("My ")


def test_nothing_is_copied_before_its_data_are_named(place: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"multvae-netflix.*; docs/scale\.md says what netflix needs"):
        take_prepared("netflix", wait=False)
    assert not (place / "suites/netflix").exists()
    parameters.uncomment(place)
    take_prepared("netflix", wait=False)
    assert "netflix" in load().suites


@pytest.mark.parametrize("name", ["demo", "nope", "../docs/ml-20m"])
def test_of_other_names_nothing_is_made(place: Path, name: str) -> None:
    before = sorted(place.rglob("*"))
    take_prepared(name, wait=False)
    assert sorted(place.rglob("*")) == before
