"""The kinds of charts as static SVG, a small function each; words stand in templates.

No script runs in a picture and nothing is fetched, and the same rows give the same bytes. Colours are variables of
style.css, for light and dark paper. What a mark means stands in `data-text`, for pointing at it. A browser with Vega
needs a second to start and longer than that for the charts of one report, these need a fiftieth.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

Rows = Sequence[Mapping[str, Any]]
Point = tuple[float, float]
COLOURS = tuple(f"var(--c{number})" for number in range(7))
INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"
SHAPES = {
    "circle": "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0",
    "square": "M-3.2,-3.2h6.4v6.4h-6.4z",
    "triangle": "M0,-4.2L4.2,3.2H-4.2z",
    "diamond": "M0,-4.6L4.6,0L0,4.6L-4.6,0z",
    "cross": "M-4,-4L4,4M-4,4L4,-4",
    "tick": "M0,-6V6",
}
OPEN = ("cross", "tick")
MARKS = {"claimed": "diamond", "accounted": "circle", "audited": "tick"}
"""Kind of ε -> the shape of its mark."""
DASHED = "4 3"
"""Of lines that are no data of a series."""
MANY = 12
"""Values along an axis that are no sweep any more, but epochs: without marks and on a linear axis."""
LOG_FROM = 9.0
"""From this ratio of the largest to the least value of a sweep on, its axis is logarithmic, unless steps are equal."""
FONT, LETTER, TOP = 12, 6.4, 8
"""In pixels: height of a text, width of one of its letters, and room above a frame for the marks at its edge."""
RIGHTMOST = 0.01
"""Of false positive rates, where 0 is drawn."""


class Picture(NamedTuple):
    """A chart, with what a screen reader says of it; a template shows its markup."""

    title: str
    markup: str

    def __html__(self) -> str:
        return self.markup


@dataclass(frozen=True)
class Axis:
    """Where values lie along an axis, in pixels, and which of them have a tick."""

    title: str
    low: float
    high: float
    length: float
    log: bool = False
    ticks: Mapping[float, str] = field(default_factory=dict)
    inset: float = 8
    """Pixels without values at either end."""

    def __call__(self, value: float) -> float:
        """Pixels from the start of the axis."""
        low, high, at = map(math.log10, (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.inset + (self.length - 2 * self.inset) * ((at - low) / (high - low) if high > low else 0.5)


def axis(title: str, values: Iterable[float], length: float, *, log: bool = False, at: Iterable[float] = ()) -> Axis:
    """An axis over all values, with round ticks, or with those named by `at`."""
    low, high = min(values := [*values] or [1.0]), max(values)
    ticks = list(at) or (log and _powers(low, high)) or _steps(low, high)
    return Axis(title, low, high, length, log, {tick: f"{tick:g}" for tick in ticks})


def _powers(low: float, high: float) -> list[float]:
    leads = (1, 2, 5) if high / low < 50 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for lead in leads if low <= (tick := lead * 10.0**power) <= high]


def _steps(low: float, high: float, count: int = 4) -> list[float]:
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / count))
    step = next(lead * power for lead in (1, 2, 5, 10) if lead * power * count >= (high - low) * (1 - 1e-9))
    return [round(number * step, 12) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


class Plot:
    """A frame with two axes, and what is drawn in it."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x, self.y, self.parts, self.right = x, y, list[str](), 16.0
        self.left = max((len(text) for text in y.ticks.values()), default=0) * LETTER + (26 if y.title else 10)
        self.bottom, low, end = 22 + (16 if x.title else 0), y.length, -math.inf
        self.parts.append(f'<rect width="{x.length:g}" height="{low:g}" fill="none" stroke="{LINE}"/>')
        for value, text in x.ticks.items():
            if x(value) - len(text) * LETTER / 2 > end:  # a tick without room has no text
                self.text(x(value), low + 15, text, "middle")
                end = x(value) + len(text) * LETTER / 2 + 2
            self.parts.append(f'<path d="M{x(value):.1f},0V{low:g}" stroke="{LINE}" opacity="0.6"/>')
        for value, text in y.ticks.items():
            self.parts.append(f'<path d="M0,{low - y(value):.1f}H{x.length:g}" stroke="{LINE}" opacity="0.6"/>')
            self.text(-6, low - y(value) + 4, text, "end")
        self.text(x.length / 2, low + 32, x.title, "middle")
        self.text(11 - self.left, low / 2, y.title, "middle", turned=True)

    def at(self, x: float, y: float) -> Point:
        """Pixels across and down."""
        return self.x(x), self.y.length - self.y(y)

    def line(
        self, points: Iterable[Point], colour: str, *, dash: str = "", width: float = 1.6, soft: bool = False
    ) -> None:
        """A line through points."""
        if not (points := [*points]):
            return
        path = "L".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*point) for point in points))
        style = (f' stroke-dasharray="{dash}"' if dash else "") + (' opacity="0.5"' if soft else "")
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{style}/>')

    def across(self, value: float, name: str = "") -> None:
        """A dashed line at a value of y, with its name above it."""
        y = self.y.length - self.y(value)
        path = f"M0,{y:.1f}H{self.x.length:g}"
        self.parts.append(f'<path d="{path}" stroke="{SOFT}" stroke-dasharray="{DASHED}" data-text="{escape(name)}"/>')
        self.text(4, y - 4, name, colour=SOFT)

    def mark(self, x: float, y: float, colour: str, text: str, shape: str = "circle", *, hollow: bool = False) -> None:
        """A mark, with what pointing at it shows."""
        (left, top), fill = self.at(x, y), "none" if hollow or shape in OPEN else colour
        self.parts.append(
            f'<path d="{SHAPES[shape]}" transform="translate({left:.1f},{top:.1f})" fill="{fill}" stroke="{colour}" '
            f'stroke-width="1.6" data-text="{escape(text)}"/>'
        )

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", *, colour: str = INK, turned: bool = False
    ) -> None:
        """A text at pixels."""
        turn = f' transform="rotate(-90,{x:.1f},{y:.1f})"' if turned else ""
        if text:
            style = f'fill="{colour}" text-anchor="{anchor}"{turn}'
            self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>')

    def picture(self, title: str, legend: str = "") -> Picture:
        """The picture, above markup that explains it."""
        left, width, height = -self.left, self.left + self.x.length + self.right, self.y.length + self.bottom + TOP
        size = f'viewBox="{left:g} {-TOP} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        font = f'font-family="Arial, Helvetica, sans-serif" font-size="{FONT}"'
        head = f'<svg {size} role="img" aria-label="{escape(title)}" {font}>'
        return Picture(title, f"{head}{''.join(self.parts)}</svg>{legend}")


