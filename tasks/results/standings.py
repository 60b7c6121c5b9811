"""How systems that share data, split and metric stand: utility, role, difference from noisy popularity, and budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from tasks.evaluation.pairs import verdicts
from tasks.privacy.terms import Level
from tasks.results.budgets import BUDGETS, budgets
from tasks.results.facts import BASE, BASELINES, BUDGET_KEYS, KINDS, NOISY, Kind, System
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.significance import decide, estimate, paired

if TYPE_CHECKING:
    from tasks.core.rows import Columns, Row

SMALL_EPSILON = 1.0
"""The user-level ε up to which the best private system is named."""
ANSWERED = (0.5, 1.0, 2.0, 4.0, 8.0)
"""User-level ε at which a board says who is best."""
TEXT = ("suite", "publication", "dataset", "kind", "experiment", "system", "role", "setting", "compared")
ENTRIES: Columns = {
    **dict.fromkeys(TEXT, pl.String),
    **dict.fromkeys(("utility", "on_swept_splits", "utility_std", "difference", "low", "high"), pl.Float64),
    "n": pl.Int64,
    **dict.fromkeys(("noisy", "own"), pl.Boolean),
    **{name: kind for name, kind in BUDGETS.items() if name not in ("experiment", "setting")},
    "unbounded": pl.List(pl.String),
    "runs": pl.List(pl.Int64),
    "values": pl.List(pl.Float64),
}
"""A system at a setting and a level at which it spends, or fails to; `level` is null where its ledger has no line.

`role`: `ceiling`, `baseline`, `private` or `other`; `noisy`: noisy popularity; `own`: the paper's method. `utility`,
`utility_std`, `n`: mean, sample deviation and count of runs; `on_swept_splits`: the
mean on the splits that sweep points were run on, the first alone if not all.
`difference`: from noisy popularity at setting `base`, mean over the runs that both have; `low`, `high` and `compared`:
its interval and what follows, null without stored pairs or with one run. `unbounded`: all levels at which this setting
has no finite ε: what is finite at one level alone is no guarantee. `runs`, `values`: of which `utility` is the
mean."""
Outcome = Literal["refuted", "unbounded", "larger", "holds", "unclaimed"]
"""An audit refutes a claim; no finite ε follows from what claims one; a larger one than claimed follows; at most what
is claimed follows; nothing is claimed."""


@dataclass(frozen=True)
class Measure:
    """What systems are compared by, and against which: facts that the suite's paper gives."""

    metric: str
    """`metric` in METRICS; empty where none of the paper's is measured."""
    k: int
    """Its cut-off; 0 for none."""
    label: str
    """With its cut-off: "NDCG@10"."""
    spoken: str
    """What is ranked, in running text: "full ranking"."""
    digits: int
    lower: bool
    run: str
    """What is repeated: "seed" or "fold"."""
    open: tuple[str, ...]
    """Labels of systems whose best is the ceiling; empty for all without privacy."""
    noisy: str
    """Label of noisy popularity, or of what stands for it; empty for none."""
    own: str
    """Label of the paper's own method; empty for none."""
    overlap: float | None
    """Of the folds that runs are (`Paper.overlap`); None where runs are seeds."""

    @property
    def axis(self) -> str:
        """The title of an axis of a chart."""
        return f"{self.label} ({'lower' if self.lower else 'higher'} is better)"

    def best_first(self, utility: float | None) -> float:
        """What systems are sorted by; those without a value stand last."""
        return math.inf if utility is None or math.isnan(utility) else utility if self.lower else -utility


def measure(results: Results, paper: Paper, *, deepest: bool = False) -> Measure:
    """What the systems of a suite are compared by: the first of the paper's metrics that was measured for any.

    Its cut-off is the measured one next to the paper's, or the largest (`deepest`).
    """
    metrics = set(results.metrics["metric"])
    ranked = (paper.utility, *paper.qualities)
    quality = next((quality for quality in ranked if quality.metric in metrics), paper.utility)
    measured = set(results.metrics.filter(metric=quality.metric)["k"])
    wanted = max(measured, default=0) if deepest else quality.cutoff(paper.headline_k)
    k = min(measured, key=lambda cutoff: (abs(cutoff - wanted), cutoff), default=0)
    return Measure(
        metric=quality.metric if measured else "",
        k=k,
        label=quality.at(k) if k else quality.label,
        spoken=quality.spoken,
        digits=quality.digits,
        lower=quality.lower,
        run=paper.run,
        open=paper.open if results.suite.paper else (),
        noisy=next((each.label for model in NOISY for each in results.suite.compared if each.model == model), ""),
        own=paper.methods.get(paper.name, "") if results.suite.paper else "",
        overlap=paper.overlap,
    )


