"""The flow against a Prefect server: what its run shows, and what happens when a stage fails."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from filelock import FileLock

from flows.deployments import schedules
from flows.execution import LOCK, StageFailed
from flows.server import CREDENTIAL
from tests.flows.conftest import ROOT, Project, credential, wait_for, wait_until

pytestmark = pytest.mark.slow

STAGES = {"download@demo", "train@a", "train@b", "report@demo"}


@pytest.fixture
def regenerate(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """The flow, which reports to that server."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    from flows import pipeline

    monkeypatch.setattr(pipeline, "RETRY_DELAYS", [0.1, 0.1])
    with temporary_settings({PREFECT_API_URL: address, PREFECT_API_AUTH_STRING: os.environ[CREDENTIAL]}):
        yield pipeline.regenerate


def ask(address: str, what: str, **filters: Any) -> list[dict[str, Any]]:
    answer = httpx.post(f"{address}/{what}/filter", json=filters, timeout=120.0, auth=credential())
    answer.raise_for_status()
    return answer.json()  # type: ignore[no-any-return]


def last_run(address: str) -> dict[str, Any]:
    """The flow run that began last; not one that a schedule will begin, which Prefect sorts by when that is."""
    begun = {"start_time": {"is_null_": False}}
    return ask(address, "flow_runs", sort="START_TIME_DESC", limit=1, flow_runs=begun)[0]


def task_runs(address: str) -> dict[str, dict[str, Any]]:
    """Task runs of the last flow run by name, once the server knows how all of them ended."""
    flow_run = {"flow_runs": {"id": {"any_": [last_run(address)["id"]]}}}
    runs: dict[str, dict[str, Any]] = {}

    def ended() -> bool:
        runs.update({run["name"]: run for run in ask(address, "task_runs", **flow_run)})
        return bool(runs) and all(run["state_type"] in {"COMPLETED", "FAILED", "CRASHED"} for run in runs.values())

    wait_until(ended)
    return runs


def test_stages_become_task_runs_with_their_output_and_known_ones_are_cached(
    inside: Project, regenerate: Callable[..., Any], address: str
) -> None:
    regenerate("demo", jobs=2)
    assert sorted(inside.ran()) == sorted(STAGES)
    runs = task_runs(address)
    assert {name: run["state_name"] for name, run in runs.items()} == dict.fromkeys(STAGES, "Completed")
    run = last_run(address)
    assert run["name"] == "demo"

    def logged() -> bool:
        lines = {entry["message"] for entry in ask(address, "logs", logs={"flow_run_id": {"any_": [run["id"]]}})}
        return {f"hello from {name}" for name in STAGES} <= lines

    wait_until(logged)
    (artifact,) = ask(address, "artifacts", artifacts={"flow_run_id": {"any_": [run["id"]]}})
    assert artifact["key"] == "report-demo"
    assert (inside.root / "data/reports/demo/index.html").as_uri() in artifact["data"]

    inside.write("code/b.py", "# changed\n")
    regenerate("demo", jobs=2)
    # train@b wrote the same as before, so the report, which comes after it, had nothing to do either
    assert inside.ran() == ["train@b"]
    states = {name: run["state_name"] for name, run in task_runs(address).items()}
    assert states == dict.fromkeys(STAGES, "Cached") | {"train@b": "Completed"}


