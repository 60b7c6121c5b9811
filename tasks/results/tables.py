"""The tables of a suite's results: their columns, and how they are written and read. Git keeps them.

| file | one row for |
| --- | --- |
| suite.json | the suite, its systems and its data (`tasks.results.facts`) |
| metrics.parquet | a metric of a system at a setting, by seed |
| metrics.csv | the same over seeds: means and sample standard deviations, cut-offs in columns |
| attacks.parquet | what an attack found; its columns depend on the kind of attack |
| pairs.parquet | a planned comparison of two systems (`tasks.evaluation.pairs.PAIRS`): no value of a user |
| history.parquet | an epoch at setting `base`, as float32 |
| ledger.csv | a ledger entry; seeds that spent the same share it. Lists are JSON |
| events.csv | an event of a line of ledger.csv |
| audits.csv | an audit, with the lines of ledger.csv that it is of |
| one_run.csv | an audit of training by one run |
| counts.csv | a step of the preparation of the data |
| checks.csv | a check that the runs passed |
| spreads.csv | users whose value of a metric lies in a bin, ten a bin or more |
| tuning.csv | a trial of an experiment's configurations (`tasks.stages.tune`) |
| provenance.json | when, where and how a stage ran (`tasks.results.load`) |

An accounted ε is `inf` where no finite guarantee follows, a claimed ε empty where none is claimed. `data` says whether
a table is of `real` data, a `part` or `synthetic` ones. The same results give the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pydantic import ValidationError

from tasks.core.errors import DamagedError, DataError
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.units import steps
from tasks.results import files
from tasks.results.facts import Kind, Suite

if TYPE_CHECKING:
    from tasks.core.rows import Columns, Row

AGAIN = "run its collect stage again"
JSON = pl.String
"""A list, or numbers by name, as JSON in a CSV file."""
PARAMETERS = ("epsilon", "noise_multiplier", "noise_parameter", "sampling_probability", "sensitivity")
"""Of events; those that an event does not have are empty."""
ABOUT = ("protects", "unit", "neighbouring", "mechanism", "observer")
BUDGETS = ("claimed_epsilon", "claimed_delta", "accounted_epsilon", "accounted_delta")
TERMS = ("given", "reasons", "gaps")
_TEXT = dict.fromkeys
LEDGER = (
    {"line": pl.Int32, **_TEXT(("experiment", "model", "setting"), pl.String), "seeds": JSON, "network": pl.String}
    | _TEXT((*ABOUT, "accounting", "noise"), pl.String)
    | _TEXT(BUDGETS, pl.Float64)
    | _TEXT(TERMS, JSON)
)
EVENTS = {"line": pl.Int32, "kind": pl.String, "count": pl.Int64} | _TEXT(PARAMETERS, pl.Float64)
AUDITS = (
    {"audit": pl.String, "network": pl.String}
    | _TEXT(ABOUT, pl.String)
    | _TEXT(("epsilon_claimed", "epsilon_accounted", "delta", "audited_epsilon", "confidence"), pl.Float64)
    | {"samples": pl.Int64, **_TEXT(("provable", "control_half", "control_none"), pl.Float64), "lines": JSON}
)
ONE_RUN = (
    _TEXT(("experiment", "model", "setting", "auditor", "unit", "neighbouring", "accounting"), pl.String)
    | _TEXT(("claimed", "accounted", "delta", "epsilon", "confidence"), pl.Float64)
    | _TEXT(("canaries", "guesses", "correct"), pl.Int64)
    | _TEXT(("p_value", "provable", "control", "control_half"), pl.Float64)
    | {"control_correct": pl.Int64}
)
LEFT = ("users", "items", "interactions", "links", "posts", "words")
"""What is counted after a step of the preparation."""
COUNTS = {"dataset": pl.String, "counted": pl.Boolean, "step": pl.String, "numbers": JSON} | _TEXT(LEFT, pl.Int64)
CHECKS = {"contract": pl.String, "name": pl.String, "success": pl.Boolean, "evaluated": pl.Int64, "failed": pl.Int64}
OVER_USERS = {"experiment": pl.String, "metric": pl.String, "k": pl.Int32, "low": pl.Float64, "high": pl.Float64}
OVER_USERS |= {"users": pl.Int64}
HISTORY = {"experiment": pl.String, "seed": pl.Int32, "network": pl.String, "epoch": pl.Int32}
HISTORY |= _TEXT(("loss", "valid", "friendships"), pl.Float32)  # the last: of CroGCN's loss the part that is of these
CSV: dict[str, Columns] = dict(
    zip(files.CSV, (LEDGER, EVENTS, AUDITS, ONE_RUN, COUNTS, CHECKS, OVER_USERS), strict=True)
)


@dataclass(frozen=True)
class Spent:
    """A ledger entry of one run."""

    experiment: str
    setting: str
    seed: int
    entry: LedgerEntry
    network: str = ""
    """Whose users it was spent on, of a pair of networks; empty where there is one alone."""


def write(folder: Path, suite: Suite, tables: Mapping[str, pl.DataFrame]) -> None:
    """Fill an existing, empty folder with `tasks.results.files.WRITTEN`.

    tables: of `CSV` and `files.PARQUET`; a table of `CSV` that is missing is empty.
    """
    import pyarrow.parquet as pq  # which no page needs

    (folder / files.SUITE).write_text(lines(suite.model_dump(mode="json")), encoding="utf-8")
    for name, columns in CSV.items():
        table = tables.get(name, pl.DataFrame(schema=columns)).select(*columns)
        _with_kind(table, suite.kind).write_csv(folder / f"{name}.csv")
    _with_kind(means(tables["metrics"]), suite.kind).write_csv(folder / "metrics.csv", float_precision=6)
    for name in files.PARQUET:
        table = _with_kind(tables[name], suite.kind).to_arrow()
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=19, store_schema=False)


def _with_kind(table: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    return table.with_columns(data=pl.lit(kind))


def read_suite(folder: Path) -> Suite:
    """The facts of a suite.

    Raises:
        DataError: the file is missing or not what was written.
    """
    path = folder / files.SUITE
    try:
        return Suite.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DamagedError(f"{path}: not found; {AGAIN}") from None
    except ValidationError as error:
        raise DamagedError(f"{path}: not the facts of a suite ({error}); {AGAIN}") from error


def read_table(folder: Path, name: str) -> pl.DataFrame:
    """A table of `CSV` or `files.PARQUET`, without `data`.

    Raises:
        DataError: the file is missing or not what was written.
    """
    if name in CSV:
        return read_csv(folder / f"{name}.csv", CSV[name])
    path = folder / f"{name}.parquet"
    with _readable(path, "collect"):
        return pl.read_parquet(path, glob=False).drop("data")  # PyArrow's reader imports pandas


def read_csv(path: Path, columns: Columns, stage: str | None = "collect") -> pl.DataFrame:
    """These columns of a table.

    stage: that writes it; None for a table that git alone has.

    Raises:
        DataError: the file is missing or not that table; a DamagedError where a stage wrote it.
    """
    with _readable(path, stage):
        return pl.read_csv(path, schema_overrides=columns).select(*columns)


@contextmanager
def _readable(path: Path, stage: str | None) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        if stage is None:
            raise DataError(f"{path}: not a readable table ({error}); git has it") from error
        raise DamagedError(f"{path}: not a readable table ({error}); run its {stage} stage again") from error


def ledger(releases: Iterable[Spent], models: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """The tables `ledger` and `events`: a line for each entry, in the order in which they come.

    models: experiment -> its system.
    """
    grouped: dict[tuple[str, str, str, str], tuple[Spent, list[int]]] = {}
    for release in releases:
        key = (release.experiment, release.setting, release.network, release.entry.model_dump_json())
        grouped.setdefault(key, (release, []))[1].append(release.seed)
    lines, events = [], []
    for line, (release, seeds) in enumerate(grouped.values()):
        record = release.entry.model_dump(mode="json") | {"noise": release.entry.noise}
        events += [
            {"line": line, "kind": event["kind"], "count": event["count"], **event["parameters"]}
            for event in record.pop("events")
        ]
        about = {"line": line, "experiment": release.experiment, "model": models[release.experiment]}
        about |= {"setting": release.setting, "seeds": json.dumps(seeds), "network": release.network}
        record |= {name: json.dumps(record[name], ensure_ascii=False, allow_nan=False) for name in TERMS}
        record["accounted_epsilon"] = math.inf if record["accounted_epsilon"] is None else record["accounted_epsilon"]
        lines.append(about | record)
    return {"ledger": pl.DataFrame(lines, schema=LEDGER), "events": pl.DataFrame(events, schema=EVENTS)}


def entries(ledger: pl.DataFrame, events: pl.DataFrame) -> dict[int, LedgerEntry]:
    """Line -> the entry that it was made of."""
    happened: dict[int, list[Event]] = {}
    for row in events.iter_rows(named=True):
        parameters = {name: row[name] for name in PARAMETERS if row[name] is not None}
        happened.setdefault(row["line"], []).append(Event(kind=row["kind"], count=row["count"], parameters=parameters))
    result = {}
    for row in ledger.iter_rows(named=True):
        record = {name: row[name] for name in (*ABOUT, "accounting", "noise", *BUDGETS)}
        record |= {name: json.loads(row[name]) for name in TERMS} | {"events": tuple(happened.get(row["line"], ()))}
        if math.isinf(row["accounted_epsilon"]):
            record["accounted_epsilon"] = None
        result[row["line"]] = LedgerEntry.model_validate(record)
    return result


def audits(records: Iterable[Row], ledger: pl.DataFrame) -> pl.DataFrame:
    """The table `audits` of records of audit.json: an audit is of the lines that it names.

    These are lines of the experiments and settings that it covers, of the same network, kind of data, mechanism and
    observer, but of no line of a smaller unit: what is shown of whole texts is not shown of a word.
    """
    rows = []
    for record in records:
        same = [
            line["line"]
            for line in ledger.iter_rows(named=True)
            if line["setting"] in record["covers"].get(line["experiment"], ())
            and record["network"] in ("", line["network"])
            and all(line[name] == record[name] for name in ("protects", "mechanism", "observer"))
            and (steps(record["unit"], line["unit"]) or not steps(line["unit"], record["unit"]))
        ]
        controls = {f"control_{name}": bound for name, bound in record["controls"].items()}
        rows.append({name: record.get(name) for name in AUDITS} | controls | {"lines": json.dumps(same)})
    return pl.DataFrame(rows, schema=AUDITS)


def means(metrics: pl.DataFrame) -> pl.DataFrame:
    """`metrics.csv` of METRICS (see `contracts`): experiment, setting, metric, n, then mean and std by cut-off.

    `n` seeds have the metric; `std` is the sample standard deviation, empty for one seed. A metric without a cut-off
    stands under `mean` and `std`, others under `mean@5` and so on.
    """
    keys = ["experiment", "setting", "metric"]
    about = pl.col("value")
    at = pl.when(pl.col("k").is_null()).then(pl.lit("")).otherwise(pl.format("@{}", "k"))
    summaries = metrics.group_by(*keys, "k").agg(mean=about.mean(), std=about.std(), n=pl.len()).sort("k")
    summaries = summaries.with_columns(at=at)
    wide = summaries.pivot("at", index=[*keys, "n"], values=["mean", "std"], separator="")
    columns = [f"{name}{cutoff}" for cutoff in summaries["at"].unique(maintain_order=True) for name in ("mean", "std")]
    return wide.select(*keys, "n", *columns).sort(*keys, "n")


def lines(content: Mapping[str, object]) -> str:
    """JSON with a line per key, and per item of a list, so that a difference shows where it is."""

    def text(value: object) -> str:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(", ", ":"))

    def block(value: object) -> str:
        if not isinstance(value, list | tuple) or not value:
            return text(value)
        return "[\n" + ",\n".join(text(item) for item in value) + "\n]"

    return "{\n" + ",\n".join(f"{text(key)}: {block(content[key])}" for key in sorted(content)) + "\n}\n"