def entries(results: Results, by: Measure) -> pl.DataFrame:
    """`ENTRIES` of every system on the suite's own data, best first: at `base`, and at every swept ε."""
    suite, budget_rows = results.suite, budgets(results)
    private = set(budget_rows.filter("private", setting=BASE)["experiment"])
    values = {each.experiment: results.values(each.experiment, by.metric, by.k) for each in suite.compared}
    means = {name: sum(each.values()) / len(each) for name, each in values.items() if each}
    free = [
        each for each in suite.compared if each.experiment in means.keys() - private and each.model not in BASELINES
    ]
    open_ = [each for each in free if each.label in by.open] or free
    ceiling = min(open_, key=lambda each: by.best_first(means[each.experiment]), default=None)
    noisy = next((each.experiment for each in suite.compared if each.label == by.noisy), "")
    stored = results.pairs.filter(pl.col("k").fill_null(0) == by.k, b=noisy, metric=by.metric, facet="all")
    compared = {row["a"]: row for row in verdicts(stored, overlap=by.overlap or 0.0).to_dicts()} if noisy else {}
    rows: list[Row] = []
    for system in sorted(suite.compared, key=lambda each: by.best_first(means.get(each.experiment))):
        name, role = system.experiment, "private" if system.experiment in private else "other"
        role = "ceiling" if system is ceiling else "baseline" if system.model in BASELINES else role
        about = {each: getattr(suite, each) for each in ("suite", "publication", "dataset", "kind")} | {"role": role}
        about |= {
            "experiment": name,
            "system": system.label,
            "noisy": system.model in NOISY,
            "own": system.label == by.own,
        }
        for setting in _settings(results, system):
            runs = values[name] if setting == BASE else results.on_swept(results.values(name, by.metric, by.k, setting))
            series = pl.Series(list(runs.values()), dtype=pl.Float64)
            reached = {"setting": setting, "utility": series.mean(), "utility_std": series.std(), "n": len(series)}
            swept = pl.Series(list(results.on_swept(runs).values()), dtype=pl.Float64)
            reached |= {"runs": [*runs], "values": [*runs.values()], "on_swept_splits": swept.mean()}
            if setting == BASE:
                verdict = compared.get(name, {}) if len(runs) > 1 else {}
                reached |= {"utility": means.get(name), "compared": verdict.get("verdict")}
                reached |= {end: verdict.get(end) for end in ("low", "high")}
                reached |= {"difference": None if name == noisy else _difference(runs, values.get(noisy, {}))}
            lines = budget_rows.filter(experiment=name, setting=setting).drop("experiment", "setting").to_dicts() or [
                {}
            ]
            endless = [line["level"] for line in lines if math.isinf(line.get("accounted", 0.0))]
            rows += [about | reached | line | {"unbounded": endless} for line in lines]
    return pl.DataFrame(rows, schema=ENTRIES)


def _settings(results: Results, system: System) -> list[str]:
    keys = system.settings()
    return [BASE, *[name for name in results.settings(system.experiment) if {*keys[name]} & {*BUDGET_KEYS}]]


