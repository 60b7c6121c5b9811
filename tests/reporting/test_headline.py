"""The answer in ten lines, `summary.json`, and what `dvc plots` draws: each number is one that the page has, too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from dvc.repo import Repo

from tasks.config.attacks import AttributeAttack
from tasks.config.params import load
from tasks.reporting.core import comparison, differences, figures, headline, ledger, plots
from tasks.reporting.core.results import Results
from tasks.reporting.sections import verdicts
from tasks.stages import report
from tests.reporting.committed import read

ROOT = Path(__file__).resolve().parents[2]
K = 10


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """The results, and what the root's dvc.yaml says of metrics and plots: DVC takes long to read its stages."""
    folder = tmp_path_factory.mktemp("views")
    views = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    (folder / "dvc.yaml").write_text(yaml.safe_dump({key: views[key] for key in ("metrics", "plots")}))
    shutil.copytree(ROOT / "data/results", folder / "data/results")
    shutil.copytree(ROOT / ".dvc/plots", folder / ".dvc/plots")
    with Repo.init(str(folder), no_scm=True, force=True) as opened:
        yield opened


def test_systems_stand_in_order_of_utility_and_no_more_than_ten_are_shown(every: Results) -> None:
    standings = headline.standings(every, K)
    levels = [standing.utility for standing in standings if standing.utility is not None]
    assert levels == sorted(levels, reverse=True)
    shown = headline.select_lines(standings)
    assert len(shown) <= headline.LINES < len(standings)
    names = {standing.system.name for standing in shown}
    assert {"popularity", "dp-popularity"} <= names
    assert all(standing in shown for standing in standings if standing.refuted)


def test_a_refuted_claim_is_named_with_its_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, systems = report.standings("gerai")
    refuted = {standing.system.name: standing.verdict for standing in systems if standing.refuted}
    assert refuted == dict.fromkeys(["dpmf", "dpne"], "claimed ε = 0.4 is refuted")


def test_the_summary_counts_what_the_tables_hold(every: Results) -> None:
    summary = headline.summary(every, report.report_of(every.paper).claims(every, K)[1], K)
    table = comparison.frame(every)
    assert summary["published"]["cells"] == len(table.filter(table["published"] != ""))
    lines = [line for line in ledger.lines(every) if line.entry.mechanism != ledger.NO_MECHANISM]
    assert summary["ledger"]["private"] == len(lines) >= summary["ledger"]["finite"] > 0


def test_near_are_those_of_the_printed_numbers(every: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in comparison.entries(every) if entry.printed is not None)
    rows: list[tuple[float, list[float]]] = [(0.5, [0.53, 0.55]), (0.4, [0.3]), (0.3, [0.35]), (0.2, [])]
    made = [replace(entry, printed=printed, ours=np.array(ours)) for printed, ours in rows]
    monkeypatch.setattr(comparison, "entries", lambda _: made)
    assert headline.reproduction_counts(every) == {"cells": 4, "run": 3, "within_10_percent": 1}


@pytest.mark.parametrize("suite", ["dpvae", "dpcrosue", "dipsgnn-ml-1m"])
def test_a_printed_number_counts_once_whatever_scores_of_it_there_are(suite: str) -> None:
    """Two scores of dpcrosue stand beside each printed precision: with guess and truth as they are, and exchanged."""
    results = read(suite)[0]
    known = comparison.frame(results).filter(pl.col("published") != "")
    key = ("artefact", "dataset", "method", "setting", "metric")
    counts = headline.reproduction_counts(results)
    assert counts["cells"] == len(known.unique(key))
    assert counts["run"] == len(known.filter(pl.col("ours_mean") != "").unique(key))
    assert (counts["cells"] < len(known)) == (suite == "dpcrosue")
    once = headline.first_scores(results)
    shown = [entry.column.metric for entry in comparison.entries(once) if entry.printed is not None]
    assert len(shown) == counts["cells"]
    assert not any(metric.endswith("swapped") for metric in shown), "the first score is not the exchanged one"
    assert figures.agreement(once).finding == f"{counts['within_10_percent']} of {counts['run']} numbers within 10 %"


