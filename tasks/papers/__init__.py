"""Papers, each in a folder of its own: protocol, printed numbers, claims, figures and caveats of one paper.

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
PUBLISHED = {
    "dipsgnn": "tasks.papers.dipsgnn.published:DIPSGNN",
    "dpcrosue": "tasks.papers.dpcrosue.published:describe",
    "dpvae": "tasks.papers.dpvae.published:DPVAE",
    "gerai": "tasks.papers.gerai.published:GERAI",
    "multvae": "tasks.papers.multvae.published:MULTVAE",
    "privsr": "tasks.papers.privsr.published:PRIVSR",
}
"""Keys that `paper` has in a suite's params.yaml and in paper_tables.csv -> the paper with its tables and methods, or
what says it of the networks of a suite's data."""
REPORTS = {
    "dipsgnn": "tasks.papers.dipsgnn.report",
    "dpcrosue": "tasks.papers.dpcrosue.report",
    "dpvae": "tasks.papers.dpvae.report",
    "gerai": "tasks.papers.gerai.report",
    "multvae": "tasks.papers.multvae.report",
    "privsr": "tasks.papers.privsr.report",
}
"""The same keys -> the modules that say what reports show."""
DEFAULT = "gerai"
"""The paper whose table layouts serve suites that reproduce none."""
