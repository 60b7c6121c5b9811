"""All papers, under the keys that `paper` in a suite's params.yaml and in paper_tables.csv has for them."""

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


def named(key: str | None, networks: tuple[Network, ...] = ()) -> Paper | None:
    """The paper of a key; None for None.

    networks: those of the suite's data, where they are a pair: a paper of networks is told by what these can give.

    Raises:
        KeyError: there is no such paper.
    """
    found = None if key is None else PAPERS[key]
    return of_networks(networks) if networks and found is DPCROSUE else found
