"""DP-CroSUE's charts: TMR, interests, interests against attacks, and its Figure 3."""

from __future__ import annotations

from tasks.reporting.core import comparison, findings
from tasks.reporting.core.chart import SMALL, WIDE, Chart, Level, Panel, Point, Series
from tasks.reporting.core.figures import logarithmic, marks_of, point_of, series_of
from tasks.reporting.core.layout import number
from tasks.reporting.core.results import Network, Results
from tasks.reporting.core.sweeps import swept
from tasks.reporting.core.words import EVERYTHING, MAJORITY, SCORES, inference, interests
from tasks.reporting.sections import controls
from tasks.reporting.sections.controls import RANDOM
from tasks.results.paper import Figure, Table

TYPES = ("attribute", "friendship", "posts")
"""What Table 2 compares."""
BUDGETS = {"features_epsilon": "ε_a", "edges_epsilon": "ε_g", "text_epsilon": "ε_t"}
"""Key of a sweep -> the paper's name of it."""
REFERENCE = "R-GCN"
"""The method that Figure 3 sets the others beside."""
SEEN = ("interests", "gender", "occupation")
"""What Figure 3 draws of each network."""


def ratios(results: Results, table: Table, _: int) -> Chart:
    """Table 2: TMR of each type of data, ours in both senses of precision and the printed one."""
    entries = [entry for entry in comparison.entries(results) if entry.table == table]
    panels = []
    for part in table.parts:
        of_part = [entry for entry in entries if entry.column in part.columns]
        series = []
        for style, column in enumerate(part.columns):
            points = [
                Point(entry.method.name, ours.mean, f"{column.label}: {number(ours.mean)}",
                      y_interval=(ours.low, ours.high), n=len(entry.ours))
                for entry in of_part
                if entry.column == column and entry.method.name in TYPES and len(entry.ours)
                for ours in [findings.interval(results, entry.ours)]
            ]  # fmt: skip
            series.append(Series(f"ours, {column.label.removeprefix('TMR by ')}", style, points, line=False))
        printed = [
            Point(entry.method.name, entry.printed, f"paper: {number(entry.printed)}")
            for entry in of_part
            if entry.column == part.columns[0] and entry.printed is not None
        ]
        series.append(Series("paper", len(part.columns), printed, line=False))
        if any(curve.points for curve in series[:-1]):
            shown = [curve for curve in series if curve.points]
            panels.append(Panel(f"TMR on {part.title}", "type of data", "TMR", shown, (), list(TYPES)))
    return Chart(
        f"chart-{table.anchor}", "TMR by type of data", "Bars: 95 % intervals over seeds.", panels, of="measure"
    )


def scores(results: Results, table: Table, _: int) -> Chart:
    """Table 3: every system's interests by score, beside every interest for everybody."""
    panels = []
    for network in _networks(results):
        places = [(name, interests(network.name, score), 0) for score, name in SCORES.items()]
        series = marks_of(results, results.compared, places)
        levels = [
            Point(name, level, f"{EVERYTHING}: {number(level)}")
            for score, name in SCORES.items()
            if score != "precision-swapped"  # there it is 1 by definition
            and (level := controls.level(results, f"{network.name}/interests/{EVERYTHING}/{score}")) is not None
        ]
        series.append(Series("every interest for everybody", len(results.compared), levels, line=False, muted=True))
        shown = [curve for curve in series if curve.points]
        if len(shown) > 1:
            panels.append(
                Panel(f"Interests on {network.title}", "score", "score", shown, (), list(SCORES.values()), size=WIDE)
            )
    return Chart(f"chart-{table.anchor}", "Interests by score", "Bars: 95 % intervals over seeds.", panels)


def tradeoff_chart(results: Results, table: Table, _: int) -> Chart:
    """Table 4: interests of every system against the attacks on it."""
    panels = []
    for network in _networks(results):
        for attribute in network.sensitive:
            series = []
            for system in results.compared:
                attacks = results.values(system, inference(network.name, attribute), 0)
                interest_scores = results.values(system, interests(network.name), 0)
                if len(attacks) and len(interest_scores):
                    x, y = findings.interval(results, attacks), findings.interval(results, interest_scores)
                    text = f"{system.label}: {attribute} {number(x.mean)}, interests {number(y.mean)}"
                    point = Point(x.mean, y.mean, text, (x.low, x.high), (y.low, y.high), len(attacks))
                    series.append(series_of(results, system, [point], line=False))
            if series:
                level = controls.level(results, f"{network.name}/interests/{EVERYTHING}/precision")
                levels = [] if level is None else [Level("every interest for everybody", level, "dashed")]
                title = f"{network.title}: {attribute}"
                label = f"precision of the attack on {attribute}"
                panels.append(Panel(title, label, "interests, precision", series, levels, named=True, size=WIDE))
    return Chart(
        f"chart-{table.anchor}",
        "Interests against attacks",
        f"Up is better prediction; left is safer. Left of {RANDOM} is no safer: a constant guess has less precision. "
        "Bars: 95 % intervals over seeds.",
        panels,
    )


def budgets(results: Results, figure: Figure, _: int) -> Chart:
    """Figure 3: interests and attacks against each budget, network by network, beside R-GCN on the true network."""
    methods = results.layout.methods
    panels = []
    for network in _networks(results):
        for key, name in BUDGETS.items():
            for metric in SEEN:
                panel = _by_budget(results, figure, network, key, name, metric, methods)
                if panel.series:
                    panels.append(panel)
    return Chart(
        f"chart-{figure.key}",
        "Interests and attacks by ε",
        f"Precision; ε on a log scale. Of interests higher is better, of attacks lower is safer. {REFERENCE} sees the "
        "true network. Bars: 95 % intervals over seeds.",
        panels,
    )


def _by_budget(
    results: Results,
    figure: Figure,
    network: Network,
    key: str,
    name: str,
    what: str,
    methods: dict[str, str],
) -> Panel:
    metric, series, values = f"{network.name}/{what}/precision", [], set[float]()
    systems = [(style, results.find(methods[method])) for style, method in enumerate(figure.drawn)]
    for style, system in systems:
        settings = {} if system is None else swept(results, system).get(key, {})
        if system is None or len(settings) < 2:
            continue
        points = [point_of(results, system, metric, 0, value, setting) for value, setting in settings.items()]
        if drawn := [point for point in points if point]:
            series.append(Series(system.label, style, drawn))
            values |= set(settings)
    levels = []
    reference = results.find(methods[REFERENCE])
    if reference is not None and len(known := results.values(reference, metric, 0)):
        levels.append(Level(f"level of {reference.label}", float(known.mean()), "dashed"))
    control = EVERYTHING if what == "interests" else MAJORITY
    level = controls.level(results, f"{network.name}/{what}/{control}/precision")
    if level is not None:
        label = "every interest for everybody" if control == EVERYTHING else "majority guess"
        levels.append(Level(label, level, "dotted"))
    ticks, title = sorted(values), f"{network.title}: {what}"
    return Panel(title, name, "precision", series, levels, ticks, size=SMALL, log=logarithmic(key, ticks))


def _networks(results: Results) -> list[Network]:
    return [network for network in results.networks if network.friendships and (network.labelled or network.sensitive)]
