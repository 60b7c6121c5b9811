"""A project small enough to run in a test: the shape of the real one, with stages that only write a line."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from unittest.mock import patch

import psutil
import pytest
from dvc.cli import main as dvc
from filelock import FileLock

from flows import server
from tests import command, parameters

ROOT = Path(__file__).resolve().parents[2]

PIPELINE = """
stages:
  download:
    foreach: ${datasets}
    do:
      cmd: python stage.py download@${key} data/raw/${key}
      deps: [stage.py]
      outs: ["data/raw/${key}"]
  report:
    foreach: [demo]
    do:
      cmd: python stage.py report@${item} data/reports/${item}
      deps: [stage.py, "data/runs/${item}"]
      params: ["suites/${item}/params.yaml": [title]]
      outs: ["data/reports/${item}"]
"""

SUITE = """
stages:
  train:
    foreach: [a, b]
    do:
      wdir: ../..
      cmd: python stage.py train@${item} data/runs/demo/${item}
      deps: [stage.py, data/raw/demo, "code/${item}.py"]
      outs: ["data/runs/demo/${item}"]
"""

# A stage does what a file next to it says: `fail.NAME` (until it is gone; `once` fails one time), `slow.NAME` (seconds,
# or until it is gone).
STAGE = """
import pathlib, sys, time
name, out = sys.argv[1:]
with open("ran.log", "a") as log:
    log.write(name + "\\n")
print("hello from", name)
fail = pathlib.Path("fail." + name)
if fail.exists():
    if fail.read_text() == "once":
        fail.unlink()
    print("u.data:7: rating 6 is not in 1..5", file=sys.stderr)
    raise SystemExit(1)
slow = pathlib.Path("slow." + name)
if slow.exists():
    pathlib.Path("started." + name).touch()
    end = time.monotonic() + float(slow.read_text())
    while slow.exists() and time.monotonic() < end:
        time.sleep(0.05)
