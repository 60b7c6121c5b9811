"""What ends a run early, or keeps it from starting, is said in one line: what, where, and a remedy that works."""

import os
import signal
import sys
from pathlib import Path

import pytest

from flows import server
from flows.execution import Processes, StageFailed
from flows.stopping import as_usual, end_on_signal
from tasks.core.errors import ConfigurationError
from tests.flows.conftest import Project, wait_for


@pytest.mark.parametrize(("number", "name"), [(15, "SIGTERM"), (6, "SIGABRT"), (35, "signal 35")])
def test_a_signal_that_ends_a_stage_is_its_reason_and_not_the_line_of_its_progress_bar(number: int, name: str) -> None:
    code = f"import os; print('epoch 3 of 9:  33%', flush=True); os.kill(os.getpid(), {number})"
    with pytest.raises(StageFailed, match=f"^killed by {name}; run it again, it goes on where it stopped$"):
        Processes().run(f'{sys.executable} -c "{code}"', lambda _: None)


def wrapped(number: signal.Signals) -> None:
    """As a library that is interrupted while it calls back."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt as error:
        raise ValueError("error serializing to JSON") from error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_is_told_as_such_whatever_a_library_makes_of_it(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pydantic, which Prefect writes its first states with, raises an error of its own where it is interrupted."""
    before = {other: signal.getsignal(other) for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as caught, end_on_signal("interrupted"):
            wrapped(number)
        with pytest.raises(ValueError, match="another"), end_on_signal("interrupted"):
            raise ValueError("another")
    finally:
        for other, handler in before.items():
            signal.signal(other, handler)
    assert caught.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("library", "line"),
    [("typer", "dprec: interrupted\n"), ("dvc", "interrupted; `dprec run demo` goes on where this run stopped\n")],
)
def test_a_stop_while_libraries_are_loaded_is_a_line(
    finished: Project, tmp_path: Path, number: signal.Signals, library: str, line: str
) -> None:
    """Of which the first is loaded before the command is known."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / f"{library}.py").write_text(
        f"import pathlib, time; pathlib.Path({str(slow)!r}, 'on').touch(); time.sleep(60)"
    )
    path = os.pathsep.join([str(slow), finished.environment["PYTHONPATH"]])
    running = finished.start("run", "demo", PYTHONPATH=path)
    wait_for(slow / "on")
    running.send_signal(number)
    output, _ = running.communicate(timeout=60)
    assert (running.returncode, output) == (130, line)


def test_nohup_is_heeded() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with end_on_signal("interrupted"):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
        as_usual()


def test_a_lock_that_git_could_not_merge_is_named_with_a_remedy_that_works(finished: Project) -> None:
    name = "suites/demo/dvc.lock"
    for command in (["git", "add", name, "dvc.lock"], ["git", "commit", "-q", "-m", "locks"]):
        assert finished.call(*command).returncode == 0
    good = (finished.root / name).read_bytes()
    (finished.root / name).write_bytes(b"<<<<<<< HEAD\n" + good)
    refused = finished.dprec("check", "demo")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert f"; restore it with `git restore {name}`" in refused.stderr
    assert finished.call("git", "restore", name).returncode == 0
    assert "0 of 4 stages to run" in finished.dprec("check", "demo").stdout


@pytest.mark.slow
def test_a_server_that_ends_says_why_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prefect.db").mkdir()
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    monkeypatch.setenv("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")  # as `dprec` sets them
    monkeypatch.setenv("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv(server.CREDENTIAL, raising=False)
    remedy = rf"; if that is for its database, move {tmp_path}/prefect.db away and run this again"
    with pytest.raises(ConfigurationError, match=rf"did not start \(.*unable to open database file.*\){remedy}"):
        server.server()
    assert server.CREDENTIAL not in os.environ