def by_epsilon(title: str, points: Rows, across: Rows, *, x: str, y: str, names: Sequence[str] = ()) -> Picture:
    """Utility by ε of one level, on a log axis with 0 at its left edge and ∞ at its right edge.

    Args:
        title: what a screen reader says.
        points: `name`, `utility`, and ε as `claimed`, `accounted` and `audited`, each None for none; a line joins the
            accounted ones of one name.
        across: `name` and `utility` of systems that are drawn as lines.
        x, y: titles of the axes.
        names: of all systems that pictures side by side share; empty: its own.
    """
    values = [value for row in points for value in _epsilons(row).values()]
    finite = [value for value in values if value and math.isfinite(value)] or [1.0]
    near = 10.0 ** (math.floor(math.log10(min(finite)) + 1e-9) - (0 in values))
    far = 10.0 ** (math.ceil(math.log10(max(finite)) - 1e-9) + (math.inf in values))
    powers = [10.0**power for power in range(round(math.log10(near)), round(math.log10(far)) + 1)]
    ticks = {power: f"{power:g}" for power in powers}
    ticks |= ({far: "∞"} if math.inf in values else {}) | ({near: "0"} if 0 in values else {})
    up = axis(y, [row["utility"] for row in (*points, *across)], 270)
    plot = Plot(Axis(x, near, far, 360, log=True, ticks=ticks), replace(up, inset=18))
    present = {row["name"] for row in points}
    styles = _styles(names or sorted(present))
    for row in across:
        plot.across(row["utility"], "" if row["name"] in present else row["name"])
    ends = []
    for number, (name, (colour, _)) in enumerate(styles.items()):
        joined = []
        for row in (row for row in points if row["name"] == name):
            epsilons = _epsilons(row)
            positions = {kind: min(max(value, near), far) for kind, value in epsilons.items()}
            span = [(end(positions.values()), row["utility"]) for end in (min, max)]
            plot.line(span, colour, width=1, soft=True)
            for kind, position in positions.items():
                value = rounded_down(epsilons[kind]) if kind == "audited" else epsilons[kind]
                text = f"{name}: {kind} {'∞' if math.isinf(value) else format(value, '.4g')}, {row['utility']:.4g}"
                plot.mark(position, row["utility"], colour, text, MARKS[kind], hollow=True)
            joined.append((positions.get("accounted", far), row["utility"]))
        if name in present:
            plot.line(joined, colour, dash=_dash(number))
            ends.append((plot.at(*span[1])[1], name, colour))
    _names(plot, ends)
    kinds = [kind for kind in MARKS if any(kind in _epsilons(row) for row in points)]
    return plot.picture(title, _legend([(kind, INK, MARKS[kind]) for kind in kinds]))


