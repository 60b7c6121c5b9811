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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from flows import plan
from flows.current import current
from tasks.errors import ConfigurationError, DataError
from tasks.stages.common import PROVENANCE, RESULTS

# First part of a metric's name -> largest accepted difference of the mean over seeds.
TOLERANCE = {
    "sampled-100": 0.03,
    "full": 0.03,
    "next": 0.01,  # of a few hundredths at most cut-offs
    "next-new": 0.01,
    "attribute": 0.1,  # an F1 over a fifth of the users, six of the demo's 60; another processor moved it by 0.061
    "attribute-random": 0.1,
    "attribute-blurred": 0.1,
    "blurring": 0.1,
    "mae": 0.02,  # of ratings from 1 to 5
    "reconstruction": 0.03,
    "communication": 0.5,  # counts, which are exact
    "iterations": 100,  # validation ends training, some epochs earlier or later on another processor
}

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

    @property
    def allowed(self) -> float:
        """Largest accepted difference."""
        errors = [side.squared_error for side in (self.committed, self.regenerated) if side]
        return max(tolerance(self.key[2]), STANDARD_ERRORS * sqrt(sum(errors)))

    def __str__(self) -> str:
        experiment, setting, metric, k = self.key
        where = f"{experiment} {setting} {metric}" + (f"@{k}" if k else "")
        if self.committed is None or self.regenerated is None:
            missing = "committed" if self.committed is None else "regenerated"
            return f"{where}: not among the {missing} numbers"
        old, new = self.committed.value, self.regenerated.value
        return f"{where}: {old:.4f} -> {new:.4f} ({new - old:+.4f}, allowed {self.allowed:.2g})"


def tolerance(metric: str) -> float:
    """The accepted difference of a metric's mean over seeds that have no spread.

    Raises:
        ConfigurationError: no band is stated for this kind of metric.
    """
    kind = metric.partition("/")[0]
    if kind not in TOLERANCE:
        raise ConfigurationError(f"flows/compare.py: no tolerance is stated for {metric!r}; known: {sorted(TOLERANCE)}")
    return TOLERANCE[kind]


def against(suite: str, revision: str) -> tuple[int, list[Difference]]:
    """Compare `data/results/<suite>/metrics.csv` with the same file of a git revision.

    Returns:
        How many numbers were compared, and those that differ by more than their tolerance.

    Raises:
        NothingRun: the suite was not run here to its end, so that the file is the committed one.
        DataError: one of the two is not there.
    """
    path = RESULTS / suite / "metrics.csv"
    ran = (PROVENANCE / "check" / "metrics" / f"{suite}.json").is_file()
    with current(suite) as project:
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
    return compare(means(shown.stdout, f"{revision}:{path}"), means(path.read_text(encoding="utf-8"), str(path)))


def compare(committed: dict[Key, Mean], regenerated: dict[Key, Mean]) -> tuple[int, list[Difference]]:
    """How many numbers there are, and those outside their tolerance or on one side only."""
    keys = sorted(committed.keys() | regenerated.keys())
    differences = [Difference(key, committed.get(key), regenerated.get(key)) for key in keys]
    return len(keys), [difference for difference in differences if not _within(difference)]


def means(text: str, where: str) -> dict[Key, Mean]:
    """Every number of a metrics table: means over seeds, or a value per seed, as earlier revisions have it.

    Raises:
        DataError: the table has the columns of neither.
    """
    table = csv.DictReader(io.StringIO(text))
    columns = table.fieldnames or []
    try:
        values = _by_seed(table) if "value" in columns else _means(table, columns)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}:{table.line_num}: not a row of a metrics table ({error!r})") from error
    if not values:
        raise DataError(f"{where}: has no numbers")
    return values


def _means(rows: Iterable[dict[str, str]], columns: Sequence[str]) -> dict[Key, Mean]:
    """Of a row per metric: `mean` and `std` over `n` seeds by cut-off, as in `mean@5` and `std@5`."""
    values = {}
    for row in rows:
        for column in columns:
            name, _, k = column.partition("@")
            if name == "mean" and row[column]:
                deviation = row[column.replace("mean", "std", 1)]
                error = float(deviation) ** 2 / int(row["n"]) if deviation else 0.0
                values[row["experiment"], row["setting"], row["metric"], k] = Mean(float(row[column]), error)
    return values


def _by_seed(rows: Iterable[dict[str, str]]) -> dict[Key, Mean]:
    values: dict[Key, list[float]] = defaultdict(list)
    for row in rows:
        key = (row["experiment"], row["setting"], row["metric"], row["k"])
        values[key].append(float(row["value"]))
    return {
        key: Mean(fmean(column), variance(column) / len(column) if len(column) > 1 else 0.0)
        for key, column in values.items()
    }


def _within(difference: Difference) -> bool:
    if difference.committed is None or difference.regenerated is None:
        return False
    return abs(difference.regenerated.value - difference.committed.value) <= difference.allowed
