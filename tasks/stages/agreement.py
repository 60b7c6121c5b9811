"""Whether two sets of numbers of a suite agree: `dprec compare`, and results of another processor, which then stay.

The same code on the same machine gives the same numbers to the last digit. Another processor rounds differently, which
a training run amplifies: on ML-100K bpr stays the same to the last digit, while a seed of the graph recommender may
leave the level of popularity on one processor and stay there on another. So means over seeds are compared, each within
the band of its kind of metric, or within what the spread of the seeds on both sides explains where that is more.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars.testing import assert_frame_equal

from tasks.config.params import Suite
from tasks.config.tasks import TASKS
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline.provenance import processor
from tasks.results import tables
from tasks.results.load import PROVENANCE, read_runs

if TYPE_CHECKING:
    from tasks.core.rows import Row

STANDARD_ERRORS = 3
"""How many standard errors of the difference of two means over seeds count as explained by the seeds."""
KEY = ("experiment", "setting", "metric", "k")
METRICS = "metrics.csv"
CLOSE = ("ledger", "events", "audits", "one_run", "checks", "counts")
"""Tables whose numbers no training run amplifies."""


def stands(results: Path, new: Path, suite: Suite) -> bool:
    """Whether results of another processor stay as they are, since what was computed on this one agrees with them.

    Facts agree to the last byte, which have the SHA-256 of the data: own data have none there, and agree with nothing.
    """
    recorded = results / PROVENANCE
    if not recorded.is_file() or any(run.processor == processor() for run in read_runs(recorded)):
        return False
    try:
        facts = tables.read_suite(new)
        if not facts.fingerprints or facts != tables.read_suite(results):
            return False
        for name in CLOSE:
            assert_frame_equal(tables.read_table(results, name), tables.read_table(new, name), rel_tol=1e-6)
        before, now = (means((folder / METRICS).read_text(encoding="utf-8"), str(folder)) for folder in (results, new))
    except (AssertionError, DataError, OSError):
        return False
    return not compare(before, now, bands(suite))[1]


def bands(suite: Suite) -> dict[str, float]:
    """Patterns of the names of all metrics that a suite measures, with the accepted differences of their means."""
    return {**TASKS[suite.task].bands, **(suite.attack_kind.bands if suite.attack_kind else {})}


def tolerance(metric: str, bands: Mapping[str, float]) -> float:
    """The accepted difference of a metric's mean over seeds that have no spread.

    Raises:
        ConfigurationError: no band is stated for this metric.
    """
    for pattern, band in bands.items():
        if fnmatchcase(metric, pattern):
            return band
    raise ConfigurationError(
        f"tasks/config/tasks.py: bands: no tolerance is stated for {metric!r}; known: {', '.join(bands)}"
    )


def compare(committed: pl.DataFrame, regenerated: pl.DataFrame, bands: Mapping[str, float]) -> tuple[int, list[str]]:
    """How many numbers there are, and a line for each outside its band (see `bands`) or on one side only."""
    both = committed.join(regenerated, on=KEY, how="full", coalesce=True, suffix="_new").sort(KEY)
    lines = [_difference(row, tolerance(row["metric"], bands)) for row in both.iter_rows(named=True)]
    return len(lines), [line for line in lines if line]


def _difference(row: Row, band: float) -> str:
    """How a number left its band; empty if it did not."""
    name = f"{row['experiment']} {row['setting']} {row['metric']}" + (f"@{row['k']}" if row["k"] else "")
    old, new = row["value"], row["value_new"]
    if old is None or new is None:
        return f"{name}: only {'regenerated' if old is None else 'committed'}"
    allowed = max(band, STANDARD_ERRORS * (row["squared_error"] + row["squared_error_new"]) ** 0.5)
    if abs(new - old) <= allowed:
        return ""
    return f"{name}: {old:.4f} -> {new:.4f} ({new - old:+.4f}, allowed {allowed:.2g})"


def means(text: str, where: str) -> pl.DataFrame:
    """Each number of a metrics table: KEY, its mean over seeds (`value`) and the variance of that (`squared_error`).

    Raises:
        DataError: it is none, or has no means over seeds, as those of version 0.1 have none.
    """
    try:
        table = pl.read_csv(io.StringIO(text), infer_schema=False)
        cutoffs = [column.removeprefix("mean") for column in table.columns if column.partition("@")[0] == "mean"]
        error = {k: pl.col(f"std{k}").cast(pl.Float64) ** 2 / pl.col("n").cast(pl.Int64) for k in cutoffs}
        values = [
            table.select(*KEY[:3], k=pl.lit(k.removeprefix("@")), value=pl.col(f"mean{k}").cast(pl.Float64),
                         squared_error=error[k].fill_null(0.0)).drop_nulls("value")
            for k in cutoffs
        ]  # fmt: skip
        if table["metric"].null_count() or (cutoffs and table["n"].cast(pl.Int64).null_count()):
            raise DataError(f"{where}: not a metrics table: a row is cut off")
    except pl.exceptions.PolarsError as problem:
        raise DataError(f"{where}: not a metrics table ({problem})") from problem
    if not sum(map(len, values)):
        raise DataError(f"{where}: has no means over seeds, as in 0.1; see `dprec site --since REV`")
    return pl.concat(values)
