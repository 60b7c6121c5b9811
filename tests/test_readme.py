"""Commands of README.md and the documentation exist, and those under a minute do as they say."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from dvc.cli import main as dvc

from flows.cli import app
from tasks.config import references
from tasks.config.params import load
from tasks.datasets import SOURCES
from tests import parameters
from tests.command import dprec
from tests.parameters import ROOT

RUNNING = (ROOT / "docs/running.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
RUN = {
    "dprec data list": 0,
    "dprec data verify tmall": 1,  # it is not there
    "dprec check gerai": 0,
    "dprec report gerai": 0,
    "dprec coverage": 0,
    "dprec composed": 0,
    "dprec card demo demo-dp-popularity": 0,
}
"""What is run here -> its exit status in a copy of the project where no data set was placed and no stage was run."""


def commands(text: str) -> Iterator[str]:
    """Of all blocks without a language, one for each line or lines that a backslash joins; without remarks."""
    for block in re.findall(r"^```\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if command := re.sub(r"\s+# .*", "", line).strip():
                yield command


def copy(folder: Path, *of: str) -> Path:
    """The project's files as they lie here, or some of them, below a folder and under git."""
    files = f"git -C {ROOT} ls-files -z -- {shlex.join(of)}"
    for command in (
        f"{files} | tar -C {ROOT} --null --ignore-failed-read -cf - -T - | tar -xf -",
        "git init -q && git add -Af && git config user.name tests && git config user.email tests@localhost",
        "git commit -qm first",
    ):
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it lies here."""
    return copy(tmp_path_factory.mktemp("clone"), ".")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "status"), RUN.items())
def test_commands_under_a_minute_do_as_they_say(command: str, status: int, clone: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dprec"
    environment = {key: value for key, value in os.environ.items() if key != "DPREC_MIRROR"}
    environment |= {"DVC_SITE_CACHE_DIR": str(clone / ".dvc/tmp/site")}
    done = dprec(clone, *arguments, environment=environment)
    assert done.returncode == status, done.stderr
    assert done.stdout or status


def test_dvc_says_what_a_change_did_to_headline_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a project with one suite: DVC reads all files of stages in each revision."""
    suite = "suites/demo", "data/results/demo"
    monkeypatch.chdir(copy(tmp_path, ".dvc", ".dvcignore", "dvc.yaml", "dvc.lock", "params.yaml", *suite))
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / ".dvc/tmp/site"))
    change = "sed -i '0,/: 0/s//: 1/' data/results/demo/summary.json && git commit -qam second"
    subprocess.run(change, shell=True, check=True)
    assert dvc(["metrics", "diff", "HEAD~1"]) == 0
    assert "data/results/demo/summary.json" in capsys.readouterr().out


def test_every_command_of_the_documentation_exists() -> None:
    """Commands of `dprec` with their options, targets of make, and modules of Python."""
    texts = [path.read_text(encoding="utf-8") for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    shown = {entry for text in texts for entry in [*commands(text), *re.findall(r"`([^`\n]+)`", text)]}
    called = [words for entry in sorted(shown) if (words := plain(entry)) and words[0] in ("dprec", "make", "python")]
    assert len(called) > 80
    assert [words for words in called if not exists(*words)] == []
    for wrong in (
        ["dprec", "run", "demo", "--no-such-option"],
        ["dprec", "no-such-command"],
        ["dprec", "run", "no-such-suite"],
        ["dprec", "data", "verify", "no-such-data"],
        ["dprec", "tune", "no-such-experiment"],
        ["make", "no-such-target"],
    ):
        assert not exists(*wrong)


def plain(entry: str) -> list[str]:
    """The words of a command, without brackets and without variables before it."""
    return re.sub(r"^([A-Z_]+=\S+ )+", "", re.sub(r"[\[\]]", "", entry)).split()


@cache
def commands_of_dprec() -> Any:
    return typer.main.get_command(app)


def exists(program: str, *words: str) -> bool:
    """Whether a program has such a command with such options."""
    if program == "make":
        targets = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        return {word for word in words if re.fullmatch(r"[a-z0-9-]+", word)} <= set(targets)
    if program == "python":
        return words[0] != "-m" or find_spec(words[1]) is not None
    command = commands_of_dprec()
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    if words and not words[0].startswith("-") and hasattr(command, "default"):
        command = command.commands[command.default]
    options = {"--help", *(name for parameter in command.params for name in parameter.opts)}
    complete = not words or not hasattr(command, "commands") or words[0].startswith("-")
    known = names().get(command.name)
    named = known is None or not words or words[0] in known or words[0].startswith("-") or not words[0].islower()
    return complete and named and {word for word in words if word.startswith("-")} <= options


@cache
def names() -> dict[str, set[str]]:
    """Command -> what its first word may be; one in capitals stands for any. "shop" is the guide's own.

    Suites of official data are those of their replicas, renamed as the guides show.
    """
    params = load()
    suites = {*params.suites, *(path.parent.name for path in ROOT.glob("docs/*/params.yaml")), "shop"}
    official = {suite.removesuffix("-twin") for suite in suites}
    data = {*params.datasets, *(name.replace("_", "-") for name in SOURCES), "shop"}
    tuned = suites | {experiment for suite in params.suites.values() for experiment in suite.experiments}
    known = dict.fromkeys(("check", "report", "compare"), suites)
    return known | {"run": suites | official | {"dpcrosue-foursquare-twitter-text"}, "verify": data, "tune": tuned}


def test_all_of_movielens_1m_takes_no_more_than_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data set is replaced as docs/dipsgnn.md shows, and its check accepts that."""
    parameters.copy(tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/dipsgnn.md").read_text(encoding="utf-8")
    section = page.partition("\n## MovieLens 1M\n")[2].partition("\n## ")[0]
    changes = [command for command in commands(section) if command.startswith("sed ")]
    for command in changes:
        subprocess.run(command, shell=True, check=True)
    params = load()
    references.check(params)
    suite = params.suites["dipsgnn-ml-1m"]
    assert {params.processed[name].dataset for name in (suite.data, *suite.splits)} == {"ml-1m"}
    assert (suite.counts, len(changes)) == (None, 2)


def test_the_experiment_changes_a_parameter_that_there_is() -> None:
    (asked,) = re.findall(r"exp run -S '([^:]+):([^=]+)=", RUNNING)
    value = yaml.safe_load((ROOT / asked[0]).read_text(encoding="utf-8"))
    for key in asked[1].split("."):
        value = value[key]
    assert isinstance(value, float), asked