def _difference(values: dict[int, float], noisy: dict[int, float]) -> float | None:
    common = sorted(values.keys() & noisy.keys())
    return sum(values[run] - noisy[run] for run in common) / len(common) if common else None


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
    def ceiling(self) -> Row | None:
        """The best of the suites' ceilings; None without one."""
        return _first(self.base.filter(pl.col("role") == "ceiling"))

    @property
    def noisy(self) -> Row | None:
        """Noisy popularity; None without one."""
        return _first(self.base.filter("noisy"))

    def lines(self, utility: str = "on_swept_splits") -> list[Row]:
        """`name` and `utility`, of that column, of the ceiling and of noisy popularity, as charts have them."""
        return [{"name": row["system"], "utility": row[utility]} for row in (self.ceiling, self.noisy) if row]

    @property
    def levels(self) -> list[Level]:
        """Levels at which a system is private."""
        present = set(self.base.filter("private")["level"])
        return [level for level in get_args(Level) if level in present]

    def at(self, level: Level) -> pl.DataFrame:
        """What is private at a level, best first."""
        return self.base.filter(pl.col("level") == level, pl.col("private"))

    def open(self) -> pl.DataFrame:
        """What is private at no level, a row each, best first."""
        private = self.base.filter("private")["experiment"].unique().implode()
        return self.base.filter(~pl.col("experiment").is_in(private)).unique("experiment", maintain_order=True)

    def best(self, level: Level, *, baselines: bool = False) -> Row | None:
        """The best system that spends a finite ε at all levels, at most `SMALL_EPSILON` of users; None without one.

        Of those that are equal to the digits shown it is the one with the smallest ε.

        baselines: whether these are candidates.
        """
        limit = SMALL_EPSILON if level == "user" else math.inf
        candidate = (pl.col("unbounded").list.len() == 0) & ((pl.col("role") != "baseline") | baselines)
        candidates = self.base.filter(pl.col("accounted") <= limit, candidate, level=level)
        shown = pl.col("utility").round(self.measure.digits)
        return _first(candidates.sort(shown if self.measure.lower else -shown, "accounted", maintain_order=True))

    def answers(self) -> list[Row]:
        """Rows of `ENTRIES`: at each user-level ε of `ANSWERED` the best of all settings with at most this ε.

        Noisy popularity where nothing beats it; without what a smaller ε has already. `limit`: this ε; `share`: of the
        ceiling's utility, None without one or where less is better; `gain`: over the best noisy popularity within
        `limit`. Both on the splits that the best was run on, and in its suite where that has them. `half`: of the 95 %
        interval of the utility; `as_good`: systems that are not significantly worse, as `decide` has it;
        `noisy_as_good`: whether noisy popularity is.
        """
        bounded = self.rows.filter(pl.col("unbounded").list.len() == 0, level="user")
        ranked = bounded.sort("utility", "noisy", descending=[not self.measure.lower, True], maintain_order=True)
        made: list[Row] = []
        for limit in ANSWERED:
            within = ranked.filter(pl.col("accounted") <= limit * (1 + 1e-9))
            if (best := _first(within)) is not None:
                noisy = _of_suite(within.filter("noisy"), best["suite"])
                ceilings = self.base.filter(pl.col("role") == "ceiling", not self.measure.lower)
                ceiling = _of_suite(ceilings, best["suite"])
                same = "utility" if best["setting"] == BASE else "on_swept_splits"
                share = ceiling and best["utility"] / ceiling[same]
                gain = noisy and best["utility"] - noisy[same]
                answer = best | {"limit": limit, "share": share, "gain": gain} | self._rivals(best, within)
                shown = ("experiment", "setting", "share", "gain")
                if not made or [made[-1][name] for name in shown] != [answer[name] for name in shown]:
                    made.append(answer)
        return made

    def _rivals(self, best: Row, within: pl.DataFrame) -> Row:
        """`half`, `as_good` and `noisy_as_good` of `answers`; within: all that it was chosen from, best first."""
        own, as_good, noisy = _runs(best), list[str](), bool(best["noisy"])
        interval = estimate(own, self.measure.overlap)
        for rival in within.unique("system", keep="first", maintain_order=True).to_dicts():
            gap: Row = {"gain": 0.0, "runs": None} | paired(own, _runs(rival), self.measure.overlap)
            side = decide(gap["gain"], gap.get("low"), gap.get("high"), gap["runs"]).side
            if rival["system"] != best["system"] and side != (-1 if self.measure.lower else 1):
                as_good, noisy = [*as_good, rival["system"]], noisy or rival["noisy"]
        half = interval["high"] - interval["gain"] if interval.get("high") is not None else None
        return {"half": half, "as_good": as_good, "noisy_as_good": noisy}

    def answering(self) -> int:
        """How many settings have a user-level ε of `ANSWERED`: what is tried at all of them can be compared."""
        near = [pl.col("accounted").is_between(0.99 * limit, limit * (1 + 1e-9)) for limit in ANSWERED]
        return self.curve("user").filter(pl.any_horizontal(near)).height

    def curve(self, level: Level) -> pl.DataFrame:
        """All settings with a positive ε at a level and a finite one at all, by system and ε; utility of one split."""
        bounded = (pl.col("unbounded").list.len() == 0) & (pl.col("accounted") > 0)
        at = self.rows.filter(pl.col("level") == level, bounded)
        at = at.unique(("system", "setting"), maintain_order=True).with_columns(utility="on_swept_splits")
        return at.sort("noisy", "system", "accounted")


def _runs(row: Row) -> dict[int, float]:
    return dict(zip(row["runs"] or (), row["values"] or (), strict=True))


def _of_suite(rows: pl.DataFrame, suite: str) -> Row | None:
    return _first(rows.filter(suite=suite)) or _first(rows)


def _first(rows: pl.DataFrame) -> Row | None:
    return rows.row(0, named=True) if len(rows) else None


def boards(suites: Iterable[tuple[Measure, pl.DataFrame]]) -> list[Board]:
    """Boards of all suites: real data first, then by data set. What several suites ran is of the one with most runs.

    suites: of each its measure and its `entries`.
    """
    grouped: dict[tuple[str, str, int], tuple[Measure, list[pl.DataFrame]]] = {}
    for by, table in suites:
        measured = table.filter(pl.col("utility").is_not_null())
        for (dataset,), rows in measured.group_by("dataset", maintain_order=True):
            grouped.setdefault((str(dataset), by.metric, by.k), (by, []))[1].append(rows)
    result = []
    for (dataset, _, _), (by, tables) in grouped.items():
        rows = pl.concat(tables)
        fullest = rows.sort("n", descending=True, nulls_last=True).unique("system", keep="first", maintain_order=True)
        rows = rows.join(fullest, on=("suite", "system"), how="semi", maintain_order="left")
        first = rows.row(0, named=True)
        result.append(Board(first["publication"], dataset, first["kind"], by, rows))
    return sorted(
        result, key=lambda board: (KINDS.index(board.kind), board.publication, board.dataset, board.measure.label)
    )


def outcome(rows: Sequence[Row]) -> Outcome:
    """What becomes of the claims of a system, the worst of its rows of `BUDGETS`."""
    claimed = [row for row in rows if row["claimed"] is not None]
    if not claimed:
        return "unclaimed"
    if any(row["verdict"] == "refuted" for row in claimed):
        return "refuted"
    if any(math.isinf(row["accounted"]) for row in claimed):
        return "unbounded"
    return "larger" if any(row["accounted"] > row["claimed"] * (1 + 1e-9) for row in claimed) else "holds"
