"""What a figure shows, as data: panels of points, estimates or cells; `drawing` makes SVG of them by Vega-Lite."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from tasks.reporting.core.layout import count, number

COLOURS = ("#0072b2", "#d55e00", "#008a66", "#b3548c", "#b27d00")
"""Of the systems that a figure is about: with grey and red seven; style.css has their counterparts on dark paper."""
MUTED, ALARM = "#7f8890", "#c8102e"
"""Of all other systems, and of what refutes a claim."""
N_COLOURS = len(COLOURS)
SHAPES = {
    "circle": "●",
    "square": "■",
    "triangle-up": "▲",
    "diamond": "◆",
    "cross": "✚",
    "triangle-down": "▼",
    "triangle-right": "▶",
}
"""Vega-Lite's name of a mark -> its sign in legends."""
DASHES = {"dashed": ((7, 4), "╌╌"), "dotted": ((2, 3), "┈┈"), "dashdot": ((9, 3, 2, 3), "╌┈")}
"""Kind of a level -> dash and gap in pixels, and its sign in legends."""
SMALL, MEDIUM, WIDE, LOW = (220, 160), (320, 230), (420, 270), (420, 180)
"""Width and height between a panel's axes, in pixels."""
MOST_POINTS = 36
"""Of a line: more are not seen."""


@dataclass(frozen=True)
class Point:
    """A value with optional intervals in both directions. An x of infinity stands at the right end, as ∞."""

    x: float | str
    y: float
    text: str
    """What hovering shows and a screen reader says."""
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    n: int = 0
    """How many runs it is the mean of; 0 where it is none of ours."""


@dataclass(frozen=True)
class Series:
    """The points of one system; `style` chooses its colour and marker, the same in every figure."""

    name: str
    style: int
    points: Sequence[Point]
    line: bool = True
    markers: bool = True
    muted: bool = False
    """Drawn in grey, for a system that is not what the figure is about."""
    alarm: bool = False
    """Drawn in red, for a system that breaks its claim."""

    @property
    def colour(self) -> str:
        """As hexadecimal red, green and blue."""
        return ALARM if self.alarm else MUTED if self.muted else COLOURS[self.style % N_COLOURS]

    @property
    def shape(self) -> str:
        """A key of `SHAPES`; differs from colour to colour and again after all colours are used, or among grey ones."""
        turns = 0 if self.muted else self.style // N_COLOURS
        return list(SHAPES)[(self.style + turns) % len(SHAPES)]

    @property
    def sign(self) -> str:
        """Its mark in a legend."""
        return SHAPES[self.shape] if self.markers else "━"


@dataclass(frozen=True)
class Level:
    """A horizontal line such as a chance level; `kind` is a key of `DASHES`."""

    name: str
    y: float
    kind: str

    @property
    def sign(self) -> str:
        """Its mark in a legend."""
        return DASHES[self.kind][1]


