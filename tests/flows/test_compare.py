"""Regenerated numbers may leave the committed ones by as much as is stated, and no more."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import polars as pl
import pytest

from tasks.config.params import load
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline.provenance import processor
from tasks.stages import agreement
from tests.command import git
from tests.flows.conftest import ROOT, Project

BANDS = {"sampled-*": 0.03, "full/*": 0.03, "attribute/*": 0.1, "iterations": 100}
HEADER = "experiment,setting,metric,n,mean,std,mean@10,std@10\n"


def table(*values: float, metric: str = "full/hit") -> str:
    """A metrics table with one number, one seed per value."""
    deviation = str(stdev(values)) if len(values) > 1 else ""
    return f"{HEADER}demo-bpr,base,{metric},{len(values)},,,{fmean(values)},{deviation}\n"


@pytest.mark.parametrize("metric", ["sampled-100/hit", "full/ndcg", "attribute/gender/knn/f1"])
def test_the_mean_over_seeds_may_move_within_the_band_of_its_kind(metric: str) -> None:
    band = agreement.tolerance(metric, BANDS)
    committed = agreement.means(table(0.499, 0.501, metric=metric), "committed")
    inside = agreement.means(table(0.499 + band, 0.501 + 0.98 * band, metric=metric), "regenerated")
    outside = agreement.means(table(0.5 + 1.01 * band, 0.5 + 1.01 * band, metric=metric), "regenerated")
    assert agreement.compare(committed, inside, BANDS) == (1, [])
    (difference,) = agreement.compare(committed, outside, BANDS)[1]
    assert difference.startswith(f"demo-bpr base {metric}@10: 0.5000 -> ")
    assert f"allowed {band}" in difference


def test_where_seeds_differ_more_three_standard_errors_are_allowed() -> None:
    """Variance 0.02 of two seeds: 0.01 of their mean, on both sides together a standard error of 0.1414."""
    committed = agreement.means(table(0.4, 0.6), "committed")
    assert agreement.compare(committed, agreement.means(table(0.4 + 0.42, 0.6 + 0.42), "regenerated"), BANDS)[1] == []
    outside = agreement.means(table(0.4 + 0.43, 0.6 + 0.43), "regenerated")
    (difference,) = agreement.compare(committed, outside, BANDS)[1]
    assert difference.endswith("(+0.4300, allowed 0.42)")


def test_a_number_on_one_side_only_is_a_difference() -> None:
    first = agreement.means(table(0.5), "one")
    both = pl.concat([first, agreement.means(table(0.5, metric="full/ndcg"), "other")])
    assert agreement.compare(first, both, BANDS)[1] == ["demo-bpr base full/ndcg@10: only regenerated"]
    assert agreement.compare(both, first, BANDS)[1] == ["demo-bpr base full/ndcg@10: only committed"]


def test_a_kind_of_metric_without_a_band_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="loss/test"):
        agreement.tolerance("loss/test", BANDS)


def test_every_metric_of_every_suite_has_a_band_of_its_size() -> None:
    """Committed numbers agree with themselves; no band is as wide as the number may be, a share of 1."""
    suites = load(ROOT / "params.yaml").suites
    files = {path.parent.name: path for path in (ROOT / "data/results").glob("*/metrics.csv")}
    assert files.keys() <= suites.keys()
    for name, path in files.items():
        bands = agreement.bands(suites[name])
        committed = agreement.means(path.read_text(encoding="utf-8"), str(path))
        assert agreement.compare(committed, committed, bands) == (len(committed), [])
        for metric, value in committed.select("metric", "value").iter_rows():
            assert agreement.tolerance(metric, bands) <= 0.1 or value > 1, f"{name}: {metric}"


BY_SEED = "experiment,setting,seed,metric,k,value\ndemo-bpr,base,0,full/hit,10,0.5\n"
"""As version 0.1 had it."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, ""),
        ("a,b\n1,2\n", ""),
        (table(0.5) + "demo,demo-bpr\n", ""),
        (BY_SEED, r".* has no means over seeds, as in 0\.1; see `dprec site --since REV`"),
    ],
)
def test_what_is_no_metrics_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"metrics\.csv{message}"):
        agreement.means(text, "metrics.csv")


