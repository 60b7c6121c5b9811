"""DP-CroSUE's printed precision on occupation stands beside the one that it fits."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tasks.reporting import files
from tasks.reporting.core import claims, comparison
from tasks.reporting.core.results import Results
from tasks.results.claims import Order
from tasks.stages.report import report_of
from tests.reporting import example_dpcrosue
from tests.reporting.example import ROOT


@pytest.fixture(scope="module")
def full() -> Results:
    """Everything that the paper had, as if it were true."""
    return example_dpcrosue.full()


def values(results: Results, metric: str) -> np.ndarray:
    """Of R-GCN."""
    system = results.find("rgcn")
    assert system is not None
    return results.values(system, metric, 0)


def test_printed_precisions_on_occupation_are_near_micro_f1_as_weighted_means_are() -> None:
    """Why they stand beside the weighted one: of one class for each user, micro-F1 is the weighted recall."""
    table = files.read_published(ROOT / "data/reference/paper_tables.csv").filter(
        (pl.col("paper") == "dpcrosue") & pl.col("metric").is_in(["occupation_precision", "occupation_micro_f1"])
    )
    pairs = table.pivot(on="metric", index=["dataset", "method"], values="value")
    apart = (pairs["occupation_precision"] / pairs["occupation_micro_f1"] - 1).abs()
    assert len(apart) == 36
    assert apart.median() == pytest.approx(0.018, abs=5e-4)
    assert apart.max() == pytest.approx(0.0625)


def test_a_printed_precision_on_occupation_stands_beside_the_weighted_one(full: Results) -> None:
    mine = comparison.frame(full).filter(
        (pl.col("method") == "R-GCN")
        & (pl.col("dataset") == "twitter")
        & pl.col("metric").str.starts_with("occupation")
    )
    actual = {
        row["protocol"]: (row["metric"], row["published"], row["ours_mean"]) for row in mine.iter_rows(named=True)
    }
    ours = {
        score: f"{values(full, f'twitter/occupation/{score}').mean():.6f}"
        for score in ("precision-weighted", "micro-f1")
    }
    printed = comparison.printed_values(full, full.layout, "twitter")
    assert actual == {
        "precision, weighted": (
            "occupation_precision",
            f"{printed['table4', 'R-GCN', '', 'occupation_precision']:g}",
            ours["precision-weighted"],
        ),
        "micro-F1": (
            "occupation_micro_f1",
            f"{printed['table4', 'R-GCN', '', 'occupation_micro_f1']:g}",
            ours["micro-f1"],
        ),
    }
    specs = claims.rows(full, report_of(full.paper), 0)
    names = {measure.name for spec in specs if isinstance(spec, Order) for measure in spec.measures}
    assert "weighted precision on occupation" in names
    assert "precision on occupation" not in names
