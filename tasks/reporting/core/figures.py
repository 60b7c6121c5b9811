"""The figures of a report, from results to charts, and what the figures of papers are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tasks.evaluation.statistics import summary
from tasks.reporting.core import findings, ledger, published
from tasks.reporting.core.chart import N_COLOURS, SMALL, WIDE, Chart, Level, Panel, Point, Series
from tasks.reporting.core.layout import number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.sweeps import NAMES, as_number, swept

LEAST = 1e-3
"""An accounted ε below this stands there."""


def charts(results: Results, k: int) -> list[Chart]:
    """The figures that stand beside no table: privacy and utility, sweeps that no paper draws, training."""
    drawn = [tradeoff(results, k), sweeps(results, k), training(results)]
    return [chart for chart in drawn if chart.panels]


def tradeoff(results: Results, k: int) -> Chart:
    """Ranking quality against what one attacker gains, per attribute, and against the accounted budget."""
    utility = results.layout.utility
    levels = yardstick_levels(results, k)
    panels = []
    for attribute in results.attributes():
        series = [
            series_of(results, system, [point], line=False)
            for system in results.compared
            if (point := _crossed(results, system, attribute, k))
        ]
        label = f"gain of the {results.shown_attacker} attacker at K = {k}"
        title = f"{utility.at(k)}, {utility.spoken}"
        panels.append(Panel(f"Attribute: {attribute}", label, title, series, levels, named=True))
    panels += _budget_panel(results, k, levels)
    gain = (
        "Gain is over always guessing the most frequent class, with its 95 % interval over attacked users and seeds; "
        "that of ranking is over seeds."
    )
    words = results.layout.words
    over_seeds = f"Bars: 95 % intervals over {words.run}s."
    return Chart(
        "tradeoff",
        "Privacy and utility",
        f"{words.direction}; left is safer. {gain if results.attributes() else over_seeds} {words.verdict}",
        panels,
    )


def sweeps(results: Results, k: int) -> Chart:
    """What changes with one key of a configuration, for every system whose sweep is not a figure of the paper."""
    drawn = swept_in_figures(results)
    utility = results.layout.utility
    measured = [(utility.metric, f"{utility.at(k)}, {utility.spoken}")]
    attacker = results.shown_attacker
    measured += [
        (f"attribute/{name}/{attacker}/f1", f"F1 {name}, {attacker} attacker") for name in results.attributes()
    ]
    panels = []
    systems = [system for system in results.compared if system not in drawn]
    for key in unique([key for system in systems for key in swept(results, system)]):
        values = unique(sorted(value for system in systems for value in swept(results, system).get(key, {})))
        for metric, title in measured:
            series = []
            for system in systems:
                settings = swept(results, system).get(key, {})
                points = [point_of(results, system, metric, k, value, setting) for value, setting in settings.items()]
                series.append(series_of(results, system, [point for point in points if point]))
            series = [line for line in series if line.points]
            if series:
                label, log = title.partition(",")[0], logarithmic(key, values)
                panels.append(Panel(title, name_of(key), label, series, (), values, size=SMALL, log=log))
    return Chart(
        "sweeps", "Other sweeps", "One key of the configuration varies, all others stay as in the setting base.", panels
    )


def training(results: Results) -> Chart:
    """Loss and validation metric by epoch: one panel of each per system, one line per seed."""
    validation = f"validation {results.validation or results.layout.validation}"
    run = results.layout.words.run
    panels = []
    for system in results.systems:
        history = {int(seed): epochs for seed, epochs in (system.history or {}).get(BASE, {}).items() if epochs}
        for key, title in (("loss", "training loss"), ("valid", validation)):
            series = [
                Series(f"{run} {seed}", style, _epochs(history[seed], key), markers=False)
                for style, seed in enumerate(sorted(history))
            ]
            series = [line for line in series if line.points]
            if series:
                panels.append(Panel(f"{results.full_label(system)}: {title}", "epoch", title, series))
    return Chart("training-curves", "Training", f"One line per {run}, setting base.", panels, folded=True)


def swept_in_figures(results: Results) -> list[System]:
    """The systems whose sweeps a figure of the paper shows."""
    layout = results.layout
    varying = [figure for figure in layout.figures if not figure.by_length]
    systems = [results.named(layout.methods[name]) for figure in varying for name in figure.drawn]
    systems += [results.named(sweep.system) for sweep in layout.budget_sweeps]
    return [system for system in systems if system is not None]


def ranking_by_length(results: Results, table: published.Table, _: int) -> Chart:
    """Every ranking metric of the table against the length of the list, under its protocol."""
    first = {column.metric: f"{column.group}@K" for part in table.parts for column in part.columns}
    protocol = table.parts[0].columns[0].protocol
    panels = [curves(results, metric, f"{title}, {protocol}", title) for metric, title in first.items()]
    return Chart(
        f"chart-{table.anchor}",
        "Ranking by length of the list",
        "Higher is better. Bars: 95 % intervals over seeds.",
        [panel for panel in panels if panel.series],
    )


def curves(results: Results, metric: str, title: str, label: str, levels: Sequence[Level] = ()) -> Panel:
    """A metric of every system against the length of the list."""
    cutoffs = results.cutoffs(metric)
    lines: list[Series] = []
    for system in results.compared:
        points: list[Point | None] = [point_of(results, system, metric, k, float(k)) for k in cutoffs]
        lines.append(series_of(results, system, [point for point in points if point]))
    shown = [line for line in lines if line.points]
    return Panel(title, "K", label, shown, levels, [float(k) for k in cutoffs], named=True)


def series_of(results: Results, system: System, points: list[Point], *, line: bool = True) -> Series:
    """The points of a system in its colour and marker, the same in every figure."""
    if len(results.compared) <= N_COLOURS:
        return Series(system.label, results.compared.index(system), points, line=line)
    named = [results.named(name) for name in results.layout.emphasis]
    first = [emphasised for emphasised in named if emphasised is not None][:N_COLOURS]
    order = [*first, *(other for other in results.compared if other not in first)]
    return Series(system.label, order.index(system), points, line=line, muted=system not in first)


def yardstick_levels(results: Results, k: int) -> list[Level]:
    """How well the popularity lists rank."""
    layout = results.layout
    metric = layout.utility.metric
    named = [system for name in layout.floor if (system := results.named(name)) is not None]
    return [
        Level(f"level of {system.label}", float(values.mean()), kind)
        for system, kind in zip(named or results.yardsticks, ("dashed", "dotted"), strict=False)
        if len(values := results.values(system, metric, k))
    ]


def crossing_levels(results: Results, k: int) -> list[Level]:
    """How well the systems do that a budget is measured by."""
    layout = results.layout
    return [
        Level(f"level of {system.label}", float(values.mean()), kind)
        for name, kind in zip(layout.levels, ("dashed", "dashdot", "dotted"), strict=False)
        if (system := results.named(name)) is not None
        and len(values := results.values(system, layout.utility.metric, k))
    ]


def logarithmic(key: str, values: Sequence[float]) -> bool:
    """Whether the values of a swept key stand on a log scale: budgets do."""
    return key.endswith(("epsilon", "epsilon_max")) and all(value > 0 for value in values)


def name_of(key: str) -> str:
    """A swept key as the label of an axis."""
    return NAMES.get(key, key)


def point_of(
    results: Results, system: System, metric: str, k: int, x: float | str, setting: str = BASE, digits: int = 3
) -> Point | None:
    """Mean over seeds with its interval; None where it was not measured."""
    values = results.values(system, metric, k, setting)
    if not len(values):
        return None
    y = findings.interval(results, values)
    mean, low, high = (number(value, digits) for value in (y.mean, y.low, y.high))
    cutoff = f", K = {k}" if k else ""
    text = f"{system.label}, {setting}{cutoff}: {mean} (95 % {low} to {high})"
    return Point(x, y.mean, text, y_interval=(y.low, y.high))


def _crossed(results: Results, system: System, attribute: str, k: int) -> Point | None:
    utility = results.layout.utility
    gain = results.gain(system, attribute, results.shown_attacker, k, "majority")
    ys = results.values(system, utility.metric, k)
    if gain is None or not len(ys):
        return None
    y = summary(ys)
    text = f"{system.label}: gain {number(gain.mean)}, {utility.at(k)} {number(y.mean)}"
    return Point(gain.mean, y.mean, text, (gain.low, gain.high), (y.low, y.high))


def _budget_panel(results: Results, k: int, levels: list[Level]) -> list[Panel]:
    """Ranking by the largest accounted epsilon; systems without a finite one stand at the right end."""
    budgets = {system.experiment: ledger.total_epsilon(results, system) for system in results.compared}
    utility = results.layout.utility
    series = []
    for system in results.compared:
        ys = results.values(system, utility.metric, k)
        if not len(ys):
            continue
        y, epsilon = findings.interval(results, ys), budgets[system.experiment]
        text = f"{system.label}: accounted ε {ledger.shown(epsilon)}, {utility.at(k)} {number(y.mean, utility.digits)}"
        x = math.inf if epsilon is None else max(epsilon, LEAST)
        series.append(series_of(results, system, [Point(x, y.mean, text, y_interval=(y.low, y.high))], line=False))
    if not series:
        return []
    title, label = "Accounted budget", "largest accounted ε of one run"
    return [Panel(title, label, utility.at(k), series, levels, named=True, size=WIDE, log=True)]


def _epochs(records: list[dict[str, Any]], key: str) -> list[Point]:
    points = [(float(record["epoch"]), as_number(record.get(key))) for record in records]
    return [Point(x, y, f"epoch {x:g}: {number(y, 4)}") for x, y in points if y is not None]