def test_what_needs_a_failed_stage_is_not_run_and_everything_else_is(
    inside: Project, regenerate: Callable[..., Any], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside.write("fail.train@a", "")
    with pytest.raises(StageFailed, match=r"^train@a failed: u\.data:7: rating 6 is not in 1\.\.5$"):
        regenerate("demo", jobs=2)
    assert sorted(inside.ran()) == ["download@demo", "train@a", "train@b"]
    states = {name: run["state_name"] for name, run in task_runs(address).items()}
    assert states == {"download@demo": "Completed", "train@a": "Failed", "train@b": "Completed"}
    assert last_run(address)["state_name"] == "Failed"
    assert "report@demo" in capsys.readouterr().out.splitlines()[-1]

    (inside.root / "fail.train@a").unlink()
    regenerate("demo")
    assert inside.ran() == ["train@a", "report@demo"]


@pytest.mark.usefixtures("inside")
def test_a_suites_lock_is_settled_while_its_run_holds_the_project(
    regenerate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def settle(_: Any, suite: str) -> None:
        assert suite == "demo"
        held.append(FileLock(LOCK.resolve(), is_singleton=True, thread_local=False).is_locked)

    monkeypatch.setattr("flows.dvc.Project.settle", settle)
    regenerate("demo", jobs=1)
    assert held == [True]


def test_downloads_are_tried_again_and_nothing_else_is(
    inside: Project, regenerate: Callable[..., Any], address: str
) -> None:
    inside.write("fail.download@demo", "once")
    inside.write("fail.train@a", "once")
    with pytest.raises(StageFailed, match=r"^train@a failed"):
        regenerate("demo")
    assert inside.ran().count("download@demo") == 2
    runs = task_runs(address)
    assert (runs["download@demo"]["run_count"], runs["train@a"]["run_count"]) == (2, 1)


def test_as_many_stages_side_by_side_as_asked_for(
    finished: Project, regenerate: Callable[..., Any], address: str
) -> None:
    def change_both(text: str) -> None:
        for name in "ab":
            finished.write(f"code/{name}.py", text)

    def overlap() -> bool:
        runs = [task_runs(address)[name] for name in ("train@a", "train@b")]
        return max(run["start_time"] for run in runs) < min(run["end_time"] for run in runs)

    change_both("# once\n")
    regenerate("demo", jobs=2)
    assert overlap()
    change_both("# twice\n")
    regenerate("demo", jobs=1)
    assert not overlap()
    assert sorted(finished.ran()) == ["train@a", "train@a", "train@b", "train@b"]


def test_every_suite_that_needs_nothing_placed_by_hand_is_scheduled_at_a_time_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    table = schedules()
    suites = {suite for suite, _ in table.values()}
    assert {"demo", "dpvae", "dipsgnn"} <= suites  # the word vectors of dpvae are fetched
    assert not suites & {"privsr", "dpcrosue", "dipsgnn-ml-1m", "dpvae-ml-1m"}  # by hand, the last two from a mirror
    assert len({cron for _, cron in table.values()}) == len(table)


@pytest.mark.usefixtures("regenerate")
def test_the_headline_of_a_suite_is_a_table_of_its_run(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect import flow

    from flows.pipeline import show

    monkeypatch.chdir(ROOT)
    flow(name="shows", persist_result=False)(lambda: show("demo"))()
    artifacts = ask(address, "artifacts", artifacts={"key": {"any_": ["headline-demo", "report-demo"]}})
    [table] = [artifact for artifact in artifacts if artifact["key"] == "headline-demo"]
    rows = json.loads(table["data"])
    assert {"what", "system", "accounted ε", "audited ε"} < rows[0].keys()
    assert "dp-popularity" in {row["system"] for row in rows}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])  # a closed terminal; what nothing can catch
def test_scheduled_runs_end_like_any_other_and_with_what_serves_them(
    inside: Project, address: str, number: signal.Signals
) -> None:
    variables = {"PREFECT_API_URL": address, "PREFECT_RUNNER_POLL_FREQUENCY": "1", CREDENTIAL: os.environ[CREDENTIAL]}
    serving = inside.start("schedule", **variables)
    try:
        if number == signal.SIGHUP:
            created = start_scheduled_run(address)

            def state(of: str) -> str:
                answer = httpx.get(f"{address}/flow_runs/{created}", timeout=120.0, auth=credential())
                return str(answer.json()[of])

            wait_until(lambda: state("state_type") in {"COMPLETED", "FAILED", "CRASHED"})
            assert state("state_name") == "Completed"
            assert sorted(inside.ran()) == sorted(STAGES)
            inside.write("code/a.py", "# changed\n")
        stage = "train@a" if number == signal.SIGHUP else "download@demo"
        inside.write(f"slow.{stage}", "300")
        start_scheduled_run(address)
        wait_for(inside.root / f"started.{stage}")
        serving.send_signal(number)
        output, _ = serving.communicate(timeout=300)
        assert not inside.left(60.0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(serving.pid, signal.SIGKILL)
    assert "demo-nightly" in output
    assert "Traceback" not in output
    if number == signal.SIGHUP:
        assert serving.returncode == 130
        assert output.splitlines()[-1] == "interrupted; a run that was going on goes on where it stopped"


def start_scheduled_run(address: str) -> str:
    """Have the first schedule run now, once it is served; the id of its run."""
    wait_until(lambda: len(ask(address, "deployments")) == 1)
    deployed = {deployment["name"]: deployment["id"] for deployment in ask(address, "deployments")}
    created: dict[str, Any] = {}

    def create() -> bool:  # the server may still be busy with its schedules
        answer = httpx.post(
            f"{address}/deployments/{deployed['demo-nightly']}/create_flow_run",
            json={},
            timeout=120.0,
            auth=credential(),
        )
        created.update(answer.json() if answer.is_success else {})
        return answer.is_success

    wait_until(create)
    return str(created["id"])
