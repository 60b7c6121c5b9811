"""The values that a change of form must leave as they are: `python -m tests.oracle`.

Of all committed results: metrics, gains, histories, ε, δ and events of ledgers, raw numbers of audits, verdicts of
claims. Of what this checkout has computed of `RUN`: bytes of what is released and of weights, which differ on another
kind of processor. tests/oracle.json has the digests; `--freeze` writes it. `--lines SUITE TABLE` prints what a digest
is of, to be compared between two revisions. Words are not among the values.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from tasks.results import tables

RESULTS, RUNS = Path("data/results"), Path("data/runs")
FROZEN = Path(__file__).with_suffix(".json")
RUN = ("demo", "membership", "dpvae-ml-latest-small")
"""Suites that are run from nothing: the demo, and two cheap ones on real data."""
BYTES = ("*.safetensors", "recommendations.parquet", "predictions.parquet", "embeddings.parquet", "membership.parquet")
AUDIT = (
    "audit",
    "epsilon_claimed",
    "epsilon_accounted",
    "delta",
    "audited_epsilon",
    "confidence",
    "samples",
    "provable",
)


def lines(suite: str) -> dict[str, list[str]]:
    """Table -> its values, a sorted line each, without words."""
    folder = RESULTS / suite
    known = {name: tables.read_table(folder, name) for name in ("ledger", "events", "audits", "one_run")}
    made = {
        "metrics": _rows(folder / "metrics.parquet", ["experiment", "setting", "seed", "metric", "k", "value"]),
        "gains": _rows(folder / "attacks.parquet", None),
        "history": _rows(folder / "history.parquet", None),
        "ledger": map(_line, _ledger(known["ledger"], known["events"])),
        "audits": map(_line, known["audits"].select(AUDIT).iter_rows()),
        "one-run audits": (_line(_numbers(row)) for row in known["one_run"].iter_rows(named=True)),
        "claims": map(_line, pl.read_csv(folder / "claims.csv").select("artefact", "claim", "verdict").iter_rows()),
    }
    return {name: sorted(table) for name, table in made.items()}


def files(suite: str) -> Iterator[tuple[str, str]]:
    """Path below data/runs and SHA-256 of what the suite's experiments release and of their weights."""
    folders = [path for path in RUNS.glob("*") if path.name == suite or path.name.startswith(f"{suite}-")]
    for path in sorted(path for folder in folders for pattern in BYTES for path in folder.rglob(pattern)):
        yield str(path.relative_to(RUNS)), hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Compare, freeze, or print; exit 1 where a value has changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--lines", nargs=2, metavar=("SUITE", "TABLE"))
    asked = parser.parse_args()
    if asked.lines:
        print("\n".join(lines(asked.lines[0])[asked.lines[1]]))
        return
    present = {
        "results": {
            path.name: {name: [len(table), _digest(table)] for name, table in lines(path.name).items()}
            for path in sorted(RESULTS.iterdir())
        },
        "runs": {suite: dict(files(suite)) for suite in RUN},
    }
    if asked.freeze:
        FROZEN.write_text(json.dumps(present).replace("}, ", "},\n") + "\n", encoding="utf-8")
        return
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    changed = [
        f"{suite}: {name}"
        for suite, tables in frozen["results"].items()
        for name in tables
        if tables[name] != present["results"].get(suite, {}).get(name)
    ]
    for suite, of in frozen["runs"].items():
        known = present["runs"][suite]
        print(f"{suite}: {len(of.keys() & known.keys())} of {len(of)} files of runs are here to be compared")
        changed += [f"data/runs/{path}" for path, digest in of.items() if known.get(path, digest) != digest]
    print("\n".join([*(f"changed: {name}" for name in changed), f"{len(changed)} values or files have changed"]))
    raise SystemExit(bool(changed))


def _rows(path: Path, columns: list[str] | None) -> Iterator[str]:
    table = pl.read_parquet(path).drop("data")
    return map(_line, (table if columns is None else table.select(columns)).iter_rows())


def _ledger(ledger: pl.DataFrame, events: pl.DataFrame) -> Iterator[list[Any]]:
    """Experiment, setting, seed, network, budgets and events of every entry of every seed."""
    happened: dict[int, list[Any]] = {}
    for event in events.iter_rows(named=True):
        parameters = sorted((name, event[name]) for name in tables.PARAMETERS if event[name] is not None)
        happened.setdefault(event["line"], []).append([event["kind"], parameters, event["count"]])
    for line in ledger.iter_rows(named=True):
        accounted = None if math.isinf(line["accounted_epsilon"]) else line["accounted_epsilon"]
        budgets = [line["claimed_epsilon"], line["claimed_delta"], accounted, line["accounted_delta"]]
        for seed in json.loads(line["seeds"]):
            about = [line["experiment"], line["setting"], seed, line["network"]]
            yield [*about, *budgets, sorted(happened.get(line["line"], []))]


def _numbers(made: dict[str, Any]) -> list[Any]:
    return sorted((key, value) for key, value in made.items() if isinstance(value, int | float))


def _line(values: Iterable[Any]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _digest(table: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(table).encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