def rounded_down(value: float) -> float:
    """A bound with three significant digits, no more than it was (doubles may be off by a trillionth)."""
    if not value or math.isinf(value):
        return value
    unit = 10.0 ** (2 - math.floor(math.log10(value)))
    return math.floor(value * unit * (1 + 1e-12)) / unit


def _epsilons(row: Mapping[str, Any]) -> dict[str, float]:
    """Kind of ε -> its value; an audited one of 0 proves nothing."""
    return {kind: row[kind] for kind in MARKS if row[kind] is not None and (kind != "audited" or row[kind])}


def _names(plot: Plot, ends: Iterable[tuple[float, str, str]]) -> None:
    """Names of lines right of the frame (pixels down of the last point, name, colour), none upon another."""
    ends, low = sorted(ends), -math.inf
    for number, (y, name, colour) in enumerate(ends):
        low = min(max(y + 4, low + FONT), plot.y.length - FONT * (len(ends) - 1 - number))
        plot.text(plot.x.length + 8, low, name, colour=colour)
        plot.right = max(plot.right, 12 + len(name) * LETTER)


def curves(
    title: str,
    rows: Rows,
    x: str,
    y: str,
    *,
    value: str = "y",
    log: bool | None = None,
    log_y: bool = False,
    level: float | None = None,
    identity: bool = False,
    names: Sequence[str] = (),
    size: Point = (300, 210),
) -> Picture:
    """Lines of rows with `name`, `x`, a value and, for an interval, `low` and `high`; an infinite x stands right.

    Args:
        title, x, y: of the picture and its axes.
        rows: the points; those without a value, or that a log axis cannot show, are left out.
        value: their column up the picture.
        log, log_y: whether x and y are drawn on log scales; x None: where its values are few and far apart.
        level: a dashed line across, such as chance; `identity`: whether y = x is drawn, too.
        names: of all series that pictures side by side share, which have one legend (`legend`); empty: its own.
        size: width and height between the axes, in pixels.
    """
    xs = sorted({row["x"] for row in rows if math.isfinite(row["x"])}) or [1.0]
    few, far = len(xs) <= MANY, 10 * xs[-1]
    if log is None:
        even = len({after - before for before, after in pairwise(xs)}) < 2
        log = few and not even and xs[0] > 0 and xs[-1] / xs[0] >= LOG_FROM
    points = [dict(row, x=min(row["x"], far), y=row[value]) for row in rows if row[value] is not None]
    points = [row for row in points if not (log and row["x"] <= 0) and not (log_y and row["y"] <= 0)]
    right = {row["x"] for row in points}
    across = axis(x, right, size[0], log=log, at=sorted(right) if few else ())
    if far in right:
        across = replace(across, ticks={**across.ticks, far: "∞"})
    ups = [row[key] for row in points for key in ("y", "low", "high") if row.get(key) is not None]
    plot = Plot(across, axis(y, ups if level is None else [*ups, level], size[1], log=log_y))
    if level is not None:
        plot.across(level)
    if identity and points:
        ends = max(across.low, plot.y.low), min(across.high, plot.y.high)
        plot.line([(end, end) for end in ends], SOFT, dash=DASHED)
    styles = _styles(names or [row["name"] for row in points])
    for number, (name, (colour, shape)) in enumerate(styles.items()):
        series = [row for row in points if row["name"] == name]
        plot.line([(row["x"], row["y"]) for row in series], colour, dash="" if few else _dash(number))
        for row in series if few else ():
            if row.get("low") is not None:
                plot.line([(row["x"], row["low"]), (row["x"], row["high"])], colour, soft=True)
            plot.mark(row["x"], row["y"], colour, row.get("text") or f"{name}: {row['y']:.4g}", shape)
    return plot.picture(title, "" if names or not any(styles) else legend([*styles]))


