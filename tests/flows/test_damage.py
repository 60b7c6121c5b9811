"""What is damaged is not believed: objects of DVC's cache, its locks, its memory; and every remedy named works."""

import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from flows import locks, plan
from flows.dvc import open_project
from flows.execution import Busy
from tasks.pipeline.common import atomic_write
from tests.faults.corruptions import rot
from tests.flows.conftest import Project
from tests.flows.test_dvc import holding_dvcs_lock, reproduce

pytestmark = pytest.mark.slow

DOWNLOADED = "data/raw/demo/index.html"


def run(project: Project) -> list[str]:
    """Bring everything up to date; what ran."""
    with open_project() as opened_project:
        for step in plan.read("report@demo", opened_project).steps:
            reproduce(opened_project, step.address)
    return project.ran()


@pytest.fixture
def seen(finished: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The finished project whose files DVC has read: from now on it goes by their times."""
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", finished.environment["DVC_SITE_CACHE_DIR"])
    assert finished.dvc("status", "-q") == 0
    return finished


def cached(project: Project, content: str) -> Path:
    """The object of DVC's cache with this content."""
    files = (project.root / ".dvc/cache/files/md5").rglob("*")
    (path,) = (file for file in files if file.is_file() and file.read_text() == content)
    assert path.stat().st_mode & 0o777 == 0o444
    return path


def test_a_damaged_object_is_not_checked_out(finished: Project) -> None:
    rot(cached(finished, "download@demo"))
    shutil.rmtree(finished.root / "data/raw/demo")
    with open_project() as project:
        assert reproduce(project, "download@demo")
    assert (finished.root / DOWNLOADED).read_text() == "download@demo"
    assert cached(finished, "download@demo")


def test_scrub_removes_all_that_is_damaged_and_the_next_run_has_all_of_it(seen: Project) -> None:
    def scrub() -> list[str]:
        with open_project() as project:
            return project.scrub()

    assert scrub() == []
    object_ = cached(seen, "train@a")
    rot(object_)
    rot(seen.root / "data/runs/demo/b/index.html")
    verified = seen.dprec("scrub")
    assert [line.partition(":")[0] for line in verified.stdout.splitlines()] == [
        object_.relative_to(seen.root).as_posix(),
        "data/runs/demo/b",
    ]
    assert verified.stderr == "dprec: 2 damaged and removed; `dprec run SUITE` restores them or computes them again\n"
    assert verified.returncode == 1
    assert cached(seen, "train@a")  # again, from the output
    assert scrub() == []
    assert run(seen) == []  # all from the cache
    assert (seen.root / "data/runs/demo/b/index.html").read_text() == "train@b"


CHECKED = """
import sys, pathlib
from tasks.core.errors import DataError
from tasks.pipeline.common import atomic_write, file_digest, require_passed, write_json
name, out = sys.argv[1:]
stage, _, key = name.partition("@")
file = pathlib.Path("data/processed/demo")
place = pathlib.Path(out)
place.parent.mkdir(parents=True, exist_ok=True)
if stage == "preprocess":
    place.write_text("the data")
elif stage == "check-processed":
    verdict = dict(contract="c", name=key, success=True, evaluated=1, failed=0, checked={str(file): file_digest(file)})
    write_json(place, verdict)
else:
    try:
        require_passed("processed", "demo")
    except DataError as error:
        sys.exit(str(error))
    place.write_text(file.read_text())
"""
DATA, VERDICT = "data/processed/demo", "data/quality/processed/demo.json"


def stage(name: str, out: str, *deps: str) -> dict[str, Any]:
    of = {"wdir": "..", "cmd": f"python checked.py {name}@demo {out}", "outs": [out], "deps": [*deps]}
    return {name: {"foreach": ["demo"], "do": of}}


CHECKED_PIPELINE = stage("preprocess", DATA, "checked.py") | stage("check-processed", VERDICT, DATA)
CHECKED_PIPELINE |= stage("train", "data/model", DATA, VERDICT, "code/a.py")


@pytest.mark.parametrize("how", ["the disk lost a bit", "someone wrote into it"])
def test_the_remedy_for_a_file_that_is_not_the_one_that_was_checked_works(finished: Project, how: str) -> None:
    """Each command that the message names is tried; DVC alone would say that nothing changed."""
    finished.write("checked.py", CHECKED)
    finished.write("data/dvc.yaml", yaml.safe_dump({"stages": CHECKED_PIPELINE}))
    train = ["repro", "-q", "data/dvc.yaml:train@demo"]
    assert finished.dvc(*train) == 0
    finished.write("code/a.py", "# changed\n")
    if how == "someone wrote into it":
        finished.write("data/processed/demo", "other data")
    else:
        rot(finished.root / "data/processed/demo")
        rot(cached(finished, "the data"))
        assert finished.dvc(*train) != 0
    refused = finished.call("python", "checked.py", "train@demo", "data/model")
    assert refused.stderr.startswith("data/processed/demo: not the file that was checked; run ")
    scrub, repro = refused.stderr.split("`")[1::2]
    finished.dprec(*scrub.split()[1:])
    assert finished.dvc(*repro.split()[1:]) == 0
    assert finished.dvc(*train) == 0
    assert (finished.root / "data/model").read_text() == "the data"


@pytest.mark.parametrize(
    "content", ["", "stages: [", "\0\0\0", "schema: '2.0'\nstages:\n  download@demo:\n    cmd: 3\n", "stages: {}"]
)
def test_a_damaged_lock_file_is_set_aside_and_nothing_is_computed_again(finished: Project, content: str) -> None:
    """The committed one is used, if one is committed; DVC's cache has the rest."""
    locks = [finished.root / name for name in ("dvc.lock", "suites/demo/dvc.lock")]
    right = [yaml.safe_load(lock.read_text()) for lock in locks]
    finished.call("git", "add", "-f", "dvc.lock")
    finished.call("git", "commit", "-q", "-m", "results")
    for lock in locks:
        lock.write_text(content)
    assert run(finished) == []
    assert [yaml.safe_load(lock.read_text()) for lock in locks] == right
    if content:
        assert (finished.root / "suites/demo/dvc.lock.damaged").read_text() == content


@pytest.mark.parametrize("fails", ["git", "writing"])
def test_a_damaged_lock_file_stays_where_the_committed_one_cannot_be_had(
    finished: Project, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """It was renamed first, and then a later run began again, although one is committed."""
    lock = finished.root / "suites/demo/dvc.lock"
    finished.call("git", "add", "-f", "suites/demo/dvc.lock")
    finished.call("git", "commit", "-q", "-m", "results")
    right = lock.read_text()
    lock.write_text("stages: [")
    with monkeypatch.context() as patched:
        if fails == "git":
            patched.setattr(locks, "git", _raise)
        else:
            write = lambda path, **_: _raise() if path.name == lock.name else atomic_write(path)  # noqa: E731
            patched.setattr(locks, "atomic_write", write)
        with pytest.raises(OSError, match="made up"), open_project():
            pytest.fail("it was read")
    assert lock.read_text() == "stages: ["
    with open_project():
        assert lock.read_text() == right
    assert lock.with_name("dvc.lock.damaged").read_text() == "stages: ["


def _raise(*_: object, **__: object) -> NoReturn:
    raise OSError("made up")


@pytest.mark.parametrize("content", ["cut", "unreadable"])
def test_a_lock_that_dvc_is_writing_is_not_set_aside(finished: Project, content: str) -> None:
    """DVC writes it in place, for a moment it is cut: it was renamed then, and DVC wrote the rest to another file."""
    path = finished.root / "suites/demo/dvc.lock"
    complete = path.read_text()
    path.write_text(complete[:-3] if content == "cut" else "schema: [")
    with holding_dvcs_lock(finished) as writer:
        with pytest.raises(Busy, match=f"held by process {writer.pid} .*run this again"), open_project(patient=False):
            pass
        path.write_text(complete)
        writer.communicate("\n")
    assert not path.with_name("dvc.lock.damaged").exists()
    assert finished.dprec("check", "demo").stdout.startswith("report@demo: 0 of 4 stages to run")
