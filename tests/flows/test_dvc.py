"""The door to DVC: owners that are gone hold nothing, damage is not believed, and `dvc repro` gives the same."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import md5
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import NoReturn

import psutil
import pytest
import yaml

from flows import dvc, plan
from flows.dvc import Busy, open_project
from flows.dvc import Project as Opened
from tasks.errors import ConfigurationError
from tasks.stages.common import atomic_write
from tests.faults.corruptions import rot
from tests.flows.conftest import Project
from tests.flows.test_execution import wait_for

pytestmark = pytest.mark.slow

TRAIN = "suites/demo/dvc.yaml:train@a"
DOWNLOADED = "data/raw/demo/index.html"


def lock(project: Project, pid: int, command: str = "dvc repro") -> Path:
    """A file of locks in which another process writes what train@a writes, and reads its inputs."""
    path = project.root / ".dvc/tmp/rwlock"
    info = {"pid": pid, "cmd": command}
    written = {str(project.root / "data/runs/demo/a"): info}
    path.write_text(json.dumps({"write": written, "read": {str(project.root / "data/raw/demo"): [info]}}))
    return path


def reproduce(opened_project: Opened, address: str = TRAIN) -> list[str]:
    """What runs when a stage is brought up to date."""
    ran: list[str] = []

    def command(line: str) -> None:
        ran.append(line)
        subprocess.run(line, shell=True, check=True)

    opened_project.reproduce(address, command)
    return ran


def run(project: Project) -> list[str]:
    """Bring everything up to date; what ran."""
    with open_project() as opened_project:
        for step in plan.read("report@demo", opened_project).steps:
            reproduce(opened_project, step.address)
    return project.ran()


def holding(project: Opened) -> AbstractContextManager[None]:
    """What train@a reads and writes, held as while it runs."""
    stage = project.stages[TRAIN]
    return project._hold(TRAIN, stage.deps, stage.outs)


@contextmanager
def process_called(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with this word on its command line."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
    try:
        time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def changed(finished: Project) -> Project:
    """The finished project, in which train@a must run."""
    finished.write("code/a.py", "# changed\n")
    return finished


@pytest.fixture
def seen(finished: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The finished project whose files DVC has read: from now on it goes by their times."""
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", finished.environment["DVC_SITE_CACHE_DIR"])
    assert finished.dvc("status", "-q") == 0
    return finished


def test_a_dead_owner_holds_nothing(changed: Project) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    for ended in (False, True):  # first it is a zombie
        if ended:
            process.wait()
        lock(changed, process.pid)
        with open_project(patient=False) as project, holding(project):
            pass


def test_an_id_that_a_later_process_has_holds_nothing(changed: Project) -> None:
    path = lock(changed, os.getppid())
    os.utime(path, (0, 0))  # written before this process started
    with open_project(patient=False) as project:
        assert reproduce(project)


def test_an_id_that_another_program_has_holds_nothing(changed: Project) -> None:
    with process_called("dvd") as process:  # started before the file was last written
        for owner in ("/somewhere/bin/dvc repro", "/somewhere/flows/__main__.py run demo"):
            lock(changed, process.pid, owner)
            with open_project(patient=False) as project, holding(project):
                pass
        lock(changed, process.pid, f"{sys.executable} repro")
        with open_project(patient=False) as project, pytest.raises(Busy):
            reproduce(project)


@pytest.mark.parametrize("content", ["", "[]", "\0\xff", '{"read": {"/x": {"pid": 1}}}'])
def test_a_damaged_file_of_locks_is_nobodys(changed: Project, content: str) -> None:
    path = changed.root / ".dvc/tmp/rwlock"
    path.write_text(content, "latin-1")
    with open_project(patient=False) as project:
        with holding(project):
            path.write_text(content, "latin-1")
        assert reproduce(project)


