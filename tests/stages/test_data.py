"""`dprec data`: what there is, what to do next, and whether what was placed is right."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from flows.data import data_verify
from tasks.config.messages import options
from tasks.config.params import Dataset
from tasks.config.tasks import resolve
from tasks.core.errors import ConfigurationError
from tasks.datasets import FORMATS, SOURCES
from tasks.datasets.movielens import ML_100K
from tasks.pipeline.common import CHECKPOINTS, PLACED
from tasks.stages import data, download

pytestmark = pytest.mark.usefixtures("project")


def known() -> dict[str, data.Known]:
    return {entry.source.name: entry for entry in data.listing()}


def test_every_source_says_what_it_is_and_how_params_asks_for_it() -> None:

    assert {resolve(target).SOURCE.name for target in SOURCES.values()} <= set(known())
    for key, target in SOURCES.items():
        module = resolve(target)
        source = module.SOURCE
        assert source.holds, key
        assert source.licence, key
        assert source.synthetic == ("SYNTHETIC" in source.licence), key
        entry = Dataset.model_validate(yaml.safe_load(source.entry))
        assert entry.source == key
        options(module.ObtainOptions, entry.obtain, key)
        options(resolve(FORMATS[entry.format]).ReadOptions, entry.read, key)


def test_states_follow_what_is_there(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known()["ml-100k"].state == "downloadable"
    assert known()["demo"].state == "generated"
    assert known()["tmall"].state == "needs a form"
    assert known()["tmall"].next_step.startswith("`dprec data verify tmall`")
    download.main("demo")
    assert known()["demo"].state == "present"
    place(mirror / ML_100K.SOURCE.files[0].mirror_path, "ml-100k.zip")
    assert known()["ml-100k"].state == "placed"
    assert known()["ml-100k"].next_step == "`dprec data verify ml-100k`"
    (PLACED / "ml-100k.zip").unlink()
    monkeypatch.setenv("DPREC_MIRROR", str(mirror))
    assert known()["ml-100k"].state == "in the mirror"
    assert known()["ml-100k"].next_step == "`dvc repro data/dvc.yaml:check-raw@ml-100k`"


def test_commands_know_every_name_that_is_listed() -> None:
    listed = data.listing()
    for entry in listed:
        for name in (*entry.names, *re.findall(r"`dprec data verify (\S+)`", entry.next_step)):
            assert data._dataset(name), entry.source.name
    assert ("ml-1m-part",) in {entry.names for entry in listed}, "its source has another name"


def place(file: Path, name: str) -> None:
    (PLACED / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, PLACED / name)


def test_a_right_file_is_usable_and_nothing_is_left(mirror: Path) -> None:
    place(mirror / ML_100K.SOURCE.files[0].mirror_path, "ml-100k.zip")
    findings = {finding.what: finding for finding in data.inspect("ml-100k")}
    assert all(finding.right for finding in findings.values())
    assert findings["table interactions"].verdict == "100,000 rows"
    assert "expectations" in findings
    assert not list(CHECKPOINTS.glob("verify*"))


def test_a_placed_file_of_another_size_is_wrong() -> None:
    (PLACED / "tmall").mkdir(parents=True)
    (PLACED / "tmall" / "user_log_format1.csv").write_text("user_id,item_id\n1,2\n")
    (finding,) = data.inspect("tmall")
    assert not finding.right
    assert "expected 1,910,208,392 bytes" in finding.verdict


@pytest.mark.parametrize("name", ["[red]tmall", "[/x]", "tm[bold]all"])
def test_a_name_is_shown_as_it_is_while_it_is_read(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ConfigurationError, match=rf"^unknown data set '{re.escape(name)}'"):
        data_verify(name)
    assert f"reading {name}" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
