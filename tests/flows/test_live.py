"""What people see of a run: one view in a terminal, lines elsewhere, and how long it says that a run takes."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows import live, plan
from flows.cost import recorded_seconds
from flows.dvc import open_project
from flows.execution import progress
from flows.plan import Plan, Step
from tasks.pipeline.parent import RUN
from tasks.pipeline.screen import Screen
from tests.flows.conftest import Project


def step(name: str, *needs: str) -> Step:
    return Step(name, name, needs, ("first run",), needs, ())


TODO = Plan("report@x", (step("download@x"), step("train@a", "download@x"), step("train@b", "download@x")))


def in_terminal(project: Project, *arguments: str, **extra: str) -> tuple[int, str]:
    """Exit code, and what a terminal of 120 columns received."""
    master, slave = pty.openpty()
    environment = project.environment | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"} | extra
    command = [sys.executable, "-m", "flows", *arguments]
    process = subprocess.Popen(command, cwd=project.root, env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    received = b""
    while True:
        try:
            received += os.read(master, 65536)
        except OSError:  # the other end is closed
            break
    os.close(master)
    return process.wait(timeout=60), received.decode()


@pytest.mark.slow
def test_in_a_terminal_a_run_is_one_view_that_leaves_its_sum_and_the_report(finished: Project, address: str) -> None:
    finished.write("code/a.py", "# changed\n")
    finished.write("slow.train@a", "1.5")
    code, received = in_terminal(finished, "run", "demo", PREFECT_API_URL=address)
    assert code == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", received)
    assert re.search(r"train@a +[━╸╺ ]+ 0:00:0\d +code/a\.py changed", text), "why it runs, next to its bar"
    assert re.search(r"report@demo +[━╸╺ ]+ 0:00:0\d 0:00:\d\d left [12] of 4 stages \([12] cached\)", text)
    assert not re.search(r"^train@a +(\| |starts|done)", text, re.MULTILINE), "no line for each event"
    assert "\x1b[?25l" in received, "the view hides the cursor"
    assert received.count("\x1b[?25h") >= received.count("\x1b[?25l"), "and shows it again"
    last = [line for line in text.replace("\r", "\n").splitlines() if line.strip()][-2:]
    assert re.fullmatch(r"report@demo +4 of 4 stages \(1 run, 3 cached\) in 0:00:\d\d", last[0])
    assert last[1] == "report: data/reports/demo/index.html"
    again = in_terminal(finished, "run", "demo", PREFECT_API_URL=address)[1]
    assert re.findall(r"report@demo +4 stages, all up to date", again)


def test_a_stage_tells_its_run_what_share_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for named in ("", "1"):
        monkeypatch.setenv(RUN, named) if named else monkeypatch.delenv(RUN, raising=False)
        shown = Screen("bpr", 3)
        for _ in range(2):
            shown.next()
        shown.begin("base seed 0", 10)
        shown.step(5, "loss 0.1000", 9.0)
        printed.append(progress(capsys.readouterr().err))
    text = "bpr base seed 0 (2/3)  loss 0.1000  5/10  9 s left"
    assert printed == [(f"{text}\n", None), (text, 0.5)]


@pytest.mark.parametrize("line", ["wrote data/runs/a/b in 3 s", "epoch 3/4", "7", "[]", "{}"])
def test_other_lines_say_nothing_of_shares(line: str) -> None:
    assert progress(line) == (line, None)


def screen(seconds: dict[str, float], jobs: int) -> live.Live:
    return live.Live(TODO, seconds, jobs, live.Console(file=io.StringIO()))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be changed."""
    times = [0.0]
    monkeypatch.setattr("flows.live.time.monotonic", lambda: times[0])
    return times


def test_time_left_is_the_longest_chain_or_the_work_shared(now: list[float]) -> None:
    seconds = {"download@x": 10.0, "train@a": 100.0, "train@b": 40.0}
    assert screen(seconds, 1).remaining() == 150.0
    with screen(seconds, 2) as shown:
        assert shown.remaining() == 110.0
        shown.show("starts", "download@x", "")
        now[0] = 6.0
        assert shown.remaining() == 104.0
        shown.show("run", "download@x", "")
        shown.show("starts", "train@a", "")
        now[0] = 16.0
        shown.progress("train@a", 0.5)
        assert shown.remaining() == 40.0, "a bar knows better than the past"
        shown.progress("train@a", 0.1)
        assert shown.remaining() == 90.0, "but of training that ends early, which took 100 s before"
        now[0] = 206.0
        assert shown.remaining() == 1800.0, "and where it did not"
        shown.show("run", "train@a", "")
        shown.show("run", "train@b", "")
        assert shown.remaining() == 0.0


