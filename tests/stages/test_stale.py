"""What is committed may be older than the code and the parameters only where that is said, with a date and a reason."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.config.params import load
from tasks.errors import ConfigurationError, DataError
from tasks.stages import code, dvc_files, stale
from tasks.stages.stale import Reason
from tests import parameters

EXCUSE = Reason(since=date(2026, 11, 22), reason="made up")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo alone, as if everything had run: made-up locks without hashes."""
    folder = tmp_path_factory.mktemp("template")
    parameters.write(parameters.read("demo"), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = load()
        dvc_files.write(params)
        code.main()
        locks: dict[Path, dict[str, Any]] = {}
        for step in stale.steps(params):
            files = {path: stale._read(Path(path)) for path in step.params}
            values = {path: {key: stale._value(files[path], key) for key in keys} for path, keys in step.params.items()}
            entry = {"cmd": step.command, "deps": [{"path": path} for path in step.deps], "params": values}
            locks.setdefault(Path(step.file).with_suffix(".lock"), {})[step.name] = entry
        for lock, stages in locks.items():
            lock.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
        Path(".ci").mkdir()
    return folder


@pytest.fixture(autouse=True)
def _inside(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(template, tmp_path / "project"))


def change(file: str, *keys: str, value: Any) -> None:
    """Set a parameter."""
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
    before = stale.stale_stages(load())  # of data that lead to no suite with results of this code
    change("params.yaml", "processed", "demo", "options", "test_share", value=0.25)
    change("suites/demo/params.yaml", "evaluation", "seed", value=4711)
    differences = {name: why for name, why in stale.stale_stages(load()).items() if name not in before}
    assert differences["preprocess@demo"] == "processed.demo changed"
    assert differences["train@demo-bpr"] == "evaluation changed"
    assert {name.partition("@")[0] for name in differences} == {"preprocess", "train", "check-metrics", "collect"}
    assert reported().startswith(
        f"demo: {len(differences)} stages are stale, such as check-metrics@demo (evaluation changed)"
    )


def test_what_is_excused_passes_and_an_excuse_without_need_does_not() -> None:
    change("params.yaml", "processed", "demo", "options", "test_share", value=0.25)
    assert reported().startswith("demo: 1 stages are stale, such as preprocess@demo (processed.demo changed)")
    for name in ("demo", "preprocess@demo"):
        assert stale.problems(load(), {name: EXCUSE}) == []
    (unneeded,) = stale.problems(load(), {"demo": EXCUSE, "train@demo-bpr": EXCUSE})
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
    before = stale.stale_stages(load())
    lock = yaml.safe_load(Path("data/dvc.lock").read_text())
    lock["stages"]["download@ml-100k"]["cmd"] = "something else"
    del lock["stages"]["convert@ml-1m"]
    Path("data/dvc.lock").write_text(yaml.safe_dump(lock))
    changed = {"download@ml-100k": "its command changed", "convert@ml-1m": "never run"}
    assert not changed.keys() & before.keys()
    assert stale.stale_stages(load()) == before | changed
    stale.main()
    del lock["stages"]["download@demo"]["params"]["data/code.json"]
    Path("data/dvc.lock").write_text(yaml.safe_dump(lock))
    assert "download@demo (download.demo changed)" in reported()


def test_fingerprints_that_are_not_the_codes_are_refused() -> None:
    fingerprints = json.loads(Path("data/code.json").read_text())
    fingerprints["download"]["demo"] = "0" * 16
    Path("data/code.json").write_text(json.dumps(fingerprints))
    with pytest.raises(ConfigurationError, match=r"data/code.json: is behind the code; run `dvc repro code`"):
        stale.main()
