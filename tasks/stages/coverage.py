"""What of the papers was measured, on which data: behind `dprec coverage`, from data/results/ alone."""

from __future__ import annotations

import polars as pl

from tasks.errors import DataError
from tasks.results.coverage import coverage
from tasks.stages.common import RESULTS
from tasks.stages.report import collected, paper_of, results_of


def committed() -> pl.DataFrame:
    """`tasks.results.coverage.coverage` over all of data/results/.

    Raises:
        DataError: there are no results, or a file is not what was written.
    """
    suites = [results_of(name) for name in collected()]
    if not suites:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    measured = [(results.suite, results.comparison, paper_of(results).methods) for results in suites]
    return coverage(suites[0].published, measured)
