"""Units on a Dask cluster: a scheduler and workers started by hand in clones of their own, and those of a run."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from fsspec.core import url_to_fs

from flows import store as shared_store
from flows import warm
from flows.cluster import Cluster, Needs, connect, write_certificate
from flows.execution import StageFailed
from flows.pipeline import needs_of
from flows.plan import Plan, Step
from flows.store import Store
from tasks.core.errors import ConfigurationError
from tests.flows.conftest import ROOT, Project, wait_until
from tests.flows.shared import ALL, in_background, result, shared_template, worked
from tests.flows.test_pipeline import ask, last_run, regenerate

pytestmark = pytest.mark.slow

__all__ = ["regenerate", "shared_template"]


@dataclass
class ByHand:
    """A scheduler and its workers, and the folder in which their units are told what to do."""

    folder: Path
    clone: Path

    def __post_init__(self) -> None:
        self.folder.mkdir()
        write_certificate(self.folder)
        ca, key = (str(self.folder / name) for name in ("ca.pem", "key.pem"))
        self._tls = ["--tls-ca-file", ca, "--tls-cert", ca, "--tls-key", key]
        self._tls += ["--protocol", "tls", "--host", "127.0.0.1"]
        files = {"CA_FILE": ca, "CLIENT__CERT": ca, "CLIENT__KEY": key}
        self.variables = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": path for name, path in files.items()}
        self.said = self.folder / "scheduler.json"
        self.processes = [self._start("scheduler", self.clone, "--port", "0", "--scheduler-file", str(self.said))]
        wait_until(self.said.exists)

    @property
    def address(self) -> str:
        return str(json.loads(self.said.read_text())["address"])

    def work(self, name: str) -> Path:
        """Start a worker in a clone of its own, which has no data; the clone."""
        clone = self.folder / name
        shutil.copytree(self.clone, clone, ignore=shutil.ignore_patterns("data", ".git", ".dvc"))
        own = ("--no-nanny", "--nthreads", "1", "--local-directory", str(self.folder / f"{name}.dask"))
        self.processes.append(self._start("worker", clone, "--scheduler-file", str(self.said), *own))
        return clone

    def _start(self, what: str, clone: Path, *arguments: str) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
        return subprocess.Popen(
            [sys.executable, "-m", "dask", what, *self._tls, "--no-dashboard", *arguments],
            cwd=clone,
            env=kept | {"PYTHONPATH": str(ROOT), "UNITS_FOLDER": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def driver(shared_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project that is run, with the test in its folder."""
    monkeypatch.chdir(shutil.copytree(shared_template, tmp_path / "project"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(warm, "prepare", lambda: None)
    return Project(Path.cwd())


@pytest.fixture
def by_hand(shared_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ByHand]:
    made = ByHand(tmp_path / "cluster", shared_template)
    for key, value in made.variables.items():
        monkeypatch.setenv(key, value)
    import dask

    dask.config.refresh()
    yield made
    made.end()
    for key in made.variables:
        monkeypatch.delenv(key)
    dask.config.refresh()


def test_a_worker_that_is_killed_costs_its_unit_and_a_lost_scheduler_costs_no_finished_one(
    driver: Project, by_hand: ByHand, regenerate: Callable[..., Any], address: str, store_address: str
) -> None:
    shared = Project(by_hand.folder)
    for name in ("first", "second"):
        by_hand.work(name)
    elsewhere = {"cluster": by_hand.address, "store": store_address}

    def disturb() -> None:
        wait_until(lambda: len(list(worked(shared))) == 2)  # both workers are in the middle of a unit
        _, _, worker = next(worked(shared))
        os.kill(worker, signal.SIGKILL)
        (shared.root / "go").touch()

    join = in_background(disturb)
    regenerate("demo", jobs=1, **elsewhere)
    join()
    assert result(driver) == ALL, "what one process makes, too"
    begun = list(worked(shared))
    assert (len(begun), {label for label, *_ in begun}) == (5, set("svwx")), "the unit of the killed worker twice"
    log = (shared.root / "units.log").read_text()
    assert "True" not in log, "workers get nothing of Prefect's"
    names = {run["name"] for run in ask(address, "task_runs", flow_runs={"id": {"any_": [last_run(address)["id"]]}})}
    assert {f"train@a {label}" for label in "svwx"} <= names

    (shared.root / "units.log").unlink()
    files, root = url_to_fs(store_address)
    files.rm(f"{root}/units", recursive=True)
    shutil.rmtree(driver.root / "data/checkpoints")

    def lose() -> None:
        wait_until(lambda: finished(driver) >= 2)
        (shared.root / "go").unlink()
        wait_until(lambda: len(list(worked(shared))) > finished(driver))
        by_hand.processes[0].kill()

    join = in_background(lose)
    with pytest.raises(StageFailed, match=r"^train@a failed: tls://.*: the scheduler is gone; finished units are kept"):
        regenerate("demo", jobs=1, force=True, **elsewhere)
    join()
    left = 4 - finished(driver)
    assert 0 < left <= 2
    (driver.root / "go").touch()
    driver.write("code/a.py", "# else its outputs would come from DVC's cache\n")
    regenerate("demo", jobs=1)
    assert len(list(worked(driver))) == left, "the run goes on, here as well as there"
    assert result(driver) == ALL


def finished(project: Project) -> int:
    """Units whose results are there."""
    return len(list((project.root / "data/checkpoints/a").glob("*/done")))


def test_a_worker_refuses_a_unit_that_has_another_key_there(
    driver: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone of another revision; what is wrong with the store is told in one line, too."""
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(local_directory=tmp_path / "worker"))
    store = tmp_path / "store"
    inputs = Store(str(store)).put_files([Path("params.yaml"), *Path("suites").rglob("*.yaml"), Path("data/raw")])
    unit = ("train", "a", "s", "data/checkpoints/a/s-0123456789abcdef", "")
    other = r"^.*has other code, packages or inputs: the unit s-0123456789abcdef is s-\w{16} here.*$"
    with pytest.raises(StageFailed, match=other):
        shared_store.work_on(str(store), inputs, *unit)
    assert not (driver.root / "data/checkpoints").exists()
    with pytest.raises(StageFailed, match=r"not in the store; run it again$"):
        shared_store.work_on(str(store), "0" * 64, *unit)


def test_a_cluster_of_the_runs_own_talks_tls_and_ends_with_it(
    driver: Project, regenerate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (driver.root / "go").touch()
    suite = (driver.root / "suites/demo/params.yaml").read_text()
    driver.write("suites/demo/params.yaml", suite + "resources: {train: {memory_mb: 1}}\n")
    monkeypatch.setenv("UNITS_FOLDER", str(driver.root))
    before = set(psutil.Process().children(recursive=True))
    seen: list[Cluster] = []

    class Watched(Cluster):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            seen.append(self)
            assert self._client.scheduler.address.startswith("tls://127.0.0.1:")
            host, port = self._client.scheduler.address.removeprefix("tls://").split(":")
            stranger = ssl._create_unverified_context().wrap_socket(socket.create_connection((host, int(port))))
            with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"):
                stranger.recv(1)

    monkeypatch.setattr("flows.cluster.Cluster", Watched)
    regenerate("demo", jobs=1, cluster="local:1")
    assert len(seen) == 1
    assert result(driver) == ALL
    assert "True" not in (driver.root / "units.log").read_text(), "nothing of Prefect's, credential or address"
    left = [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert all("resource_tracker" in " ".join(child.cmdline()) for child in left), "Python's own, which ends with it"
    assert not (driver.root / "data/checkpoints/.store").exists()


def test_a_scheduler_without_tls_or_without_a_store_is_refused() -> None:
    for address in ("tcp://127.0.0.1:8786", "127.0.0.1:8786"):
        refused = pytest.raises(ConfigurationError, match="without TLS, whoever reaches the scheduler can run code")
        with refused, connect(address, "store"):
            pytest.fail("connected")
    with pytest.raises(ConfigurationError, match="name the store"), connect("tls://127.0.0.1:8786", None):
        pytest.fail("connected")
    with pytest.raises(ConfigurationError, match="name the number of workers"), connect("local:many", None):
        pytest.fail("connected")


def test_what_a_unit_needs_stands_in_the_suites_parameters(driver: Project) -> None:
    def needs(resources: str) -> dict[str, Needs]:
        driver.write("suites/demo/params.yaml", own + f"resources: {resources}\n")
        return needs_of("demo", Plan("train@a", (Step("train@a", "", (), (), (), ()),)))

    own = (driver.root / "suites/demo/params.yaml").read_text()
    assert needs("{train: {memory_mb: 4000}}")["train@a"] == {"MEMORY": 4e9}
    assert needs("{train: {memory_mb: 4000}, train@a: {gpus: 1}}")["train@a"] == {"GPU": 1}
    assert needs("null")["train@a"] == {}
    with pytest.raises(
        ConfigurationError, match=r"suites/demo/params\.yaml: resources\.train@b: demo has no such stage"
    ):
        needs("{train@b: {gpus: 1}}")
    with pytest.raises(ConfigurationError, match=r"resources\.train\.memory\."):
        needs("{train: {memory: 1}}")
