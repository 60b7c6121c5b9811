"""A suite's results as frames, read as they are asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from tasks.core.errors import DamagedError, DataError
from tasks.evaluation.run_numbers import split_of
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits.audit import Verdict, verdict
from tasks.results import claims as claimed
from tasks.results import tables
from tasks.results.facts import BASE, Suite, System, Together

if TYPE_CHECKING:
    from tasks.core.rows import Columns, Row

COMPOSED = "composed.json"
PROVENANCE = "provenance.json"
NUMBER = ["paper", "artefact", "dataset", "method", "setting", "metric"]
"""What distinguishes printed numbers."""
PUBLISHED: Columns = dict.fromkeys(NUMBER, pl.String) | dict.fromkeys(("value", "std"), pl.Float64)
COMPARISON: Columns = dict.fromkeys(NUMBER, pl.String) | {
    **dict.fromkeys(("published", "ours_mean", "ours_std"), pl.Float64),
    **{"seeds": pl.Int64, "protocol": pl.String, "data": pl.String},
}
CLAIMS: Columns = {"number": pl.Int32} | dict.fromkeys(("artefact", "claim", "note"), pl.String)
EVIDENCE: Columns = (
    {"number": pl.Int32, "reading": pl.String, "case": pl.Int32, "most_of": pl.Int32}
    | dict.fromkeys(("only", "absent", "measure", "methods"), pl.String)
    | dict.fromkeys(("left", "left_setting", "right", "right_setting"), pl.String)
    | dict.fromkeys(("left_mean", "right_mean", "first", "last", "at_most", "gap"), pl.Float64)
    | dict.fromkeys(("key", "below", "near", "floor"), pl.String) | {"minus": pl.Boolean, "digits": pl.Int32}
    | {"runs": pl.Int32} | dict.fromkeys(("difference", "low", "high"), pl.Float64)
)  # fmt: skip
"""A comparison that bears on a claim: of two sides, of a trend of `methods` (a JSON list) from `first` to `last` of
`key`, with a `floor`, or a number alone. A side is a method by the paper's name and, as JSON, what is not as at
setting `base`. Comparisons have a `case`; `most_of` is the number of cases of which most must hold, 0 where all
must. `difference` is by how much it is as claimed, with its 95 % interval over `runs` (see `significance.estimate`).
`absent` is a JSON list of sides that were not run; null stands for several values of a key."""
TOGETHER = TypeAdapter(list[Together])


@dataclass(frozen=True)
class Run:
    """Provenance of one stage of the suite: it decides nothing."""

    stage: str
    name: str
    """An experiment's, an entry's of `aligned` or `embeddings`, or the suite's."""
    revision: str
    """Git commit, with "+changes" where the code differed from it."""
    started: str
    """ISO 8601, UTC."""
    seconds: float
    """Of the last part, where a run was resumed."""
    cpu_seconds: float
    """Of all processes that worked on it, also before an interruption."""
    peak_memory_mb: int
    processor: str
    cores: int
    packages: dict[str, str]
    epoch_seconds: float | None = None
    """Median over epochs and seeds at setting `base`; None without epochs."""
    training_seconds: float | None = None
    """Sum over epochs, mean over seeds at setting `base`; None without epochs."""


@dataclass(frozen=True)
class Line:
    """A line of the ledger with its audit."""

    number: int
    experiment: str
    setting: str
    seeds: tuple[int, ...]
    network: str
    entry: LedgerEntry
    audit: dict[str, Any] | None
    """The row of audits.csv that is of this line and proves most, with its `verdict`; None without one."""


def _table(name: str) -> cached_property[pl.DataFrame]:
    return cached_property(lambda results: tables.read_table(results._folder, name))


def _derived(name: str, columns: Columns) -> cached_property[pl.DataFrame]:
    """A table that the report stage writes; no rows where the report was never drawn."""

    def read(results: Results) -> pl.DataFrame:
        path = results._folder / f"{name}.csv"
        return tables.read_csv(path, columns, "report") if path.exists() else pl.DataFrame(schema=columns)

    return cached_property(read)


