"""The pages of one suite: a report of one screen, and a page for each kind of evidence behind it."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.pages.page import Page
from tasks.pages.suite.data import data, provenance
from tasks.pages.suite.ledger import ledger
from tasks.pages.suite.overview import overview
from tasks.pages.suite.reproduction import reproduction
from tasks.pages.suite.training import training
from tasks.results import leakage
from tasks.results.budgets import budgets
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.standings import entries, measure


def pages(results: Results, paper: Paper) -> list[Page]:
    """All pages of a suite, the report first; none of attacks without evidence, none of reproduction without a paper.

    paper: what the suite names, or the one whose metrics serve suites without.
    """
    by, suite = measure(results, paper), results.suite
    table = entries(results, by)
    contents = {
        "index": overview(results, by, table, paper.reference if suite.paper else ""),
        "ledger": ledger(results),
        "attacks": attacks(results),
        "reproduction": reproduction(results, paper) if suite.paper else {},
        "training": training(results, by, table, paper.validation),
        "data": data(results),
        "provenance": provenance(results),
    }
    header = {"suite": suite, "tabs": [part for part, slots in contents.items() if slots]}
    return [
        Page(f"suites/{suite.suite}/{part}.html", f"suite/{part}.html.j2", header | {"part": part} | slots)
        for part, slots in contents.items()
        if slots
    ]


def attacks(results: Results) -> dict[str, Any]:
    """What fills `suite/attacks.html.j2`: a section for each kind of evidence; nothing without any."""
    evidence = leakage.collect(results)
    private = frozenset(budgets(results).filter(pl.col("claimed").is_not_null())["experiment"])
    return {"evidence": evidence, "label": results.labels, "private": private} if evidence else {}
