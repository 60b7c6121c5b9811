"""The contract of alignments, made up: one fault breaks its rule alone."""

import polars as pl
import pytest

from tasks.quality.metrics import alignment_metrics, alignment_tables
from tests.quality.changes import Change, added, twice, value
from tests.quality.test_suites import failures

UNITS = [("base", 0), ("base", 1)]
EXPECTED = alignment_metrics(["base"], [0, 1], ["attributes"], [1, 10])
PAIRS = pl.DataFrame({"source": [0, 2, 4], "target": [3, 1, 0]}, schema={"source": pl.Int32, "target": pl.Int32})
METRICS = EXPECTED.with_columns(value=pl.lit(0.5))
KEYS = "setting, seed"
"""Row 0 is a chance, row 4 a share, row 5 `found`, row 6 a criterion."""


def broken(pairs: pl.DataFrame = PAIRS, metrics: pl.DataFrame = METRICS) -> set[tuple[str, str | None]]:
    judged = alignment_tables(dict.fromkeys(UNITS[:1], pairs) | {UNITS[1]: PAIRS}, metrics, (5, 4), EXPECTED)
    return {(table.name, rule.column) for table, rule in failures(judged)}


def test_good_alignments_keep_every_rule_also_those_that_found_nobody() -> None:
    assert broken() == set()
    assert broken(PAIRS.head(0)) == set()
    assert broken(metrics=value(6, "value", -1.0)(METRICS)) == set()
    assert broken(metrics=value(5, "value", 4.0)(METRICS)) == set()


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (value(1, "source", None), "source"),
        (value(1, "target", None), "target"),
        (value(1, "source", 5), "source"),
        (value(1, "target", 4), "target"),
        (value(1, "source", 0), f"{KEYS}, source"),
        (value(1, "target", 3), f"{KEYS}, target"),
    ],
)
def test_one_fault_of_the_pairs_breaks_its_rule(change: Change, column: str) -> None:
    assert broken(change(PAIRS)) == {("anchors", column)}


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        (value(0, "value", 1.5), {"rate"}),
        (value(4, "value", -0.1), {"rate"}),
        (value(5, "value", 4.5), {"pairs"}),
        (value(6, "value", -1.1), {"criterion"}),
        (value(6, "value", float("nan")), {"value"}),
        (added("metric", "alignment/attributes/luck"), {"kind"}),
        (twice(0), {f"{KEYS}, metric, k"}),
    ],
)
def test_one_fault_of_the_metrics_breaks_its_rule(change: Change, columns: set[str]) -> None:
    assert broken(metrics=change(METRICS)) == {("metrics", column) for column in columns}


def test_a_metric_that_was_not_measured_is_missed() -> None:
    assert broken(metrics=METRICS.filter(pl.col("k").ne_missing(10))) == {("metrics expected", "rows")}
