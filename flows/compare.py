"""Regenerated numbers beside the committed ones: what left its band?

The same code on the same machine gives the same numbers to the last digit. Another processor rounds differently, which
a training run amplifies: on ML-100K bpr stays the same to the last digit, while a seed of the graph recommender may
leave the level of popularity on one processor and stay there on another. So means over seeds are compared, each within
the band of its kind of metric, or within what the spread of the seeds on both sides explains where that is more.
"""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import sqrt

from flows import plan
from tasks.config import params
from tasks.config.tasks import ATTACKS, TASKS
from tasks.errors import ConfigurationError, DataError
from tasks.stages.common import PROVENANCE, RESULTS

STANDARD_ERRORS = 3
"""How many standard errors of the difference of two means over seeds count as explained by the seeds."""

Key = tuple[str, str, str, str]
"""experiment, setting, metric, k"""


class NothingRun(DataError):
    """There are no regenerated numbers."""


@dataclass(frozen=True)
class Mean:
    """Of a number over its seeds."""

    value: float
    squared_error: float
    """Variance of the mean; 0 for a single seed."""


@dataclass(frozen=True)
class Difference:
    """A number that left its band, or that only one side has (the other is None)."""

    key: Key
    committed: Mean | None
    regenerated: Mean | None
    band: float
    """The accepted difference where seeds do not differ."""

    @property
    def allowed(self) -> float:
        """Largest accepted difference."""
        errors = [side.squared_error for side in (self.committed, self.regenerated) if side]
        return max(self.band, STANDARD_ERRORS * sqrt(sum(errors)))

    def __str__(self) -> str:
        experiment, setting, metric, k = self.key
        where = f"{experiment} {setting} {metric}" + (f"@{k}" if k else "")
        if self.committed is None or self.regenerated is None:
            missing = "committed" if self.committed is None else "regenerated"
            return f"{where}: not among the {missing} numbers"
        old, new = self.committed.value, self.regenerated.value
        return f"{where}: {old:.4f} -> {new:.4f} ({new - old:+.4f}, allowed {self.allowed:.2g})"


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


def compare_with_revision(suite: str, revision: str) -> tuple[int, list[Difference]]:
    """Compare `data/results/<suite>/metrics.csv` with the same file of a git revision.

    Returns:
        How many numbers were compared, and those that differ by more than their tolerance.

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
    # A revision that starts with a hyphen is none of git's options.
    command = ["git", "show", "--end-of-options", f"{revision}:./{path.as_posix()}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        last = (shown.stderr.strip().splitlines() or ["git show failed"])[-1]
        raise DataError(f"{path}: {revision} has no numbers to compare with ({last})")
    committed = means(shown.stdout, f"{revision}:{path}")
    regenerated = means(path.read_text(encoding="utf-8"), str(path))
    return compare(committed, regenerated, bands(params.load().suites[suite]))


def compare(
    committed: dict[Key, Mean], regenerated: dict[Key, Mean], bands: Mapping[str, float]
) -> tuple[int, list[Difference]]:
    """How many numbers there are, and those outside their band (see `bands`) or on one side only."""
    keys = sorted(committed.keys() | regenerated.keys())
    differences = [Difference(key, committed.get(key), regenerated.get(key), tolerance(key[2], bands)) for key in keys]
    return len(keys), [difference for difference in differences if not _is_within(difference)]


def means(text: str, where: str) -> dict[Key, Mean]:
    """Every number of a metrics table.

    Raises:
        DataError: it is none, or has no means over seeds, as those of version 0.1 have none.
    """
    table = csv.DictReader(io.StringIO(text))
    columns = table.fieldnames or []
    try:
        values = _means(table, columns)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}:{table.line_num}: not a row of a metrics table ({error!r})") from error
    if not values:
        raise DataError(f"{where}: has no means over seeds, as in 0.1; see `dprec site --since REV`")
    return values


def _means(rows: Iterable[dict[str, str]], columns: Sequence[str]) -> dict[Key, Mean]:
    """Of a row per metric: `mean` and `std` over `n` seeds by cut-off, as in `mean@5` and `std@5`."""
    values = {}
    for row in rows:
        if None in row or None in row.values():
            raise ValueError("not as many columns as the first line has")
        for column in columns:
            name, _, k = column.partition("@")
            if name == "mean" and row[column]:
                deviation = row[column.replace("mean", "std", 1)]
                error = float(deviation) ** 2 / int(row["n"]) if deviation else 0.0
                values[row["experiment"], row["setting"], row["metric"], k] = Mean(float(row[column]), error)
    return values


def _is_within(difference: Difference) -> bool:
    if difference.committed is None or difference.regenerated is None:
        return False
    return abs(difference.regenerated.value - difference.committed.value) <= difference.allowed
