"""ROC curves on logarithmic axes, which show what an attack does at low false positive rates.

Source: Carlini et al., "Membership Inference Attacks From First Principles" (S&P 2022), section II.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.reporting.core.chart import MEDIUM, Chart, Panel, Point, Series

RIGHTMOST = 0.01
Curves = Mapping[str, Sequence[tuple[float, float]]]
"""Name -> (false positive rate, true positive rate) from left to right."""


def chart(anchor: str, title: str, panels: Mapping[str, Curves], *, of: str) -> Chart:
    """One panel for each key, with a curve for each name.

    0 has no place on such axes. A false positive rate of 0 stands at the smallest of the others, `RIGHTMOST` at most: a
    perfect attack has no other. A true positive rate of 0 is left out.

    Args:
        of: what a curve is of, such as an attack.
    """
    every = [false for curves in panels.values() for curve in curves.values() for false, _ in curve]
    least = min([false for false in every if false > 0] + [RIGHTMOST])
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    drawn = [
        Panel(
            heading,
            "false positive rate",
            "true positive rate",
            [
                series
                for name, curve in curves.items()
                if (series := _series(name, names.index(name), curve, least)).points
            ],
            size=MEDIUM,
            log=True,
            identity=True,
        )
        for heading, curves in panels.items()
    ]
    return Chart(
        anchor,
        title,
        f"Both axes are logarithmic; the dashed line is chance. What no non-member exceeds stands at {least:.2g}.",
        [panel for panel in drawn if panel.series],
        finding="true positive rates at low false positive rates",
        sample=f"n = {len(names)} {of}{'s' * (len(names) != 1)}",
        of=of,
    )


def _series(name: str, style: int, curve: Sequence[tuple[float, float]], least: float) -> Series:
    points = [Point(max(false, least), true, f"{name}: {true:.3g} at {false:.3g}") for false, true in curve if true > 0]
    return Series(name, style, points, markers=False)
