"""Rules about values that several contracts share."""

from __future__ import annotations

import polars as pl

from tasks.errors import DataError
from tasks.quality.rules import Rule, between, holds

TIMESTAMPS = (631_152_000, 4_102_444_800)
"""1990 to 2100 in seconds since 1970: milliseconds, or days, fall far outside."""

LABELS = (0, 1)

FLOAT32_SLACK = 1e-6
"""Relative: bounds are computed in double precision, what they bound is stored in single."""


def seconds(column: str) -> Rule:
    """Time stamps, where there are any, are seconds."""
    return between(column, *TIMESTAMPS, words="must be seconds since 1970, between 1990 and 2100")


def finite_vectors(column: str) -> list[Rule]:
    """Every row has a vector, and all its numbers are finite."""
    vector = pl.col(column)
    numbers = vector.arr.eval(pl.element().is_finite().fill_null(False)).arr.all()
    return [
        holds(column, vector.is_not_null(), "must not be missing"),
        holds(column, numbers, "must have finite numbers only"),
    ]


def network_pair(networks: tuple[str, ...]) -> tuple[str, str]:
    """The networks that anchors join.

    Raises:
        DataError: there are not two.
    """
    if len(networks) != 2:
        raise DataError(
            f"schema.json: anchors join two networks, not {len(networks)}; run the stage that wrote it again"
        )
    return networks[0], networks[1]