@dataclass(frozen=True)
class Panel:
    """Series over one pair of axes: curves by a key, a scatter, or categories side by side."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    x_ticks: Sequence[float | str] | None = None
    """Places on the x axis where they are given rather than chosen; of categories their order."""
    named: bool = False
    """Whether every series has its name beside it: at the end of its line, or at its point."""
    size: tuple[int, int] = MEDIUM
    log: bool = False
    """Whether x is on a log scale."""
    identity: bool = False
    """Whether the line y = x is drawn."""

    @property
    def extremes(self) -> list[tuple[float, str]]:
        """The lowest and the highest value with its name: of lines at their ends. Empty without points."""
        lines = all(series.line for series in self.series)
        several = len(self.series) > 1
        ends = [
            (point.y, f"{series.name}, {point.x}" if several else str(point.x))
            if isinstance(point.x, str) and point.x != series.name
            else (point.y, series.name)
            for series in self.series
            for point in (series.points[-1:] if lines and several else series.points)
        ]
        return [min(ends), max(ends)] if ends else []

    @property
    def finding(self) -> str:
        """Who has the highest and the lowest value; of a single line, its first and last one."""
        if not self.extremes:
            return ""
        (low, last), (high, first) = self.extremes
        points = self.series[0].points
        if len(self.series) == 1 and len(points) > 1 and not isinstance(points[0].x, str):
            a, b = points[0], points[-1]
            return f"{number(a.y)} at {_format(a.x)}, {number(b.y)} at {_format(b.x)}"
        if first == last:
            return f"{first} {number(high)}"
        if number(low) == number(high):
            return f"{number(high)} for all"
        return f"highest for {first} ({number(high)}), lowest for {last} ({number(low)})"

    @property
    def measured(self) -> str:
        """What its finding is of: the quantity, and of lines where they end."""
        ends = {series.points[-1].x for series in self.series if series.line and series.points}
        if len(self.series) < 2 or not ends or isinstance(next(iter(ends)), str):
            return self.y_label
        place = f"{self.x_label} = " if " " not in self.x_label else ""
        return f"{self.y_label} at {place}{_format(*ends)}" if len(ends) == 1 else f"{self.y_label} at the end"

    @property
    def records(self) -> Iterator[dict[str, str]]:
        """Its points and levels as rows of a table."""
        for series in self.series:
            for point in series.points:
                record = {"series": series.name, "x": _format(point.x), "y": _format(point.y)}
                for axis, interval in (("x", point.x_interval), ("y", point.y_interval)):
                    record |= dict(zip((f"{axis}_low", f"{axis}_high"), map(_format, interval or ()), strict=False))
                yield record
        for level in self.levels:
            yield {"series": level.name, "y": _format(level.y)}


@dataclass(frozen=True)
class Estimate:
    """A row of a forest plot."""

    name: str
    mean: float
    low: float
    high: float
    text: str
    decided: bool
    """Whether the rule for such differences calls it a difference."""
    n: int = 0
    """How many runs it is the mean of."""


@dataclass(frozen=True)
class Forest:
    """Differences with their intervals beside the line of no difference, one row each."""

    title: str
    x_label: str
    rows: Sequence[Estimate]

    @property
    def finding(self) -> str:
        """How many differ."""
        above = sum(row.decided and row.mean > 0 for row in self.rows)
        below = sum(row.decided and row.mean < 0 for row in self.rows)
        return f"{above} above and {below} below, of {len(self.rows)}"

    @property
    def records(self) -> Iterator[dict[str, str]]:
        """Its rows as those of a table."""
        for row in self.rows:
            yield {
                "series": row.name,
                "x": _format(row.mean),
                "x_low": _format(row.low),
                "x_high": _format(row.high),
            }


@dataclass(frozen=True)
class Square:
    """A cell of a heat map; `marked` cells are what the figure is about."""

    row: str
    column: str
    value: float
    text: str
    marked: bool


@dataclass(frozen=True)
class Heat:
    """A heat map around zero, its values written into the cells."""

    title: str
    row_label: str
    column_label: str
    cells: Sequence[Square]
    top: float = 0.0
    """The value that has the strongest colour, the same for all panels of a chart; 0: the largest of its own."""

    @property
    def finding(self) -> str:
        """How many cells are marked, and the largest."""
        marked = [cell for cell in self.cells if cell.marked]
        if not marked:
            return f"none of {len(self.cells)} gains"
        top = max(marked, key=lambda cell: cell.value)
        return f"{len(marked)} of {len(self.cells)} gain, most {top.row}, {top.column} (+{number(top.value)})"

    @property
    def records(self) -> Iterator[dict[str, str]]:
        """Its cells as rows of a table."""
        for cell in self.cells:
            yield {
                "series": cell.row,
                "x": cell.column,
                "y": _format(cell.value),
                "marked": str(cell.marked).lower(),
            }


def share_scale(panels: Sequence[Heat]) -> list[Heat]:
    """The same heat maps, a value having one colour in all of them."""
    top = max((abs(cell.value) for panel in panels for cell in panel.cells), default=0.0)
    return [replace(panel, top=top) for panel in panels]


@dataclass(frozen=True)
class Chart:
    """A figure of panels that share one legend."""

    anchor: str
    title: str
    caption: str
    panels: Sequence[Panel | Forest | Heat]
    folded: bool = False
    """Shown only when asked for."""
    finding: str = ""
    """What its title says was found; empty for what its panels have to say."""
    sample: str = ""
    """What it was measured on; empty for what its points are means of."""
    of: str = "system"
    """What a series is."""
    run: str = "seed"
    """What its means are over."""

    @property
    def heading(self) -> str:
        """Its title with its finding."""
        said = self.finding or self._main_finding
        return f"{self.title}: {said}" if self.title and said else self.title or said

    @property
    def _main_finding(self) -> str:
        """What its panels say: of one its finding, of several which series is highest in most, or what moves most."""
        if len(self.panels) != len(self._panels):
            return self.panels[0].finding
        if len(self.panels) == 1:
            (panel,) = self._panels
            measured = panel.measured.removeprefix(panel.y_label if panel.y_label in self.title else "")
            return f"{measured} {panel.finding}".strip()
        known = [panel for panel in self._panels if panel.extremes]
        if not known:
            return ""
        if all(low == high for panel in known for (_, low), (_, high) in [panel.extremes]):
            most = max(known, key=_movement)
            if not _movement(most):
                return ", ".join(f"{panel.y_label} {number(panel.extremes[0][0])}" for panel in known)
            along = "" if most.x_label in self.title else f" with {most.x_label}"
            return f"{most.title} moves most{along}: {most.finding}"
        low, high = (Counter(panel.extremes[end][1] for panel in known).most_common(1)[0] for end in (0, 1))
        if 2 * high[1] <= len(known):
            most = max(known, key=_width)
            return f"{most.title.replace(': ', ' ')} differs most: {most.finding}"
        of = "all" if high[1] == len(known) else f"{high[1]} of {len(known)}"
        lowest = f", {low[0]} lowest in {low[1]}" if 2 * low[1] > len(known) else ""
        return f"{high[0]} is highest in {of} panels{lowest}"

    @property
    def size(self) -> str:
        """What it was measured on: how many systems are drawn, and how many runs of each."""
        runs: dict[str, list[int]] = {}
        for panel in self.panels:
            if isinstance(panel, Forest):
                for row in panel.rows:
                    runs.setdefault(row.name, []).append(row.n)
            elif isinstance(panel, Panel):
                for series in panel.series:
                    runs.setdefault(series.name, []).extend(point.n for point in series.points)
        known = {name: known_counts for name, counts in runs.items() if (known_counts := [n for n in counts if n])}
        counts = [n for known_counts in known.values() for n in known_counts]
        return self.sample or sample_size(len(known), counts, self.run, self.of)

    @property
    def _panels(self) -> list[Panel]:
        return [panel for panel in self.panels if isinstance(panel, Panel)]

    @property
    def legend(self) -> list[Series]:
        """Every series once, in order of style; none where every panel names its own."""
        if all(panel.named for panel in self._panels):
            return []
        named = {series.name: series for panel in self._panels for series in panel.series}
        return sorted(named.values(), key=lambda series: series.style)

    @property
    def levels(self) -> list[Level]:
        """Every kind of horizontal line once."""
        return list({level.name: level for panel in self._panels for level in panel.levels}.values())

    @property
    def csv(self) -> str:
        """What is drawn, as a table."""
        records = [{"panel": panel.title, **record} for panel in self.panels for record in panel.records]
        columns = list(dict.fromkeys(key for record in records for key in record))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    @property
    def csv_address(self) -> str:
        """That table as an address which holds it."""
        return "data:text/csv;charset=utf-8," + quote(self.csv, safe=",()=;:/+@")


def sample_size(systems: int, seeds: Sequence[int], run: str, of: str = "system") -> str:
    """How much was measured: "n = 14 systems, 5 seeds each"."""
    low, high = min(seeds, default=0), max(seeds, default=0)
    runs = count(low, run) if low == high else f"{low} to {high} {run}s"
    return f"n = {count(systems, of)}, {runs}{' each' if systems != 1 else ''}"


def thin(points: Sequence[Point], most: int = MOST_POINTS) -> Sequence[Point]:
    """At most so many of a line's points: the first, the last and others evenly between them."""
    if len(points) <= most:
        return points
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def _width(panel: Panel) -> float:
    """By how much a panel's lowest value differs from its highest, as a share of the larger."""
    (low, _), (high, _) = panel.extremes
    return (high - low) / (max(abs(low), abs(high)) or 1.0)


def _movement(panel: Panel) -> float:
    """By how much a line's last value differs from its first, as a share of the larger."""
    first, last = panel.series[0].points[0].y, panel.series[0].points[-1].y
    return abs(last - first) / (max(abs(first), abs(last)) or 1.0)


def _format(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "∞" if math.isinf(value) else f"{value:.5g}"
