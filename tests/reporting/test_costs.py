"""What suites took: computed from provenance, on the site and in docs/suites.md alike."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import yaml

from tasks.reporting import costs, files, site
from tasks.reporting.core.results import Results, Run
from tasks.stages.report import report_of
from tests.reporting import committed

ROOT = Path(__file__).resolve().parents[2]
FIRST = Run("train", "a-bpr", "1f62b14", "2026-11-24T09:00:00+00:00", 600.0, 1_200.0, 500, "CPU", 2, {})
SECOND = replace(
    FIRST, stage="attack", started="2026-11-24T09:05:00+00:00", seconds=1_500.0, peak_memory_mb=400, cpu_seconds=900.0
)


def test_hours_are_of_all_processes_and_by_the_clock() -> None:
    assert costs.cost("a", (FIRST, SECOND)) == costs.Cost("a", 2_100 / 3_600, 0.5, "train@a-bpr", 1 / 3, 500)


def test_runs_at_two_revisions_have_no_hours_by_the_clock() -> None:
    of_two = costs.cost("a", (FIRST, replace(SECOND, revision="f0fface")))
    assert of_two is not None
    assert of_two.hours is None


def test_without_a_record_of_its_stages_a_suite_has_no_cost() -> None:
    assert costs.cost("a", ()) is None


@pytest.mark.parametrize(
    ("cores", "said"), [((), ""), ((1,), " on 1 core"), ((2, 2), " on 2 cores"), ((16, 2), " on 2 to 16 cores")]
)
def test_the_table_says_of_the_machines_what_is_recorded(cores: tuple[int, ...], said: str) -> None:
    table = costs.table([("a", costs.cost("a", (FIRST,)))], cores)
    assert table.caption.startswith(f"What suites took{said}: CPU time")


def test_the_site_has_the_cores_of_its_suites(demo: Results) -> None:
    runs = [replace(run, cores=cores) for run, cores in zip(demo.runs, (4, 8), strict=False)]
    suite = site.suite(replace(demo, runs=tuple(runs)), report_of(demo.paper), [])
    assert "What suites took on 4 to 8 cores: " in site.pages([suite], [], {})["index.html"]


def test_the_documentation_has_what_provenance_says(tmp_path: Path) -> None:
    """Lines that differ are printed as they should be."""
    text = (ROOT / "docs/suites.md").read_text(encoding="utf-8").partition("## What they take")[2]
    expected, total = [], 0.0
    for folder in sorted(path.parent for path in (ROOT / "data/results").glob("*/results.json")):
        suite = folder.name
        of = costs.cost(suite, committed.runs(suite, tmp_path))
        assert of is not None
        total += of.cpu_hours
        clock = "–" if of.hours is None else f"{of.hours:.2f}"
        longest = f"`{of.longest}`, {of.longest_hours:.2f}"
        expected.append(f"| `{suite}` | {of.cpu_hours:.2f} | {clock} | {longest} | {of.peak_memory_mb:,} |")
    expected.append(f"| together | {total:.2f} | | | |")
    assert [line for line in text.splitlines() if re.match(r"\| (`|together)", line)] == expected
    assert f"Together they take {total:.0f} CPU hours" in " ".join(text.split())


def test_every_suite_that_is_not_stale_is_of_the_revision_that_the_documentation_names(tmp_path: Path) -> None:
    text = (ROOT / "docs/suites.md").read_text(encoding="utf-8")
    named = set(re.findall(r"revision\s+`([0-9a-f]{40})`", text))
    excused = ROOT / ".ci/stale.yaml"
    stale = set(yaml.safe_load(excused.read_text(encoding="utf-8"))) if excused.exists() else set()
    suites = {path.parent.name for path in (ROOT / "data/results").glob("*/results.json")} - stale
    for suite in suites:
        assert {run.revision for run in committed.runs(suite, tmp_path)} <= named, suite


def test_every_run_is_of_a_committed_revision_in_the_history_of_this_one() -> None:
    """A shallow clone, which knows no history, cannot say."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
    if git(["git", "rev-parse", "--is-shallow-repository"]).stdout.strip() == "true":
        pytest.skip("a shallow clone")
    history = set(git(["git", "rev-list", "HEAD"]).stdout.split())
    records = sorted((ROOT / "data/results").glob("*/provenance.json"))
    assert records
    for record in records:
        assert {run.revision for run in files.read_runs(record)} <= history, record.parent.name
    for trials in (ROOT / "data/results").glob("*/tuning.csv"):
        assert {*pl.read_csv(trials)["revision"]} <= history, trials.parent.name
