"""Made-up results: a few rows, written and read back as those of a suite. No number here is a result."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tasks.core import contracts
from tasks.evaluation.gains import GAINS
from tasks.evaluation.pairs import PAIRS
from tasks.pipeline.papers import describe
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.terms import Unit
from tasks.results import files, tables
from tasks.results.claims import Spec, Verdict, merged, verdict, verdicts
from tasks.results.facts import BASE, Source, Suite, System
from tasks.results.judging import tested
from tasks.results.load import EVIDENCE, PUBLISHED, Results
from tasks.results.paper import Paper
from tasks.results.printed import Against
from tasks.results.tables import Spent
from tasks.stages import report
from tests.parameters import ROOT

REFERENCE = ROOT / "data/reference/paper_tables.csv"
COMMITTED = sorted(path.parent.name for path in (ROOT / "data/results").glob(f"*/{files.SUITE}"))
SEEDS = (0, 1, 2)
HIT = "sampled-100/hit"
Row = tuple[str, str, str, int, int, float]
"""System, setting, metric, k (0: none), seed, value."""


@cache
def committed(suite: str) -> Results:
    results = Results(ROOT / "data/results" / suite, REFERENCE)
    results.kinds = report.kinds(results.suite)
    return results


@cache
def paper(suite: str) -> Paper:
    return report.paper_of(committed(suite))


def system(label: str, *settings: str, suite: str = "gerai", seeds: Sequence[int] = SEEDS, **config: Any) -> System:
    """A system that is swept over these settings; config: its configuration at setting `base`."""
    sweep = [dict(part.split("=") for part in setting.split(",")) for setting in settings if setting != BASE]
    return System(
        experiment=f"{suite}-{label}",
        model=label,
        label=label,
        dataset="made-up",
        seeds=tuple(seeds),
        parameters={"config": config, "sweep": sweep, "features": "processed/made-up"},
        cut_off={},
    )


def suite(systems: Iterable[System], **changes: Any) -> Suite:
    """The facts of a suite on the data of its paper."""
    fields: dict[str, Any] = dict.fromkeys(("title", "part", "limits", "validation", "counted", "stands_for"), "")
    fields |= {"suite": "gerai", "paper": "gerai", "dataset": "made-up", "publication": "ml-100k"}
    fields |= dict.fromkeys(("n_features", "n_counted_features", "n_targets", "anchors"), 0)
    fields |= dict.fromkeys(("words", "networks", "aligned"), ()) | {"fingerprints": {}, "attack": None}
    fields |= {"synthetic": False, "source": Source(dataset="", address="", licence=""), "systems": tuple(systems)}
    return Suite(**fields | changes)


def write(
    folder: Path, facts: Suite, rows: Iterable[Row] = (), spent: Iterable[Spent] = (), audits: Sequence[Any] = (),
    printed: Iterable[tuple[str, str, str, float]] | None = None, counts: Sequence[Mapping[str, Any]] = (),
) -> Results:  # fmt: skip
    """Results of these rows, written to an empty folder and read from there.

    audits: records of audit.json; printed: (artefact, method, metric, value) in place of what all papers print; counts:
    rows of counts.csv.
    """
    known = {system.label: system for system in facts.systems}
    about: dict[str, Any] = {"suite": facts.suite, "dataset": facts.dataset}
    measured = [
        about | {"experiment": known[label].experiment, "model": known[label].model, "setting": setting}
        | {"metric": metric, "k": k or None, "seed": seed, "value": value}
        for label, setting, metric, k, seed, value in rows
    ]  # fmt: skip
    nothing = pl.from_arrow(contracts.METRICS.empty_table())
    ledger = tables.ledger(spent, {system.experiment: system.model for system in facts.systems})
    frames = ledger | {
        "metrics": pl.DataFrame(measured, nothing.schema),
        "attacks": pl.DataFrame(schema={"experiment": pl.String, "model": pl.String, **pl.Schema(GAINS)}),
        "history": pl.DataFrame(schema=tables.HISTORY),
        "pairs": pl.DataFrame(schema=pl.Schema(PAIRS)),
        "audits": tables.audits(audits, ledger["ledger"]),
        "counts": pl.DataFrame(counts, tables.COUNTS),
    }
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(folder, facts, frames)
    reference = REFERENCE
    if printed is not None:
        reference = folder / "printed.csv"
        lines = [(facts.paper, table, facts.publication, method, "", metric, value, None)
                 for table, method, metric, value in printed]  # fmt: skip
        pl.DataFrame(lines, PUBLISHED, orient="row").write_csv(reference)
    return Results(folder, reference)


def levels(values: Mapping[tuple[str, str, int], float], deviation: float = 0.001, metric: str = HIT) -> list[Row]:
    """Rows of (system, setting, k) -> a level that every seed misses by about `deviation`."""
    rng = np.random.default_rng(7)
    return [
        (label, setting, metric, k, seed, level + deviation * rng.normal())
        for (label, setting, k), level in values.items()
        for seed in SEEDS
    ]


def of_rows(folder: Path, rows: Sequence[Row], *others: System, **more: Any) -> Results:
    """Results of rows whose systems are swept over the settings that these have; others: further systems."""
    settings: dict[str, dict[str, None]] = {}
    for label, setting, *_ in rows:
        settings.setdefault(label, {})[setting] = None
    systems = [system(label, *of) for label, of in settings.items() if label not in {other.label for other in others}]
    facts = suite([*systems, *others], **more.pop("facts", {}))
    return write(folder, facts, rows, **more)


def against(results: Results, **changes: Any) -> Against:
    """The results and their paper; changes: of it."""
    return Against(results, replace(describe(results.suite.paper, results.suite.networks), **changes))


class Judged(NamedTuple):
    """A claim's verdict, with its rows of `EVIDENCE`."""

    verdict: Verdict
    evidence: list[dict[str, Any]]
    absent: list[dict[str, Any]]


def judged(results: Results, *specs: Spec, **changes: Any) -> list[Judged]:
    tables = [pl.DataFrame(tested(against(results, **changes), spec), schema=EVIDENCE).to_dicts() for spec in specs]
    return [Judged(verdict(rows), rows, json.loads(rows[0]["absent"])) for rows in tables]


def judged_claims(results: Results) -> pl.DataFrame:
    """Claims of the results' paper with `verdict`."""
    tables = report.judged(results)
    readings = verdicts(tables["evidence"])
    merged_ = [merged(readings.get(number, {}).values()) for number in tables["claims"]["number"]]
    return tables["claims"].with_columns(verdict=pl.Series(merged_, dtype=pl.String))


def entry(epsilon: float | None, unit: Unit = "user", **more: Any) -> LedgerEntry:
    """A ledger entry of counts with discrete Laplace noise; None: with no finite ε."""
    noise = Event(kind="discrete-laplace", parameters={"noise_parameter": epsilon or 1.0, "sensitivity": 1.0})
    values: dict[str, Any] = {"protects": "interaction", "unit": unit, "neighbouring": "replace"}
    values |= {"mechanism": "counts-discrete-laplace", "accounting": "rigorous", "events": (noise,)}
    values |= {"claimed_epsilon": epsilon, "claimed_delta": 0.0, "accounted_epsilon": epsilon, "accounted_delta": 0.0}
    return LedgerEntry.model_validate(values | ({} if epsilon else {"reasons": ("true-data",)}) | more)
