"""What changed since a revision, on a small repository."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.errors import DataError
from tasks.reporting.core.layout import Table
from tasks.stages import site

CLAIMS = "artefact,claim,verdict,evidence\ntable2,A is best,{},x\ntable2,B is fast,supported,x\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes the headline of a suite in an empty repository."""
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    git("config", "user.name", "tests")
    git("config", "user.email", "tests@localhost")
    git("commit", "-q", "--allow-empty", "-m", "nothing yet")

    def write(name: str, utility: float | None, verdict: str = "supported") -> None:
        folder = tmp_path / "data/results" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "summary.json").write_text(
            json.dumps({"utility": {"best_private": utility}, "ledger": {"finite": 2}})
        )
        (folder / "claims.csv").write_text(CLAIMS.format(verdict))

    return write


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def commit() -> None:
    git("add", "-A")
    git("commit", "-q", "-m", "results")


def rows(table: Table) -> list[tuple[str, ...]]:
    return [(row.name, *(cell.text for cell in row.cells)) for row in table.rows]


def test_values_verdicts_and_suites_that_differ_are_told(suite: Callable[..., None]) -> None:
    suite("a", 0.25)
    suite("b", 0.5)
    suite("old", 1.0)
    commit()
    assert rows(site.changes_since("HEAD")) == [("all suites", "no headline value and no verdict differs", "", "")]
    suite("a", 0.3, "contradicted")
    suite("b", 0.5000001)
    suite("new", 0.1)
    git("rm", "-q", "-r", "data/results/old")
    table = site.changes_since("HEAD")
    assert table.caption == "What changed since HEAD"
    assert rows(table) == [
        ("a", "utility: best private", "0.250", "0.300"),
        ("a", "claim (table2): A is best", "supported", "contradicted"),
        ("new", "suite", "–", "new"),
        ("old", "suite", "there", "gone"),
    ]
    commit()
    suite("a", None, "contradicted")
    assert rows(site.changes_since("HEAD")) == [("a", "utility: best private", "0.300", "–")]


def test_before_the_first_results_every_suite_is_new_and_unknown_revisions_are_one_line(
    suite: Callable[..., None],
) -> None:
    suite("a", 0.25)
    commit()
    assert rows(site.changes_since("HEAD~1")) == [("a", "suite", "–", "new")]
    for unknown in ("nope", "--output=x", ""):
        with pytest.raises(DataError, match="git knows no such revision"):
            site.changes_since(unknown)
    assert not Path("x").exists()


def test_a_damaged_headline_is_named(suite: Callable[..., None]) -> None:
    suite("a", 0.25)
    commit()
    Path("data/results/a/summary.json").write_text("{")
    with pytest.raises(DataError, match="data/results/a"):
        site.changes_since("HEAD")
