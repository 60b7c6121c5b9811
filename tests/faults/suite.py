"""The suite that is disturbed: the tiny project of the flow's tests, with units of work, their states and a verdict."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from tests.flows import conftest

STAGE = """
from tasks.stages.parent import end_with_parent
end_with_parent()
import hashlib, json, pathlib, sys, time
from tasks.errors import DataError
from tasks.stages import runs
from tasks.stages.common import atomic_write, file_digest, read_json, require_passed, write_json

name, out = sys.argv[1], pathlib.Path(sys.argv[2])
stage, _, key = name.partition("@")
DATA, EPOCHS = pathlib.Path("data/raw/demo/data"), 5

def run(unit, place, screen):
    progress = runs.Progress(unit.progress)
    value, first = progress.restore(lambda folder: read_json(folder / "state.json")) or (unit.label, 0)
    for epoch in range(first, EPOCHS):
        value = hashlib.sha256((value + file_digest(DATA)).encode()).hexdigest()
        time.sleep(0.05)
        with progress.write() as folder:
            write_json(folder / "state.json", [value, epoch + 1])
    write_json(place / "result.json", value)

def train():
    require_passed("raw", "demo")
    kept = pathlib.Path("data/checkpoints", key)
    units = [runs.Unit(label, runs.folder_of(kept, label, file_digest(DATA))) for label in ("seed-0", "seed-1")]
    def assemble():
        with atomic_write(out) as place:
            place.mkdir()
            for unit in units:
                write_json(place / f"{unit.label}.json", read_json(unit.done / "result.json"))
    runs.perform(runs.Work(title=name, units=units, run=run, assemble=assemble, kept=kept))

def main():
    if stage == "train":
        return train()
    with atomic_write(out) as place:
        if stage == "download":
            place.mkdir()
            (place / "data").write_text("".join(f"{i}\\n" for i in range(5000)))
        elif stage == "check-raw":
            checked = {str(DATA): file_digest(DATA)}
            write_json(place, dict(contract="raw", name=key, success=True, evaluated=1, failed=0, checked=checked))
        else:
            place.mkdir()
            read = sorted(pathlib.Path("data/runs/demo").rglob("*.json"))
            (place / "index.html").write_text("".join(file.read_text() for file in read))

try:
    main()
    if pathlib.Path("killed").exists():
        time.sleep(30)
except (DataError, OSError) as error:
    sys.exit(f"{name}: {error}")
"""
PIPELINE = """
stages:
  download:
    foreach: [demo]
    do:
      cmd: python stage.py download@${item} data/raw/${item}
      deps: [stage.py]
      outs: ["data/raw/${item}"]
  report:
    foreach: [demo]
    do:
      cmd: python stage.py report@${item} data/reports/${item}
      deps: [stage.py, "data/runs/${item}/a", "data/runs/${item}/b"]
      outs: ["data/reports/${item}"]
"""
DATA_PIPELINE = """
stages:
  check-raw:
    foreach: [demo]
    do:
      wdir: ..
      cmd: python stage.py check-raw@${item} data/quality/raw/${item}.json
      deps: [stage.py, "data/raw/${item}"]
      outs: ["data/quality/raw/${item}.json"]
"""
SUITE = """
stages:
  train:
    foreach: [a, b]
    do:
      wdir: ../..
      cmd: python stage.py train@${item} data/runs/demo/${item}
      deps: [stage.py, data/raw/demo, data/quality/raw/demo.json, "code/${item}.py"]
      outs: ["data/runs/demo/${item}"]
"""
RESULTS = ("data/raw", "data/quality", "data/runs", "data/reports")
LOCKS = ("dvc.lock", "data/dvc.lock", "suites/demo/dvc.lock")
END_SECONDS = 10.0
"""For what a killed command leaves to end; a stage that it leaves lasts longer."""


@dataclass(frozen=True)
class Suite(conftest.Project):
    """A copy of the small suite, with a folder of Prefect's of its own."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"PREFECT_HOME": str(self.root / ".prefect")}

    def begin(self, *command: str, **extra: str) -> subprocess.Popen[str]:
        """Start a program in a process group of its own; what it says goes to files next to the project."""
        with (self.root.parent / "out").open("w") as out, (self.root.parent / "err").open("w") as err:
            return subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment | extra,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )

    def said(self) -> tuple[str, str]:
        """What the last program that was begun said."""
        return (self.root.parent / "out").read_text(), (self.root.parent / "err").read_text()

    def results(self) -> dict[str, str]:
        """What a run made: SHA-256 of every file, and of every dvc.lock what it says."""
        files = {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in RESULTS
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file()
        }
        return files | {
            name: str(sorted(yaml.safe_load((self.root / name).read_text())["stages"].items())) for name in LOCKS
        }

    def command_is_killed(self, killed: bool) -> None:
        """Have stages that end from now on last for half a minute more, so that one that is left is seen."""
        mark = self.root / "killed"
        mark.touch() if killed else mark.unlink(missing_ok=True)

    def copy(self, to: Path) -> Suite:
        """The same project in another, empty place."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        return Suite(Path(shutil.copytree(self.root, to / "project", symlinks=True)))


DPREC = (sys.executable, "-m", "flows")
DVC = (sys.executable, "-m", "dvc")


def make(folder: Path) -> Suite:
    """The small suite in which nothing has run yet; its Prefect folder has a database."""
    suite = Suite(conftest.make(folder / "project").root)
    suite.write("dvc.yaml", PIPELINE)
    suite.write("data/dvc.yaml", DATA_PIPELINE)
    suite.write("suites/demo/dvc.yaml", SUITE)
    suite.write("stage.py", STAGE)
    for command in (
        ("git", "add", "-A"),
        ("git", "commit", "-q", "-m", "a suite"),
        (sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"),
    ):
        subprocess.run(command, cwd=suite.root, env=suite.environment, check=True, capture_output=True)
    return suite


@dataclass(frozen=True)
class Setup:
    """What all faults are put in."""

    template: Suite
    """Nothing has run in it."""
    finished: Suite
    """All has run, undisturbed."""
    folder: Path
    """For the copy that is disturbed."""
    known: dict[str, str]
    """Environment of commands whose own server is not what is disturbed: a server that is up."""
    random: Random
    kills: int
    match: str = ""
    """Only faults with this in their name are put in."""

    def differs(self, suite: Suite) -> list[str]:
        """Files that are not those of the undisturbed run."""
        expected, results = self.finished.results(), suite.results()
        return [name for name in sorted({*expected, *results}) if expected.get(name) != results.get(name)]

    def recovers(self, suite: Suite) -> list[str]:
        """What is wrong after the next run, if anything."""
        again = suite.call(*RUN, **self.known)
        if again.returncode != 0:
            return [f"the next run failed: {again.stderr}"]
        return [f"other results: {', '.join(differ)}"] if (differ := self.differs(suite)) else []


Row = tuple[str, int, list[str]]
"""A kind of fault, how often it was put in, and of each time that went wrong how."""
RUN = (*DPREC, "run", "demo")


def together(wrong: list[str]) -> list[str]:
    """What went wrong at one time, as one entry."""
    return ["; ".join(wrong)] if wrong else []


def alone() -> None:
    """Settings of the process that disturbs: it starts no server of its own, and hands no address on."""
    for key in [key for key in os.environ if key.startswith("PREFECT_")]:
        del os.environ[key]
