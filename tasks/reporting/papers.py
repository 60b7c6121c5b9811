"""All papers: a suite belongs to the one whose key begins its name."""

from __future__ import annotations

from tasks.reporting.published import Paper
from tasks.reporting.published_dipsgnn import DIPSGNN
from tasks.reporting.published_dpcrosue import DPCROSUE, of_networks
from tasks.reporting.published_dpvae import DPVAE
from tasks.reporting.published_gerai import GERAI
from tasks.reporting.published_privsr import PRIVSR
from tasks.reporting.results import Network

PAPERS = {paper.key: paper for paper in (GERAI, DIPSGNN, DPVAE, PRIVSR, DPCROSUE)}
DEFAULT = GERAI
"""Its table layouts serve suites that reproduce no paper, such as `demo`."""


def of_suite(suite: str, networks: tuple[Network, ...] = ()) -> Paper | None:
    """The paper of a suite, named `<paper>` or `<paper>-<data>`; None where there is none.

    networks: those of the suite's data, where they are a pair: a paper of networks is told by what these can give.
    """
    found = next((paper for key, paper in PAPERS.items() if suite == key or suite.startswith(f"{key}-")), None)
    return of_networks(networks) if networks and found is DPCROSUE else found
