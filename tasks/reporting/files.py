"""The results of a suite as a folder of small files, which git keeps: everything that a page shows, and no clock.

| file | what it holds |
| --- | --- |
| results.json | what is neither a table nor a ledger entry: parameters, seeds, audits, checks, counts of the data |
| metrics.parquet | METRICS: every metric of every system, setting and seed |
| metrics.csv | their means and sample standard deviations, one row per metric, its cut-offs side by side |
| attacks.parquet | what attacks gain over their controls |
| history.parquet | loss and validation metric by epoch at setting `base`, as float32 |
| ledger.json | every ledger entry with its events; entries that seeds have in common stand there once |
| provenance.json | when, where and how the stages ran |

Every table says in a column `data` what it is of: `real`, `part` or `synthetic` (`tasks.reporting.core.origins`).
Whatever has a `model` there means by it the experiment's system. The same results always give the same bytes, and
reading gives back what was written. What follows from these alone (the page, the ledger, the comparison with the
published figures, the judged claims) is computed by whoever reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from tasks import contracts
from tasks.errors import DataError
from tasks.evaluation.gains import GAINS
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core import origins
from tasks.reporting.core.results import BASE, GAIN_ORDER, METRIC_ORDER, Network, Results, Run, Spent, System, unique
from tasks.results.paper import Paper

WRITTEN = ("attacks.parquet", "history.parquet", "ledger.json", "metrics.csv", "metrics.parquet", "results.json")
"""What `write` writes, in order of name."""
PROVENANCE = "provenance.json"
ELSEWHERE = ("metrics", "gains", "edges", "membership", "published", "runs", "layout")
"""Fields of `Results` that are not in results.json."""
HISTORY = {"experiment": pl.String, "seed": pl.Int32, "network": pl.String, "epoch": pl.Int32} | {
    "loss": pl.Float32,
    "valid": pl.Float32,
    "friendships": pl.Float32,  # of CroGCN's loss, the part that is of friendships
}
PUBLISHED = {
    "paper": pl.String,
    "artefact": pl.String,
    "dataset": pl.String,
    "method": pl.String,
    "setting": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "std": pl.Float64,
}
Describe = Callable[[str | None, tuple[Network, ...]], Paper]
AGAIN = "run its collect stage again"


def write(results: Results, folder: Path, attacks: pl.DataFrame) -> None:
    """Fill an existing, empty folder with `WRITTEN`; published figures and provenance are not among them.

    attacks: what attacks.parquet holds, which the kind of the suite's attack decides.
    """
    metrics = results.metrics.select(contracts.METRICS.names).sort(METRIC_ORDER)
    (folder / "metrics.csv").write_text(origins.with_kind(means(metrics), results).write_csv(), encoding="utf-8")
    tables = {"metrics": metrics, "attacks": attacks, "history": _history(results.systems)}
    for name, table in tables.items():
        _write_parquet(origins.with_kind(table, results), folder / f"{name}.parquet")
    (folder / "ledger.json").write_text(_lines(_ledger(results.systems)), encoding="utf-8")
    (folder / "results.json").write_text(_lines(_other_fields(results)), encoding="utf-8")


def read(folder: Path, reference: Path, describe: Describe) -> Results:
    """What `write` wrote.

    Args:
        folder: of one suite. Without a provenance.json the results have no runs.
        reference: paper_tables.csv.
        describe: key of a paper or None, and the networks of the data -> the paper whose tables they are shown in.

    Raises:
        DataError: a file is missing or not what was written.
    """
    rest, spent = _json(folder / "results.json"), _json(folder / "ledger.json")
    history, attacks = _histories(_parquet(folder / "history.parquet")), _parquet(folder / "attacks.parquet")
    hints, runs = get_type_hints(Results), folder / PROVENANCE
    try:
        entries = _entries(spent)
        for system in rest["systems"]:
            system["name"] = system.pop("model")
            system["spent"] = _read_spent(entries, spent["spent"], system)
            system["history"] = history.get(system["experiment"], {})
        given = {name: TypeAdapter(hints[name]).validate_python(value) for name, value in rest.items()}
        return Results(
            **given,
            layout=describe(given["paper"], given["networks"]),
            metrics=_parquet(folder / "metrics.parquet"),
            gains=attacks if "gain" in attacks.columns else no_gains(),
            edges=attacks if "world" in attacks.columns else None,
            membership=attacks if "shadows" in attacks.columns else None,
            published=read_published(reference),
            runs=read_runs(runs) if runs.exists() else (),
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise DataError(f"{folder}: not the results of a suite ({problem}); {AGAIN}") from error


def gains(results: Results) -> pl.DataFrame:
    """What attacks on attributes gain over their controls; nothing of a suite that has no attack."""
    return results.gains.select("experiment", "model", *GAINS.names).sort(GAIN_ORDER)


def means(metrics: pl.DataFrame) -> pl.DataFrame:
    """`metrics.csv` of METRICS: columns experiment, setting, metric, n, then mean and std by cut-off.

    `n` seeds have the metric; `std` is the sample standard deviation, empty for one seed. A metric without a cut-off
    stands under `mean` and `std`, others under `mean@5` and so on.
    """
    keys = ["experiment", "setting", "metric"]
    about = pl.col("value")
    summaries = metrics.group_by(*keys, "k").agg(about.mean().alias("mean"), about.std().alias("std"), n=pl.len())
    cutoffs = sorted({-1 if k is None else k for k in summaries["k"]})
    columns = [f"{name}{'' if k < 0 else f'@{k}'}" for k in cutoffs for name in ("mean", "std")]
    by_row: dict[tuple[Any, ...], dict[str, str | None]] = {}
    for row in summaries.iter_rows(named=True):
        cells = by_row.setdefault((*(row[key] for key in keys), row["n"]), {})
        at = "" if row["k"] is None else f"@{row['k']}"
        cells |= {f"{name}{at}": None if row[name] is None else f"{row[name]:.6f}" for name in ("mean", "std")}
    rows = [dict(zip((*keys, "n"), key, strict=True)) | cells for key, cells in sorted(by_row.items())]
    schema = dict.fromkeys(keys, pl.String) | {"n": pl.Int64} | dict.fromkeys(columns, pl.String)
    return pl.DataFrame(rows, schema=schema)


def read_published(path: Path) -> pl.DataFrame:
    """The published figures (`PUBLISHED`).

    Raises:
        DataError: the file is missing or not that table.
    """
    try:
        return pl.read_csv(path, schema=PUBLISHED)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: not the table of published figures ({error})") from error


def write_runs(runs: Iterable[Run], path: Path) -> None:
    """Write provenance.json: a run per line; runs on the same machine with the same packages name its number."""
    machines: list[dict[str, Any]] = []
    records = []
    for run in runs:
        record = asdict(run)
        machine = {name: record.pop(name) for name in ("processor", "cores", "packages")}
        if machine not in machines:
            machines.append(machine)
        records.append({name: value for name, value in record.items() if value is not None})
        records[-1]["machine"] = machines.index(machine)
    path.write_text(_lines({"machines": machines, "runs": records}), encoding="utf-8")


def read_runs(path: Path) -> tuple[Run, ...]:
    """What `write_runs` wrote.

    Raises:
        DataError: the file is missing or not that.
    """
    content = _json(path)
    try:
        return tuple(Run(**content["machines"][record.pop("machine")], **record) for record in content["runs"])
    except (KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: not a record of runs ({error!r}); delete it") from error


def _other_fields(results: Results) -> dict[str, Any]:
    rest = {field.name: getattr(results, field.name) for field in fields(results) if field.name not in ELSEWHERE}
    systems = [asdict(system) | {"history": {}} for system in results.systems]
    for system in systems:
        del system["spent"]
        system["model"] = system.pop("name")
    rest |= {name: [asdict(record) for record in rest[name]] for name in ("networks", "aligned")}
    rest |= {"processed": asdict(results.processed), "counted": results.counted and asdict(results.counted)}
    return rest | {"systems": systems}


def _ledger(systems: Iterable[System]) -> dict[str, list[Any]]:
    """What was spent, everything that repeats once and named by its number.

    `sentences`: reasons and gaps. `entries`: ledger entries. `spent`: by experiment, setting and seeds, pairs of a
    network and an entry.
    """
    sentences: dict[str, int] = {}
    numbers: dict[str, int] = {}
    entries: list[dict[str, Any]] = []
    spent: list[dict[str, Any]] = []
    for system in systems:
        units: dict[tuple[str, int], list[list[Any]]] = {}
        for release in system.spent:
            record = release.entry.model_dump(mode="json", exclude_defaults=True)
            if "reason" in record:
                record["reason"] = sentences.setdefault(record["reason"], len(sentences))
            if "gaps" in record:
                record["gaps"] = [sentences.setdefault(gap, len(sentences)) for gap in record["gaps"]]
            number = numbers.setdefault(json.dumps(record), len(entries))
            if number == len(entries):
                entries.append(record)
            units.setdefault((release.setting, release.seed), []).append([release.network, number])
        alike: dict[str, dict[str, Any]] = {}
        for (setting, seed), numbered in units.items():
            line = {"experiment": system.experiment, "setting": setting, "seeds": [], "entries": numbered}
            alike.setdefault(f"{setting} {numbered}", line)["seeds"].append(seed)
        spent += alike.values()
    return {"sentences": list(sentences), "entries": entries, "spent": spent}


def _entries(content: dict[str, list[Any]]) -> list[LedgerEntry]:
    """The entries of ledger.json with their sentences."""
    sentences = content["sentences"]
    return [
        LedgerEntry.model_validate(
            record
            | ({"reason": sentences[record["reason"]]} if "reason" in record else {})
            | {"gaps": [sentences[number] for number in record.get("gaps", ())]}
        )
        for record in content["entries"]
    ]


def _read_spent(entries: list[LedgerEntry], spent: list[dict[str, Any]], system: dict[str, Any]) -> list[Spent]:
    """What a system spent, by setting in order of appearance and by seed as the system has them."""
    lines = [line for line in spent if line["experiment"] == system["experiment"]]
    settings = unique([line["setting"] for line in lines])
    releases = [
        Spent(line["setting"], seed, entries[number], network)
        for line in lines
        for seed in line["seeds"]
        for network, number in line["entries"]
    ]
    return sorted(releases, key=lambda release: (settings.index(release.setting), system["seeds"].index(release.seed)))


def shown_history(history: dict[str, dict[str, list[dict[str, Any]]]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Of `System.history` what a page shows: setting `base`, `HISTORY` alone, as float32; empty without epochs."""
    by_seed = {
        seed: [
            {
                key: float(np.float32(epoch[key])) if dtype == pl.Float32 else epoch[key]
                for key, dtype in HISTORY.items()
                if epoch.get(key) is not None
            }
            for epoch in epochs
        ]
        for seed, epochs in history.get(BASE, {}).items()
        if epochs
    }
    return {BASE: by_seed} if by_seed else {}


