"""Units of stages that a cluster works on, against a cluster that is made up: how stages hear of what became of
them."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows import cluster
from flows import store as shared_store
from flows.cluster import Cluster, ClusterUnits, write_certificate
from flows.execution import StageFailed
from flows.units import Unit
from tests.flows.conftest import ROOT

STAGE = "train@a-b"
UNIT = Unit("base seed 0", ROOT, STAGE, "train", "a-b")


class StrangeError(Exception):
    """As libraries have them: neither an OSError nor a RuntimeError."""


def fail() -> None:
    raise StrangeError("no\ncredentials")


def units_of(
    monkeypatch: pytest.MonkeyPatch,
    *,
    put_files: Callable[[], object] = lambda: None,
    run: Callable[[], object] = lambda: None,
) -> ClusterUnits:
    """Of one stage with one unit, on a cluster that does as the functions say."""

    def submit(unit: Unit) -> SimpleNamespace:
        def wait() -> None:
            with pytest.raises(StageFailed):
                units.work_on(unit, print)

        return SimpleNamespace(wait=wait)

    monkeypatch.setattr(cluster, "list_units", lambda *_: [UNIT])
    store = SimpleNamespace(put_files=lambda _: put_files())
    made: Any = SimpleNamespace(store=store, run=lambda *_, **__: run())
    nobody: Any = None
    slots = threading.Semaphore()
    units = ClusterUnits(made, nobody, slots, submit, {STAGE: []}, {STAGE: {}}, force=True)
    return units


def work(units: ClusterUnits) -> None:
    """What the stage does: its own command would follow."""
    with units.working(STAGE, "train", "a-b"):
        raise AssertionError("the stage's command runs without its units")


def test_what_is_sent_once_the_run_is_stopped_is_not_run(tmp_path: Path) -> None:
    client: Any = SimpleNamespace(status="closed", close=lambda **_: None)
    made = Cluster(client, "local:1", str(tmp_path))
    with pytest.raises(StageFailed, match="the scheduler is gone"):
        made.run(UNIT, "inputs", {}, force=False)
    made.stop()
    with pytest.raises(StageFailed, match="the run was stopped"):
        made.run(UNIT, "inputs", {}, force=False)


def test_whatever_a_unit_fails_with_its_stage_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    units = units_of(monkeypatch, run=fail)
    with pytest.raises(StageFailed, match=r"^no credentials$"):
        work(units)


def test_a_store_that_takes_nothing_fails_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StageFailed, match=r"cannot be put into the store \(no credentials\)"):
        work(units_of(monkeypatch, put_files=fail))


@pytest.mark.parametrize("code", [0, 1])
def test_a_unit_may_print_bytes_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    python, put = tmp_path / "python", list[str]()
    python.write_text(f"#!/bin/sh\nprintf 'caf\\351\\n'\nexit {code}\n")
    python.chmod(0o755)
    store = SimpleNamespace(put_unit=lambda _, folder: put.append(folder))
    monkeypatch.setattr(shared_store, "Store", lambda _: store)
    monkeypatch.setattr(shared_store, "_project", lambda *_: tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(os, "umask", lambda _: 0)
    failed = pytest.raises(StageFailed, match="caf\N{REPLACEMENT CHARACTER}") if code else nullcontext()
    with failed:
        shared_store.work_on("store", "inputs", "train", "a-b", "base seed 0", "units/key", "")
    assert put == ([] if code else ["units/key"])


def test_a_cluster_of_the_runs_own_refuses_what_it_will_never_have(tmp_path: Path) -> None:
    client: Any = SimpleNamespace(status="running")
    made = Cluster(client, "local:1", str(tmp_path), {"MEMORY": 8e9})
    with pytest.raises(StageFailed, match=r"needs GPU=1, and workers of local:1 have 0"):
        made.run(UNIT, "inputs", {"MEMORY": 4e9, "GPU": 1}, force=False)


def test_the_documented_settings_of_tls_name_files_that_are_there(tmp_path: Path) -> None:
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^export DASK.*?^done$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "dask-tls").mkdir()
    write_certificate(tmp_path / "dask-tls")
    shown = subprocess.run(
        ["bash", "-c", f"{block}\nenv"], env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    ).stdout
    files = [Path(line.partition("=")[2]) for line in shown.splitlines() if line.startswith("DASK_")]
    assert len(files) == 7
    assert all(file.is_file() for file in files)
