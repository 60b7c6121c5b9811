"""The contract of metrics of predicted ratings, made up: amounts without an upper end next to what lists have."""

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tasks.quality.metrics import RANGES, measurements, metric_tables
from tasks.stages.checks.attacks import reconstruction
from tasks.stages.checks.lists import RATING
from tests.quality.test_suites import failures

KEYS = "experiment, setting, seed, metric, k"
EXCHANGED: list[tuple[str, int | None]] = [("communication/messages", None), ("communication/bytes", None)]


def of_share(sensitive: float) -> Any:
    """The arguments that say of an experiment which share of its ratings is sensitive."""
    return None, SimpleNamespace(settings=lambda: {"base": {"sensitive_share": sensitive}}), "base"


NAMES = [*RATING.metrics(*of_share(0.1)), *EXCHANGED, *reconstruction(*of_share(0.1))]


def frame(**changed: float) -> pl.DataFrame:
    """Every metric of two folds of one experiment, errors of 0.8 and amounts of a million."""
    expected = measurements("privsr-x", ["base"], [0, 1], NAMES)
    level = pl.when(pl.col("metric").str.contains("mae")).then(0.8).otherwise(1e6)
    for name, value in changed.items():
        level = pl.when(pl.col("metric") == name).then(value).otherwise(level)
    return expected.with_columns(value=level)


def broken(given: pl.DataFrame) -> set[str | None]:
    """Columns of the rules that `given` breaks."""
    return {
        rule.column for _, rule in failures(metric_tables(given, measurements("privsr-x", ["base"], [0, 1], NAMES)))
    }


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan")])
def test_amounts_are_finite_and_not_below_zero(value: float) -> None:
    assert "amount" in broken(frame(mae=value))


def test_what_was_not_measured_is_missed_though_its_cutoff_is_null() -> None:
    assert broken(frame().filter(pl.col("metric") != "communication/bytes")) == {"rows"}


def test_the_metrics_of_lists_keep_their_rules() -> None:
    """So that suites of lists are judged, and counted, as before."""
    ranked = frame().head(1).with_columns(metric=pl.lit("full/ndcg"), value=pl.lit(0.5))
    expected = measurements("privsr-x", ["base"], [0], [("full/ndcg", None)])
    (table, _) = metric_tables(ranked, expected)
    assert {rule.column for rule in table.rules} == {None, "value", "kind", "rate", "advantage", KEYS}
    assert any(rule.words.endswith(f" and {len(RANGES) - 8} more") for rule in table.rules)


@pytest.mark.parametrize(
    ("share", "kinds", "attacked"),
    [
        (0.0, {"mae", "uncut", "public"}, 0),
        (0.5, {"mae", "uncut", "public", "sensitive"}, 1),
        (1.0, {"mae", "uncut", "sensitive"}, 0),
    ],
)
def test_errors_are_expected_of_the_kinds_of_ratings_that_there_are(
    share: float, kinds: set[str], attacked: int
) -> None:
    assert {name.rpartition("/")[2] for name, _ in RATING.metrics(*of_share(share))} == kinds
    assert len(reconstruction(*of_share(share))) == attacked
