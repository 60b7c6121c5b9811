"""The page of attacks of a suite: one section for each kind of evidence that it has, each a template of its own."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.pages.page import Page
from tasks.results import leakage
from tasks.results.budgets import budgets
from tasks.results.load import Results


def pages(results: Results) -> list[Page]:
    """The page of attacks; none of a suite without any evidence."""
    evidence = leakage.collect(results)
    address = f"suites/{results.suite.suite}/attacks.html"
    return [Page(address, "suite/attacks.html.j2", context(results, evidence))] if evidence else []


def context(results: Results, evidence: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page's templates are filled with."""
    private = budgets(results).filter(pl.col("claimed").is_not_null())["experiment"].unique().to_list()
    return {
        "evidence": evidence,
        "label": {system.experiment: system.label for system in results.suite.systems},
        "private": frozenset(private),
    }
