"""Suites of next items and of ratings, from training to the report: results are what the stages wrote."""

from pathlib import Path

import polars as pl
import pytest

from tasks.attacks.edges import EDGES
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.pipeline.common import RESULTS, RUNS, read_json
from tasks.privacy.audits.unaudited import reason
from tasks.results import tables
from tasks.stages import attack_edges, attack_ratings, audit, check, collect, report, train
from tests.stages import tiny_next, tiny_ratings
from tests.stages.test_report import run, written


def test_a_suite_of_next_items_is_reported_with_its_attack_on_interactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, names = "dipsgnn-tiny", ("dipsgnn-tiny-dipsgnn", "dipsgnn-tiny-nonp")
    changes = tiny_next.changes(suite)
    changes["experiments"] = {name: changes["experiments"][name] | {"sweep": []} for name in names}
    changes["experiments"][names[0]]["config"]["epsilon"] = 1.0  # which few samples refute
    monkeypatch.setattr(audit, "MOST", 500)
    changes["attack"] |= {"systems": [names[0]], "control": names[1]}
    monkeypatch.chdir(tmp_path)
    tiny_next.build(tmp_path, **changes)
    for name in names:
        train.main(name)
        check.main(f"recommendations/{name}")
    attack_edges.main(suite)
    audit.main(suite)
    check.main(f"metrics/{suite}")
    run(tmp_path, suite)
    runs, results = RUNS / suite, RESULTS / suite
    actual = contracts.read(runs / "edges/edges.parquet", EDGES)
    assert actual.filter((pl.col("target") == "aggregates") & pl.col("epsilon").is_not_null()).height == 3
    assert tables.read_table(results, "attacks").sort(pl.all()).equals(actual.sort(pl.all()))
    (audited,) = read_json(runs / "audit.json")
    (row,) = report.results_of(suite).audits.to_dicts()
    assert {key: row[key] for key in ("mechanism", "audited_epsilon")} == {
        key: audited[key] for key in ("mechanism", "audited_epsilon")
    }
    assert row["verdict"] == "refuted"
    before = written(tmp_path)
    (runs / "edges/edges.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"edges\.parquet: not readable .*; run attack-edges again"):
        collect.main(suite)
    assert written(tmp_path) == before


def test_a_suite_of_ratings_is_reported_with_what_was_reconstructed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_ratings.build(tmp_path, **tiny_ratings.changes("privsr"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "MOST", 1_000)
    for model in tiny_ratings.MODELS:
        train.main(f"privsr-{model}")
        check.main(f"recommendations/privsr-{model}")
        attack_ratings.main(f"privsr-{model}")
    audit.main("privsr")
    check.main("metrics/privsr")
    run(tmp_path, "privsr")
    results = tmp_path / "data/results/privsr"
    measured = pl.read_parquet(results / "metrics.parquet")
    actual = measured.filter((pl.col("metric") == "reconstruction/published/mae") & (pl.col("setting") == "base"))
    assert set(actual["experiment"]) == {"privsr-privsr", "privsr-mf-ratings"}
    attacks = pl.read_parquet(results / "attacks.parquet")
    assert {"published", "averaged", "weighted", "first", "replayed", "friend"} <= set(attacks["attacker"])
    lines = [line for line in report.results_of("privsr").lines if line.experiment == "privsr-privsr"]
    assert {line.entry.protects for line in lines} == {"rating"}
    base = [line for line in lines if line.setting == "base"]
    assert any(line.audit for line in base)
    assert all(line.audit or reason(line.entry) for line in base), "a line per observer: an audit, or why there is none"
    worst = attacks.filter((pl.col("experiment") == "privsr-privsr") & (pl.col("setting") == "base"))
    drawn = "".join(file.read_text() for file in (tmp_path / "data/reports/privsr").rglob("*.html"))
    assert [value for value in worst["mae"] if f"{value:.3f}" not in drawn] == []
