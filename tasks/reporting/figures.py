"""The figures of a report, from results to charts."""

from __future__ import annotations

import math
from typing import Any

from tasks.evaluation.statistics import summary
from tasks.reporting import ledger
from tasks.reporting.chart import Chart, Level, Panel, Point, Series
from tasks.reporting.layout import number
from tasks.reporting.results import BASE, Results, System, unique
from tasks.reporting.sweeps import as_number, swept

UTILITY = "full/ndcg"
"""The ranking metric on the utility axis."""


def charts(results: Results, k: int) -> list[Chart]:
    """All figures for which there are results; `k` is the cut-off where a figure shows one only."""
    drawn = [tradeoff(results, k), ranking(results), attacks(results), sweeps(results, k), training(results)]
    return [chart for chart in drawn if chart.panels]


def tradeoff(results: Results, k: int) -> Chart:
    """Ranking quality against what the neural attacker gains, per attribute, and against the accounted budget."""
    levels = [
        Level(f"level of {system.label}", float(results.values(system, UTILITY, k).mean()), kind)
        for system, kind in zip(results.yardsticks, ("dashed", "dotted"), strict=False)
        if len(results.values(system, UTILITY, k))
    ]
    panels = []
    for attribute in results.attributes():
        series = [
            Series(system.label, style, [point], line=False)
            for style, system in enumerate(results.systems)
            if (point := _crossed(results, system, f"attribute/{attribute}/neural/advantage", k))
        ]
        label = f"advantage of the neural attacker at K = {k}"
        panels.append(Panel(f"Attribute: {attribute}", label, f"NDCG@{k}, full ranking", series, levels))
    panels += _budget_panel(results, k, levels)
    return Chart(
        "tradeoff",
        "Privacy and utility",
        "Up is better ranking; left is safer. Advantage is the attacker's F1 minus that of always guessing the most "
        "frequent class. A private system below a popularity line serves its users worse than a list of best-sellers. "
        "Bars: 95 % intervals of the mean over seeds.",
        panels,
    )


def ranking(results: Results) -> Chart:
    """Hit and NDCG against the length of the list, one protocol per panel."""
    wanted = [
        ("sampled-100/hit", "Hit@K, sampled-100"),
        ("sampled-100/ndcg", "NDCG@K, sampled-100"),
        ("full/hit", "Hit@K, full ranking"),
        ("full/ndcg", "NDCG@K, full ranking"),
    ]
    panels = [
        Panel(title, "K", title.partition(",")[0], _curves(results, metric), x_ticks=_cutoff_ticks(results, metric))
        for metric, title in wanted
        if results.cutoffs(metric)
    ]
    return Chart(
        "ranking-curves",
        "Ranking quality by length of the list",
        "The two protocols measure different things and are never set beside one another in a table.",
        panels,
    )


def attacks(results: Results) -> Chart:
    """F1 of the neural attacker against the length of the list it sees."""
    panels = []
    for attribute in results.attributes():
        metric = f"attribute/{attribute}/neural/f1"
        majority = results.majority(attribute)
        levels = [] if majority is None else [Level("majority guess", majority, "dashed")]
        alone = [value for system in results.systems for value in results.values(system, metric, 0)]
        if alone:
            levels.append(Level("ratings alone (mean over systems and seeds)", sum(alone) / len(alone), "dotted"))
        ticks = _cutoff_ticks(results, metric)
        panels.append(Panel(f"Attribute: {attribute}", "K", "F1", _curves(results, metric), levels, ticks))
    return Chart(
        "attack-curves",
        "Attribute inference by the neural attacker",
        "What the recommendations reveal is the rise above the attacker that sees the ratings alone; a curve on the "
        "majority line means that the attacker does no better than guessing.",
        panels,
    )


