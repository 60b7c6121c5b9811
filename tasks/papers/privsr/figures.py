"""PrivSR's Figures 3 to 5: error on the test fold, and that of the paper's attack, by x, ε and β."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tasks.reporting.core.chart import WIDE, Chart, Panel, Point, Series
from tasks.reporting.core.figures import point_of, yardstick_levels
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.sweeps import settings_along
from tasks.reporting.core.words import wording
from tasks.reporting.sections.reconstruction import CONTROL, control_levels, metric
from tasks.results.paper import Figure

MAE, ATTACK = "mae", "reconstruction/published/mae"
"""The error on the test fold, and that of the paper's own attack (its Eq. 10)."""
SHARE = "sensitive_share"
"""The key of x."""
EPSILON, SMALLER = 0.1, 0.05
"""Budgets of Figures 3 and 4."""
FIXED_BETA, FIXED_EPSILON = 1.0, 0.01
"""What stays fixed in Figures 5a and 5b."""
DIGITS = 3
LINES: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("PrivSR", {"epsilon": EPSILON}),
    ("PrivSR", {"epsilon": SMALLER}),
    ("DPMF", {"epsilon": EPSILON}),
    ("DPMF", {"epsilon": SMALLER}),
    ("MF", {}),
    ("SoReg", {}),
)
"""Lines of Figures 3 and 4: method, and what it has beside x."""
X = "share of sensitive ratings, x"


def by_share(results: Results, figure: Figure, k: int) -> Chart:
    """Figures 3 and 4: every method's line over x."""
    attack = figure.key == "figure4"
    measured = ATTACK if attack else MAE
    methods, run = results.layout.methods, results.word_for_run
    series: list[Series] = []
    for style, (method, at) in enumerate(LINES):
        system = results.find(methods[method])
        settings = {} if system is None else settings_along(results, system, SHARE, at)
        if system is None or len(settings) < 2:
            continue
        budget = "".join(f", ε = {value:g}" for value in at.values())
        series.append(Series(f"{method}{budget}", style, _points(results, system, measured, settings)))
    series = [curve for curve in series if curve.points]
    if attack and (control := _control(results)).points:
        series.append(control)
    ticks = sorted({float(point.x) for curve in series for point in curve.points})
    levels = [] if attack else yardstick_levels(results, k)
    panel = Panel("MAE on sensitive ratings" if attack else "MAE on the test fold", X, "MAE", series, levels, ticks)
    direction = "Higher is safer, lower: the attacker succeeds" if attack else "Lower is better"
    return Chart(
        f"chart-{figure.key}",
        "Attacker's MAE by x" if attack else "MAE by x",
        f"{direction}. Bars: 95 % intervals over {run}s.",
        [replace(panel, size=WIDE)] if any(not curve.muted for curve in series) else [],
        of="line",
        run=run,
    )


def by_parameter(results: Results, figure: Figure, k: int) -> Chart:
    """Figure 5: PrivSR over ε at one β, and over β at one ε; error and attack apart."""
    layout = results.layout
    system, run = results.find(layout.methods["PrivSR"]), wording(layout).run
    panels: list[Panel] = []
    for title, key, name, at in (
        (f"(a) β = {FIXED_BETA:g}", "epsilon", "ε", {"beta": FIXED_BETA}),
        (f"(b) ε = {FIXED_EPSILON:g}", "beta", "β", {"epsilon": FIXED_EPSILON}),
    ):
        settings = {} if system is None else settings_along(results, system, key, at)
        if system is None or len(settings) < 2:
            continue
        for measured, data, levels in (
            (MAE, "test MAE", yardstick_levels(results, k)),
            (ATTACK, "attacker's MAE", control_levels(results)),
        ):
            style = int(measured == ATTACK)
            line = Series(
                ("the attacker's MAE" if style else "MAE"), style, _points(results, system, measured, settings)
            )
            if line.points:
                panels.append(Panel(f"{title}: {data}", name, "MAE", [line], levels, list(settings), log=True))
    return Chart(
        f"chart-{figure.key}",
        "MAE by ε and by β",
        f"ε and β on log scales. On the test fold lower is better; of the attacker higher is safer. Bars: 95 % "
        f"intervals over {run}s.",
        panels,
        of="error",
        run=run,
    )


def _points(results: Results, system: System, measured: str, settings: Mapping[float, str]) -> list[Point]:
    points = [point_of(results, system, measured, 0, x, setting, DIGITS) for x, setting in settings.items()]
    return [point for point in points if point]


def _control(results: Results) -> Series:
    """What published ratings alone tell at each x: of any system, since it does not depend on one."""
    for name in results.layout.methods.values():
        system = results.find(name)
        settings = {} if system is None else settings_along(results, system, SHARE)
        if system is not None and len(points := _points(results, system, metric(CONTROL), settings)) > 1:
            return Series("published ratings alone (control)", len(LINES), points, muted=True)
    return Series("", len(LINES), [])