def test_the_end_of_a_live_owner_is_waited_for(changed: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with process_called("dvc") as process:
        lock(changed, process.pid)
        with (
            open_project(patient=False) as project,
            pytest.raises(Busy, match=rf"^train@a: held by process {process.pid} \(dvc repro\)"),
        ):
            reproduce(project)
        threading.Timer(1.0, process.kill).start()
        with open_project() as project:
            assert reproduce(project)
            assert process.poll() is not None
    waiting = [line for line in capsys.readouterr().out.splitlines() if "waits for" in line]
    assert len(waiting) == 1
    assert waiting[0].split() == ["train@a", "waits", "for", "process", str(process.pid), "(dvc", "repro)"]


def test_a_run_that_is_stopped_waits_for_nobody(changed: Project) -> None:
    with process_called("dvc") as process:
        lock(changed, process.pid)
        with open_project() as project:
            threading.Timer(0.5, project.stopped.set).start()
            with pytest.raises(Busy, match="held by process"):
                reproduce(project)


@contextmanager
def holding_dvcs_lock(project: Project) -> Iterator[subprocess.Popen[str]]:
    """A process that holds DVC's lock of the project until it reads a line."""
    code = "from dvc.repo import Repo\nwith Repo().lock:\n print(1, flush=True)\n input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, env=project.environment, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_dvcs_lock_of_the_project_is_waited_for_or_its_holder_named(changed: Project) -> None:
    with holding_dvcs_lock(changed) as process:
        with open_project(patient=False) as project, pytest.raises(Busy, match=f"held by process {process.pid} "):
            reproduce(project)
        threading.Timer(1.0, process.kill).start()
        with open_project() as project:
            assert reproduce(project)


def test_a_check_beside_a_running_stage_ends_well(changed: Project) -> None:
    """Running stages hold what they read; a plan only looks."""
    with open_project() as project, holding(project):
        checked = changed.dprec("check", "demo")
    assert checked.returncode == 0, checked.stderr
    assert "code/a.py changed" in checked.stdout


def test_dvc_repro_and_a_run_beside_each_other_end_well(changed: Project, address: str) -> None:
    """The run waits for what the other command's stage holds, then takes its outputs over."""
    changed.write("slow.train@a", "300")
    repro = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "-q", TRAIN],
        cwd=changed.root,
        env=changed.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(changed.root / "started.train@a")
    waiting = changed.start("run", "demo", PREFECT_API_URL=address)
    assert waiting.stdout is not None
    lines: list[str] = []
    for line in waiting.stdout:
        lines.append(line)
        if f"train@a                                  waits for process {repro.pid} (" in line:
            (changed.root / "slow.train@a").unlink()
    _, errors = repro.communicate(timeout=300)
    assert (repro.returncode, errors) == (0, "")
    assert waiting.wait() == 0, "".join(lines)
    assert not (changed.root / "slow.train@a").exists(), lines  # it waited
    assert changed.ran() == ["train@a"]
    assert changed.call("dvc", "status").stdout == "Data and pipelines are up to date.\n"