def test_the_command_compares_with_a_revision(finished: Project) -> None:
    path = "data/results/demo/metrics.csv"
    finished.write(path, table(0.5))
    finished.write("data/provenance/check/metrics/demo.json", "{}")
    without = finished.dprec("compare", "demo")
    assert (without.returncode, without.stderr.count("\n")) == (1, 1)
    assert "HEAD has no numbers to compare with" in without.stderr
    git(finished.root, "add", "--force", path)
    git(finished.root, "commit", "-q", "-m", "numbers")
    assert finished.dprec("compare", "demo").stdout == "demo: 1 numbers agree with those of HEAD\n"
    finished.write(path, table(0.6))
    left = finished.dprec("compare", "demo")
    assert left.returncode == 1
    assert left.stdout == "demo-bpr base full/hit@10: 0.5000 -> 0.6000 (+0.1000, allowed 0.03)\n"
    assert left.stderr == "dprec: 1 of 1 numbers of demo left their band around those of HEAD\n"
    git(finished.root, "commit", "-q", "-a", "-m", "other numbers")
    assert finished.dprec("compare", "demo").returncode == 0
    assert finished.dprec("compare", "demo", "--against", "HEAD~1").returncode == 1
    # What looks like an option of git's is a revision that is not there.
    written = finished.root / "written:." / path
    written.parent.mkdir(parents=True)
    refused = finished.dprec("compare", "demo", "--against=--output=written")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert not written.exists()


def test_an_archive_without_git_is_compared_with_what_was_shipped(finished: Project) -> None:
    shutil.rmtree(finished.root / ".git")
    finished.write("data/results/demo/metrics.csv", table(0.5))
    finished.write("data/provenance/check/metrics/demo.json", "{}")
    assert finished.dprec("check", "demo").returncode == 0
    finished.write("data/results/demo/metrics.csv", table(0.51))
    assert finished.dprec("compare", "demo").stdout == "demo: 1 numbers agree with those of the archive\n"
    finished.write("data/results/demo/metrics.csv", table(0.6))
    assert finished.dprec("compare", "demo").returncode == 1


def test_means_have_their_cut_off_and_their_error() -> None:
    means = agreement.means(table(0.4, 0.6) + "demo-bpr,base,iterations,1,7.000000,,,\n", "means")
    assert means.rows() == [
        ("demo-bpr", "base", "iterations", "", 7.0, 0.0),
        ("demo-bpr", "base", "full/hit", "10", 0.5, pytest.approx(0.01)),
    ]


@pytest.mark.parametrize("state", ["nothing was run", "outputs were pulled", "a stage changed since"])
def test_where_results_are_the_committed_ones_nothing_is_compared(
    state: str, template: Path, finished: Project, tmp_path: Path
) -> None:
    where = finished if state != "nothing was run" else Project(shutil.copytree(template, tmp_path / "fresh"))
    where.write("data/results/demo/metrics.csv", table(0.5))
    if state != "outputs were pulled":
        where.write("data/provenance/check/metrics/demo.json", "{}")
    if state == "a stage changed since":
        where.write("code/a.py", "1")
    actual = where.dprec("compare", "demo")
    assert (actual.returncode, actual.stdout, actual.stderr.count("\n")) == (2, "", 1)
    expected = {
        "nothing was run": "were not computed here, or not to the end (download@demo: first run)",
        "outputs were pulled": "pulled, not computed here, so there is nothing to compare; `dprec run demo --force`",
        "a stage changed since": "were not computed here, or not to the end (train@a: code/a.py changed)",
    }
    assert expected[state] in actual.stderr
    assert "`dprec run demo" in actual.stderr


@pytest.mark.parametrize(
    ("file", "change", "stands"),
    [
        ("metrics.csv", lambda text: text, True),
        ("metrics.csv", lambda text: re.sub(r"(?<=,)0\.(\d{4})\d+", r"0.\1", text), True),
        ("metrics.csv", lambda text: text.replace("0.1", "0.9"), False),
        ("ledger.csv", lambda text: text.replace("1.0", "1.0001"), False),
        ("suite.json", lambda text: re.sub(r'"fingerprints": *{[^}]*}', '"fingerprints": {}', text), False),
        ("provenance.json", lambda _: None, False),
    ],
)
def test_results_of_another_processor_stay_if_what_was_computed_agrees(
    tmp_path: Path, file: str, change: Callable[[str], str | None], stands: bool
) -> None:
    committed, new = (shutil.copytree(ROOT / "data/results/demo", tmp_path / name) for name in ("committed", "new"))
    recorded = (committed / "provenance.json").read_text()
    (committed / "provenance.json").write_text(recorded.replace('"processor":"', '"processor":"another '))
    if (text := change((new / file).read_text())) is not None:
        (new / file).write_text(text)
    else:
        here = re.sub(r'"processor":"[^"]*"', f'"processor":"{processor()}"', recorded)
        (committed / file).write_text(here)
    assert agreement.stands(committed, new, load(ROOT / "params.yaml").suites["demo"]) is stands
