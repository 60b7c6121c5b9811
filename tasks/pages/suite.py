"""The pages of one suite: a report of one screen, and a page for each kind of evidence behind it.

Each function with the name of a page returns what fills the slots of its template in `templates/suite/`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, get_args

import polars as pl
import yaml

from tasks.evaluation.run_numbers import split_of
from tasks.pages.page import Column, Page, listed, units
from tasks.pages.reproduction import reproduction
from tasks.privacy.audits.unaudited import is_private, reason
from tasks.privacy.remarks import KnownGap
from tasks.privacy.terms import Level
from tasks.results import leakage
from tasks.results.budgets import budgets, level, units_of
from tasks.results.cards import Card, card
from tasks.results.facts import BASE, System
from tasks.results.load import Line, Results, Run
from tasks.results.paper import Paper
from tasks.results.settings import sweeps
from tasks.results.standings import Measure, boards, entries, measure
from tasks.results.tables import LEFT

if TYPE_CHECKING:
    from tasks.core.rows import Row

KINDS = ("claimed", "accounted", "audited")
CURVES = ("loss", "valid", "friendships")
"""Columns of HISTORY that are drawn."""
SATURATED = 1e-3
"""Relative distance from the largest provable bound up to which a bound is shown as that."""
SAME = (
    "unit", "neighbouring", "mechanism", "accounting", "observer", "reasons", "given", "claimed_delta",
    "accounted_delta",
)  # fmt: skip
"""What lines of one row have in common, and their numbers."""
SMALLEST_GROUP = 10
"""Groups of fewer users are not counted on pages."""


def pages(results: Results, paper: Paper) -> list[Page]:
    """All pages of a suite, the report first; none of attacks without evidence, none of reproduction without a paper.

    paper: what the suite names, or the one whose metrics serve suites without.
    """
    by, suite = measure(results, paper), results.suite
    table = entries(results, by)
    contents = {
        "index": overview(results, by, table, paper.reference if suite.paper else "")
        | {"measured": _measured(results, paper)},
        "ledger": ledger(results),
        "attacks": attacks(results),
        "reproduction": reproduction(results, paper) if suite.paper else {},
        "training": training(results, by, table, paper.validation),
        "data": data(results),
        "provenance": provenance(results),
    }
    header = {"suite": suite, "tabs": [part for part, slots in contents.items() if slots]}
    return [
        Page(f"suites/{suite.suite}/{part}.html", f"suite/{part}.html.j2", header | {"part": part} | slots)
        for part, slots in contents.items()
        if slots
    ]


def attacks(results: Results) -> dict[str, object]:
    """What fills `suite/attacks.html.j2`: a section for each kind of evidence; nothing without any."""
    evidence = leakage.collect(results)
    private = frozenset(budgets(results).filter(pl.col("claimed").is_not_null())["experiment"])
    return {"evidence": evidence, "label": results.labels, "private": private} if evidence else {}


def overview(results: Results, by: Measure, entries: pl.DataFrame, reference: str) -> dict[str, object]:
    """What fills `suite/index.html.j2`.

    Args:
        entries: `tasks.results.standings.ENTRIES`.
        reference: of the suite's paper; empty for none.
    """
    base = entries.filter(setting=BASE)
    board = next(iter(boards([(by, entries)])), None)
    private = set(base.filter("private")["level"])
    levels = [level for level in get_args(Level) if level in private]
    refuted = results.audits.filter(verdict="refuted")
    concerned = {number for row in refuted["lines"] for number in json.loads(row)}
    labels = [
        results.labels[line.experiment] for line in results.lines if line.number in concerned and line.setting == BASE
    ]
    method_rows = base.filter("own").to_dicts()
    own = {row["level"]: row for row in method_rows if row["private"]}
    compared, budget_rows = results.suite.compared, budgets(results)
    charts = []
    for name in levels:
        if board is not None:  # suites of no paper compare systems at every ε, too
            rows = board.at(name) if reference else board.curve(name).with_columns(claimed=None)
            points = rows.select(pl.col("system").alias("name"), "utility", *KINDS).to_dicts()
            best = board.best(name, baselines=True)
            across = board.lines("utility" if reference else "on_swept_splits")
            charts += [{"level": name, "best": best, "points": points, "across": across}] if points else []
    return {
        "by": by,
        "own": method_rows[0] if method_rows else None,
        "own_budgets": [own[level] for level in levels if level in own],
        "own_refuted": any(row["verdict"] == "refuted" for row in method_rows),
        "ceiling": board and board.ceiling,
        "noisy": board and board.noisy,
        "best": board and board.best("user", baselines=True),
        "reference": reference,
        "most_runs": max((len(system.seeds) for system in compared), default=0),
        "audits": results.audits.height,
        "refuted": refuted.height,
        "refuted_labels": list(dict.fromkeys(labels)),
        "levels": charts,
        "shown": levels,
        "units": {name: units_of(base.filter("private", level=name)) for name in levels},
        "systems": _systems(base, {each.experiment: card(results, each, by, budget_rows) for each in compared}),
    }


def _systems(base: pl.DataFrame, cards: Mapping[str, Card]) -> list[Row]:
    """Rows of the table: a system with the columns `LEVEL_claimed`, ... of each level, and how it was run."""
    columns = {kind: kind for kind in KINDS} | {"audited_verdict": "verdict", "accounted_observer": "observer"}
    empty = dict.fromkeys(f"{level}_{name}" for level in base["level"].drop_nulls().unique() for name in columns)
    rows: dict[str, Row] = {}
    for row in base.to_dicts():
        entry = rows.setdefault(row["experiment"], empty | row | {"run": cards[row["experiment"]].run()})
        entry |= {f"{row['level']}_{name}": row[column] for name, column in columns.items()}
        entry[f"{row['level']}_unit"] = units(row["units"] or ())
    for entry in rows.values():  # what does not bound an interaction does not bound a user
        if entry.get("interaction_accounted") == math.inf and entry.get("user_accounted", 0.0) is None:
            entry["user_accounted"] = math.inf
    return [*rows.values()]


def ledger(results: Results) -> dict[str, object]:
    """What fills `suite/ledger.html.j2`: `sections`, one for each level of the ledger, and `gaps`."""
    levels = {level(line.entry.unit, line.entry.protects) for line in results.lines}
    rows = [_line(results, line) for line in results.lines]
    lines_by_number = {line.number: line for line in results.lines}
    proved = [_audit(results, row, lines_by_number) for row in results.audits.to_dicts()]
    one_run = [
        row | {"label": results.labels[row["experiment"]], "level": level(row["unit"])}
        for row in results.one_run.to_dicts()
    ]
    sections = [
        {
            "level": name,
            "base": _merged(row for row in rows if row["level"] == name and row["setting"] == BASE),
            "settings": _merged(row for row in rows if row["level"] == name and row["setting"] != BASE),
            "audits": [row for row in proved if row["level"] == name],
            "one_run": [row for row in one_run if row["level"] == name],
            "together": [
                vars(row) | {"about": "", "epsilon": math.inf if row.epsilon is None else row.epsilon}
                for row in results.composed
                if level(row.unit) == name
            ],
        }
        for name in get_args(Level)
        if name in levels
    ]
    return {"sections": sections, "gaps": gaps(results), "n_lines": len(rows), "n_audits": len(proved)}


def _merged(rows: Iterable[Row]) -> list[Row]:
    """Lines that differ in settings and runs alone, as one row: with its `settings`, `n_lines` and `n_runs`."""
    result: dict[tuple[object, ...], Row] = {}
    for row in rows:
        numbers = (row[name] for name in row if name not in ("setting", "n_seeds", "entry"))
        key = (*numbers, *(getattr(row["entry"], name) for name in SAME))
        merged = result.setdefault(key, row | {"settings": {}, "n_lines": 0, "n_runs": 0})
        merged["settings"][row["setting"]] = None
        merged |= {"n_lines": merged["n_lines"] + 1, "n_runs": merged["n_runs"] + row["n_seeds"]}
    return [row | {"settings": listed(row["settings"])} for row in result.values()]


def _line(results: Results, line: Line) -> dict[str, object]:
    entry, audit = line.entry, line.audit or {}
    return {
        "label": results.labels[line.experiment],
        "level": level(entry.unit, entry.protects),
        "about": "",
        "setting": line.setting,
        "network": line.network,
        "n_seeds": len(line.seeds),
        "entry": entry,
        "claimed": entry.claimed_epsilon,
        "accounted": math.inf if entry.accounted_epsilon is None else entry.accounted_epsilon,
        "audited": audit.get("audited_epsilon"),
        "verdict": audit.get("verdict", ""),
        "provable": audit.get("provable"),
        "half": audit.get("control_half"),
        "none": audit.get("control_none"),
        "unaudited": "" if audit or not is_private(entry) else reason(entry) or "",
    }


def _audit(results: Results, row: Row, lines: dict[int, Line]) -> Row:
    """A row of audits.csv with the systems and settings that it is of, and whether its bound could not be larger."""
    concerned = [lines[number] for number in json.loads(row["lines"])]
    settings = list(dict.fromkeys(line.setting for line in concerned))
    return row | {
        "about": "",
        "level": level(row["unit"], row["protects"]),
        "labels": list(dict.fromkeys(results.labels[line.experiment] for line in concerned)),
        "settings": [] if BASE in settings else settings,
        "saturated": math.isclose(row["audited_epsilon"], row["provable"], rel_tol=SATURATED),
    }


def gaps(results: Results) -> list[dict[str, object]]:
    """Known gaps between guarantees and runs, each once: `labels` of the systems, and their `gaps`; most systems first.

    Of a gap whose numbers differ by setting those of setting `base` are shown.
    """
    concerned: dict[str, dict[str, None]] = {}
    variants: dict[str, dict[KnownGap, None]] = {}
    for line in sorted(results.lines, key=lambda line: line.setting != BASE):
        for gap in line.entry.gaps:
            concerned.setdefault(gap.id, {})[results.labels[line.experiment]] = None
            if line.setting == BASE or gap.id not in variants:
                variants.setdefault(gap.id, {})[gap] = None
    by_owners: dict[tuple[str, ...], list[KnownGap]] = {}
    for name, labels in concerned.items():
        by_owners.setdefault(tuple(labels), []).extend(variants[name])
    return [
        {"labels": labels, "gaps": group_gaps}
        for labels, group_gaps in sorted(by_owners.items(), key=lambda each: -len(each[0]))
    ]


def training(results: Results, by: Measure, entries: pl.DataFrame, validation: str) -> dict[str, object]:
    """What fills `suite/training.html.j2`.

    entries: `tasks.results.standings.ENTRIES`; validation: the metric that chose epochs.
    """
    by_run = {run.name: run for run in results.runs if run.stage == "train"}
    trained = [system for system in results.suite.systems if system.experiment in set(results.history["experiment"])]
    table = sweeps(results, by, entries)
    return {
        "by": by,
        "validation": results.suite.validation or validation,
        "curves": [{"label": system.label, **_curves(results, system)} for system in trained],
        "trained": [_trained(results, system, by_run.get(system.experiment)) for system in trained],
        "sweeps": _panels(table),
        "settings": _settings(results, by),
        "tuning": _tuning(results),
    }


def _curves(results: Results, system: System) -> dict[str, object]:
    """`rows`: means by epoch over the runs of the first split, as far as all went; `columns`: `CURVES` with any.

    A line is of one network, of data that are a pair.
    """
    history = results.history.filter(experiment=system.experiment).with_columns(pl.col("network").fill_null(""))
    history = history.filter(pl.col("seed").is_in([seed for seed in system.seeds if not split_of(seed)]))
    grouped = history.group_by("network", "epoch", maintain_order=True).agg(
        pl.len().alias("n"), *(pl.col(name).mean() for name in CURVES)
    )
    grouped = grouped.filter(pl.col("n") == pl.col("n").max().over("network")).sort("network", "epoch")
    columns = [name for name in CURVES if grouped[name].is_not_null().any()]
    return {"rows": grouped.rename({"network": "name", "epoch": "x"}).to_dicts(), "columns": columns}


def _trained(results: Results, system: System, run: Run | None) -> Row:
    lengths = (
        results.history.filter(experiment=system.experiment).group_by("seed", "network").agg(n=pl.col("epoch").max())
    )
    return {
        "label": system.label,
        "least": lengths["n"].min(),
        "most": lengths["n"].max(),
        "epoch_seconds": run and run.epoch_seconds,
        "training_seconds": run and run.training_seconds,
        "cut_off": sum(len(seeds) for seeds in system.cut_off.values()),
        "cut_settings": list(system.cut_off),
    }


def _panels(table: pl.DataFrame) -> list[Row]:
    """A panel for each key, or each level of ε that keys say, and further keys: `key`, `level`, `others`, `rows`."""
    panels: dict[tuple[str, str, tuple[str, ...]], list[Row]] = {}
    for row in table.to_dicts():
        panel = panels.setdefault(("" if row["level"] else row["key"], row["level"], tuple(row["other_keys"])), [])
        panel.append({"name": row["label"], "x": row["value"], **row})
    result = [
        {"key": key, "level": level, "others": other_keys, "rows": rows}
        for (key, level, other_keys), rows in panels.items()
    ]
    return sorted(result, key=lambda panel: len(panel["others"]))


def _settings(results: Results, by: Measure) -> list[dict[str, object]]:
    order = [
        (system.experiment, setting, system.label) for system in results.suite.compared for setting in system.settings()
    ]
    means = results.means.filter(metric=by.metric, k=by.k).rename({"mean": "utility", "std": "utility_std"})
    named = pl.DataFrame(order, ["experiment", "setting", "label"], orient="row")
    return named.join(means, on=["experiment", "setting"], maintain_order="left").to_dicts()


def _tuning(results: Results) -> list[dict[str, object]]:
    """Trials, the best of each system first, each with the keys whose values differ between its system's trials."""
    result = []
    for (experiment,), rows in results.tuning.partition_by("experiment", as_dict=True).items():
        trials = [row | {"config": json.loads(row["config"])} for row in rows.to_dicts()]
        keys = sorted({key for trial in trials for key in trial["config"]})
        varied = [key for key in keys if len({json.dumps(trial["config"].get(key)) for trial in trials}) > 1]
        for trial in sorted(trials, key=lambda trial: -trial["valid"]):
            config = {key: trial["config"][key] for key in varied if key in trial["config"]}
            result.append(trial | {"label": results.labels.get(experiment, experiment), "config": json.dumps(config)})
    return result


