"""All papers: a suite belongs to the one whose key begins its name."""

from __future__ import annotations

from tasks.reporting.published import Paper
from tasks.reporting.published_dipsgnn import DIPSGNN
from tasks.reporting.published_dpvae import DPVAE
from tasks.reporting.published_gerai import GERAI
from tasks.reporting.published_privsr import PRIVSR

PAPERS = {paper.key: paper for paper in (GERAI, DIPSGNN, DPVAE, PRIVSR)}
DEFAULT = GERAI
"""Its table layouts serve suites that reproduce no paper, such as `demo`."""


def of_suite(suite: str) -> Paper | None:
    """The paper of a suite, named `<paper>` or `<paper>-<data>`; None where there is none."""
    return next((paper for key, paper in PAPERS.items() if suite == key or suite.startswith(f"{key}-")), None)
