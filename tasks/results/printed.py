"""Each printed number with ours: `comparison.csv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.results.facts import BASE, BASELINES, System
from tasks.results.load import COMPARISON, Results
from tasks.results.paper import Column, Paper, Table, Version
from tasks.results.settings import find_setting

if TYPE_CHECKING:
    from tasks.core import rows

NEAR = 0.1
"""Relative difference up to which a number counts as reproduced."""
REPLICA = "-twin"
"""What follows the name of a network in the name of its synthetic replica."""
STATISTICS = "statistics"
"""`method` of a printed statistic of a data set."""
COUNTED = "counted"
"""`protocol` of what is counted or set, and not measured."""
Counts = Callable[["Against"], list["Count"]]


def is_near(ours: Any, printed: Any) -> Any:
    """Whether a number, or each of a column, differs from the printed one by at most `NEAR` of that."""
    return abs(ours - printed) <= NEAR * abs(printed)


@dataclass(frozen=True)
class Method:
    """A row of a published table: the paper's name and our system, None where it has not been run."""

    name: str
    system: System | None
    setting: str = BASE
    version: Version | None = None
    """What it is a version of, in a table of versions."""

    @property
    def experiment(self) -> str:
        """That of the system; empty for none."""
        return self.system.experiment if self.system else ""

    def printed_as(self, column: Column) -> tuple[str, str]:
        """`method` and `setting` in paper_tables.csv."""
        return (self.name, column.setting) if self.version is None else (self.version.method, self.version.setting)


@dataclass(frozen=True)
class Cell:
    """One quantity of one method, printed and ours: over `n` runs, 0 for none."""

    method: str
    """Name of the row."""
    printed: float | None
    mean: float | None
    std: float | None = None
    """None for a single run."""
    n: int = 0
    experiment: str = ""
    """That of the runs; empty for none."""
    setting: str = BASE

    @property
    def near(self) -> bool | None:
        """`is_near` of ours and the printed number; None where one of them is missing."""
        return None if self.printed is None or self.mean is None else bool(is_near(self.mean, self.printed))


@dataclass(frozen=True)
class Count:
    """A count of the data, or a setting of the paper's method: a number that the paper prints too."""

    artefact: str
    metric: str
    ours: float | None
    """None where the data do not have it."""
    method: str = STATISTICS
    setting: str = ""
    data: str = ""
    """As of `Column`."""