def data(results: Results) -> dict[str, object]:
    """What fills `suite/data.html.j2`: counts by step, networks, word vectors, checks, spreads over users."""
    spreads = [
        {
            "metric": metric,
            "k": k,
            "rows": [{"name": results.labels[row["experiment"]], **row} for row in rows.to_dicts()],
        }
        for (metric, k), rows in results.spreads.partition_by("metric", "k", as_dict=True).items()
    ]
    counted = [name for name in LEFT if results.counts[name].is_not_null().any()]
    return {
        "counts": [row | {"numbers": json.loads(row["numbers"])} for row in results.counts.to_dicts()],
        "counted": counted,
        "words": [row for vectors in results.suite.words for row in _words(vectors)],
        "checks": results.checks.to_dicts(),
        "spreads": spreads,
        "networks": [network.model_dump() for network in results.suite.networks],
    }


def _words(vectors: Row) -> list[Row]:
    """Where the vectors of the words of one data set are from; `users` is None for a group that is too small."""
    return [
        {
            "name": vectors["name"],
            "how": how,
            "words": counted["words"],
            "users": counted["users"] if counted["users"] >= SMALLEST_GROUP else None,
        }
        for how, counted in vectors["origins"].items()
    ]


def provenance(results: Results) -> dict[str, object]:
    """What fills `suite/provenance.html.j2`: what the stages took, and which parameters decided the results."""
    machines = list(dict.fromkeys(map(_machine, results.runs)))
    rows = [
        vars(run) | {"label": results.labels.get(run.name, run.name), "machine": machines.index(_machine(run)) + 1}
        for run in results.runs
    ]
    parameters = {system.label: system.parameters for system in results.suite.systems}
    parameters |= {"attack": results.suite.attack} if results.suite.attack else {}
    return {
        "runs": rows,
        "n_revisions": len(results.revisions),
        "cpu_hours": sum(run.cpu_seconds for run in results.runs) / 3600,
        "peak_memory": max((run.peak_memory_mb for run in results.runs), default=0),
        "machines": [
            {"about": "", "number": number, "processor": processor, "cores": cores, "packages": packages}
            for number, (processor, cores, packages) in enumerate(machines, 1)
        ],
        "parameters": {
            name: yaml.safe_dump(keys, default_flow_style=None, width=120) for name, keys in parameters.items()
        },
        "fingerprints": [{"name": name, "digest": digest} for name, digest in results.suite.fingerprints.items()],
    }


def _machine(run: Run) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    return run.processor, run.cores, tuple(sorted(run.packages.items()))


def _measured(results: Results, paper: Paper) -> dict[str, object]:
    """`columns` of what else was measured, and `rows` of means for each compared system that has any."""
    columns = [Column("label", "System")]
    rows: list[dict[str, object]] = [{"label": system.label} for system in results.suite.compared]
    for group, qualities in paper.measured.items():
        for quality in qualities:
            key, better = f"c{len(columns)}", "lower" if quality.lower else ""
            columns.append(Column(key, quality.label, "number", quality.digits, better, group=group))
            for row, system in zip(rows, results.suite.compared, strict=True):
                row[key] = results.mean(system.experiment, quality.metric, quality.cutoff(0))
    measured = [row for row in rows if any(value is not None for key, value in row.items() if key != "label")]
    return {"columns": columns, "rows": measured} if measured else {}
