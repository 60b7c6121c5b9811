"""The figures of a report, from results to charts, and what the figures of papers are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tasks.evaluation.run_numbers import split_of
from tasks.reporting.core import comparison, findings, ledger
from tasks.reporting.core.chart import (
    LOW,
    SMALL,
    Chart,
    Estimate,
    Forest,
    Level,
    Panel,
    Point,
    Series,
    sample_size,
    thin,
)
from tasks.reporting.core.findings import refutations
from tasks.reporting.core.layout import number, with_interval
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.sweeps import NAMES, as_number, swept
from tasks.reporting.core.words import wording
from tasks.results.paper import Figure, Table

EMPHASISED = 7
"""Systems with a colour, where there are more; those beyond five have another shape."""
LEAST = 1e-3
"""An accounted ε below this stands there."""


def charts(results: Results, k: int) -> list[Chart]:
    """The figures that stand beside no table: privacy and utility, sweeps that no paper draws, training."""
    drawn = [tradeoff(results, k), sweeps(results, k), training(results)]
    return [chart for chart in drawn if chart.panels]


def tradeoff(results: Results, k: int) -> Chart:
    """Ranking quality against what one attacker gains, per attribute."""
    utility = results.layout.utility
    levels = yardstick_levels(results, k)
    panels = []
    for attribute in results.attributes():
        series = [
            series_of(results, system, [point], line=False)
            for system in results.compared
            if (point := _tradeoff_point(results, system, attribute, k))
        ]
        label = f"gain of the {results.shown_attacker} attacker at K = {k}"
        title = f"{utility.at(k)}, {utility.spoken}"
        panels.append(Panel(f"Attribute: {attribute}", label, title, series, levels, named=True))
    seeds = "seeds" if results.n_splits == 1 else "the seeds of the first split"
    gain = (
        "Gain is over always guessing the most frequent class, with its 95 % interval over attacked users and "
        f"{seeds}; that of ranking is over {results.word_for_run}s."
    )
    words = wording(results.layout)
    return Chart(
        "chart-gains",
        "Utility and what attacks gain",
        f"{words.direction}; left is safer. {gain} {words.verdict}",
        panels,
        sample=sample_of(results, [series.name for panel in panels for series in panel.series], attacked=True),
    )


def frontier(results: Results, k: int) -> Chart:
    """Utility by the largest accounted ε of one run; systems without a finite one stand at ∞, refuted ones in red."""
    utility = results.layout.utility
    k = utility.cutoff(k)
    refuted = {name: claim for claim in reversed(refutations(results)) for name in claim.experiments}
    series, reached, clamped, unspent = [], [], False, False
    for system in results.compared:
        values, epsilon = results.values(system, utility.metric, k), ledger.total_epsilon(results, system)
        if not len(values):
            continue
        y, claim = findings.interval(results, values), refuted.get(system.experiment)
        said = f"; {claim.text}" if claim else ""
        text = f"{system.label}: accounted ε {ledger.total(results, system)}; {number(y.mean, utility.digits)}{said}"
        clamped |= epsilon is not None and epsilon < LEAST
        unspent |= epsilon == 0
        x = math.inf if epsilon is None else max(epsilon, LEAST)
        point = Point(x, y.mean, text, y_interval=(y.low, y.high), n=len(values))
        line = series_of(results, system, [point], line=False)
        series.append(replace(line, alarm=claim is not None, name=f"{line.name} ✗" if claim else line.name))
        if epsilon:
            units = ledger.units_of(results, system)
            spent = f"{epsilon:.3g} for {units if len(units.split()) < 4 else 'several units'}"
            label = f"baseline {system.label}" if system.is_yardstick else system.label
            reached.append((utility.sign * y.mean, label, f"{spent} ({number(y.mean, utility.digits)})"))
    finding = f"none of {len(series)} systems has a finite ε{' above 0' if unspent else ''}"
    if reached:
        _, label, total = max(reached)
        has = "is best with" if len(reached) > 1 else "alone has"
        finding = f"{label} {has} finite ε{' > 0' if unspent else ''}, {total}"
    better = "lower is better" if utility.lower else "higher is better"
    title = f"{utility.at(k)}{', ' if utility.spoken else ''}{utility.spoken} ({better})"
    least = f"; below {LEAST:g} at {LEAST:g}" if clamped else ""
    label = f"largest accounted ε of one run (∞: none{least})"
    panel = Panel(title, label, utility.at(k), series, yardstick_levels(results, k), named=True, size=LOW, log=True)
    return Chart(
        "frontier",
        f"{utility.at(k)} by accounted ε",
        f"{wording(results.layout).direction}, left is safer. Red ✗: an audit refutes the claimed ε. "
        f"Bars: 95 % intervals over {results.word_for_run}s.",
        [panel] if series else [],
        finding=finding,
        run=results.word_for_run,
    )


def comparisons(results: Results, k: int) -> Chart:
    """Every system minus each yardstick as a forest plot, a panel per yardstick."""
    utility = results.layout.utility
    cutoff, run = utility.cutoff(k), results.word_for_run
    differences = findings.yardstick_differences(results, utility.metric, cutoff, lower=utility.lower)
    by_yardstick = {
        name: [difference for difference in differences if difference.other == name]
        for name in unique([difference.other for difference in differences])
    }
    panels = []
    for yardstick, mine in by_yardstick.items():
        rows = [
            Estimate(difference.system.label, difference.mean, difference.low, difference.high,
                     f"{difference.system.label} minus {yardstick}: "
                     + with_interval(difference.mean, difference.low, difference.high, utility.digits),
                     difference.significant, len(results.values(difference.system, utility.metric, cutoff)))
            for difference in sorted(mine, key=lambda difference: -utility.sign * difference.mean)
        ]  # fmt: skip
        panels.append(Forest(f"minus {yardstick}", f"difference in {utility.at(cutoff)}", rows))
    side = "Left" if utility.lower else "Right"
    each = "; ".join(f"{name}: {_outcomes(mine)}" for name, mine in by_yardstick.items())
    return Chart(
        "chart-comparisons",
        f"{utility.at(cutoff)} against the baselines",
        f"{side} is better. Bars: 95 % intervals over {run}s. Blue: the paired test over {run}s is significant at "
        "5 % after Holm's correction; grey: it does not decide.",
        panels,
        finding=each if len(by_yardstick) < 3 else f"of {len(differences)} differences {_outcomes(differences)}",
        run=run,
    )


def _outcomes(differences: Sequence[findings.Difference]) -> str:
    """How many are better, worse and undecided."""
    better, worse = sum(d.better for d in differences), sum(d.worse for d in differences)
    return f"{better} better, {worse} worse, {len(differences) - better - worse} undecided"


def agreement(results: Results) -> Chart:
    """Every printed number against ours, beside the line where both are the same: a panel per table."""
    panels = []
    known = [entry for entry in comparison.entries(results) if entry.printed is not None and len(entry.ours)]
    for table in unique([entry.table for entry in known]):
        points: dict[bool, list[Point]] = {True: [], False: []}
        for entry in known:
            if entry.table == table and entry.printed is not None:
                ours = float(entry.ours.mean())
                text = (
                    f"{entry.method.name}, {entry.column.label}: printed {number(entry.printed)}, ours {number(ours)}"
                )
                points[comparison.is_near(entry)].append(Point(entry.printed, ours, text))
        names = {True: "within 10 %", False: "further off"}
        series = [Series(names[near], int(not near), points[near], line=False) for near in names if points[near]]
        panels.append(Panel(table.name, "printed", "ours", series, size=SMALL, identity=True))
    near = sum(map(comparison.is_near, known))
    return Chart(
        "chart-agreement",
        "Published against ours",
        "One mark for each number that the paper prints and we measured. On the dashed line both are the same.",
        panels,
        finding=f"{near} of {len(known)} numbers within 10 %",
        sample=sample_size(len(known), [len(entry.ours) for entry in known], results.word_for_run, "number"),
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
                points = [
                    point_of(results, system, metric, k, value, setting, swept=True)
                    for value, setting in settings.items()
                ]
                series.append(series_of(results, system, [point for point in points if point]))
            series = [line for line in series if line.points]
            if series:
                label, log = title.partition(",")[0], logarithmic(key, values)
                panels.append(Panel(title, name_of(key), label, series, (), values, size=SMALL, log=log))
    return Chart(
        "sweeps",
        "Other sweeps",
        "One key of the configuration varies, all others stay as in the setting base.",
        panels,
        run=results.word_for_run,
    )


def training(results: Results) -> Chart:
    """Loss and validation metric by epoch: one panel of each per system, one line per seed."""
    validation = f"validation {results.validation or results.layout.validation}"
    run = results.word_for_run
    panels, seeds, epochs = [], list[int](), 0
    for system in results.systems:
        history = {(seed, network): of for (seed, network), of in system.trainings.items() if not split_of(seed)}
        for key, title in (("loss", "loss"), ("valid", validation)):
            series = [
                Series(f"{run} {seed} {network}".rstrip(), style, _epochs(records, key), markers=False)
                for style, ((seed, network), records) in enumerate(sorted(history.items()))
            ]
            series = [line for line in series if line.points]
            if series:
                name = f"{results.full_label(system)}: {title}"
                panels.append(Panel(name, "epoch", title.split()[-1], series, size=SMALL))
        seeds += [len({seed for seed, _ in history})] if history else []
        epochs = max([epochs, *map(len, history.values())])
    return Chart(
        "training-curves",
        "Training",
        f"One line per {run}, setting base.",
        panels,
        folded=True,
        finding=f"at most {epochs} epochs",
        sample=sample_size(len(seeds), seeds, run),
    )


def swept_in_figures(results: Results) -> list[System]:
    """The systems whose sweeps a figure of the paper shows."""
    layout = results.layout
    varying = [figure for figure in layout.figures if not figure.by_length]
    systems = [results.find(layout.methods[name]) for figure in varying for name in figure.drawn]
    systems += [results.find(sweep.system) for sweep in layout.budget_sweeps]
    return [system for system in systems if system is not None]


def ranking_by_length(results: Results, table: Table, _: int) -> Chart:
    """Every ranking metric of the table against the length of the list, under its protocol."""
    first = {column.metric: f"{column.group}@K" for part in table.parts for column in part.columns}
    protocol = table.parts[0].columns[0].protocol
    panels = [curves(results, metric, f"{title}, {protocol}", title) for metric, title in first.items()]
    return Chart(
        f"chart-{table.anchor}",
        "Ranking by length of the list",
        f"Higher is better. Bars: 95 % intervals over {results.word_for_run}s.",
        [panel for panel in panels if panel.series],
        run=results.word_for_run,
    )


def figure_by_length(results: Results, figure: Figure, _: int) -> Chart:
    """Every ranking metric of the suite against the length of the list, R."""
    first = {quality.metric: quality.label for quality in results.layout.qualities}
    panels = [
        replace(curves(results, metric, f"{label}@R, full", f"{label}@R"), x_label="R")
        for metric, label in first.items()
    ]
    drawn = [panel for panel in panels if panel.series]
    text = "Higher is better. Bars: 95 % intervals over seeds."
    return Chart(f"chart-{figure.key}", "Ranking by length of the list", text, drawn, run=results.word_for_run)


def curves(results: Results, metric: str, title: str, label: str, levels: Sequence[Level] = ()) -> Panel:
    """A metric of every system against the length of the list."""
    places = [(float(k), metric, k) for k in results.cutoffs(metric)]
    shown = marks_of(results, results.compared, places, line=True)
    return Panel(title, "K", label, shown, levels, [length for length, *_ in places], named=True)


def series_of(results: Results, system: System, points: Sequence[Point], *, line: bool = True) -> Series:
    """The points of a system in its colour and marker, the same in every figure."""
    if len(results.compared) <= EMPHASISED:
        return Series(system.label, results.compared.index(system), points, line=line)
    named = [results.find(name) for name in results.layout.emphasis]
    first = [emphasised for emphasised in named if emphasised is not None][:EMPHASISED]
    order = [*first, *(other for other in results.compared if other not in first)]
    return Series(system.label, order.index(system), points, line=line, muted=system not in first)


def marks_of(
    results: Results, systems: Iterable[System], places: Sequence[tuple[float | str, str, int]], *, line: bool = False
) -> list[Series]:
    """A series per system that was measured anywhere: its mark at each place of the axis, by metric and cut-off."""
    drawn = []
    for system in systems:
        points = [point_of(results, system, metric, k, place) for place, metric, k in places]
        drawn.append(series_of(results, system, [point for point in points if point], line=line))
    return [series for series in drawn if series.points]


def yardstick_levels(results: Results, k: int, *, swept: bool = False) -> list[Level]:
    """How well the popularity lists rank. swept: beside curves, which are of the first split alone."""
    layout = results.layout
    metric = layout.utility.metric
    named = [system for name in layout.floor if (system := results.find(name)) is not None]
    return [
        Level(f"level of {system.label}", float(values.mean()), kind)
        for system, kind in zip(named or results.yardsticks, ("dashed", "dotted"), strict=False)
        if len(values := results.values(system, metric, k, first_split=swept))
    ]


def crossing_levels(results: Results, k: int) -> list[Level]:
    """How well the systems do that a budget is measured by, on the first split, which curves are of."""
    layout = results.layout
    return [
        Level(f"level of {system.label}", float(values.mean()), kind)
        for name, kind in zip(layout.levels, ("dashed", "dashdot", "dotted"), strict=False)
        if (system := results.find(name)) is not None
        and len(values := results.values(system, layout.utility.metric, k, first_split=True))
    ]


def logarithmic(key: str, values: Sequence[float]) -> bool:
    """Whether the values of a swept key stand on a log scale: budgets do."""
    return key.endswith(("epsilon", "epsilon_max")) and all(value > 0 for value in values)


def name_of(key: str) -> str:
    """A swept key as the label of an axis."""
    return NAMES.get(key, key)


def point_of(
    results: Results,
    system: System,
    metric: str,
    k: int,
    x: float | str,
    setting: str = BASE,
    digits: int = 3,
    *,
    swept: bool = False,
) -> Point | None:
    """Mean over seeds with its interval; None where it was not measured. swept: as a point of a sweep."""
    values = results.values(system, metric, k, setting, first_split=swept)
    if not len(values):
        return None
    y = findings.interval(results, values)
    mean, low, high = (number(value, digits) for value in (y.mean, y.low, y.high))
    cutoff = f", K = {k}" if k else ""
    text = f"{system.label}, {setting}{cutoff}: {mean} (95 % {low} to {high})"
    return Point(x, y.mean, text, y_interval=(y.low, y.high), n=len(values))


def sample_of(results: Results, names: Iterable[str], *, attacked: bool = False, first_split: bool = False) -> str:
    """How many systems of these names are drawn, with their runs, and how many users were attacked.

    first_split: what is drawn is of that split alone, as attacks and released lists are.
    """
    drawn = {*names}
    runs = [
        sum(not (first_split and split_of(seed)) for seed in system.seeds)
        for system in results.compared
        if system.label in drawn
    ]
    sample = sample_size(len(runs), runs, wording(results.layout).run if first_split else results.word_for_run)
    return f"{sample}, {results.n_targets} attacked users" if attacked and results.n_targets else sample


def _tradeoff_point(results: Results, system: System, attribute: str, k: int) -> Point | None:
    utility = results.layout.utility
    gain = results.gain(system, attribute, results.shown_attacker, k, "majority")
    ys = results.values(system, utility.metric, k)
    if gain is None or not len(ys):
        return None
    y = findings.interval(results, ys)
    text = f"{system.label}: gain {number(gain.mean)}, {utility.at(k)} {number(y.mean)}"
    return Point(gain.mean, y.mean, text, (gain.low, gain.high), (y.low, y.high), len(ys))


def _epochs(records: list[dict[str, Any]], key: str) -> Sequence[Point]:
    points = [(float(record["epoch"]), as_number(record.get(key))) for record in records]
    return thin([Point(x, y, f"epoch {x:g}: {number(y, 4)}") for x, y in points if y is not None])
