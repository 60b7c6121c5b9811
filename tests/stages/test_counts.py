"""`counts` of a suite: all data of which its own are a part, counted beside what the paper prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tasks.config.params import Params, load
from tasks.config.references import own_problems
from tasks.errors import DataError
from tasks.reporting import coverage, files
from tasks.reporting.core import comparison, origins
from tasks.reporting.core.results import Processed, Results
from tasks.stages import collect, report, table
from tasks.stages.common import PROCESSED, QUALITY, write_json
from tasks.stages.papers import describe
from tests.reporting import example_next, shown

ROOT = Path(__file__).resolve().parents[2]
SUITE, PART, ALL = "dipsgnn-ml-1m", "dipsgnn-ml-1m-part", "dipsgnn-ml-1m-no-timestamps"
TABLE1 = ("users", "items", "interactions", "avg_length", "user_features")


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(ROOT)
    return load()


@pytest.fixture(scope="module")
def half() -> Results:
    """Half of ML-1M, with the counts of all of it."""
    counts = tuple(
        step | {name: step[name] // 2 for name in ("users", "items", "interactions")} for step in example_next.STEPS
    )
    everything = Processed("ml-1m", 3, example_next.STEPS)
    return example_next.results(processed=Processed("ml-1m", 3, counts), counted=everything, stands_for="ml-1m")


def test_collect_waits_for_the_check_of_what_is_counted(params: Params) -> None:
    stage = table.find_stage("collect", SUITE, params)
    assert {f"data/processed/{ALL}", f"data/quality/processed/{ALL}.json"} <= {*stage.deps}
    assert "counts" in stage.params[f"suites/{SUITE}/params.yaml"]
    assert "counts" not in table.find_stage("collect", "gerai", params).params["suites/gerai/params.yaml"]


@pytest.mark.parametrize(
    ("suite", "counts", "problem"),
    [
        (SUITE, "elsewhere", "'elsewhere'"),
        (SUITE, "dpvae-ml-1m", "must be all of what"),  # by another paper's protocol
        (SUITE, "dipsgnn-ml-1m-twin", "must be all of what"),  # generated
        (SUITE, PART, "must be all of what"),
        ("dipsgnn", ALL, "must be all of what"),  # its own data are whole
        ("dpcrosue-weibo-twin", "dpcrosue-ione", "there are none in a suite whose task is embedding"),
    ],
)
def test_only_all_of_what_the_suite_has_a_part_of_is_counted(
    params: Params, suite: str, counts: str, problem: str
) -> None:
    own = params.suites[suite]
    assert not [text for text in own_problems(own, params, {}) if text.startswith("counts")]
    (first, *_) = own_problems(own.model_copy(update={"counts": counts}), params, {})
    assert first.startswith("counts: ")
    assert problem in first


def test_what_is_counted_must_have_passed_its_check(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, own = PROCESSED / ALL, params.suites[SUITE]
    folder.mkdir(parents=True)
    (QUALITY / "processed").mkdir(parents=True)
    write_json(folder / "schema.json", {"features": [{}, {}, {}]})
    write_json(folder / "counts.json", list(example_next.STEPS))
    verdict = {"contract": "processed", "name": ALL, "evaluated": 9, "failed": 0, "checked": {}}
    write_json(QUALITY / f"processed/{ALL}.json", verdict | {"success": True})
    assert collect._read_counted(own, params) == Processed("ml-1m", 3, example_next.STEPS)
    write_json(QUALITY / f"processed/{ALL}.json", verdict | {"success": False})
    with pytest.raises(DataError, match="failed their check"):
        collect._read_counted(own, params)
    assert collect._read_counted(own.model_copy(update={"counts": None}), params) is None


def test_counts_of_all_data_are_real_and_measurements_on_a_part_are_not(half: Results) -> None:
    of_suite = report.report_of(half.paper)
    (rows, without) = (
        report.tables(results, of_suite, [])["comparison"] for results in (half, replace(half, counted=None))
    )
    assert rows.filter(pl.col("dataset") == half.dataset).equals(without)
    assert set(without[origins.COLUMN]) == {"part"}
    counted = rows.filter(pl.col(origins.COLUMN) == "real")
    assert dict(counted.select("metric", "published").iter_rows()) == {
        "users": "5945",
        "items": "2810",
        "interactions": "365535",
        "avg_length": "96.07",
        "user_features": "3",
    }
    ours = dict(counted.select("metric", pl.col("ours_mean").cast(pl.Float64)).iter_rows())
    assert ours == pytest.approx(dict(zip(TABLE1, (5949, 2810, 365535, 96.0718, 3), strict=True)), abs=1e-4)
    assert set(counted["protocol"]) == {comparison.COUNTED}


def test_coverage_counts_them_under_the_data_that_they_are_of(half: Results, tmp_path: Path) -> None:
    files.write(half, tmp_path, files.gains(half))
    reference = ROOT / "data/reference/paper_tables.csv"
    read = files.read(tmp_path, reference, describe)
    printed = files.read_published(reference)
    of_suite, real = report.report_of(half.paper), {}
    for results in (read, replace(read, counted=None), replace(read, counted=replace(read.processed, features=1))):
        evidence = coverage.evidence(results, of_suite, 20)
        assert evidence is not None
        lines = coverage.lines([evidence], printed, {}, {})
        of = {line.artefact: line for line in lines if (line.paper, line.dataset) == ("dipsgnn", "ml-1m")}
        assert of["table2"].numbers == {"part": 44}
        real[len(real)] = of["table1"].numbers["real"], of["table1"].numbers["part"], of["table1"].near
    assert real == {0: (5, 0, 5), 1: (0, 5, 2), 2: (5, 0, 1)}


def test_the_page_shows_the_part_and_all_of_it(half: Results) -> None:
    page = shown.page(half, [])
    part, complete = (f"Table 1, statistics of ml-1m{share} after preprocessing" for share in (" (part)", ""))
    assert page.index(part) < page.index(complete)
    assert part in (alone := shown.page(replace(half, counted=None), []))
    assert complete not in alone