class Against:
    """A suite's results and the paper that they are compared with.

    Args:
        paper: the one in whose tables the suite is shown.
        counted: whether the data are those that the suite only counts, instead of its own.
    """

    def __init__(self, results: Results, paper: Paper, *, counted: bool = False) -> None:
        self.results, self.paper, self.counted = results, paper, counted
        suite = results.suite
        self.origin = suite.counted if counted else suite.publication
        """The data as the published tables name them."""
        self.n_features = suite.n_counted_features if counted else suite.n_features
        self.compared = suite.paper is not None and (counted or not suite.synthetic)
        """Whether anything printed is compared: synthetic data never are."""

    @cached_property
    def counts(self) -> list[rows.Row]:
        """What each step of the protocol left of the data."""
        return self.results.counts.filter(counted=self.counted).to_dicts()

    def find(self, label: str) -> System | None:
        """The experiment of that label; where there is none, the first compared one whose system this is."""
        systems = self.results.suite.systems
        return next((system for system in systems if system.label == label), None) or next(
            (system for system in self.results.suite.compared if system.model == label), None
        )

    def of_method(self, method: str) -> System | None:
        """The system that answers to a method's name in the paper."""
        return self.find(self.paper.methods.get(method, method))

    @cache  # noqa: B019  # an instance lives as long as a report is made
    def printed(self, data: str = "") -> dict[tuple[str, str, str, str], float]:
        """(artefact, method, setting, metric) -> what the paper prints of the data, in our unit of metrics.

        Statistics of data sets are counts and stay as they are.

        data: a part of the data, such as one network of a pair, instead of the whole; of networks that others published
        under the same names nothing is printed.
        """
        pair = tuple(network.name for network in self.results.suite.networks)
        if data and pair and self.paper.joined(pair) != self.origin:
            return {}
        rows = self.results.published.filter(paper=self.paper.key, dataset=data or self.origin)
        return {
            (row["artefact"], row["method"], row["setting"] or "", row["metric"]): row["value"]
            * (1.0 if row["method"] == STATISTICS else self.paper.unit)
            for row in rows.iter_rows(named=True)
        }

    def has_table(self, table: Table) -> bool:
        """Whether these data have a table. Without a paper, those of fewer methods than its largest are left out."""
        if self.results.suite.paper is None and len(table.methods) < max(
            len(other.methods) for other in self.paper.tables
        ):
            return False
        return not table.data or any(name in self.results.suite.dataset for name in table.data)

    def methods(self, table: Table) -> list[Method]:
        """Rows of a table: the paper's methods in its order, then ours alone, popularity among them.

        Methods that have not been run have a row only where the paper prints their numbers.
        """
        suite = self.results.suite
        if table.versions:
            baselines = [system for system in suite.compared if system.model in BASELINES]
            return [*self._versions(table), *(Method(system.label, system) for system in baselines)]
        rows = []
        for name in table.methods:
            system = self.find(self.paper.methods[name])
            if system is not None:
                rows.append(Method(name if self.compared else system.label, system))
            elif self.compared and table.comparable:
                rows.append(Method(name, None))
        if not table.alone:
            return rows
        systems = [
            self.find(self.paper.methods[name]) for name in (table.methods if table.everyone else self.paper.methods)
        ]
        return rows + [Method(system.label, system) for system in suite.compared if system not in systems]

    def _versions(self, table: Table) -> Iterator[Method]:
        """Those that were run, and where the suite is compared with the paper also those that it prints."""
        for version in table.versions:
            system = self.find(version.system)
            setting = None if system is None else find_setting(self.results, system, version.ours)
            if system is not None and setting is not None:
                name = ", ".join(dict.fromkeys([system.label, version.kind or system.label]))
                yield Method(version.name if self.compared else name, system, setting, version)
            elif self.compared and table.comparable:
                yield Method(version.name, None, BASE, version)


def comparison(results: Results, paper: Paper, counts: Counts) -> pl.DataFrame:
    """`comparison.csv`: one row per quantity that was printed, measured or counted, sorted.

    Columns `load.COMPARISON`: `ours_std` is the sample standard deviation, from two runs on; `seeds` counts the runs
    behind `ours_mean`, 0 where nothing ran.

    counts: gives what the paper's tables count of data, or list as settings of its method.
    """
    against = Against(results, paper)
    rows = [*_measured(against), *_counted(against, counts)]
    if results.suite.counted:
        rows += _counted(Against(results, paper, counted=True), counts)
    rows.sort(key=lambda row: row[0])
    key = paper.key if against.compared else ""
    table = pl.DataFrame([{"paper": key} | row for _, row in rows], schema=COMPARISON)
    return table.with_columns(pl.col(pl.String).replace({"": None}))


Row = tuple[tuple[Any, ...], dict[str, Any]]
"""What a row is sorted by, and its columns."""


def parts(against: Against) -> list[rows.Row]:
    """Each part of each table that these data have: `table`, `part`, and `rows`, a method with a cell per column."""
    result = []
    for table in filter(against.has_table, against.paper.tables):
        methods = against.methods(table)
        for part in table.parts:
            rows = [(method, [_cell(against, table, method, column) for column in part.columns]) for method in methods]
            result.append({"table": table, "part": part, "rows": rows})
    return result


def _cell(against: Against, table: Table, method: Method, column: Column) -> Cell:
    printed = against.printed(column.data) if against.compared and table.comparable else {}
    number = printed.get((table.key, *method.printed_as(column), column.published))
    reference = None if number is None else float(f"{number:g}")
    experiment, setting = method.experiment, method.setting
    values = [*ratio(against.results, experiment, column.metric, column.ratio_to, column.k, setting).values()]
    mean = round(fmean(values), 6) if values else None
    std = round(stdev(values), 6) if len(values) > 1 else None
    return Cell(method.name, reference, mean, std, len(values), experiment, setting)


