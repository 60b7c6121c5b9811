"""What data a suite's numbers are of: real, a part of the real ones, or synthetic, and what these stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import polars as pl

from tasks.reporting.core.results import Results

Kind = Literal["real", "part", "synthetic"]
KINDS: tuple[Kind, ...] = ("real", "part", "synthetic")
"""Best first."""
COLUMN = "data"
"""What every table of results has of it."""


def kind(results: Results) -> Kind:
    """What the numbers are of."""
    return kind_of(results.stands_for, synthetic=results.synthetic)


def kind_of(stands_for: str, *, synthetic: bool) -> Kind:
    """The same of data, by what they stand for (`Results.stands_for`)."""
    if synthetic:
        return "synthetic"
    return "part" if stands_for else "real"


def as_original(results: Results) -> Results:
    """The results as they stand beside the paper if their data were those that they stand for."""
    if not results.stands_for:
        return results
    return replace(
        results, synthetic=False, processed=replace(results.processed, dataset=results.stands_for), stands_for=""
    )


def counted(results: Results) -> tuple[Results, ...]:
    """The results by the data that are counted: as they are, and as if they were of all data that a suite counts, too.

    The second stand for no measurement: these data have counts alone.
    """
    if results.counted is None:
        return (results,)
    name, processed = results.counted.dataset, results.counted
    return results, replace(results, dataset=name, synthetic=False, stands_for="", processed=processed)


def with_kind(table: pl.DataFrame, results: Results) -> pl.DataFrame:
    """A table with `COLUMN` behind its others."""
    return table.with_columns(pl.lit(kind(results)).alias(COLUMN))
