"""What is committed may be older than the code and the parameters only where that is said, with a date and a reason."""

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.cli import main as dvc

from flows import plan, stale
from flows.dvc import name_of, open_project, parameters
from flows.stale import Reason
from tasks.config.params import load
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline import dvc_files
from tasks.stages import code
from tests import parameters as files

EXCUSE = Reason(since=date(2026, 11, 22), reason="made up")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo and two data sets that it does not read, as if everything had run: made-up locks."""
    folder, raw = tmp_path_factory.mktemp("template"), files.read("demo")
    raw["datasets"] = {name: raw["datasets"][name] for name in ("demo", "ml-100k", "ml-1m")}
    raw["processed"] = {name: entry for name, entry in raw["processed"].items() if entry["dataset"] == "demo"}
    for section in ("perturbed", "words"):
        raw[section] = {name: entry for name, entry in raw[section].items() if entry["data"] in raw["processed"]}
    files.write(raw, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        dvc(["init", "-q", "--no-scm"])
        dvc_files.write(load())
        code.main()
        locks: dict[Path, dict[str, Any]] = {}
        with open_project() as project:
            for stage in project.stages.values():
                entry: dict[str, Any] = {"cmd": stage.cmd, "deps": [], "params": {}}
                for dep in stage.deps:
                    if hasattr(dep, "params"):
                        content = parameters(dep.fs_path)
                        entry["params"][dep.def_path] = {key: plan._value(content, key) for key in dep.params}
                    else:
                        entry["deps"].append({"path": dep.def_path, "md5": "0" * 32})
                entry["outs"] = [{"path": out.def_path, "md5": "0" * 32} for out in stage.outs]
                locks.setdefault(Path(stage.path).with_suffix(".lock"), {})[name_of(stage)] = entry
        for lock, stages in locks.items():
            lock.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
        Path(".ci").mkdir()
    return folder


@pytest.fixture(autouse=True)
def _inside(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(template, tmp_path / "project"))


def stages() -> dict[str, str]:
    with open_project() as project:
        return stale.stale_stages(project)


def problems(*excused: str) -> list[str]:
    with open_project() as project:
        return stale.problems(project, dict.fromkeys(excused, EXCUSE))


def change(file: str, *keys: str, value: Any) -> None:
    content = table = yaml.safe_load(Path(file).read_text())
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    Path(file).write_text(yaml.safe_dump(content, sort_keys=False))


def excuse(entries: dict[str, Any]) -> None:
    Path(".ci/stale.yaml").write_text(json.dumps(entries))


def reported() -> str:
    with pytest.raises(DataError) as caught:
        stale.main()
    return str(caught.value)


def test_a_changed_parameter_makes_what_reads_it_stale() -> None:
    stale.main()
    before = stages()  # of data that lead to no suite with results of this code
    change("params.yaml", "processed", "demo", "options", "test_share", value=0.25)
    change("suites/demo/params.yaml", "evaluation", "seed", value=4711)
    differences = {name: why for name, why in stages().items() if name not in before}
    assert differences["preprocess@demo"] == "test_share changed"
    assert differences["train@demo-bpr"] == "seed changed"
    assert {name.partition("@")[0] for name in differences} == {"preprocess", "train", "check-metrics", "collect"}
    assert reported().startswith(
        f"demo: {len(differences)} stages are stale, such as check-metrics@demo (seed changed)"
    )


def test_what_is_excused_passes_and_an_excuse_without_need_does_not() -> None:
    change("params.yaml", "processed", "demo", "options", "test_share", value=0.25)
    assert reported().startswith("demo: 1 stages are stale, such as preprocess@demo (test_share changed)")
    for name in ("demo", "preprocess@demo"):
        assert problems(name) == []
    (unneeded,) = problems("demo", "train@demo-bpr")
    assert unneeded == ".ci/stale.yaml: train@demo-bpr is not stale; take it off the list"
    excuse({"demo": {"since": "2026-11-22", "reason": "the next release runs it again"}})
    stale.main()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"since": "2026-11-22"}, r"stale.yaml: demo.reason: this key is missing"),
        ({"since": "soon", "reason": "x"}, r"stale.yaml: demo.since: Input should be a valid date"),
    ],
)
def test_an_excuse_has_a_date_and_a_reason(entry: dict[str, str], message: str) -> None:
    excuse({"demo": entry})
    with pytest.raises(ConfigurationError, match=message):
        stale.main()


def test_data_that_lead_to_no_suite_may_be_stale() -> None:
    before = stages()
    lock = yaml.safe_load(Path("data/dvc.lock").read_text())
    lock["stages"]["download@ml-100k"]["cmd"] = "something else"
    del lock["stages"]["convert@ml-1m"]
    Path("data/dvc.lock").write_text(yaml.safe_dump(lock))
    changed = {"download@ml-100k": "its command changed", "convert@ml-1m": "never run"}
    assert not changed.keys() & before.keys()
    assert stages() == before | changed
    stale.main()
    del lock["stages"]["download@demo"]["params"]["data/code.json"]
    Path("data/dvc.lock").write_text(yaml.safe_dump(lock))
    assert "download@demo (demo changed)" in reported()


def test_fingerprints_that_are_not_the_codes_are_refused() -> None:
    fingerprints = json.loads(Path("data/code.json").read_text())
    fingerprints["download"]["demo"] = "0" * 16
    Path("data/code.json").write_text(json.dumps(fingerprints))
    with pytest.raises(ConfigurationError, match=r"data/code.json: is behind the code; run `dvc repro code`"):
        stale.main()


@pytest.mark.parametrize("kind", ["deps", "outs"])
def test_a_file_that_its_lock_does_not_have_makes_a_stage_stale(kind: str) -> None:
    path = Path("suites/demo/dvc.lock")
    lock = yaml.safe_load(path.read_text())
    lock["stages"]["collect@demo"][kind].pop()
    path.write_text(yaml.safe_dump(lock))
    assert stages()["collect@demo"] == "it reads or writes other files"
