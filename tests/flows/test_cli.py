"""The `dprec` command as a user meets it, without a server."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows import settings
from flows.cli import app
from flows.tables import show_audits
from tests.command import dprec
from tests.flows.conftest import ROOT, Project, wait_for

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import flows.cli", ("torch", "prefect", "dvc", "polars")),
        ("from tasks.config import params, references; references.check(params.load())", ("torch", "sklearn")),
    ],
)
def test_nothing_is_loaded_that_is_not_needed(project: Project, code: str, names: tuple[str, ...]) -> None:
    """For help, no library of a command; to check a pipeline of one's own that names no models, none of theirs."""
    loaded = f"import sys; {code}; print([name for name in {names} if name in sys.modules])"
    assert project.call(sys.executable, "-c", loaded).stdout == "[]\n"


def test_dvc_unpickles_nothing_from_a_folder_of_everybodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it keeps what it remembers of files in /var/tmp."""
    site = tmp_path / ".dvc/tmp/site"
    site.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(os, "environ", {})
    settings.apply(tmp_path)
    assert os.environ["DVC_SITE_CACHE_DIR"] == str(site)
    assert stat.S_IMODE(site.stat().st_mode) == 0o700


def test_a_run_ends_with_the_report_and_a_second_one_has_nothing_to_do(project: Project, prefect_home: str) -> None:
    first = project.run("demo", PREFECT_HOME=prefect_home)
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "report: data/reports/demo/index.html")
    assert first.stderr == ""
    assert len(project.ran()) == 4
    data = project.root / "data"
    assert [path for path in (data, *data.rglob("*")) if path.lstat().st_mode & 0o077] == [], "only its owner's"
    for closed in (".dvc/cache", ".dvc/tmp/site"):
        assert stat.S_IMODE((project.root / closed).stat().st_mode) == 0o700
    second = project.dprec("run", "demo")
    assert [line.split() for line in second.stdout.splitlines()[:-1]] == [
        [name, "cached"] for name in ("download@demo", "train@a", "train@b", "report@demo")
    ]
    assert second.stdout.splitlines()[-1] == "report: data/reports/demo/index.html"
    assert project.ran() == []
    assert project.dprec("report", "demo").stdout == "data/reports/demo/index.html\n"


@pytest.mark.parametrize("how", ["ctrl-c", "kill", "hangup"])
def test_an_interrupted_run_leaves_nothing_behind_and_the_next_completes(
    finished: Project, how: str, address: str, prefect_home: str
) -> None:
    finished.write("code/a.py", "# changed\n")
    finished.write("slow.train@a", "300")
    if how == "ctrl-c":  # a terminal sends it to the whole group; the run's own server must end too
        running = finished.start("run", "demo", PREFECT_HOME=prefect_home)
        wait_for(finished.root / "started.train@a")
        os.killpg(running.pid, signal.SIGINT)
    else:
        running = finished.start("run", "demo", PREFECT_API_URL=address)
        wait_for(finished.root / "started.train@a")
        running.send_signal(signal.SIGTERM if how == "kill" else signal.SIGHUP)  # a closed terminal
    output, _ = running.communicate(timeout=300)
    assert running.returncode == 130
    assert output.splitlines()[-1] == "interrupted; `dprec run demo` goes on where this run stopped"
    assert "failed" not in output
    assert not finished.left(60.0)
    (finished.root / "slow.train@a").unlink()
    finished.ran()
    assert finished.dvc("repro", "-q") == 0
    assert finished.ran() == ["train@a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nope"], "suites: there is no 'nope'; known: demo"),
        (["check", "nope"], "suites: there is no 'nope'; known: demo"),
        (["run", "demo", "--store", "s"], "--store is for --cluster; `dprec run demo` alone works in this folder"),
        (["report", "demo"], "data/results/demo: no results; collect them with `dprec run demo`. There are: none"),
    ],
)
def test_mistakes_are_one_line(project: Project, arguments: list[str], message: str) -> None:
    result = project.dprec(*arguments)
    assert (result.returncode, result.stderr) == (1, f"dprec: {message}\n")
    assert project.ran() == []


def test_what_the_stage_of_parameters_refuses_is_said_once(project: Project) -> None:
    stage = "  code:\n    cmd: python stage.py code data/code\n    outs: [data/code]\n"
    project.write("dvc.yaml", (project.root / "dvc.yaml").read_text(encoding="utf-8") + stage)
    project.write("fail.code", "")
    result = project.dprec("check")
    assert (result.stdout, result.stderr) == ("", "dprec: u.data:7: rating 6 is not in 1..5\n")


def test_a_misspelt_stage_that_needs_resources_is_one_line_without_a_cluster(project: Project, address: str) -> None:
    own = (project.root / "suites/demo/params.yaml").read_text(encoding="utf-8")
    project.write("suites/demo/params.yaml", own + "resources: {trian: {memory_mb: 1}}\n")
    result = project.run("demo", PREFECT_API_URL=address)
    assert result.returncode == 1
    assert result.stderr == "dprec: suites/demo/params.yaml: resources.trian: demo has no such stage\n"
    assert project.ran() == []


@pytest.mark.parametrize(
    ("command", "code", "end"),
    [
        (["report", "demo"], 0, "data/reports/demo/index.html"),
        (["check"], 0, ""),
        (["check", "demo"], 0, ""),
        (["data", "list"], 0, ""),
        (["run", "demo"], 1, "may not be written to, as `dprec run` does; run it in a clone of yours"),
    ],
)
def test_a_project_that_may_not_be_written_to_can_be_read(
    finished: Project, command: list[str], code: int, end: str
) -> None:
    without = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] if os.getuid() == 0 else []
    if without and shutil.which(without[0]) is None:
        pytest.skip("root may write anywhere")
    modes = {path: path.stat().st_mode for path in (finished.root, *finished.root.rglob("*")) if not path.is_symlink()}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        done = finished.call("env", "-u", "DVC_SITE_CACHE_DIR", *without, sys.executable, "-m", "flows", *command)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.returncode == code, done.stderr
    assert (done.stderr or done.stdout).rstrip().endswith(end)


def test_debug_shows_the_traceback(project: Project) -> None:
    result = project.call(sys.executable, "-m", "flows", "--debug", "run", "nope")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_outside_a_project_is_one_line(tmp_path: Path) -> None:
    result = Project(tmp_path).dprec("check")
    assert result.returncode == 1
    assert "has a dvc.yaml" in result.stderr


def test_check_names_the_first_wrong_key_and_otherwise_shows_the_plan(finished: Project) -> None:
    plan = finished.dprec("check")
    assert plan.returncode == 0
    assert "report@demo" in plan.stdout
    assert "0 of 4" in plan.stdout
    assert "up to date" in plan.stdout
    assert "report@demo: 0 of 4 stages to run" in finished.dprec("check", "demo").stdout
    finished.write("code/b.py", "# changed\n")
    shutil.copytree(finished.root / "code", finished.root / "below/here")
    for folder in ("below/here", "suites/demo"):  # that of a suite has a dvc.yaml of its own
        below = subprocess.run(
            [sys.executable, "-m", "flows", "check", "demo"],
            cwd=finished.root / folder,
            env=finished.environment,
            capture_output=True,
            text=True,
        )
        assert "code/b.py changed" in below.stdout
    params = (finished.root / "params.yaml").read_text()
    finished.write("params.yaml", params.replace("test_share: 0.2", "test_share: 2"))
    wrong = finished.dprec("check")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("dprec: params.yaml: processed.demo.options.test_share: ")
    assert wrong.stderr.count("\n") == 1


def test_paths_count_from_where_a_command_is_given(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from the project's root, to which it goes."""
    called: dict[str, Any] = {}
    monkeypatch.setattr("tasks.stages.site.write", lambda out, *_: called.update(out=out))
    monkeypatch.setattr("flows.server.server", lambda: None)
    monkeypatch.setattr("flows.pipeline.regenerate", lambda *_, **options: called.update(options))
    here = finished.root / "suites/demo"
    for arguments in (
        ["site", "--out", "../pages"],
        ["run", "demo", "--force", "--cluster", "tls://a:1", "--store", "s"],
    ):
        monkeypatch.chdir(here)
        result = CliRunner().invoke(app, arguments, env=finished.environment)
        assert result.exit_code == 0, result.output
    assert (called["out"], called["store"]) == (here / "../pages", str(here / "s"))


def test_audits_run_by_themselves_and_end_with_a_table() -> None:
    """Two cheap ones, a sound one and a claim that is refuted; an unknown one is named."""
    command = [sys.executable, "-m", "flows", "mechanisms", "--jobs", "2", "features/numbers", "dpmf-ratings"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert [row[0] for row in rows] == ["dpmf-ratings", "features/numbers"]
    assert [row[-1] for row in rows] == ["published claim refuted", "consistent"]
    assert [row[1:3] for row in rows] == [["0.1", "-"], ["2.5", "2.5"]]
    assert "2/2" in done.stderr
    unknown = dprec(ROOT, "mechanisms", "nothing")
    assert unknown.stderr.startswith("dprec: audits: there is no 'nothing'; known: ae, dipsgnn, ")


def test_a_fault_is_told_by_the_table() -> None:
    record = {"audit": "made up", "epsilon_claimed": 1.0, "epsilon_accounted": 1.0, "delta": 0.0, "controls": {}}
    record |= {"audited_epsilon": 2.0, "provable": 5.0, "verdict": "refuted"}
    assert show_audits([record | {"fault": False}], 1)
    assert not show_audits([record | {"fault": True}], 1)