def roc(title: str, attacks: Mapping[str, Sequence[Point]]) -> Picture:
    """ROC curves on logarithmic axes, which show low false positive rates; the dashed line is chance.

    0 has no place on such axes. A false positive rate of 0 stands at the least of the others, `RIGHTMOST` at most; a
    true positive rate of 0 is left out. Source: Carlini et al. (S&P 2022), section II.

    title: of the picture; attacks: name -> (false positive rate, true positive rate) from left to right.
    """
    lowest = min([false for curve in attacks.values() for false, _ in curve if false > 0] + [RIGHTMOST])
    rows = [
        {"name": name, "x": max(false, lowest), "y": true} for name, curve in attacks.items() for false, true in curve
    ]
    return curves(title, rows, "false positive rate", "true positive rate", log=True, log_y=True, identity=True)


def dots(title: str, rows: Rows, x: str, *, level: float) -> Picture:
    """Marks of rows with `row` (a line each), `name`, `x` and `text`, such as one for each seed; `level` is dashed."""
    positions = {name: -number for number, name in enumerate(dict.fromkeys(row["row"] for row in rows))}
    ticks: dict[float, str] = {position: name for name, position in positions.items()}
    up = Axis("", min(ticks), 0, 24 * len(ticks), ticks=ticks, inset=12)
    plot = Plot(axis(x, [level, *(row["x"] for row in rows)], 420), up)
    plot.line([(level, up.low), (level, 0)], INK, dash=DASHED)
    styles = _styles([row["name"] for row in rows])
    for row in rows:
        colour, shape = styles[row["name"]]
        plot.mark(row["x"], positions[row["row"]], colour, row["text"], shape)
    return plot.picture(title, legend([*styles]))


def histogram(title: str, bins: Rows, x: str, y: str) -> Picture:
    """Bins with `low`, `high` and `users` as bars; the area of a bar, which may be wide, is its share of users."""
    bins = [row for row in bins if row["high"] > row["low"]]
    total, width = sum(row["users"] for row in bins), min((row["high"] - row["low"] for row in bins), default=1.0)
    shares = [row["users"] / total * width / (row["high"] - row["low"]) for row in bins]
    edges = [row[key] for row in bins for key in ("low", "high")]
    up = axis(y, [0.0, *shares], 60)
    plot = Plot(axis(x, edges, 170), replace(up, ticks={value: f"{100 * value:g} %" for value in up.ticks}, inset=0))
    for row, share in zip(bins, shares, strict=True):
        (left, top), (right, low) = plot.at(row["low"], share), plot.at(row["high"], 0)
        box = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{low - top:.1f}"'
        plot.parts.append(f'<rect {box} fill="{COLOURS[0]}" stroke="var(--paper)" data-text="{row["users"]}"/>')
    return plot.picture(title)


def legend(names: Sequence[str]) -> Markup:
    """The list of colours and marks of series, as pictures side by side share it."""
    return _legend([(name, *style) for name, style in _styles(names).items()])


def _legend(entries: Iterable[tuple[str, str, str]]) -> Markup:
    """entries: name, colour and shape."""
    mark = (
        '<li><svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true"><path d="{}" fill="{}" stroke="{}"/>'
    )
    items = (
        Markup(mark + "</svg>{}</li>").format(SHAPES[shape], "none" if shape in OPEN else colour, colour, name)
        for name, colour, shape in entries
    )
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))


def _dash(number: int) -> str:
    """Of the line of a series, whose colour may be that of an earlier one."""
    return "" if number < len(COLOURS) else "6 2"


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name -> its colour and shape: after all colours are used they start again, with other shapes."""
    n, shapes = len(COLOURS), [shape for shape in SHAPES if shape != "tick"]
    unique = dict.fromkeys(names)
    return {name: (COLOURS[at % n], shapes[(at + at // n) % len(shapes)]) for at, name in enumerate(unique)}


def csv_link(rows: Rows) -> str:
    """The address of rows as a CSV file that stands in the page."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return f"data:text/csv;charset=utf-8,{quote(text.getvalue())}"
