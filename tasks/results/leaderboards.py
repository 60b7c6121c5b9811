"""Systems of all suites that share data, split and metric, and what each of them spends at each level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

import polars as pl

from tasks.privacy.terms import Level
from tasks.results.budgets import BUDGETS, budgets
from tasks.results.facts import BASE, KINDS, Kind, System
from tasks.results.load import Results, first_split

SWEPT = ("epsilon", "epsilon_max")
"""Keys of a configuration that are budgets: settings that override one of them alone are points of one curve."""
LIMIT = 1.0
"""ε up to which the best private system is named."""
TEXT = ("suite", "title", "publication", "dataset", "kind", "experiment", "system")
SPENT = {name: BUDGETS[name] for name in BUDGETS if name not in ("experiment", "setting")}
STANDINGS: dict[str, Any] = {
    **dict.fromkeys((*TEXT, "setting"), pl.String),
    **dict.fromkeys(("utility", "std", "gain"), pl.Float64),
    "n": pl.Int64,
    "noisy": pl.Boolean,
    **SPENT,
    "unbounded": pl.List(pl.String),
}
"""A system at a setting and a level at which it spends, or fails to; `level` is null where its ledger has no line.
`unbounded`: all levels at which this setting has no finite ε: what is finite at one level alone is no guarantee."""


@dataclass(frozen=True)
class Measure:
    """What the systems of a suite are compared by."""

    metric: str
    """`metric` in METRICS."""
    k: int
    """Its cut-off; 0 for none."""
    label: str
    """Such as "NDCG@10"."""
    lower: bool
    """Whether less is better."""
    digits: int
    noisy: str = field(compare=False)
    """Label of noisy popularity, or of another trivial baseline with a finite ε; empty for none."""

    @property
    def sign(self) -> float:
        """+1 where higher is better, else -1."""
        return -1.0 if self.lower else 1.0


def measure(results: Results, paper: Any) -> Measure:
    """The utility that a paper is told by, at the measured cut-off nearest to its main one."""
    utility = paper.utility
    wanted = paper.headline_k if utility.k is None else utility.k
    k = min(results.cutoffs(utility.metric) or [wanted], key=lambda at: (abs(at - wanted), at)) if wanted else 0
    return Measure(utility.metric, k, utility.at(k), utility.lower, utility.digits, paper.private_yardstick)


def standings(results: Results, by: Measure) -> pl.DataFrame:
    """`STANDINGS` of every system on the suite's own data: at setting `base`, and at those that vary its budget alone.

    `utility`, `std`, `n`: mean, sample deviation and count of runs; sweep points have runs on the first split alone.
    `gain`: how much better the mean is than that of the suite's noisy baseline at setting `base`.
    """
    suite, spent = results.suite, budgets(results)
    noisy = next((system for system in suite.compared if system.label == by.noisy), None)
    level = None if noisy is None else results.mean(noisy.experiment, by.metric, by.k)
    rows = []
    for system in suite.compared:
        about = dict(zip(TEXT, _about(results, system), strict=True)) | {"noisy": system is noisy}
        for setting in _settings(system):
            values = results.values(system.experiment, by.metric, by.k, setting)
            values = values if setting == BASE else first_split(values)
            if not values and setting != BASE:
                continue
            mean = math.fsum(values.values()) / len(values) if values else None
            reached: dict[str, Any] = {
                "setting": setting,
                "utility": mean,
                "std": stdev(values.values()) if len(values) > 1 else None,
                "n": len(values),
                "gain": None if mean is None or level is None else by.sign * (mean - level),
            }
            at = spent.filter(pl.col("experiment") == system.experiment, pl.col("setting") == setting)
            lines = at.drop("experiment", "setting").to_dicts() or [{}]
            reached["unbounded"] = [line["level"] for line in lines if math.isinf(line.get("accounted", 0.0))]
            rows += [about | reached | line for line in lines]
    return pl.DataFrame(rows, schema=STANDINGS)


def _about(results: Results, system: System) -> tuple[str, ...]:
    suite = results.suite
    return suite.suite, suite.title, suite.publication, system.dataset, suite.kind, system.experiment, system.label


def _settings(system: System) -> list[str]:
    return [name for name, keys in system.settings().items() if not keys or (len(keys) == 1 and {*keys} <= {*SWEPT})]


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
    """`STANDINGS` of those whose utility was measured."""

    @property
    def base(self) -> pl.DataFrame:
        """At setting `base`, best first."""
        at = self.rows.filter(pl.col("setting") == BASE)
        return at.sort("utility", descending=not self.measure.lower, maintain_order=True)

    def ceiling(self) -> dict[str, Any] | None:
        """The best system that claims no privacy at any level and has none; None without one."""
        private = self.rows.filter("private")["experiment"].unique()
        return _first(self.base.filter(~pl.col("experiment").is_in(private.implode())))

    def noisy(self) -> dict[str, Any] | None:
        """The noisy baseline; None without one."""
        return _first(self.base.filter("noisy"))

    def levels(self) -> list[Level]:
        """Levels at which a system is private."""
        known = self.base.filter("private")["level"].unique().to_list()
        return [level for level in ("user", "interaction", "feature", "edge", "text") if level in known]

    def at(self, level: Level) -> pl.DataFrame:
        """What is private at a level, best first."""
        return self.base.filter(pl.col("level") == level, pl.col("private"))

    def open(self) -> pl.DataFrame:
        """What is private at no level, a row each, best first."""
        private = self.rows.filter("private")["experiment"].unique()
        return self.base.filter(~pl.col("experiment").is_in(private.implode())).unique(
            "experiment", maintain_order=True
        )

    def best(self, level: Level, limit: float = LIMIT) -> dict[str, Any] | None:
        """The best system with ε of at most `limit` at a level and a finite one at all others; None without one.

        The noisy baseline is no candidate.
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


def boards(entries: Iterable[tuple[Measure, pl.DataFrame]]) -> list[Board]:
    """Boards of all suites: real data first, then by data set.

    entries: of each suite its measure and its `standings`.
    """
    grouped: dict[tuple[str, Measure], list[pl.DataFrame]] = {}
    for by, table in entries:
        for (dataset,), rows in table.filter(pl.col("utility").is_not_null()).group_by("dataset", maintain_order=True):
            grouped.setdefault((str(dataset), by), []).append(rows)
    made = []
    for (dataset, by), tables in grouped.items():
        first = tables[0].row(0, named=True)
        made.append(Board(first["publication"], dataset, first["kind"], by, pl.concat(tables)))
    return sorted(
        made, key=lambda board: (KINDS.index(board.kind), board.publication, board.dataset, board.measure.label)
    )


Outcome = str
"""`refuted`: an audit refutes a claim; `unbounded`: no finite ε follows from what claims one; `larger`: a larger one
than claimed; `holds`: at most what is claimed; `unclaimed`: nothing is claimed."""


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
