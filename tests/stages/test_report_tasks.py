"""Suites of next items and of ratings, from training to the page: what stands there is what the stages wrote."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tasks import contracts
from tasks.attacks.edges import EDGES
from tasks.errors import DataError
from tasks.reporting.core.layout import number
from tasks.stages import attack_edges, attack_ratings, audit, check, collect, train
from tasks.stages.common import RUNS, read_json
from tests.stages import tiny_next, tiny_ratings
from tests.stages.test_report import Page, page, run


def test_a_suite_of_next_items_is_reported_with_its_attack_on_interactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From training to the page: what stands there is what the stages wrote."""
    suite, names = "dipsgnn-tiny", ("dipsgnn-tiny-dipsgnn", "dipsgnn-tiny-nonp")
    changes = tiny_next.changes(suite)
    changes["experiments"] = {name: changes["experiments"][name] | {"sweep": []} for name in names}
    changes["experiments"][names[0]]["config"]["epsilon"] = 1.0  # which few samples refute
    monkeypatch.setattr(audit, "MOST", 1_000)
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
    text = page(tmp_path, suite)
    shown = Page(text)
    assert {"edges", "chart-edges", "limits", "table1"} <= set(shown.values("id"))
    assert "<p>One thing that is not shown.</p>" in text
    assert "<p>Another &lt;thing&gt;.</p>" in text
    assert "Recall@20" in text
    runs = RUNS / suite
    actual = contracts.read(runs / "edges/edges.parquet", EDGES)
    rows = actual.filter((pl.col("target") == "aggregates") & pl.col("epsilon").is_not_null())
    assert len(rows) == 3
    assert [value for value in rows["theory"] if number(value) not in shown.texts] == []
    (audited,) = read_json(runs / "audit.json")
    assert audited["mechanism"] in text
    assert audited["verdict"] == "refuted"
    (runs / "edges/edges.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"edges\.parquet: not readable .*; run attack-edges again"):
        collect.main(suite)
    assert page(tmp_path, suite) == text


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
    spent = pl.read_csv(results / "ledger.csv").filter(pl.col("experiment") == "privsr-privsr")
    assert set(spent["protects"]) == {"rating"}
    assert spent.filter(pl.col("setting") == "base")["verdict"].to_list() != [None]
    text = page(tmp_path, "privsr")
    assert {"reconstruction", "accounting"} <= set(Page(text).values("id"))
    worst = attacks.filter((pl.col("experiment") == "privsr-privsr") & (pl.col("setting") == "base"))
    assert [value for value in worst["mae"] if number(value) not in Page(text).texts] == []
