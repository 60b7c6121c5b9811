"""Stages `collect` and `report`: what they write, and when they refuse."""

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.core.errors import DataError, PrivacyError
from tasks.pipeline.common import RESULTS, RUNS, digest
from tasks.results import composition, load, tables
from tasks.stages import collect, report
from tests.stages import example

INJECTED = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='alert(3)"


def written(place: Path) -> dict[str, bytes]:
    """Path from `place` -> content of all pages and results."""
    files = [file for folder in ("reports", "results") for file in (place / "data" / folder).rglob("*")]
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in files if file.is_file()}


def run(place: Path, suite: str) -> None:
    """Both stages."""
    collected(place, suite)
    with chdir(place):
        report.main(suite)


def collected(place: Path, suite: str) -> None:
    with chdir(place):
        collect.main(suite)


@pytest.fixture(scope="module")
def gerai(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reported suite that is compared with its paper."""
    place = example.build(tmp_path_factory.mktemp("gerai"), sweep=True)
    run(place, "gerai")
    return place


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reported suite on synthetic data."""
    place = example.build(tmp_path_factory.mktemp("demo"), suite="demo", synthetic=True)
    run(place, "demo")
    return place


def test_metrics_are_those_of_the_runs_sorted(gerai: Path) -> None:
    actual = pl.read_parquet(gerai / "data/results/gerai/metrics.parquet").drop("data")
    parts = [pl.read_parquet(file) for file in (gerai / "data/runs/gerai").rglob("metrics.parquet")]
    assert actual.equals(pl.concat(parts).select(actual.columns).sort(collect.METRIC_ORDER))
    written_means = (gerai / "data/results/gerai/metrics.csv").read_text()
    assert written_means == tables.means(actual).with_columns(data=pl.lit("real")).write_csv(float_precision=6)


def test_ledger_lines_are_those_of_the_runs_and_know_their_audit(gerai: Path) -> None:
    """Seeds that spent the same share a line; an audit is of the lines of the settings that it covers."""
    results = load.Results(gerai / "data/results/gerai", gerai / "data/reference/paper_tables.csv")
    known = {
        (line.experiment.removeprefix("gerai-"), line.setting, line.entry.protects): line for line in results.lines
    }
    assert len(known) == len(results.lines)
    settings = ["base", "epsilon=0.1", "epsilon=0.2", "epsilon=0.8", "dimension=20"]
    assert [setting for system, setting, what in known if (system, what) == ("gerai", "feature")] == settings
    for (system, _, what), line in known.items():
        (spent,) = [entry for entry in example.SPENT.get(system, [example.PLAIN]) if entry.protects == what]
        assert (line.entry, line.seeds, line.audit is None) == (spent, example.SEEDS, spent == example.PLAIN)


def test_a_suite_of_public_systems_has_nothing_to_compose(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... and a file that says so, which is an output of the stage."""
    copy = shutil.copytree(demo, tmp_path / "copy")
    (composed := copy / "data/results/demo/composed.json").unlink()
    monkeypatch.setattr(composition, "compose", lambda _: [])
    monkeypatch.chdir(copy)
    report.main("demo")
    assert json.loads(composed.read_bytes()) == []


def test_nothing_that_a_run_says_becomes_markup(tmp_path: Path) -> None:
    """It is shown as text."""
    place = example.build(tmp_path, word=INJECTED, attributes=("gender", '"><script>alert(4)<svg onload=x>'))
    run(place, "gerai")
    pages = [content.decode() for path, content in written(place).items() if path.endswith(".html")]
    assert pages
    assert not [bad for page in pages for bad in re.findall(r"<script>alert|<img|<svg onload|<title></title>", page)]
    assert sum(page.count("alert(1)") for page in pages) > 10


def amended(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("quality/metrics/gerai.json", {"success": False}, "these data failed their check"),
        ("quality/metrics/gerai.json", {}, "not found"),
        ("runs/gerai/gerai-bpr/attack/metrics.parquet", {}, "no such table"),
        ("runs/gerai/gerai-bpr/attack/gains.parquet", {}, "no such table"),
        ("runs/gerai/gerai-bpr/attack/inputs.json", {}, "not found"),
        ("runs/gerai/audit.json", {}, "not found"),
        ("runs/gerai/gerai-bpr/train/inputs.json", {"synthetic": True}, "synthetic is True, but False"),
    ],
)
def test_bad_and_missing_input_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, file: str, changes: dict[str, bool], message: str
) -> None:
    place = example.build(tmp_path, models=("popularity", "bpr", "gerai"))
    path = place / "data" / file
    amended(path, **changes) if changes else path.unlink()
    with pytest.raises(DataError, match=re.escape(f"{file}: {message}")):
        run(place, "gerai")
    assert not written(place)


def test_a_page_needs_nothing_but_what_is_in_git_and_a_changed_sentence_changes_no_result(
    gerai: Path, tmp_path: Path
) -> None:
    for part in ("data/results", "data/reference", "suites"):
        shutil.copytree(gerai / part, tmp_path / part)
    shutil.copy(gerai / "params.yaml", tmp_path)
    with chdir(tmp_path):
        report.main("gerai")
        assert written(tmp_path) == written(gerai)
        own = Path("suites/gerai/params.yaml")
        own.write_text(own.read_text().replace("title: ", "title: Corrected "))
        report.main("gerai")
    changed = {path for path, content in written(tmp_path).items() if content != written(gerai)[path]}
    assert changed
    assert all(path.startswith("data/reports/") for path in changed)
    assert "Corrected" in (tmp_path / "data/reports/gerai/index.html").read_text()


def test_provenance_stays_that_of_the_runs_that_gave_the_numbers(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("dp-popularity",))
    collected(place, "gerai")
    path = place / "data/results/gerai/provenance.json"
    before = path.read_bytes()
    assert b"numpy" in before
    amended(place / "data/provenance/train/gerai-dp-popularity.json", seconds=99.0)
    collected(place, "gerai")
    assert path.read_bytes() == before, "nothing changed but a clock"
    audits = place / "data/runs/gerai/audit.json"
    audits.write_text(json.dumps([record | {"samples": 7} for record in json.loads(audits.read_text())]))
    collected(place, "gerai")
    assert b"99.0" in path.read_bytes()
    shutil.rmtree(place / "data/provenance")
    audits.write_text(json.dumps([record | {"samples": 8} for record in json.loads(audits.read_text())]))
    collected(place, "gerai")
    assert b"99.0" in path.read_bytes(), "of outputs that were pulled, what is known of them stays"
    path.unlink()
    run(place, "gerai")
    assert not path.exists()


def test_a_private_line_that_nobody_audited_is_not_collected(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("dp-popularity",))
    (place / "data/runs/gerai/audit.json").write_text("[]")
    with pytest.raises(PrivacyError, match=r"dp-popularity, base: counts-discrete-laplace: has neither"):
        run(place, "gerai")


def test_an_audit_of_training_that_the_suite_no_longer_has_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC leaves the output of a stage that is gone where it was."""
    example.build(tmp_path, suite="demo", synthetic=True)
    monkeypatch.chdir(tmp_path)
    collect.main("demo")
    before = digest(RESULTS)
    (RUNS / "demo" / "one_run.json").write_text('[{"experiment": "demo-bpr"}]', encoding="utf-8")
    collect.main("demo")
    assert digest(RESULTS) == before
