"""Systems of all suites that share data, split and metric, and what each of them spends at each level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import polars as pl

from tasks.privacy.terms import Level
from tasks.results.budgets import BUDGETS, budgets
from tasks.results.facts import BASE, KINDS, Kind, System
from tasks.results.load import Results, first_split
from tasks.results.standings import Measure, standings

SWEPT = ("epsilon", "epsilon_max")
"""Keys of a configuration that are budgets: settings that override one of them alone are points of one curve."""
TEXT = ("suite", "publication", "dataset", "kind", "experiment", "system", "role", "setting")
ENTRIES: dict[str, Any] = {
    **dict.fromkeys(TEXT, pl.String),
    **dict.fromkeys(("utility", "std", "difference"), pl.Float64),
    "n": pl.Int64,
    "noisy": pl.Boolean,
    **{name: kind for name, kind in BUDGETS.items() if name not in ("experiment", "setting")},
    "unbounded": pl.List(pl.String),
}
"""A system at a setting and a level at which it spends, or fails to; `level` is null where its ledger has no line.
`unbounded`: all levels at which this setting has no finite ε: what is finite at one level alone is no guarantee."""
Outcome = Literal["refuted", "unbounded", "larger", "holds", "unclaimed"]
"""An audit refutes a claim; no finite ε follows from what claims one; a larger one than claimed follows; at most what
is claimed follows; nothing is claimed."""


def entries(results: Results, by: Measure) -> pl.DataFrame:
    """`ENTRIES` of every system on the suite's own data: at setting `base`, and at those that vary its budget alone.

    `utility`, `std`, `n`: mean, sample deviation and count of runs; sweep points have runs on the first split alone.
    `difference`: from noisy popularity at setting `base`, as in `standings`.
    """
    suite, spent = results.suite, budgets(results)
    about = {"suite": suite.suite, "publication": suite.publication, "kind": suite.kind}
    rows = []
    for row in standings(results, by).iter_rows(named=True):
        system = results.system(row["experiment"])
        of = about | {"dataset": system.dataset, "system": system.label, "noisy": system.label == by.noisy}
        of |= {name: row[name] for name in ("experiment", "role")}
        for setting in _settings(results, system):
            values = pl.Series(first_split(results.values(system.experiment, by.metric, by.k, setting)).values())
            reached = {"setting": setting, "utility": values.mean(), "std": values.std(), "n": len(values)}
            if setting == BASE:
                reached |= {name: row[name] for name in ("utility", "n", "difference")} | {"std": row["utility_std"]}
            at = spent.filter(pl.col("experiment") == system.experiment, pl.col("setting") == setting)
            lines = at.drop("experiment", "setting").to_dicts() or [{}]
            endless = [line["level"] for line in lines if math.isinf(line.get("accounted", 0.0))]
            rows += [of | reached | line | {"unbounded": endless} for line in lines]
    return pl.DataFrame(rows, schema=ENTRIES)


def _settings(results: Results, system: System) -> list[str]:
    keys = system.settings()
    swept = [name for name in results.settings(system.experiment) if len(keys[name]) == 1 and {*keys[name]} <= {*SWEPT}]
    return [BASE, *swept]


@dataclass(frozen=True)
class Board:
    """Systems that share data, split and metric."""

    publication: str
    """The data set as published tables name it."""
    dataset: str
    """The same under one protocol, with its split."""
    kind: Kind
    measure: Measure
    rows: pl.DataFrame
    """`ENTRIES` of those whose utility was measured."""

    @property
    def base(self) -> pl.DataFrame:
        """At setting `base`, best first."""
        at = self.rows.filter(pl.col("setting") == BASE)
        return at.sort("utility", descending=not self.measure.lower, maintain_order=True)

    @property
    def ceiling(self) -> dict[str, Any] | None:
        """The best of the suites' ceilings; None without one."""
        return _first(self.base.filter(pl.col("role") == "ceiling"))

    @property
    def noisy(self) -> dict[str, Any] | None:
        """Noisy popularity; None without one."""
        return _first(self.base.filter("noisy"))

    @property
    def levels(self) -> list[Level]:
        """Levels at which a system is private."""
        known = set(self.base.filter("private")["level"])
        return [level for level in get_args(Level) if level in known]

    def at(self, level: Level) -> pl.DataFrame:
        """What is private at a level, best first."""
        return self.base.filter(pl.col("level") == level, pl.col("private"))

    def open(self) -> pl.DataFrame:
        """What is private at no level, a row each, best first."""
        private = self.base.filter("private")["experiment"].unique().implode()
        return self.base.filter(~pl.col("experiment").is_in(private)).unique("experiment", maintain_order=True)

    def best(self, level: Level, limit: float = math.inf) -> dict[str, Any] | None:
        """The best system with ε of at most `limit` at a level and a finite one at all others; None without one.

        Noisy popularity is no candidate.
        """
        bounded = pl.col("unbounded").list.len() == 0
        return _first(self.at(level).filter(pl.col("accounted") <= limit, bounded, ~pl.col("noisy")))

    def curve(self, level: Level) -> pl.DataFrame:
        """All settings with a positive ε at a level and a finite one at all, by system and ε."""
        bounded = (pl.col("unbounded").list.len() == 0) & (pl.col("accounted") > 0)
        at = self.rows.filter(pl.col("level") == level, bounded)
        return at.unique(("system", "setting"), maintain_order=True).sort("noisy", "system", "accounted")


def _first(rows: pl.DataFrame) -> dict[str, Any] | None:
    return rows.row(0, named=True) if len(rows) else None


def boards(suites: Iterable[tuple[Measure, pl.DataFrame]]) -> list[Board]:
    """Boards of all suites: real data first, then by data set.

    suites: of each its measure and its `entries`.
    """
    grouped: dict[tuple[str, str, int], tuple[Measure, list[pl.DataFrame]]] = {}
    for by, table in suites:
        measured = table.filter(pl.col("utility").is_not_null())
        for (dataset,), rows in measured.group_by("dataset", maintain_order=True):
            grouped.setdefault((str(dataset), by.metric, by.k), (by, []))[1].append(rows)
    made = []
    for (dataset, _, _), (by, tables) in grouped.items():
        first = tables[0].row(0, named=True)
        made.append(Board(first["publication"], dataset, first["kind"], by, pl.concat(tables)))
    return sorted(made, key=lambda of: (KINDS.index(of.kind), of.publication, of.dataset, of.measure.label))


def outcome(spent: Sequence[dict[str, Any]]) -> Outcome:
    """What becomes of the claims of a system, the worst of its rows of `BUDGETS`."""
    claimed = [row for row in spent if row["claimed"] is not None]
    if not claimed:
        return "unclaimed"
    if any(row["verdict"] == "refuted" for row in claimed):
        return "refuted"
    if any(math.isinf(row["accounted"]) for row in claimed):
        return "unbounded"
    return "larger" if any(row["accounted"] > row["claimed"] * (1 + 1e-9) for row in claimed) else "holds"
