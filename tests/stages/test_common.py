"""Outputs are whole or not there, digests see content alone, and errors are one line."""

import errno
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from polars.exceptions import PanicException

from tasks.config.params import load
from tasks.core import disk
from tasks.core.errors import ConfigurationError, DamagedError, DataError, PrivacyError
from tasks.pipeline import keys
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import CACHE, atomic_write, digest, read_json, write_json
from tasks.pipeline.parent import RUN
from tests import parameters
from tests.command import python


class Interrupted(Exception):
    """Stands for whatever may end a stage."""


def fill_file(place: Path, text: str) -> None:
    place.write_text(text)


def fill_folder(place: Path, text: str) -> None:
    place.mkdir()
    (place / "a").write_text(text)


def content(path: Path) -> str | None:
    if not path.exists():
        return None
    return (path / "a").read_text() if path.is_dir() else path.read_text()


@pytest.mark.parametrize("fill", [fill_file, fill_folder])
@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt, OSError])
def test_an_output_is_replaced_whole_or_not_at_all(
    tmp_path: Path, fill: Callable[[Path, str], None], error: type[BaseException]
) -> None:
    path = tmp_path / "below" / "output"

    def write(text: str, *, broken: bool) -> None:
        with atomic_write(path) as place:
            fill(place, text)
            if broken:
                raise error

    with pytest.raises(error):
        write("half", broken=True)
    assert content(path) is None
    write("first", broken=False)
    assert content(path) == "first"
    with pytest.raises(error):
        write("half", broken=True)
    assert content(path) == "first"
    write("second", broken=False)
    assert content(path) == "second"
    assert os.listdir(path.parent) == ["output"]


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def partial(path: Path, pid: int, old: str = "") -> Path:
    """Where a process of this host writes what will be `path`."""
    return path.with_name(f".{path.name}.{disk._HOST}.{pid}.{old}partial")


def test_what_a_killed_run_left_is_cleared_away_and_what_a_live_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "output"
    fill_folder(partial(path, dead_process()), "half")
    live = partial(path, os.getppid())
    fill_folder(live, "of another process")
    with atomic_write(path) as place:
        fill_folder(place, "whole")
    assert sorted(os.listdir(tmp_path)) == sorted(["output", live.name])


def test_what_another_host_writes_is_not_touched(tmp_path: Path) -> None:
    """Its processes cannot be seen from here, where the same id is that of none."""
    theirs = tmp_path / f".output.0123456789ab.{dead_process()}.partial"
    fill_folder(theirs, "of another host")
    with atomic_write(tmp_path / "output") as place:
        fill_folder(place, "whole")
    assert sorted(os.listdir(tmp_path)) == sorted(["output", theirs.name])


def test_several_processes_replace_one_folder_at_once(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tasks.pipeline.common import atomic_write\n"
        "for time in range(300):\n"
        "    with atomic_write(Path(sys.argv[1]), durable=False) as place:\n"
        "        place.mkdir()\n        (place / 'a').write_text('whole')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "output")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [("", 0)] * 4
    assert content(tmp_path / "output") == "whole"
    assert os.listdir(tmp_path) == ["output"]


def test_a_kill_between_the_two_renames_does_not_lose_the_last_output(tmp_path: Path) -> None:
    path = tmp_path / "output"
    fill_folder(partial(path, dead_process(), "old."), "last")
    with atomic_write(path) as place:
        assert content(path) == "last"
        fill_folder(place, "new")
    assert content(path) == "new"
    assert os.listdir(tmp_path) == ["output"]


def test_json_is_the_same_bytes_for_the_same_value_and_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "one", {"b": 1, "a": [1.5, None]})
    write_json(tmp_path / "two", {"a": [1.5, None], "b": 1})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert read_json(tmp_path / "one") == {"a": [1.5, None], "b": 1}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "three", {"a": math.nan})


def test_json_that_is_missing_or_broken_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not found; run the stage"):
        read_json(tmp_path / "none.json")
    for broken in ('{"a": ', "[" * 100_000):
        (tmp_path / "broken.json").write_text(broken)
        with pytest.raises(DataError, match=r"broken\.json: not readable as JSON"):
            read_json(tmp_path / "broken.json")