def _history(systems: Iterable[System]) -> pl.DataFrame:
    rows = [
        {"experiment": system.experiment, "seed": int(seed)} | epoch
        for system in systems
        for seed, epochs in system.history.get(BASE, {}).items()
        for epoch in epochs
    ]
    return pl.DataFrame(rows, schema=HISTORY)


def _histories(table: pl.DataFrame) -> dict[str, dict[str, dict[str, list[dict[str, Any]]]]]:
    """Experiment -> what `shown_history` gives."""
    histories: dict[str, dict[str, dict[str, list[dict[str, Any]]]]] = {}
    for row in table.iter_rows(named=True):
        experiment, seed = row.pop("experiment"), str(row.pop("seed"))
        epoch = {key: value for key, value in row.items() if value is not None}
        histories.setdefault(experiment, {BASE: {}})[BASE].setdefault(seed, []).append(epoch)
    return histories


def no_gains() -> pl.DataFrame:
    """`Results.gains` of a suite whose attack is none on attributes."""
    nothing = pl.from_arrow(GAINS.empty_table())
    assert isinstance(nothing, pl.DataFrame)
    return nothing.select(pl.lit("").alias("experiment"), pl.lit("").alias("model"), pl.all())


def _lines(content: dict[str, Any]) -> str:
    """JSON with a line per key, and per item of a list, so that a difference shows where it is."""

    def text(value: Any) -> str:
        return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(", ", ":"))

    def block(value: Any) -> str:
        if not isinstance(value, list | tuple) or not value:
            return text(value)
        return "[\n" + ",\n".join(text(item) for item in value) + "\n]"

    return "{\n" + ",\n".join(f"{text(key)}: {block(content[key])}" for key in sorted(content)) + "\n}\n"


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: not found; {AGAIN}") from None
    except ValueError as error:
        raise DataError(f"{path}: not readable as JSON ({error}); {AGAIN}") from error


def _parquet(path: Path) -> pl.DataFrame:
    try:
        table = pl.from_arrow(pq.read_table(path).drop_columns(origins.COLUMN))  # results.json says it
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: not a readable table ({error}); {AGAIN}") from error
    assert isinstance(table, pl.DataFrame)
    return table


def _write_parquet(table: pl.DataFrame, path: Path) -> None:
    pq.write_table(table.to_arrow(), path, compression="zstd", compression_level=19, store_schema=False)
