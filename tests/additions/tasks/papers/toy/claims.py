"""What the toy paper says that our numbers can test."""

from __future__ import annotations

from tasks.reporting.core.claim_specs import Claim, Measure, Order, Side, Spec
from tasks.reporting.core.results import Results

RANKS = "ToyRec ranks above the most popular items"


def claims(results: Results, k: int) -> tuple[list[Spec], list[Claim]]:
    """All claims that tests decide, and those of arithmetic alone, of which there are none."""
    del results, k
    pair = (Side("ToyRec"), Side("MostPopular"))
    return [Order("table2", RANKS, (pair,), (Measure("Hit", "full/hit", (5, 10), "higher"),))], []