@pytest.mark.parametrize("runner", ["dprec", "/bin/sh", "/bin/bash"])
def test_stages_end_with_the_command_that_started_them(changed: Project, address: str, runner: str) -> None:
    """Also where it is killed, which nothing can catch; and DVC with any shell, some of which wait for the stage."""
    program = "from tasks.stages.parent import end_with_parent\nend_with_parent()\n"
    changed.write("stage.py", program + (changed.root / "stage.py").read_text())
    changed.write("slow.download@demo", "300")
    if runner == "dprec":
        running = changed.start("run", "demo", PREFECT_API_URL=address)
    else:
        running = subprocess.Popen(
            [sys.executable, "-m", "dvc", "repro", "-q"],
            cwd=changed.root,
            env=changed.environment | {"SHELL": runner},
            text=True,
        )
    wait_for(changed.root / "started.download@demo")
    running.send_signal(signal.SIGKILL)
    running.wait()
    deadline = time.monotonic() + 60
    while (left := working(changed.root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def working(root: Path) -> list[str]:
    """Command lines of stages that run in a folder."""
    lines = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(root) and "stage.py" in process.cmdline():
                lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return lines


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


@pytest.mark.parametrize("listing", ["[]", "{", '[{"md5": "0123456789abcdef0123456789abcdef", "relpath": "x"}]'])
def test_a_damaged_list_of_files_is_not_checked_out(finished: Project, listing: str) -> None:
    (tree,) = (
        path
        for path in (finished.root / ".dvc/cache/files/md5").rglob("*.dir")
        if md5(b"download@demo").hexdigest() in path.read_text()
    )
    tree.chmod(0o644)
    tree.write_text(listing)
    tree.chmod(0o444)
    shutil.rmtree(finished.root / "data/raw/demo")
    with open_project() as project:
        assert reproduce(project, "download@demo")
    shutil.rmtree(finished.root / "data/raw/demo")
    with open_project() as project:  # the list is whole again
        assert not reproduce(project, "download@demo")
    assert (finished.root / DOWNLOADED).read_text() == "download@demo"


def test_verify_removes_all_that_is_damaged_and_the_next_run_has_all_of_it(seen: Project) -> None:
    def verify() -> list[str]:
        with open_project() as project:
            return project.verify()

    assert verify() == []
    object_ = cached(seen, "train@a")
    rot(object_)
    rot(seen.root / "data/runs/demo/b/index.html")
    verified = seen.dprec("verify")
    assert [line.split()[0] for line in verified.stdout.splitlines()] == [
        object_.relative_to(seen.root).as_posix(),
        "data/runs/demo/b",
    ]
    assert verified.stderr == "dprec: 2 damaged and removed; `dprec run SUITE` restores them or computes them again\n"
    assert verified.returncode == 1
    assert cached(seen, "train@a")  # again, from the output
    assert verify() == []
    assert run(seen) == []  # all from the cache
    assert (seen.root / "data/runs/demo/b/index.html").read_text() == "train@b"


CHECKED = """
import sys, pathlib
from tasks.errors import DataError
from tasks.stages.common import atomic_write, file_digest, require_passed, write_json
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
CHECKED_PIPELINE = """
stages:
  preprocess:
    foreach: [demo]
    do:
      wdir: ..
      cmd: python checked.py preprocess@demo data/processed/demo
      outs: [data/processed/demo]
      deps: [checked.py]
  check-processed:
    foreach: [demo]
    do:
      wdir: ..
      cmd: python checked.py check-processed@demo data/quality/processed/demo.json
      deps: [data/processed/demo]
      outs: [data/quality/processed/demo.json]
  train:
    foreach: [demo]
    do:
      wdir: ..
      cmd: python checked.py train@demo data/model
      deps: [data/processed/demo, data/quality/processed/demo.json, code/a.py]
      outs: [data/model]
"""


@pytest.mark.parametrize("how", ["the disk lost a bit", "somebody wrote into it"])
def test_the_remedy_for_a_file_that_is_not_the_one_that_was_checked_works(finished: Project, how: str) -> None:
    """Each command that the message names is tried; DVC alone would say that nothing changed."""
    finished.write("checked.py", CHECKED)
    finished.write("data/dvc.yaml", CHECKED_PIPELINE)
    train = ["repro", "-q", "data/dvc.yaml:train@demo"]
    assert finished.dvc(*train) == 0
    finished.write("code/a.py", "# changed\n")
    if how == "somebody wrote into it":
        finished.write("data/processed/demo", "other data")
    else:
        rot(finished.root / "data/processed/demo")
        rot(cached(finished, "the data"))
        assert finished.dvc(*train) != 0
    refused = finished.call("python", "checked.py", "train@demo", "data/model")
    assert refused.stderr.startswith("data/processed/demo: not the file that was checked; run ")
    verify, repro = refused.stderr.split("`")[1::2]
    finished.dprec(*verify.split()[1:])
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
    """It was renamed first, and then a later run began anew, although one is committed."""
    lock = finished.root / "suites/demo/dvc.lock"
    finished.call("git", "add", "-f", "suites/demo/dvc.lock")
    finished.call("git", "commit", "-q", "-m", "results")
    right = lock.read_text()
    lock.write_text("stages: [")
    with monkeypatch.context() as patched:
        if fails == "git":
            patched.setattr(dvc, "subprocess", SimpleNamespace(run=_raise))
        else:
            write = lambda path, **_: _raise() if path.name == lock.name else atomic_write(path)  # noqa: E731
            patched.setattr(dvc, "atomic_write", write)
        with pytest.raises(OSError, match="made up"), open_project():
            pytest.fail("it was read")
    assert lock.read_text() == "stages: ["
    with open_project():
        assert lock.read_text() == right
    assert lock.with_name("dvc.lock.damaged").read_text() == "stages: ["


def _raise(*_: object, **__: object) -> NoReturn:
    raise OSError("made up")


@pytest.mark.parametrize("content", [b"", b"\0\xff{", b"cmd: ["])
def test_a_damaged_record_of_what_was_run_is_removed(finished: Project, content: bytes) -> None:
    for record in (finished.root / ".dvc/cache/runs").glob("*/*/*"):
        record.chmod(0o644)
        record.write_bytes(content)
    finished.write("code/a.py", "# changed\n")
    (finished.root / "data/runs/demo/b/index.html").unlink()
    assert set(run(finished)) <= {"train@a", "train@b"}
    assert (finished.root / "data/runs/demo/b/index.html").read_text() == "train@b"


def test_a_damaged_memory_of_hashes_is_begun_anew(seen: Project) -> None:
    with open_project() as project:
        databases = list(Path(project._repo.site_cache_dir).rglob("*.db"))
    assert databases
    for database in databases:
        database.write_bytes(b"\0\xff" * 1000)
    assert run(seen) == []


def test_a_lock_file_that_git_could_not_merge_is_left_to_its_user(finished: Project) -> None:
    text = (finished.root / "dvc.lock").read_text()
    conflict = f"<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n"
    finished.write("dvc.lock", conflict)
    with pytest.raises(ConfigurationError, match=r"dvc\.lock"), open_project():
        pytest.fail("it was read")
    assert (finished.root / "dvc.lock").read_text() == conflict


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


def test_dvc_repro_gives_what_calling_dvc_gives(
    inside: Project, finished_template: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way for versions of DVC that nobody tried: it says so in a line."""
    asked = inside.start("run", "demo", "--dvc-repro", PREFECT_API_URL=address)
    output, _ = asked.communicate(timeout=600)
    assert asked.returncode == 0, output
    assert output.count("as asked for: stages run by `dvc repro`, which is slower") == 1
    assert sorted(inside.ran()) == ["download@demo", "report@demo", "train@a", "train@b"]
    for name in ("dvc.lock", "suites/demo/dvc.lock", "data/reports/demo/index.html", "data/runs/demo/a/index.html"):
        assert (inside.root / name).read_bytes() == (finished_template / name).read_bytes()
    inside.write("code/a.py", "# changed\n")
    monkeypatch.setitem(dvc.TRIED, "dvc", "0.1")
    with open_project("demo") as project:
        assert project.why_by_repro == f"dvc {version('dvc')} was not tried"
        ran = reproduce(project)
        assert ran == [f"dvc --wait-for-lock repro --single-item {TRAIN}"]
        assert inside.ran() == ["train@a"]
    with open_project("demo") as project:
        assert reproduce(project) == []
