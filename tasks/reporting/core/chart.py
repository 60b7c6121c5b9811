"""What a figure shows, as data: panels of points, estimates or cells; `drawing` makes SVG of them by Vega-Lite."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from tasks.reporting.core.layout import count, number

COLOURS = ("#0072b2", "#d55e00", "#008a66", "#b3548c", "#b27d00", "#3b93c9", "#4d4d4d")
"""Of the systems that a figure is about; style.css has their counterparts on dark paper."""
MUTED, ALARM = "#aab2b9", "#c8102e"
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
SMALL, MEDIUM, WIDE = (220, 160), (320, 230), (470, 290)
"""Width and height between a panel's axes, in pixels."""


@dataclass(frozen=True)
class Point:
    """A value with optional intervals in both directions. An x of infinity stands at the right end, as ∞."""

    x: float | str
    y: float
    text: str
    """What hovering shows and a screen reader says."""
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


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
        """A key of `SHAPES`; differs from colour to colour and again after all colours are used."""
        return list(SHAPES)[(self.style + self.style // N_COLOURS) % len(SHAPES)]

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
    def finding(self) -> str:
        """Who has the highest and the lowest value; of a single series, its first and last one."""
        ends = [(point.y, series.name) for series in self.series for point in series.points]
        if not ends:
            return ""
        (low, last), (high, first) = min(ends), max(ends)
        if len(self.series) > 1:
            return f"{self.y_label} is highest for {first} ({number(high)}), lowest for {last} ({number(low)})"
        points = self.series[0].points
        if len(points) == 1:
            return f"{self.y_label} of {first} is {number(high)}"
        a, b = points[0], points[-1]
        return f"{self.y_label} of {first} is {number(a.y)} at {_format(a.x)} and {number(b.y)} at {_format(b.x)}"

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
    """What its title says was found; empty for what the first panel has to say."""
    sample: str = ""
    """What it was measured on: how many systems and seeds."""

    @property
    def heading(self) -> str:
        """Its title with its finding."""
        said = self.finding or (self.panels[0].finding if self.panels else "")
        return f"{self.title}: {said}" if self.title and said else self.title or said

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


def sample_size(systems: int, seeds: Sequence[int], run: str) -> str:
    """How much was measured: "14 systems, 5 seeds each"."""
    low, high = min(seeds, default=0), max(seeds, default=0)
    runs = count(low, run) if low == high else f"{low} to {high} {run}s"
    return f"n = {count(systems, 'system')}, {runs} each"


def _format(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "∞" if math.isinf(value) else f"{value:.6g}"