def _measured(against: Against) -> Iterator[Row]:
    for block in parts(against):
        for method, cells in block["rows"]:
            for column, cell in zip(block["part"].columns, cells, strict=True):
                if cell.printed is not None or cell.n:
                    table: str = block["table"].key
                    named: tuple[str, str] = method.printed_as(column)
                    key = (table, column.protocol, *named, column.metric, column.k, column.data)
                    yield key, _about(against, table, column.data, *named, column.published) | {
                        "published": cell.printed, "ours_mean": cell.mean, "ours_std": cell.std, "seeds": cell.n,
                        "protocol": column.protocol, "data": against.results.suite.kind,
                    }  # fmt: skip


def _counted(against: Against, counts: Counts) -> Iterator[Row]:
    kind = "real" if against.counted else against.results.suite.kind
    for count in counts(against):
        printed = against.printed(count.data) if against.compared else {}
        reference = printed.get((count.artefact, count.method, count.setting, count.metric))
        if reference is None and count.ours is None:
            continue
        key = (count.artefact, COUNTED, count.method, count.setting, count.metric, 0, count.data)
        value = None if count.ours is None else round(count.ours, 6)
        yield key, _about(against, count.artefact, count.data, count.method, count.setting, count.metric) | {
            "published": reference, "ours_mean": value, "ours_std": None, "seeds": 0, "protocol": COUNTED, "data": kind
        }  # fmt: skip


def _about(against: Against, artefact: str, data: str, method: str, setting: str, metric: str) -> dict[str, object]:
    """The columns that say what a row is about; a part of synthetic data is named as a replica of the published one."""
    suite = against.results.suite
    all_data = suite.counted if against.counted else suite.dataset
    part = f"{data}{REPLICA}" if data and suite.synthetic else data
    return {"artefact": artefact, "dataset": part or all_data, "method": method, "setting": setting, "metric": metric}


def ratio(
    results: Results, experiment: str, metric: str, divisors: tuple[str, ...], k: int, setting: str
) -> dict[int, float]:
    """Run -> value of a metric, divided by the sum of `divisors`, if any; empty where one is lacking."""
    values = results.values(experiment, metric, k, setting)
    if not divisors:
        return dict(sorted(values.items()))
    below = [results.values(experiment, name, k, setting) for name in divisors]
    totals = {run: sum(divisor[run] for divisor in below) for run in values if all(run in divisor for divisor in below)}
    if not all(total > 0 for total in totals.values()):
        return {}
    return {run: values[run] / total for run, total in sorted(totals.items())}


def statistics(against: Against) -> list[Count]:
    """Users, items, interactions, average length and user features."""
    before, after = (against.counts[step] for step in against.paper.counted_after)
    counts = {
        "users": before["users"],
        "items": before["items"],
        "interactions": after["interactions"],
        "avg_length": before["interactions"] / before["users"],
        "user_features": against.n_features,
    }
    return [Count(against.paper.data_table, name, value) for name, value in counts.items()]


def network_counts(against: Against) -> list[Count]:
    """Users, items, ratings and relationships, the last as links that are left; without links there are none."""
    last = against.counts[-1]
    links = next((row["links"] for row in reversed(against.counts) if row["links"] is not None), None)
    counts = {"users": last["users"], "items": last["items"], "ratings": last["interactions"], "relationships": links}
    return [Count(against.paper.data_table, name, value) for name, value in counts.items()]


def pair_counts(against: Against) -> list[Count]:
    """Users, posts, who wrote them and friendships of each network, and anchors last; None of what is not public."""
    suite, table = against.results.suite, against.paper.data_table
    if not suite.networks:
        return []
    counted = []
    for network in suite.networks:
        counts = {name: getattr(network, name) or None for name in ("users", "posts", "friendships")}
        counted += [Count(table, name, value, data=network.name) for name, value in counts.items()]
        counted.append(Count(table, "writes", counts["posts"], data=network.name))
    both = against.paper.joined(tuple(network.name for network in suite.networks)) or against.origin
    return [*counted, Count(table, "anchor_users", suite.anchors, data=both)]