def test_a_stage_that_is_tried_again_has_everything_before_it(now: list[float]) -> None:
    with screen({"download@x": 10.0, "train@a": 5.0, "train@b": 5.0}, 2) as shown:
        shown.show("starts", "download@x", "first run")
        shown.progress("download@x", 0.5)
        shown.show("failed", "download@x", "no answer")
        assert (shown.remaining(), shown._counts()) == (5.0, "1 of 3 stages (1 failed)")
        now[0] = 30.0
        shown.show("starts", "download@x", "first run")
        assert (shown.remaining(), shown._counts()) == (15.0, "0 of 3 stages")
        shown.show("run", "download@x", "done in 1.0 s")
        assert (shown.remaining(), shown._counts()) == (5.0, "1 of 3 stages (1 run)")


@pytest.mark.parametrize(
    ("stage", "record"),
    [
        ("attack-embeddings@a", ("attack-embeddings", "a")),
        ("attack-embeddings@a", ("attack", "a")),  # as results have it
        ("attack-ratings@a", ("attack-ratings", "a")),
        ("attack-edges@s", ("attack-edges", "s")),
        ("train@a", ("train-networks", "a")),
        ("check-raw@a", ("check", "raw/a")),
    ],
)
def test_a_stage_takes_as_long_as_the_record_of_its_module_says(
    tmp_path: Path, stage: str, record: tuple[str, str]
) -> None:
    """Records have a module and its argument, where DVC has other names."""
    place = tmp_path / "data/provenance" / record[0] / f"{record[1]}.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"stage": record[0], "name": record[1], "seconds": 7.0}))
    other = stage.partition("@")[0] + "@other"
    seconds = live.expected_seconds([stage, other], recorded_seconds(tmp_path))
    assert seconds == {stage: 7.0, other: 7.0}


def test_an_audit_of_a_new_suite_is_guessed_by_those_of_others(tmp_path: Path) -> None:
    for suite, seconds in (("a", 100.0), ("b", 200.0), ("c", 900.0)):
        (tmp_path / "data/results" / suite).mkdir(parents=True)
        runs = [{"stage": "audit", "name": suite, "seconds": seconds}]
        (tmp_path / "data/results" / suite / "provenance.json").write_text(json.dumps({"runs": runs}))
    expected = live.expected_seconds(["audit@new", "audit@c"], recorded_seconds(tmp_path))
    assert expected == {"audit@new": 200.0, "audit@c": 900.0}


def test_where_output_is_kept_or_prefect_runs_it_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(live.view(TODO, {}, 2)) is live.Lines
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert type(live.view(TODO, {}, 2)) is live.Live
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "a")
    assert type(live.view(TODO, {}, 2)) is live.Lines


def test_reasons_name_the_parameters_that_changed_and_no_long_lists(finished: Project) -> None:
    path = finished.root / "suites/demo/params.yaml"
    path.write_text(path.read_text().replace("Demo on synthetic data", "Another title"))
    with open_project() as project:
        stage = project.stages["report@demo"]
        assert plan._reasons(stage) == ("parameters changed: title",)
    path.write_text("title: {config: {epochs: 4, lr: 0.1, seeds: [2]}, model: bpr}\n")
    with open_project() as project:
        stage = project.stages["report@demo"]
        *files, dep = stage.deps
        dep.hash_info.value = {"title": {"config": {"epochs": 3, "lr": 0.1, "seeds": [1]}, "model": "bpr"}}
        assert plan._reasons(stage) == ("parameters changed: epochs, seeds",)
        files[0].status = lambda: {f"data/{name}": "modified" for name in "abcde"}
        assert plan._reasons(stage)[1:] == ("data/a changed, data/b changed and 3 more",)
        files[0].status = lambda: {f"data/{name}": "deleted" for name in "abcde"}
        dep.def_path = "suites/x/code.json"
        assert plan._reasons(stage) == ("code changed",)
        stage.deps = files
        assert plan._reasons(stage) == ("inputs missing",)
    follows = tuple(f"train@{name}" for name in "abcde")
    assert Step("report@x", "", follows, (), follows, ()).why == "after train@a, train@b and 3 more"
