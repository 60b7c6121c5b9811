"""The pages of one suite: the report of one screen, and a page for each kind of evidence behind it."""

from __future__ import annotations

from typing import Any

from tasks.pages.page import Page
from tasks.results.load import Results


def pages(results: Results, paper: Any) -> list[Page]:  # noqa: ARG001
    """All pages of a suite.

    paper: whose tables, figures and claims they have.
    """
    return []
