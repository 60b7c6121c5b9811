"""The suite that is disturbed: the demo with two systems, one seed, one attacker; its audit and its pages."""

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from tasks.config.params import load
from tasks.pipeline import dvc_files
from tests import parameters
from tests.flows import conftest

READ = ("tasks", "data/reference", "requirements.lock", ".gitignore", ".dvcignore")
"""What stages, git and DVC read of the project, besides the parameters."""
EPOCHS = {"demo-dp-popularity": 0, "demo-bpr": 8}
"""The systems that are left, and how long they train: so that some kills find a unit between its states."""
RESULTS = ("raw", "interim", "processed", "quality", "targets", "runs", "results", "reports")
TIMES = "provenance.json"
"""Of all that lies there, the file that differs from run to run."""
LOCKS = ("dvc.lock", "data/dvc.lock", "suites/demo/dvc.lock")
END_SECONDS = 60.0
"""For what a command leaves to end, on a busy machine."""


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
            for path in sorted((self.root / "data" / folder).rglob("*"))
            if path.is_file() and path.name != TIMES
        }
        return files | {
            name: str(sorted(yaml.safe_load((self.root / name).read_text())["stages"].items())) for name in LOCKS
        }

    def ended_since(self, moment: float) -> list[str]:
        """The stages that have said since then, in seconds since 1970, that they have ended well."""
        files = self.root.glob("data/provenance/**/*.json")
        return [str(file.relative_to(self.root)) for file in files if file.stat().st_mtime > moment]

    def copy(self, to: Path) -> "Suite":
        """The same project in another, empty place."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        return Suite(Path(shutil.copytree(self.root, to / "project", symlinks=True)))


DPREC = (sys.executable, "-m", "flows")
DVC = (sys.executable, "-m", "dvc")


def make(folder: Path) -> Suite:
    """The small suite in which nothing has run yet; its Prefect folder has a database."""
    suite = Suite(folder / "project")
    params = parameters.read("demo") | {"perturbed": {}, "words": {}}
    params |= {table: {"demo": params[table]["demo"]} for table in ("datasets", "processed")}
    demo = params["suites"]["demo"] | {"ceilings": {}}
    demo["experiments"] = {name: demo["experiments"][name] | {"seeds": [0]} for name in EPOCHS}
    for name, epochs in EPOCHS.items():
        demo["experiments"][name]["config"] |= {"epochs": epochs} if epochs else {}
    few = {"k": [5], "attackers": ["naive_bayes"]}
    demo["attack"] |= few | {"sweep": few, "control_k": [5]}
    suite.root.mkdir(parents=True)
    parameters.write(params | {"suites": {"demo": demo}}, suite.root)
    for name in READ:
        copy = shutil.copytree if (conftest.ROOT / name).is_dir() else shutil.copy
        copy(conftest.ROOT / name, suite.root / name)
    with chdir(suite.root):
        dvc_files.write(load())
    python = sys.executable, "-m"
    for command in (
        (*python, "compileall", "-q", "tasks"),
        ("git", "init", "-q"),
        ("git", "config", "user.name", "tests"),
        ("git", "config", "user.email", "tests@localhost"),
        (*python, "dvc", "init", "-q"),
        (*DPREC, "check", "demo"),  # writes code.json, which a clone has
        ("git", "add", "-A"),
        ("git", "commit", "-q", "-m", "a suite"),
        (*python, "prefect", "server", "database", "upgrade", "--yes"),
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
    seconds: float
    """What the undisturbed run took."""
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