@pytest.mark.parametrize("suite", ["dpvae", "dpcrosue"])
def test_agreement_is_the_share_of_the_pairs_that_why_we_differ_counts(suite: str) -> None:
    """Versions of a method are set against those of another, and two scores of a number are not mixed."""
    results = read(suite)[0]
    orders = [pair.order for pair in differences.pairs(results, ())]
    assert "equal" not in orders
    assert headline.agreement(results) == pytest.approx(orders.count("as printed") / len(orders), abs=1e-6)
    text = next(line.text for line in verdicts.verdicts(results, [], K) if line.topic == "Reproduction")
    assert f"{100 * orders.count('as printed') / len(orders):.0f} % of pairs of methods" in text


def test_a_pair_that_is_equal_here_agrees_by_half(every: Results) -> None:
    same = replace(every, metrics=every.metrics.with_columns(value=pl.lit(0.5)))
    assert headline.agreement(same) == 0.5


def test_the_points_of_the_frontier_have_a_finite_budget(every: Results) -> None:
    points = plots.utility(every, K)
    assert len(points)
    assert points["epsilon"].is_finite().all()
    for system, setting, epsilon in points.select("system", "setting", "epsilon").iter_rows():
        assert epsilon == ledger.total_epsilon(every, next(s for s in every.systems if s.label == system), setting)


def test_dvc_shows_the_committed_summaries_and_plots(repo: Repo) -> None:
    read = repo.metrics.show()[""]["data"]
    shown: dict[str, Any] = {path: content for path, content in read.items() if (ROOT / path).is_file()}
    for path, content in shown.items():
        summary = json.loads((ROOT / path).read_text(encoding="utf-8"))
        known = {group: {key: value for key, value in of.items() if value is not None} for group, of in summary.items()}
        assert content["data"] == known  # DVC leaves out what has no value
    suites = [path.name for path in (ROOT / "suites").iterdir() if (path / "params.yaml").is_file()]
    with_results = [suite for suite in suites if (ROOT / f"data/results/{suite}").is_dir()]
    assert sorted(shown) == sorted(f"data/results/{suite}/summary.json" for suite in with_results)
    drawn = repo.plots.show()["workspace"]
    sources = {path: drawn["sources"]["data"][path] for path in drawn["sources"]["data"] if (ROOT / path).is_file()}
    assert "error" not in json.dumps(sources, default=str)
    attacked = {suite for suite in with_results if isinstance(load().suites[suite].attack, AttributeAttack)}
    assert attacked == {"demo", "gerai"}
    assert len(sources) == 2 * len(with_results) + len(attacked)
    assert sources["data/results/demo/plots/curves.csv"]["data"]


def test_every_committed_summary_and_plot_is_what_its_results_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    results, _, claims = report.read("demo")
    k = report.headline_cutoff(results)
    folder = ROOT / "data/results/demo"
    assert headline.summary(results, claims, k) == json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    plots.write(tmp_path, plots.tables(results, k))
    files = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.[ct]sv")}
    assert files == {path.relative_to(folder / "plots") for path in folder.glob("plots/**/*.[ct]sv")}
    for file in files:
        assert (tmp_path / file).read_bytes() == (folder / "plots" / file).read_bytes()


def test_training_curves_are_where_dvclive_has_them(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = plots.tables(report.read("demo")[0], K)
    folder = Path(repo.root_dir) / "data/results/demo/plots/metrics"
    drawn = repo.plots.show(targets=[str(folder)])["workspace"]["sources"]["data"]
    assert len(drawn) == sum(name.startswith("metrics/") for name in files) > 0
    for path, content in drawn.items():
        table = files[Path(path).relative_to("data/results/demo/plots").as_posix()]
        assert [float(row[table.columns[1]]) for row in content["data"]] == pytest.approx(table.to_series(1), abs=1e-6)
