"""The tiny project with one stage of four units, which last until they are told to end."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT, Project, wait_until

SUITE = """
stages:
  train:
    foreach: [a]
    do:
      wdir: ../..
      cmd: python -m tasks.stages.train ${item}
      deps: [data/raw/demo, "code/${item}.py"]
      outs: ["data/runs/demo/${item}"]
"""
# A package next to the project's own: its module `train` comes first. A unit lasts until there is a file `go`; files
# `fail.LABEL` and `killed.LABEL` say how one ends. All these are in the folder that UNITS_FOLDER names.
EXTEND = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
TRAIN = """
import os, signal, time
from pathlib import Path
from tasks.core.errors import DataError
from tasks.pipeline import runs
from tasks.pipeline.command import run_stage

HERE = Path(os.environ.get("UNITS_FOLDER", "."))
CODE = "1"

def run(unit, place, screen):
    with (HERE / "units.log").open("a") as log:
        prefect = any(name.startswith("PREFECT_") for name in os.environ)
        log.write(f"{unit.label} {os.getpid()} {os.getppid()} {prefect}\\n")
    while not (HERE / "go").exists():
        time.sleep(0.02)
    if (HERE / ("fail." + unit.label)).exists():
        raise DataError("u.data:7: rating 6 is not in 1..5")
    killed = HERE / ("killed." + unit.label)
    if killed.exists():
        killed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    (place / "value").write_text(unit.label + Path("data/raw/demo/index.html").read_text())

def work(name):
    kept = Path("data/checkpoints", name)
    units = [runs.Unit(label, runs.folder_of(kept, label, CODE)) for label in "svwx"]
    def assemble():
        out = Path("data/runs/demo", name)
        out.mkdir(parents=True)
        (out / "all").write_text(" ".join((unit.done / "value").read_text() for unit in units))
    return runs.Work(name, units, run, assemble, kept=kept)

def main(name, **options):
    return runs.perform(work(name), **options)

if __name__ == "__main__":
    run_stage(main, units=True)
"""


ALL = " ".join(f"{label}download@demo" for label in "svwx")


@pytest.fixture(scope="module")
def shared_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny project with one stage of four units, up to that stage."""
    project = Project(shutil.copytree(template, tmp_path_factory.mktemp("units") / "project"))
    project.write("dvc.yaml", (project.root / "dvc.yaml").read_text().replace("data/runs/${item}", "data/runs/demo/a"))
    project.write("suites/demo/dvc.yaml", SUITE)
    project.write("tasks/__init__.py", EXTEND)
    project.write("tasks/stages/__init__.py", EXTEND + (ROOT / "tasks/stages/__init__.py").read_text())
    project.write("tasks/stages/train.py", TRAIN)
    assert project.call("dvc", "repro", "-q", "download@demo").returncode == 0
    return project.root


def result(project: Project) -> str:
    """What the stage made of all units; `ALL` where all is well."""
    return (project.root / "data/runs/demo/a/all").read_text()


def worked(project: Project) -> Iterator[tuple[str, int, int]]:
    """Label of every unit that was begun, with its process and that one's parent, in order."""
    log = project.root / "units.log"
    for line in log.read_text().splitlines() if log.exists() else ():
        label, process, parent, _ = line.split()
        yield label, int(process), int(parent)


def go_when(project: Project, begun: int) -> Callable[[], None]:
    """Let units end once so many were begun."""

    def wait() -> None:
        wait_until(lambda: len(list(worked(project))) >= begun)
        (project.root / "go").touch()

    return in_background(wait)


def in_background(call: Callable[[], object]) -> Callable[[], None]:
    """Begin a call; what waits for its end."""
    thread = threading.Thread(target=call)
    thread.start()
    return thread.join