pathlib.Path(out).mkdir(parents=True)
pathlib.Path(out, "index.html").write_text(name)
"""


def credential() -> tuple[str, str]:
    """Name and password of the server at `address`."""
    name, _, word = os.environ[server.CREDENTIAL].partition(":")
    return name, word


@dataclass(frozen=True)
class Project:
    """A tiny project in a folder of its own."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """No server, this interpreter, and the code under test."""
        own = server.CREDENTIAL  # of the server at `address`
        kept = {key: value for key, value in os.environ.items() if key == own or not key.startswith("PREFECT_")}
        return kept | {
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": str(self.root / ".dvc/tmp/site"),  # as dprec has it
            "DO_NOT_TRACK": "1",
        }

    def call(self, *command: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the project's folder; `extra` are environment variables."""
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment | extra,
            umask=0o022,  # as most people have it
            capture_output=True,
            text=True,
            check=False,
        )

    def dprec(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line under test in this process."""
        return command.dprec(self.root, *arguments, environment=self.environment)

    def run(self, suite: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a suite by the command line under test, in a process of its own."""
        return self.call(sys.executable, "-m", "flows", "run", suite, **extra)

    def dvc(self, *arguments: str) -> int:
        """Run DVC in this process; its exit status."""
        with chdir(self.root), patch.dict(os.environ, self.environment, clear=True):
            return int(dvc(list(arguments)))

    def start(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        """Start the command line under test, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "flows", *arguments],
            cwd=self.root,
            env=self.environment | extra,
            stdout=PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ran(self) -> list[str]:
        """The stages that ran since the last call, in order of their start."""
        log = self.root / "ran.log"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def left(self, seconds: float = 10.0) -> list[str]:
        """Processes that still work in the folder after a while."""
        end = time.monotonic() + seconds
        while (lines := [str(process) for process in self.processes()]) and time.monotonic() < end:
            time.sleep(0.1)
        return lines

    def processes(self) -> Iterator[psutil.Process]:
        """What works in the folder now, but for dead processes that no one has asked how they ended."""
        for process in psutil.process_iter():
            try:
                if (
                    process.cwd() == str(self.root)
                    and process.status() != psutil.STATUS_ZOMBIE
                    and process.pid != os.getpid()
                ):
                    yield process
            except psutil.Error:
                continue


def wait_until(true: Callable[[], bool], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


HOLDS_PROJECT = "from flows.execution import hold_project\nwith hold_project('suite gerai'):"


@contextmanager
def holding(begun: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that holds what this code, which ends with a `with`, takes until it reads a line or dies."""
    command = [sys.executable, "-c", f"{begun}\n print(1, flush=True)\n input()"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def wait_for(path: Path) -> None:
    wait_until(path.exists)


@pytest.fixture(scope="session")
def prefect_database(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A Prefect folder with an empty database, set up once for all workers: that takes longer than a run."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    home = shared / "prefect"
    with FileLock(shared / "prefect.lock"):
        if not home.exists():
            command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
            place = shared / "prefect.partial"
            subprocess.run(command, env=os.environ | {"PREFECT_HOME": str(place)}, check=True, capture_output=True)
            place.rename(home)
    return home


@pytest.fixture
def prefect_home(prefect_database: Path, tmp_path: Path) -> str:
    """A Prefect folder of the test's own."""
    return str(shutil.copytree(prefect_database, tmp_path / "prefect"))


@pytest.fixture(scope="session")
def address(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server with an empty database."""
    home = shutil.copytree(prefect_database, tmp_path_factory.mktemp("server") / "prefect")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("PREFECT_HOME", str(home))
        monkeypatch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        started = server.Server(pages=True)
    os.environ[server.CREDENTIAL] = started.credential
    yield started.address
    started.end()
    del os.environ[server.CREDENTIAL]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: setting up git and DVC takes longer than most tests."""
    return make(tmp_path_factory.mktemp("template") / "project").root


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Project:
    """A tiny project under git and DVC in which nothing has run yet."""
    return Project(shutil.copytree(template, tmp_path / "project"))


@pytest.fixture(scope="session")
def finished_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny project after a run."""
    ready = Project(shutil.copytree(template, tmp_path_factory.mktemp("finished") / "project"))
    assert ready.dvc("repro", "-q") == 0
    ready.ran()
    return ready.root


@pytest.fixture
def finished(finished_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The tiny project in which everything is up to date, with the test running in its folder."""
    monkeypatch.chdir(shutil.copytree(finished_template, tmp_path / "finished"))
    return Project(Path.cwd())


@pytest.fixture
def inside(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The tiny project, with the test running in its folder."""
    monkeypatch.chdir(project.root)
    return project


def make(root: Path) -> Project:
    root.mkdir(parents=True)
    tiny = Project(root)
    params = parameters.read()
    for table in ("datasets", "processed", "suites"):
        params[table] = {"demo": params[table]["demo"]}
    params["perturbed"] = {}
    params["words"] = {}
    params["suites"]["demo"] |= {"experiments": {}, "ceilings": {}}
    parameters.write(params, root)
    tiny.write("dvc.yaml", PIPELINE)
    tiny.write("suites/demo/dvc.yaml", SUITE)
    tiny.write("stage.py", STAGE)
    made = "".join(f"/data/{name}\n" for name in ("[cpqr]*/", "model", ".lock*"))
    tiny.write(".gitignore", f"ran.log\nfail.*\nslow.*\nstarted.*\n.prefect\n{made}")
    for name in "ab":
        tiny.write(f"code/{name}.py", "")
    run: Callable[..., object] = lambda *command: subprocess.run(  # noqa: E731
        command, cwd=root, env=tiny.environment, check=True, capture_output=True
    )
    run("git", "init", "-q")
    run("git", "config", "user.name", "tests")
    run("git", "config", "user.email", "tests@localhost")
    run(sys.executable, "-m", "dvc", "init", "-q")
    run("git", "add", "-A")
    run("git", "commit", "-q", "-m", "a tiny project")
    return tiny


@pytest.fixture
def store_address(tmp_path: Path) -> str:
    """Of an empty store: below DPREC_TEST_STORE where that names one, such as `s3://bucket/folder`, else a folder."""
    above = os.environ.get("DPREC_TEST_STORE")
    return f"{above}/{secrets.token_hex(8)}" if above else str(tmp_path / "store")