def test_a_digest_sees_names_within_folders_and_contents_and_nothing_else(tmp_path: Path) -> None:
    for name, order in (("one", "ab"), ("two", "ba")):
        for file in order:
            path = tmp_path / name / "below" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file)
    (tmp_path / "two" / "__pycache__").mkdir()
    (tmp_path / "two" / "__pycache__" / "a.pyc").write_text("compiled")
    same = digest(tmp_path / "one")
    assert digest(tmp_path / "two") == same
    (tmp_path / "two" / "below" / "a").rename(tmp_path / "two" / "below" / "c")
    assert digest(tmp_path / "two") != same
    (tmp_path / "two" / "below" / "c").rename(tmp_path / "two" / "below" / "a")
    (tmp_path / "two" / "below" / "a").write_text("b")
    assert digest(tmp_path / "two") != same


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets how a stage is called, in a folder with the project's parameters."""
    parameters.write(parameters.read(), tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda stage, *words: monkeypatch.setattr(sys, "argv", [f"/somewhere/{stage}.py", *words])


def report_of(error: Exception) -> Exception:
    outer = DataError(f"unit: {error}")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataError("within a run, which has its name"), 1, "within a run, which has its name"),
        (DataError("u.data:7: rating 6\nis not in 1..5"), 1, "stage demo: u.data:7: rating 6 is not in 1..5"),
        (PrivacyError("epsilon is 0"), 1, "stage demo: epsilon is 0"),
        (DamagedError("x: gone; run train again"), 1, "stage demo: x: gone; run train again: `dprec scrub` .*"),
        (report_of(DamagedError("run train again")), 1, "stage demo: unit: run train again: `dprec scrub` .*"),
        (DataError("run train again"), 1, "stage demo: run train again"),
        (
            OSError(errno.ENOSPC, "No space left", "own/x", None, "data/raw/x"),
            1,
            "stage demo: no space left on the disk.*data/raw/x.*",
        ),
        (KeyError("x"), 1, r"stage demo: KeyError: 'x' \(--debug shows where\)"),
        (PanicException("of polars"), 1, r"stage demo: PanicException: of polars \(--debug shows where\)"),
        (KeyboardInterrupt(), 130, "stage demo: interrupted; run it again to go on where it stopped"),
    ],
)
def test_a_stage_ends_with_one_line(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(name: str) -> None:
        assert name == "demo"
        raise error

    monkeypatch.setattr(sys, "argv", ["/somewhere/stage.py", "demo"])
    monkeypatch.delenv("DPREC_DEBUG", raising=False)
    monkeypatch.setenv(RUN, "1") if "within a run" in line else monkeypatch.delenv(RUN, raising=False)
    with pytest.raises(SystemExit) as caught:
        run_stage(main)
    assert caught.value.code == code
    assert re.fullmatch(line + "\n", capsys.readouterr().err)


def test_a_stage_leaves_its_provenance_beside_its_outputs(command_line: Callable[..., None]) -> None:
    command_line("train_networks", "layer/demo")
    run_stage(lambda _: {"epoch_seconds": {"base": {"0": [0.5]}}})
    record = read_json(Path("data/provenance/train-networks/layer/demo.json"))
    assert (record["stage"], record["name"], record["revision"]) == ("train-networks", "layer/demo", "unknown")
    assert record["epoch_seconds"] == {"base": {"0": [0.5]}}
    assert record["processor"]
    assert platform.node() not in record["processor"]
    assert datetime.fromisoformat(record["started"]).tzinfo is not None
    assert {"seconds", "peak_memory_mb", "cores", "packages"} < record.keys()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS has other names of processors here")
def test_provenance_tells_for_which_processor_linear_algebra_computes() -> None:
    """Two hosts of one model name gave other sums, and so did one host under another OPENBLAS_CORETYPE."""
    code = "from tasks.pipeline.provenance import processor; print(processor())"
    haswell, nehalem = (python(code, OPENBLAS_CORETYPE=core) for core in ("Haswell", "Nehalem"))
    assert haswell.endswith(", BLAS for Haswell\n")
    assert nehalem == haswell.replace("Haswell", "Nehalem")


def test_a_stage_with_units_has_its_provenance_recorded_with_its_outputs(command_line: Callable[..., None]) -> None:
    command_line("train", "demo", "--force")

    def main(name: str, record: Callable[[dict[str, Any]], None], **options: Any) -> dict[str, Any]:
        assert (name, options) == ("demo", {"unit": None, "key": None, "force": True})
        record({"epoch_seconds": {"base": [0.5]}})
        return {"epoch_seconds": {"base": [7.0]}}  # of another process, say

    run_stage(main, units=True)
    assert read_json(Path("data/provenance/train/demo.json"))["epoch_seconds"] == {"base": [0.5]}


def test_what_a_stage_writes_only_its_owner_reads(command_line: Callable[..., None]) -> None:
    """By `dvc repro` too, which knows no modes; DVC's own files are readable in a folder that is closed."""
    CACHE.mkdir(mode=0o755, parents=True)  # as `dvc pull` makes it
    command_line("train", "demo")

    def main(_: str) -> None:
        with atomic_write(Path("data/raw/demo")) as place:
            fill_folder(place, "a row")

    before = os.umask(0o022)
    try:
        run_stage(main)
    finally:
        os.umask(before)
    written = [Path("data"), *Path("data").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600, 0o700}
    assert CACHE.stat().st_mode & 0o777 == 0o700
    assert "a" in {path.name for path in written}


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o644), (0o664, 0o664), (0o444, 0o600)])
def test_a_file_that_is_replaced_keeps_the_mode_that_its_owner_gave_it(tmp_path: Path, before: int, after: int) -> None:
    """Not one of DVC's, which are read-only."""
    path = tmp_path / "params.yaml"
    path.write_text("former")
    path.chmod(before)
    mask = os.umask(0o077)
    try:
        with atomic_write(path) as place:
            place.write_text("new")
    finally:
        os.umask(mask)
    assert (path.stat().st_mode & 0o777, path.read_text()) == (after, "new")


@pytest.mark.usefixtures("command_line")
def test_a_stage_whose_code_changed_since_code_json_was_written_is_refused() -> None:
    """`dvc repro --single-item` does not run `code`; DVC would take the new output for the old code's."""
    file = Path("suites/demo/code.json")
    with pytest.raises(ConfigurationError, match=r"suites/demo/code\.json: not found; run `dvc repro code`"):
        keys.require_current("train", "demo-bpr")
    recorded = keys.fingerprints(load())
    file.write_text(json.dumps(recorded))
    keys.require_current("train", "demo-bpr")
    keys.require_current("train", "not-an-experiment")  # which the stage itself refuses
    file.write_text(json.dumps(recorded | {"train": recorded["train"] | {"demo-bpr": "0" * 16}}))
    with pytest.raises(ConfigurationError, match=r"code\.json: train\.demo-bpr is behind the code; run `dvc repro"):
        keys.require_current("train", "demo-bpr")
    keys.require_current("train", "demo-ease")
    file.write_text('{"train": {}}')
    with pytest.raises(ConfigurationError, match=r"code\.json: has no fingerprint of train@demo-bpr; run"):
        keys.require_current("train", "demo-bpr")
