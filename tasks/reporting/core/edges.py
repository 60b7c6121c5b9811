"""What `attacks.parquet` holds of a suite whose single interactions were attacked."""

from __future__ import annotations

import polars as pl

from tasks.errors import DataError
from tasks.reporting.core.results import Results


def frame(results: Results) -> pl.DataFrame:
    """The attacks, with the columns of `tasks.reporting.sections.edges`, sorted.

    Raises:
        DataError: the results have no such attack.
    """
    if results.edges is None:
        raise DataError(f"{results.suite}: single interactions were not attacked")
    return results.edges.sort("system", "setting", "target", "world", "epsilon")