class Results:
    """The tables of one suite, with the columns of `tasks.results.tables`, read as they are asked for.

    Raises (when a table is asked for) DataError: its file is missing or not what was written.
    """

    attacks = _table("attacks")
    """What attacks found; its columns depend on the kind of attack. No rows without one."""
    history = _table("history")
    """`tables.HISTORY`: epochs at setting `base`."""
    pairs = _table("pairs")
    """`tasks.evaluation.pairs.PAIRS`: planned comparisons of two systems."""
    ledger = _table("ledger")
    events = _table("events")
    one_run = _table("one_run")
    counts = _table("counts")
    checks = _table("checks")
    spreads = _table("spreads")
    comparison = _derived("comparison", COMPARISON)
    evidence = _derived("evidence", EVIDENCE)
    _claims = _derived("claims", CLAIMS)
    kinds: Sequence[Callable[[Results], dict[str, Any] | None]] = ()
    """What reads the evidence of its attack (`tasks.results.leakage`)."""

    def __init__(self, folder: Path, reference: Path) -> None:
        """folder: data/results/S; reference: paper_tables.csv."""
        self._folder, self._reference = folder, reference

    @classmethod
    def of(cls, suite: Suite, metrics: pl.DataFrame) -> Results:
        """Facts and METRICS that are not written yet; nothing else can be asked for."""
        results = cls(Path(), Path())
        results.suite, results.metrics = suite, metrics.with_columns(pl.col("k").fill_null(0))
        return results

    @cached_property
    def suite(self) -> Suite:
        """The facts of the suite."""
        return tables.read_suite(self._folder)

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """METRICS of every experiment: suite, experiment, dataset, model, setting, seed, metric, k (0: none), value."""
        return tables.read_table(self._folder, "metrics").with_columns(pl.col("k").fill_null(0))

    @cached_property
    def means(self) -> pl.DataFrame:
        """Over seeds: experiment, setting, metric, k (0: none), n, mean, std (None for one seed).

        Sweep points may have their seeds on the first split alone; `base` has all.
        """
        value = pl.col("value")
        grouped = self.metrics.group_by("experiment", "setting", "metric", "k", maintain_order=True)
        return grouped.agg(n=pl.len(), mean=value.mean(), std=value.std())

    @cached_property
    def audits(self) -> pl.DataFrame:
        """`tables.AUDITS` with `verdict`: see `verdict_of`."""
        table = tables.read_table(self._folder, "audits")
        accounted = dict(self.ledger.select("line", "accounted_epsilon").iter_rows())
        verdicts = [
            verdict_of(row, [accounted[line] for line in json.loads(row["lines"])])
            for row in table.iter_rows(named=True)
        ]
        return table.with_columns(verdict=pl.Series(verdicts, dtype=pl.String))

    @cached_property
    def verdicts(self) -> dict[int, dict[str, claimed.Verdict]]:
        """See `tasks.results.claims.verdicts`."""
        return claimed.verdicts(self.evidence)

    @cached_property
    def claims(self) -> pl.DataFrame:
        """`CLAIMS` with `verdict`."""
        verdicts = [claimed.merged(self.verdicts.get(number, {}).values()) for number in self._claims["number"]]
        return self._claims.with_columns(verdict=pl.Series(verdicts, dtype=pl.String))

    @cached_property
    def tuning(self) -> pl.DataFrame:
        """Trials on validation data (`tasks.stages.tune.COLUMNS`); no rows where nothing was tuned."""
        path = self._folder / "tuning.csv"
        return pl.read_csv(path) if path.exists() else pl.DataFrame(schema=["experiment"])

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines of the ledger, in order."""
        entries, proving = tables.entries(self.ledger, self.events), dict[int, dict[str, Any]]()
        for row in self.audits.sort("audited_epsilon", maintain_order=True).iter_rows(named=True):
            proving |= dict.fromkeys(json.loads(row["lines"]), row)
        rows = self.ledger.select("line", "experiment", "setting", "seeds", "network").iter_rows()
        return tuple(
            Line(line, experiment, setting, tuple(json.loads(seeds)), network, entries[line], proving.get(line))
            for line, experiment, setting, seeds, network in rows
        )

    def lines_of(self, experiment: str) -> list[Line]:
        """Lines of an experiment at setting `base`."""
        return [line for line in self.lines if (line.experiment, line.setting) == (experiment, BASE)]

    @cached_property
    def published(self) -> pl.DataFrame:
        """The published figures: `PUBLISHED`."""
        return read_published(self._reference)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """When, where and how the stages ran; empty where their outputs were pulled without a record."""
        path = self._folder / PROVENANCE
        return read_runs(path) if path.exists() else ()

    @cached_property
    def composed(self) -> list[Together]:
        """What all private releases of the suite spend together; nothing where the report was never drawn."""
        path = self._folder / COMPOSED
        try:
            return TOGETHER.validate_json(path.read_bytes()) if path.exists() else []
        except ValidationError as error:
            raise DamagedError(f"{path}: not what was written; run its report stage again") from error

    @cached_property
    def revisions(self) -> tuple[str, ...]:
        """Git commits that the numbers are of."""
        return tuple(sorted({run.revision for run in self.runs}))

    @cached_property
    def labels(self) -> dict[str, str]:
        """Experiment -> its label."""
        return {system.experiment: system.label for system in self.suite.systems}

    @cached_property
    def systems(self) -> dict[str, System]:
        """By experiment."""
        return {system.experiment: system for system in self.suite.systems}

    def values(self, experiment: str, metric: str, k: int = 0, setting: str = BASE) -> dict[int, float]:
        """Seed -> value of a metric; empty where it was not measured."""
        return self._index.get((experiment, setting, metric, k), {})

    def mean(self, experiment: str, metric: str, k: int = 0, setting: str = BASE) -> float | None:
        """Mean over seeds; None where it was not measured."""
        values = self.values(experiment, metric, k, setting)
        return math.fsum(values.values()) / len(values) if values else None

    def on_swept(self, values: dict[int, float]) -> dict[int, float]:
        """Of values by run those on the splits that sweep points were run on, which are compared."""
        return {run: value for run, value in values.items() if split_of(run) in self._swept_splits}

    @cached_property
    def _swept_splits(self) -> set[int]:
        return {0, *map(split_of, self.metrics.filter(pl.col("setting") != BASE)["seed"].unique())}

    def settings(self, experiment: str) -> list[str]:
        """Settings that were measured: `base`, then the sweep points as params.yaml has them."""
        return self._settings.get(experiment, [])

    @cached_property
    def _settings(self) -> dict[str, list[str]]:
        measured: dict[str, set[str]] = {}
        for experiment, setting, _, _ in self._index:
            measured.setdefault(experiment, set()).add(setting)
        settings = {name: system.settings() for name, system in self.systems.items()}
        return {name: [each for each in settings.get(name, {BASE: {}}) if each in measured[name]] for name in measured}

    def cutoffs(self, metric: str) -> list[int]:
        """Cut-offs at which a metric was measured for any system."""
        return sorted({k for _, _, name, k in self._index if name == metric and k > 0})

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, int], dict[int, float]]:
        index: dict[tuple[str, str, str, int], dict[int, float]] = {}
        columns = ("experiment", "setting", "metric", "k", "seed", "value")
        for experiment, setting, metric, k, seed, value in self.metrics.select(columns).iter_rows():
            by_seed = index.setdefault((experiment, setting, metric, k), {})
            if seed in by_seed:
                raise DamagedError(
                    f"{self._folder}: {metric} at k = {k} of {experiment}, setting {setting}, seed {seed} is given "
                    "twice; run its train and attack stages again"
                )
            by_seed[seed] = value
        return index


def verdict_of(audit: Row, accounted: Iterable[float | None] = ()) -> Verdict:
    """The verdict on an audit, a row of audits.csv.

    accounted: ε of the lines that it is of; infinity or None: no finite one. A claim of more than was audited stays
    inconclusive.
    """
    bounds = [audit["epsilon_accounted"], *(None if value in (None, math.inf) else value for value in accounted)]
    largest = None if None in bounds else max(bounds)
    controls = [audit[f"control_{noise}"] for noise in ("half", "none")]
    run = [bound for bound in controls if bound is not None]
    return verdict(audit["audited_epsilon"], audit["epsilon_claimed"], largest, run)


def read_published(path: Path) -> pl.DataFrame:
    """The published figures (`PUBLISHED`)."""
    return tables.read_csv(path, PUBLISHED, None)


def write_runs(runs: Iterable[Run], path: Path) -> None:
    """Write provenance.json: a run per line; runs on the same machine with the same packages name its number."""
    machines: list[dict[str, object]] = []
    records = []
    for run in runs:
        record = asdict(run)
        machine = {name: record.pop(name) for name in ("processor", "cores", "packages")}
        if machine not in machines:
            machines.append(machine)
        records.append({name: value for name, value in record.items() if value is not None})
        records[-1]["machine"] = machines.index(machine)
    path.write_text(tables.lines({"machines": machines, "runs": records}), encoding="utf-8")


def read_runs(path: Path) -> tuple[Run, ...]:
    """What `write_runs` wrote.

    Raises:
        DataError: the file is missing or not that.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Run(**content["machines"][record.pop("machine")], **record) for record in content["runs"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: not a record of runs ({error!r}); delete it") from error
