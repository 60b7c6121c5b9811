"""Regenerated numbers compared with the committed ones: what left its band?

The same code on the same machine gives the same numbers to the last digit. Another processor rounds differently, which
a training run amplifies: on ML-100K bpr stays the same to the last digit, while a seed of the graph recommender may
leave the level of popularity on one processor and stay there on another. So means over seeds are compared, each within
the band of its kind of metric, or within what the spread of the seeds on both sides explains where that is more.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from flows import plan, settings
from tasks.config import params
from tasks.config.tasks import ATTACKS, TASKS
from tasks.errors import ConfigurationError, DataError
from tasks.stages.common import PROVENANCE, RESULTS
from tasks.stages.provenance import git

STANDARD_ERRORS = 3
"""How many standard errors of the difference of two means over seeds count as explained by the seeds."""
KEY = ("experiment", "setting", "metric", "k")


class NothingRun(DataError):
    """There are no regenerated numbers."""


def bands(suite: params.Suite) -> dict[str, float]:
    """Patterns of the names of all metrics that a suite measures, with the accepted differences of their means."""
    of_attack = {} if suite.attack is None else ATTACKS[suite.attack.kind].bands
    return {**TASKS[suite.task].bands, **of_attack}


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


def compare_with_revision(suite: str, revision: str) -> tuple[int, list[str], str]:
    """Compare `data/results/<suite>/metrics.csv` with that of a git revision, or as it was shipped without git.

    Returns:
        How many numbers were compared, those that differ by more than their tolerance, and whose the others are.

    Raises:
        NothingRun: the suite was not run here to its end, so that the file is the committed one.
        DataError: one of the two is not there.
    """
    path = RESULTS / suite / "metrics.csv"
    ran = (PROVENANCE / "check" / "metrics" / f"{suite}.json").is_file()
    with plan.current_project(suite) as project:
        pending = plan.read(f"report@{suite}", project).pending
    if pending:
        raise NothingRun(
            f"{suite}: its results were not computed here, or not to the end ({pending[0].name}: {pending[0].why}), so "
            f"there is nothing to compare; `dprec run {suite}` first"
        )
    if not ran:
        raise NothingRun(
            f"{suite}: its results were pulled, not computed here, so there is nothing to compare; "
            f"`dprec run {suite} --force` computes them"
        )
    if not path.is_file():
        raise DataError(f"{path}: not there; regenerate it with `dprec run {suite}`")
    shipped = settings.SHIPPED / f"{suite}.csv"
    if shipped.is_file():
        there, whose = shipped.as_posix(), "the archive"
        before: str | None = shipped.read_text(encoding="utf-8")
    else:  # a revision that starts with a hyphen is none of git's options
        there, whose = f"{revision}:./{path.as_posix()}", revision
        before = git("show", "--end-of-options", there)
    if before is None:
        raise DataError(f"{path}: {revision} has no numbers to compare with")
    regenerated = means(path.read_text(encoding="utf-8"), str(path))
    return *compare(means(before, there), regenerated, bands(params.load().suites[suite])), whose


def compare(committed: pl.DataFrame, regenerated: pl.DataFrame, bands: Mapping[str, float]) -> tuple[int, list[str]]:
    """How many numbers there are, and a line for each outside its band (see `bands`) or on one side only."""
    both = committed.join(regenerated, on=KEY, how="full", coalesce=True, suffix="_new").sort(KEY)
    lines = [_difference(row, tolerance(row["metric"], bands)) for row in both.iter_rows(named=True)]
    return len(lines), [line for line in lines if line]


def _difference(row: Mapping[str, Any], band: float) -> str:
    """How a number left its band; empty if it did not."""
    name = f"{row['experiment']} {row['setting']} {row['metric']}" + (f"@{row['k']}" if row["k"] else "")
    old, new = row["value"], row["value_new"]
    if old is None or new is None:
        return f"{name}: not among the {'committed' if old is None else 'regenerated'} numbers"
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
        raise DataError(f"{where}: not a metrics table ({' '.join(str(problem).split())})") from problem
    if not sum(map(len, values)):
        raise DataError(f"{where}: has no means over seeds, as in 0.1; see `dprec site --since REV`")
    return pl.concat(values)