def sweeps(results: Results, k: int) -> Chart:
    """What changes with one key of a configuration, for every system that was run at several values of it."""
    measured = [(UTILITY, f"NDCG@{k}, full ranking")]
    measured += [(f"attribute/{name}/neural/f1", f"F1 {name}, neural attacker") for name in results.attributes()]
    panels = []
    for key in unique([key for system in results.systems for key in swept(results, system)]):
        for metric, title in measured:
            series = []
            for style, system in enumerate(results.systems):
                settings = swept(results, system).get(key, {})
                points = [_point(results, system, metric, k, value, setting) for value, setting in settings.items()]
                series.append(Series(system.label, style, [point for point in points if point]))
            series = [line for line in series if line.points]
            if series:
                panels.append(Panel(title, key, title.partition(",")[0], series))
    return Chart(
        "sweeps", "Sweeps", "One key of the configuration varies, all others stay as in the setting base.", panels
    )


def training(results: Results) -> Chart:
    """Loss and validation metric by epoch: one panel of each per system, one line per seed."""
    panels = []
    for system in results.systems:
        history = {int(seed): epochs for seed, epochs in system.history.get(BASE, {}).items() if epochs}
        for key, title in (("loss", "training loss"), ("valid", "validation NDCG")):
            series = [
                Series(f"seed {seed}", style, _epochs(history[seed], key), markers=False)
                for style, seed in enumerate(sorted(history))
            ]
            series = [line for line in series if line.points]
            if series:
                panels.append(Panel(f"{system.label}: {title}", "epoch", title, series))
    return Chart("training-curves", "Training", "One line per seed, setting base.", panels)


def _crossed(results: Results, system: System, x_metric: str, k: int) -> Point | None:
    xs, ys = results.values(system, x_metric, k), results.values(system, UTILITY, k)
    if not len(xs) or not len(ys):
        return None
    x, y = summary(xs), summary(ys)
    text = f"{system.label}: advantage {number(x.mean)}, NDCG@{k} {number(y.mean)}"
    return Point(x.mean, y.mean, text, (x.low, x.high), (y.low, y.high))


def _budget_panel(results: Results, k: int, levels: list[Level]) -> list[Panel]:
    """NDCG by the largest accounted epsilon; systems without a finite one stand at the right end."""
    budgets = {system.experiment: ledger.largest_epsilon(results, system) for system in results.systems}
    places = {name: math.log10(max(epsilon, 1e-3)) for name, epsilon in budgets.items() if epsilon is not None}
    decades = sorted({math.floor(place) for place in places.values()} | {math.ceil(place) for place in places.values()})
    end = max([*places.values(), 0.0]) + 1.0
    series = []
    for style, system in enumerate(results.systems):
        ys = results.values(system, UTILITY, k)
        if not len(ys):
            continue
        y, epsilon = summary(ys), budgets[system.experiment]
        text = f"{system.label}: accounted ε {ledger.shown(epsilon)}, NDCG@{k} {number(y.mean)}"
        x = places.get(system.experiment, end)
        series.append(Series(system.label, style, [Point(x, y.mean, text, y_interval=(y.low, y.high))], line=False))
    if not series:
        return []
    x_ticks = [(float(decade), f"{10.0**decade:g}") for decade in decades if decade < end] + [(end, "none")]
    title, label = "Accounted budget", "largest accounted ε of one run"
    return [Panel(title, label, f"NDCG@{k}, full ranking", series, levels, x_ticks)]


def _curves(results: Results, metric: str) -> list[Series]:
    series = []
    for style, system in enumerate(results.systems):
        points = [_point(results, system, metric, k, float(k)) for k in results.cutoffs(metric)]
        series.append(Series(system.label, style, [point for point in points if point]))
    return [line for line in series if line.points]


def _cutoff_ticks(results: Results, metric: str) -> list[tuple[float, str]]:
    return [(float(k), str(k)) for k in results.cutoffs(metric)]


def _point(results: Results, system: System, metric: str, k: int, x: float, setting: str = BASE) -> Point | None:
    values = results.values(system, metric, k, setting)
    if not len(values):
        return None
    y = summary(values)
    text = f"{system.label}, {setting}, K = {k}: {number(y.mean)} (95 % {number(y.low)} to {number(y.high)})"
    return Point(x, y.mean, text, y_interval=(y.low, y.high))


def _epochs(records: list[dict[str, Any]], key: str) -> list[Point]:
    points = [(float(record["epoch"]), as_number(record.get(key))) for record in records]
    return [Point(x, y, f"epoch {x:g}: {number(y, 4)}") for x, y in points if y is not None]
