"""Results as a report shows them: with the paper whose tables they are shown in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.reporting import page as pages
from tasks.reporting.core import claims as judging
from tasks.reporting.core.results import Results
from tasks.results.claims import Claim
from tasks.stages.papers import describe
from tasks.stages.report import report_of


def results(given: dict[str, Any]) -> Results:
    """Results of these fields, in the tables of their paper."""
    return Results(layout=describe(given["paper"], given.get("networks", ())), **given)


def described(results: Results) -> Results:
    """The same, in the tables of what is now its paper."""
    return replace(results, layout=describe(results.paper, results.networks))


def claims(results: Results, k: int) -> list[Claim]:
    """The claims of its paper, judged."""
    return judging.published_claims(results, report_of(results.paper), k)


def page(results: Results, judged: Sequence[Claim], docs: str = "..") -> str:
    """Its page."""
    return pages.render(results, report_of(results.paper), judged, docs=docs)
