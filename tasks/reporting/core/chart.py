"""Charts as plain geometry: data in, pixel positions out; `templates/chart.html.j2` draws them as inline SVG.

Static SVG rather than a plotting library's script: the page stays small, works offline and in print, and needs no
script at all, so that the page can forbid scripts altogether. Values show on hover through SVG titles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 400.0, 310.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 36.0, 46.0

MARKERS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",  # circle
    "M-4 -4h8v8h-8z",  # square
    "M0 -5.2L5 3.8H-5z",  # triangle
    "M0 -5.6L5.6 0L0 5.6L-5.6 0z",  # diamond
    "M-1.7 -5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",  # plus
    "M0 5.2L5 -3.8H-5z",  # triangle, point down
    "M-4.6 -2.4L-2.4 -4.6L0 -2.2L2.4 -4.6L4.6 -2.4L2.2 0L4.6 2.4L2.4 4.6L0 2.2L-2.4 4.6L-4.6 2.4L-2.2 0z",  # cross
)
N_COLOURS = 7  # colours of style.css: .s0 to .s6
LABELS = 90.0
"""Room for names at the ends of lines, or more for longer ones."""
AWAY = 14.0
"""How far from the frame they begin."""
LINE = 11.0
"""Height of such a name."""
LETTER = 5.8
"""About how wide its letters are."""
SMALL = (300.0, 240.0)
"""Size of a panel that stands beside three others."""


@dataclass(frozen=True)
class Point:
    """A value with optional intervals in both directions."""

    x: float
    y: float
    text: str
    """What hovering shows."""
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

    @property
    def colour(self) -> str:
        """CSS class of the colour."""
        return "muted" if self.muted else f"s{self.style % N_COLOURS}"

    @property
    def marker(self) -> str:
        """SVG path of the marker; differs from colour to colour and again after all colours are used."""
        return MARKERS[(self.style + self.style // N_COLOURS) % len(MARKERS)]


@dataclass(frozen=True)
class Level:
    """A horizontal line such as a chance level; `kind` is "dashed", "dotted" or "dashdot"."""

    name: str
    y: float
    kind: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    x_ticks: Sequence[tuple[float, str]] | None = None
    """Positions and labels of the x axis where they are given rather than chosen."""
    named: bool = False
    """Whether every series has its name beside it: at the end of its line, or at its point."""
    size: tuple[float, float] = (WIDTH, HEIGHT)


@dataclass(frozen=True)
class Chart:
    """A figure of one or more panels that share one legend."""

    anchor: str
    title: str
    caption: str
    panels: Sequence[Panel]
    folded: bool = False
    """Shown only when asked for."""

    @property
    def legend(self) -> list[Series]:
        """Every series once, in order of style."""
        named = {series.name: series for panel in self.panels for series in panel.series}
        return sorted(named.values(), key=lambda series: series.style)

    @property
    def levels(self) -> list[Level]:
        """Every kind of horizontal line once."""
        return list({level.name: level for panel in self.panels for level in panel.levels}.values())

    @property
    def kind(self) -> str:
        """CSS class: small panels stand in fours, else an even number of panels in pairs."""
        if all(panel.size == SMALL for panel in self.panels):
            return "fours"
        return "pairs" if len(self.panels) % 2 == 0 else ""

    @property
    def drawings(self) -> list[Drawing]:
        """The panels in pixels."""
        return [draw(panel) for panel in self.panels]


@dataclass(frozen=True)
class Mark:
    """A point in pixels; bars are SVG paths."""

    x: float
    y: float
    text: str
    bars: str


@dataclass(frozen=True)
class Stroke:
    """A series in pixels."""

    series: Series
    path: str
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class Name:
    """The name of a series in pixels; `path` leads from its point to it."""

    x: float
    y: float
    series: Series
    anchor: str
    path: str


@dataclass(frozen=True)
class Drawing:
    """A panel in pixels."""

    panel: Panel
    strokes: list[Stroke]
    levels: list[tuple[Level, float]]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    names: list[Name]
    right: float
    bottom: float
    left: float = LEFT
    top: float = TOP

    @property
    def width(self) -> float:
        """Of the whole panel."""
        return self.panel.size[0]

    @property
    def height(self) -> float:
        """Of the whole panel."""
        return self.panel.size[1]


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten apart) that lie within [low, high].

    Raises:
        ValueError: a bound is not finite, or high < low.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high < low:
        raise ValueError(f"an axis needs finite bounds in order, not {low} and {high}")
    if high == low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(index * step, digits) for index in range(first, last + 1)]


def draw(panel: Panel) -> Drawing:
    """Place a panel's series, lines and ticks; axes span all values and their intervals with a small margin.

    Raises:
        ValueError: a value is not finite.
    """
    points = [point for series in panel.series for point in series.points]
    xs = [x for point in points for x in (point.x, *(point.x_interval or ()))]
    ys = [y for point in points for y in (point.y, *(point.y_interval or ()))] + [level.y for level in panel.levels]
    if panel.x_ticks is not None:
        xs += [position for position, _ in panel.x_ticks]
    x_low, x_high = _span(xs)
    y_low, y_high = _span(ys)
    lines = any(series.line for series in panel.series)
    longest = max((len(series.name) for series in panel.series), default=0)
    right = panel.size[0] - (max(LABELS, AWAY + LETTER * longest) if panel.named and lines else RIGHT)
    bottom = panel.size[1] - BOTTOM

    def to_x(x: float) -> float:
        return round(LEFT + (x - x_low) / (x_high - x_low) * (right - LEFT), 2)

    def to_y(y: float) -> float:
        return round(bottom - (y - y_low) / (y_high - y_low) * (bottom - TOP), 2)

    def bars(point: Point) -> str:
        x, y = to_x(point.x), to_y(point.y)
        paths = []
        if point.y_interval:
            low, high = (to_y(value) for value in point.y_interval)
            paths.append(f"M{x} {low}V{high}M{x - 3:.2f} {low}h6M{x - 3:.2f} {high}h6")
        if point.x_interval:
            low, high = (to_x(value) for value in point.x_interval)
            paths.append(f"M{low} {y}H{high}M{low} {y - 3:.2f}v6M{high} {y - 3:.2f}v6")
        return "".join(paths)

    strokes = []
    for series in sorted(panel.series, key=lambda line: not line.muted):  # what is grey lies below
        path = " ".join(
            f"{'M' if index == 0 else 'L'}{to_x(point.x)} {to_y(point.y)}" for index, point in enumerate(series.points)
        )
        marks = [Mark(to_x(point.x), to_y(point.y), point.text, bars(point)) for point in series.points]
        strokes.append(Stroke(series, path if series.line else "", marks))
    chosen = panel.x_ticks
    if chosen is None:
        whole = all(float(x).is_integer() for x in xs)  # epochs: no tick between them
        chosen = [(tick, f"{tick:g}") for tick in ticks(x_low, x_high) if not whole or float(tick).is_integer()]
    return Drawing(
        panel=panel,
        strokes=strokes,
        levels=[(level, to_y(level.y)) for level in panel.levels],
        x_ticks=[(to_x(position), label) for position, label in chosen],
        y_ticks=[(to_y(tick), f"{tick:g}") for tick in ticks(y_low, y_high)],
        names=(_ends(strokes, right, bottom) if lines else _at_points(strokes, right)) if panel.named else [],
        right=right,
        bottom=bottom,
    )


def _ends(strokes: list[Stroke], right: float, bottom: float) -> list[Name]:
    """Names to the right of the frame, each as near to the end of its line as the others allow."""
    ends = sorted(((stroke.marks[-1], stroke.series) for stroke in strokes if stroke.marks), key=lambda end: end[0].y)
    places = _apart([mark.y for mark, _ in ends], TOP, bottom)
    return [
        Name(
            right + AWAY, round(y + 4, 2), series, "start", f"M{mark.x} {mark.y}L{right} {mark.y}L{right + 11} {y:.2f}"
        )
        for y, (mark, series) in zip(places, ends, strict=True)
    ]


def _apart(wanted: list[float], low: float, high: float) -> list[float]:
    """Places `LINE` apart within [low, high], as near to the wanted ones (ascending) as least squares allows."""
    groups: list[tuple[float, int]] = []  # mean of wanted place minus place in line, how many
    for index, y in enumerate(wanted):
        offset, size = y - index * LINE, 1
        while groups and groups[-1][0] > offset:
            before, count = groups.pop()
            offset, size = (before * count + offset * size) / (count + size), count + size
        groups.append((offset, size))
    offsets = [offset for offset, size in groups for _ in range(size)]
    return [
        min(max(offset, low), high - (len(wanted) - 1) * LINE) + index * LINE for index, offset in enumerate(offsets)
    ]


def _at_points(strokes: list[Stroke], right: float) -> list[Name]:
    """Names at points, moved up or down where they would cover one another."""
    taken: list[tuple[float, float, float]] = []
    names = []
    for stroke in sorted(
        (line for line in strokes if line.marks), key=lambda line: (line.marks[-1].y, line.series.name)
    ):
        mark, length = stroke.marks[-1], LETTER * len(stroke.series.name)
        before = mark.x + 8 + length > right
        start = mark.x - 8 - length if before else mark.x + 8
        y = mark.y
        while any(abs(y - other) < LINE and start < end and begin < start + length for begin, end, other in taken):
            y += 1
        taken.append((start, start + length, y))
        x = round(start + length if before else start, 2)
        names.append(Name(x, round(y + 4, 2), stroke.series, "end" if before else "start", ""))
    return names


def _span(values: list[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a figure needs finite values")
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin
