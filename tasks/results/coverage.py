"""How many of the numbers that papers print were measured, on which kind of data, and how many of these are near."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from tasks.results.facts import KINDS, Suite

NUMBER = ["paper", "artefact", "dataset", "method", "setting", "metric"]
"""What distinguishes printed numbers."""
TABLE = NUMBER[:3]
NEAR = 0.1
"""Relative difference up to which a number counts as reproduced."""
REPLICA = "-twin"
"""What follows the name of a network in the name of its synthetic replica."""
NONE = "none"
MEASURED: dict[str, Any] = {"published": pl.Float64, "ours_mean": pl.Float64, "data": pl.String}


def coverage(published: pl.DataFrame, suites: Iterable[tuple[Suite, pl.DataFrame, Mapping[str, str]]]) -> pl.DataFrame:
    """Columns `TABLE`, printed, real, part, synthetic, none, near: a row for each printed table on each data set.

    Each printed number counts once, under the best kind of data that it was measured on. `near`: those of real data or
    a part whose mean is within 10 % of what is printed; what is synthetic is compared with nothing.

    Args:
        published: the printed numbers (`tasks.results.load.PUBLISHED`).
        suites: with the comparison.csv of each, and its paper's names of methods -> labels of systems.
    """
    empty = pl.DataFrame(schema=dict.fromkeys(NUMBER, pl.String) | MEASURED)
    measured = pl.concat([empty, *(_measured(*suite) for suite in suites if suite[0].paper is not None)])
    best = measured.sort(pl.col("data").cast(pl.Enum([*KINDS])), maintain_order=True)
    best = best.unique(NUMBER, keep="first", maintain_order=True)
    printed = published.select(pl.col(NUMBER).fill_null(""))
    joined = printed.join(best, on=NUMBER, how="left").with_columns(pl.col("data").fill_null(NONE))
    counts = {kind: (pl.col("data") == kind).sum() for kind in (*KINDS, NONE)}
    return joined.group_by(TABLE, maintain_order=True).agg(printed=pl.len(), **counts, near=_close().sum())


def _close() -> pl.Expr:
    return (pl.col("ours_mean") - pl.col("published")).abs() <= NEAR * pl.col("published").abs()


def _measured(suite: Suite, comparison: pl.DataFrame, methods: Mapping[str, str]) -> pl.DataFrame:
    """What a suite measured of its paper's numbers, under the names of the data that its own are or stand for.

    Of synthetic data, which are compared with nothing, methods are named as our systems are.
    """
    original = suite.stands_for or suite.publication
    names = dict.fromkeys((suite.dataset, suite.publication, suite.source.dataset), original)
    names |= {f"{network.name}{REPLICA}": network.name for network in suite.networks}
    compared = pl.col("published").is_not_null() | (pl.col("data") == KINDS[-1])  # other scores of a number have none
    rows = comparison.filter(pl.col("ours_mean").is_not_null(), compared).with_columns(
        paper=pl.lit(suite.paper),
        dataset=pl.col("dataset").replace(old=names),
        method=pl.col("method").replace({label: name for name, label in methods.items()} if suite.synthetic else {}),
    )
    return rows.with_columns(pl.col(NUMBER).fill_null("")).select(*NUMBER, *MEASURED)


def reproduction(comparison: pl.DataFrame) -> dict[str, int]:
    """Of a comparison.csv: how many printed numbers are among its `cells`, were `run` and are `near`; each counts once.

    What is counted and not measured, as statistics of the data, is left out. Of several scores the first counts.
    """
    printed = comparison.filter(pl.col("published").is_not_null(), pl.col("protocol") != "counted")
    run = pl.col("ours_mean").is_not_null()
    once = printed.sort(run, descending=True, maintain_order=True).unique(NUMBER, keep="first", maintain_order=True)
    return {"cells": len(once), "run": len(once.filter(run)), "within_10_percent": len(once.filter(_close()))}
