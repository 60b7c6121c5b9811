"""What an alignment of two networks must hold: its pairs, and its metrics (DP-CroSUE, docs/methods.md §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from tasks.quality.counting import count_table, stack
from tasks.quality.rules import Table, between, finite, in_set, not_null, row_count, unique

KEYS = ("setting", "seed")
RATES = ("chance", "precision", "share")
"""Metrics from 0 to 1, by the last part of their name."""
KINDS = (*RATES, "found", "criterion")


def _split_by_kind(metrics: pl.DataFrame) -> pl.DataFrame:
    """Metrics with their kind, and a column of values for each range that values may have."""
    kind = pl.col("metric").str.split("/").list.last()
    return metrics.with_columns(
        kind=kind,
        rate=pl.when(kind.is_in(RATES)).then("value"),
        pairs=pl.when(kind == "found").then("value"),
        criterion=pl.when(kind == "criterion").then("value"),
    )


def alignment_tables(
    anchors: Mapping[tuple[str, int], pl.DataFrame],
    metrics: pl.DataFrame,
    sizes: tuple[int, int],
    expected: pl.DataFrame,
) -> list[Table]:
    """Pairs of users of the two networks, each user in one pair at most; there may be no pair.

    All settings and seeds are in one table. Metrics lie in the range of their kind; none is missing, none repeated.

    Args:
        anchors: (setting, seed) -> ANCHORS.
        metrics: METRICS.
        sizes: users of the first and of the second network.
        expected: setting, seed, metric, k of everything that had to be measured (see `alignment_metrics`).
    """
    pairs = stack(anchors, KEYS)
    measured = [*KEYS, "metric", "k"]
    return [
        Table(
            "anchors",
            pairs,
            (
                *not_null("source", "target"),
                between("source", 0, sizes[0] - 1),
                between("target", 0, sizes[1] - 1),
                unique(*KEYS, "source"),
                unique(*KEYS, "target"),
            ),
            ids=(*KEYS, "source", "target"),
        ),
        Table(
            "metrics",
            _split_by_kind(metrics),
            (
                row_count(1),
                *not_null("value"),
                finite("value"),
                in_set("kind", KINDS),
                between("rate", 0, 1),
                between("pairs", 0, min(sizes)),
                between("criterion", -1, 1),
                unique(*measured),
            ),
            ids=tuple(measured),
        ),
        count_table(
            "metrics expected",
            expected,
            metrics,
            measured,
            row_count(1),
            between("rows", 1, None, "must be 1 or more: the metric was measured"),
        ),
    ]


def alignment_metrics(units: Sequence[tuple[str, int]], ways: Sequence[str], ks: Sequence[int]) -> pl.DataFrame:
    """setting, seed, metric and k of what an alignment measures whatever it finds.

    Args:
        units: settings and seeds.
    """
    names: list[tuple[str, int | None]] = [("alignment/chance", k) for k in ks]
    for way in ways:
        names += [(f"alignment/{way}/precision", k) for k in ks]
        names += [(f"alignment/{way}/{name}", None) for name in ("confident/share", "found", "criterion")]
    return pl.DataFrame(
        [(*unit, *name) for unit in units for name in names],
        schema={"setting": pl.String, "seed": pl.Int64, "metric": pl.String, "k": pl.Int32},
        orient="row",
    )
