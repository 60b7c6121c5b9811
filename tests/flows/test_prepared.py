"""Suites that docs/ holds ready: `dprec run` takes them, whole or not at all."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.entries import PREPARED, require_known, take_prepared
from flows.locks import settle
from tasks.config.params import load
from tasks.core.errors import ConfigurationError
from tests import parameters

READY = ("ml-20m", "netflix")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's parameters, without what was run on this machine, and what docs/ holds ready."""
    parameters.copy(tmp_path)
    for suite in READY:
        shutil.rmtree(tmp_path / "suites" / suite, ignore_errors=True)
        shutil.copytree(parameters.ROOT / PREPARED / suite, tmp_path / PREPARED / suite)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_prepared_suite_is_copied_once(place: Path) -> None:
    known = load().suites.keys()
    require_known("ml-20m", to_run=True)
    take_prepared("ml-20m")
    assert load().suites.keys() - known == {"ml-20m"}
    settle("ml-20m", shared=False)  # there is no lock before the first stage
    require_known("ml-20m")
    own = place / "suites/ml-20m/params.yaml"
    own.write_text(own.read_text("utf-8").replace("title: ", "title: My "), encoding="utf-8")
    (own.parent / "dvc.lock").write_text("{}", encoding="utf-8")
    take_prepared("ml-20m")
    assert load().suites["ml-20m"].title.startswith("My ")
    assert (own.parent / "dvc.lock").is_file()


def test_other_commands_say_which_one_takes_it(place: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^docs/ml-20m: no suite yet; `dprec run ml-20m` makes one of it"):
        require_known("ml-20m")
    (place / "suites/ml-20m").mkdir()
    take_prepared("ml-20m")
    require_known("ml-20m")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("suite", ["netflix", "dipsgnn-tmall", "dipsgnn-yelp", "dpvae-netflix", "dpvae-ml-20m"])
def test_suites_of_data_that_need_a_form_wait_for_their_files(suite: str) -> None:
    require_known(suite, to_run=True)
    take_prepared(suite)
    made = load().suites[suite]
    assert load().stands_for(made.data) == ""
    assert not any("-twin" in experiment.data for experiment in made.experiments.values())
    twin = load().suites.get(f"{suite}-twin")
    assert made.title == (twin.about.real if twin else "Held-out users of the Netflix Prize")
    assert not made.about.part + made.about.limits


def test_nothing_is_made_before_its_data_are_named(place: Path) -> None:
    before = sorted(place.rglob("*"))
    needs = r"^nothing is written: .*dpcrosue-weibo.*; docs/data\.md says what dpcrosue-weibo needs$"
    with pytest.raises(ConfigurationError, match=needs):
        take_prepared("dpcrosue-weibo")
    assert sorted(place.rglob("*")) == before


def test_what_is_wrong_with_another_suite_is_not_put_down_to_this_one(place: Path) -> None:
    other = place / "suites/demo/params.yaml"
    other.write_text(other.read_text("utf-8").replace("title: ", "titel: "), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^suites/demo/params\.yaml: (?!.*docs/data)"):
        take_prepared("ml-20m")


@pytest.mark.parametrize("name", ["demo", "nope", "../docs/ml-20m"])
def test_of_other_names_nothing_is_made(place: Path, name: str) -> None:
    before = sorted(place.rglob("*"))
    take_prepared(name)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_done(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parameters.ROOT)
    monkeypatch.setenv("DPREC_DEVICE", "gpu")
    refused = CliRunner().invoke(app, [command, "demo"])
    assert isinstance(refused.exception, ConfigurationError)
    assert str(refused.exception).startswith("DPREC_DEVICE: 'gpu' is none of auto, cpu, cuda and cuda:N")
