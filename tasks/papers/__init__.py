"""Papers, each in a folder of its own: protocol, and as data what it prints and claims. What else is code computes.

None imports another, and what is general imports none.
"""

from __future__ import annotations

PROTOCOLS = {
    "dipsgnn": "tasks.papers.dipsgnn.protocol",
    "dpcrosue": "tasks.papers.dpcrosue.protocol",
    "dpvae": "tasks.papers.dpvae.protocol",
    "gerai": "tasks.papers.gerai.protocol",
    "multvae": "tasks.papers.multvae.protocol",
    "privsr": "tasks.papers.privsr.protocol",
}
"""Names of protocols in params.yaml -> the modules that prepare a data set as a paper does."""
PAPERS = {
    "dipsgnn": "tasks.papers.dipsgnn.paper",
    "dpcrosue": "tasks.papers.dpcrosue.paper",
    "dpvae": "tasks.papers.dpvae.paper",
    "gerai": "tasks.papers.gerai.paper",
    "multvae": "tasks.papers.multvae.paper",
    "privsr": "tasks.papers.privsr.paper",
}
"""Keys that `paper` has in a suite's params.yaml and in paper_tables.csv -> the paper.yaml that describes it."""
DEFAULT = "gerai"
"""The paper whose table layouts serve suites that reproduce none."""
