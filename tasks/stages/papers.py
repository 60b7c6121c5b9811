"""The paper that a suite names, loaded when it is asked for: its key is all that params.yaml says."""

from __future__ import annotations

from tasks import papers
from tasks.config.tasks import resolve
from tasks.reporting.core.published import Paper
from tasks.reporting.core.results import Network


def describe(paper: str | None, networks: tuple[Network, ...] = ()) -> Paper:
    """The paper whose tables a suite with these networks is shown in; None: a suite that reproduces none.

    Raises:
        KeyError: there is no such paper.
    """
    described = resolve(papers.PUBLISHED[paper or papers.DEFAULT])
    return described if isinstance(described, Paper) else described(networks)
