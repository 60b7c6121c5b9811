"""What DVC shows of a suite (`dvc metrics`, `dvc plots`), what changed of it, and how much of print suites cover.

summary.json is a page, in JSON: the report stage writes it, and no result is computed from it.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.evaluation import statistics
from tasks.evaluation.run_numbers import split_of
from tasks.privacy.audits.unaudited import is_private
from tasks.results import claims as claimed
from tasks.results.facts import BASE, KINDS, Suite
from tasks.results.load import CLAIMS, EVIDENCE, NUMBER, Results
from tasks.results.printed import COUNTED, REPLICA, is_near
from tasks.results.standings import SMALL_EPSILON, Board, Measure

if TYPE_CHECKING:
    from tasks.core.rows import Columns, Row

TABLE = NUMBER[:3]
CLOSE: pl.Expr = is_near(pl.col("ours_mean"), pl.col("published"))
NONE = "none"
MEASURED: dict[str, Any] = {"published": pl.Float64, "ours_mean": pl.Float64, "data": pl.String, "protocol": pl.String}
State = Mapping[tuple[str, str], Any]
"""The headline of a suite: (`value` or `claim`, name) -> number to three decimals, or verdict."""
Change = tuple[str, str, str, Any, Any]
"""Suite, what (`suite`, `value`, `claim`), its name, before and now; None where there was, or is, none."""
UTILITY: Columns = dict.fromkeys(("system", "setting", "level"), pl.String) | {
    **dict.fromkeys(("epsilon", "utility", "low", "high"), pl.Float64),
    "n": pl.Int64,
}
ATTACKS = {"system": pl.String, "attribute": pl.String, "k": pl.Int64, "f1": pl.Float64}


def summary(results: Results, board: Board | None) -> Row:
    """`summary.json`: the same keys in every suite; None where a suite has no such number.

    board: of the suite alone; None where no utility was measured.
    """
    lines = [line for line in results.lines if is_private(line.entry)]
    places = {"ceiling": board and board.ceiling, "noisy_popularity": board and board.noisy}
    places |= {"best_at_small_user_level_epsilon": board and board.best("user")}
    return {
        "utility": {"metric": board and board.measure.label, "small_epsilon": SMALL_EPSILON}
        | {name: row and round(row["utility"], 6) for name, row in places.items()},
        "best_at_user_level_epsilon": {
            f"{each['limit']:g}": _answer(each) for each in (board.answers() if board else ())
        },
        "ledger": {
            "private": len(lines),
            "finite": sum(line.entry.accounted_epsilon is not None for line in lines),
            "audited": sum(line.audit is not None for line in lines),
        },
        "published": reproduction(results.comparison),
    }


def _answer(row: Row) -> Row:
    numbers = ("utility", "half", "share", "gain", "audited")
    facts = {name: row[name] for name in ("system", "as_good", "noisy_as_good")}
    return facts | {name: row[name] and round(row[name], 6) for name in numbers}


def state(summary: str, claims: str, evidence: str) -> State:
    """The headline of a suite from the texts of summary.json, claims.csv and evidence.csv, empty where there was none.

    Raises:
        AttributeError, KeyError, ValueError, polars.exceptions.PolarsError: they are something else.
    """
    values = {("value", ": ".join(name)): value for name, value in _flat(json.loads(summary or "{}"))}
    compared = pl.read_csv(io.StringIO(evidence), schema_overrides=EVIDENCE) if evidence else pl.DataFrame()
    if "case" not in compared.columns:  # of a revision that stored verdicts
        return values
    rows = pl.read_csv(io.StringIO(claims), schema_overrides=CLAIMS).select("number", "artefact", "claim").iter_rows()
    verdicts = claimed.verdicts(compared)
    return values | {
        ("claim", f"{artefact}: {claim}"): claimed.merged(verdicts.get(number, {}).values())
        for number, artefact, claim in rows
    }


def _flat(values: Mapping[str, object], *above: str) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, *above, name)
        elif isinstance(value, list):
            yield (*above, name), ", ".join(value) or None
        else:
            yield (*above, name), round(value, 3) if isinstance(value, float) else value


def changes(before: Mapping[str, State], now: Mapping[str, State]) -> Iterator[Change]:
    """What differs between headlines of suites, of what both have; a suite that is new or gone."""
    for suite in sorted(before.keys() | now.keys()):
        if suite not in before or suite not in now:
            yield suite, "suite", suite, suite in before, suite in now
            continue
        old, new = before[suite], now[suite]
        for kind, name in (key for key in old if key in new and old[key] != new[key]):
            yield suite, kind, name, old[kind, name], new[kind, name]


def plots(results: Results, by: Measure, entries: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """File -> table; those of which a suite has nothing have no rows.

    entries: of `tasks.results.standings`.
    """
    tables = {"utility": utility(results, by, entries), "attacks": attacks(results), "curves": curves(results)}
    return {f"{name}.csv": table.with_columns(data=pl.lit(results.suite.kind)) for name, table in tables.items()}


def utility(results: Results, by: Measure, entries: pl.DataFrame) -> pl.DataFrame:
    """`UTILITY`: settings whose accounted ε at a level is finite and not 0; a 95 % interval over n seeds, or splits."""
    rows = []
    for row in entries.iter_rows(named=True):
        values = results.on_swept(results.values(row["experiment"], by.metric, by.k, row["setting"]))
        if values and row["level"] and row["accounted"] and not math.isinf(row["accounted"]):
            parts = [[values[run] for run in part] for _, part in groupby(sorted(values), split_of)]
            of_runs = statistics.summary([fmean(part) for part in parts] if len(parts) > 1 else parts[0])
            names = row["system"], row["setting"], row["level"], row["accounted"]
            rows.append((*names, of_runs.mean, of_runs.low, of_runs.high, of_runs.n))
    return pl.DataFrame(rows, UTILITY, orient="row")


def attacks(results: Results) -> pl.DataFrame:
    """`ATTACKS`: what the first attacker of a suite guesses from the top k, mean over seeds; no rows without one."""
    suite, attacks = results.suite, results.attacks
    if suite.attack is None or "attribute" not in attacks.columns or attacks.is_empty():
        return pl.DataFrame(schema=ATTACKS)
    attacker = suite.attack["attackers"][0]
    rows = [
        (system.label, attribute, k, mean)
        for system in suite.compared
        for attribute in attacks["attribute"].unique().sort()
        for metric in [f"attribute/{attribute}/{attacker}/f1"]
        for k in results.cutoffs(metric)
        if (mean := results.mean(system.experiment, metric, k, BASE)) is not None
    ]
    return pl.DataFrame(rows, ATTACKS, orient="row")


def curves(results: Results) -> pl.DataFrame:
    """Columns system, step, loss, valid: of every epoch at setting `base`, mean over the seeds that reached it.

    Networks that are embedded one by one, without validation, have a curve each.
    """
    labels = pl.DataFrame(
        [(system.experiment, system.label) for system in results.suite.systems], ["experiment", "label"], orient="row"
    )
    network = pl.when(pl.col("network").fill_null("") == "").then(None).otherwise("network")
    joined = results.history.join(labels, on="experiment").with_columns(
        system=pl.concat_str("label", network, separator=", ", ignore_nulls=True), step=pl.col("epoch").cast(pl.Int64)
    )
    return joined.group_by("system", "step", maintain_order=True).agg(pl.col("loss", "valid").cast(pl.Float64).mean())


def coverage(published: pl.DataFrame, suites: Iterable[tuple[Suite, pl.DataFrame, Mapping[str, str]]]) -> pl.DataFrame:
    """Columns `TABLE`, printed, real, part, synthetic, none, reproduced: a row for each printed table on each data set.

    Each printed number counts once, under the best kind of data that it was measured on; tables of what is counted of
    data, or set, are left out. `reproduced`: those of real data or a part whose mean is within 10 % of what is printed;
    what is synthetic is compared with nothing.

    Args:
        published: the printed numbers (`tasks.results.load.PUBLISHED`).
        suites: with the comparison.csv of each, and its paper's names of methods -> labels of systems.
    """
    empty = pl.DataFrame(schema=dict.fromkeys(NUMBER, pl.String) | MEASURED)
    measured = pl.concat([empty, *(_measured(*suite) for suite in suites if suite[0].paper is not None)])
    best = measured.sort(pl.col("data").cast(pl.Enum([*KINDS])), maintain_order=True)
    best = best.unique(NUMBER, keep="first", maintain_order=True)
    counted = measured.filter(protocol=COUNTED).select("paper", "artefact").unique()
    printed = published.select(pl.col(NUMBER).fill_null("")).join(counted, on=counted.columns, how="anti")
    joined = printed.join(best, on=NUMBER, how="left").with_columns(pl.col("data").fill_null(NONE))
    counts = {kind: (pl.col("data") == kind).sum() for kind in (*KINDS, NONE)}
    return joined.group_by(TABLE, maintain_order=True).agg(printed=pl.len(), **counts, reproduced=CLOSE.sum())


def _measured(suite: Suite, comparison: pl.DataFrame, methods: Mapping[str, str]) -> pl.DataFrame:
    """What a suite measured of its paper's numbers, under the names of the data that its own are or stand for.

    Of synthetic data, which are compared with nothing, methods are named as our systems are.
    """
    original = suite.stands_for or suite.publication
    names = dict.fromkeys((suite.dataset, suite.publication, suite.source.dataset), original)
    names |= {f"{network.name}{REPLICA}": network.name for network in suite.networks}
    compared = pl.col("published").is_not_null() | (pl.col("data") == KINDS[-1])  # other scores of a number have none
    rows = comparison.filter(pl.col("ours_mean").is_not_null(), compared).with_columns(
        paper=pl.lit(suite.paper),
        dataset=pl.col("dataset").replace(old=names),
        method=pl.col("method").replace({label: name for name, label in methods.items()} if suite.synthetic else {}),
    )
    return rows.with_columns(pl.col(NUMBER).fill_null("")).select(*NUMBER, *MEASURED)


def once(comparison: pl.DataFrame) -> pl.DataFrame:
    """Of a comparison.csv what was printed and not counted, as statistics of data are; of several scores the first."""
    printed = comparison.filter(pl.col("published").is_not_null(), pl.col("protocol") != COUNTED)
    run = printed.sort(pl.col("ours_mean").is_not_null(), descending=True, maintain_order=True)
    return run.unique(NUMBER, keep="first", maintain_order=True)


def reproduction(comparison: pl.DataFrame) -> dict[str, int]:
    """Of a comparison.csv: how many printed numbers are its `cells`, were `run`, and are within 10 %."""
    numbers = once(comparison)
    run = numbers.filter(pl.col("ours_mean").is_not_null())
    return {"cells": len(numbers), "run": len(run), "within_10_percent": len(numbers.filter(CLOSE))}
