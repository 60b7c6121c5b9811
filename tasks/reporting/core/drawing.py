"""The kinds of charts, each drawn in one place: Altair describes them, vl-convert makes static SVG of the description.

No script runs in the page, no font and no data are fetched, and the same panel always gives the same bytes. Colours are
those of light paper, so that a picture can stand alone; style.css exchanges them on dark paper.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache, singledispatch
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from tasks.reporting.core.chart import ALARM, COLOURS, DASHES, MUTED, Forest, Heat, Panel
from tasks.reporting.core.layout import format_difference
from tasks.reporting.core.placing import LETTER, ROW, labels, separate, wrapped

INK, SOFT, LINE, PAPER = "#1c2024", "#565f68", "#cfd5da", "#ffffff"
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
CONFIG = {
    "background": None,
    "font": FONT,
    "padding": {"left": 14, "right": 14, "top": 4, "bottom": 4},
    "view": {"stroke": LINE},
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "offset": 8},
    "axis": {"gridColor": LINE, "gridOpacity": 0.6, "domainColor": LINE, "tickColor": LINE, "labelColor": INK,
             "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
             "titlePadding": 9, "labelOverlap": "greedy", "labelLimit": 220},
}  # fmt: skip
LABEL = 12
"""Size of labels in pixels."""
WIDEST = 510
"""Of a picture in pixels, so that its texts have nine pixels or more on a screen of 420."""
AXIS = 92
"""What an axis with its title and the padding take of that."""
LEFT = 0.25
"""What a log axis has left of its least value, as a share of the width of all."""
BLACK = "#000000"
"""On cells of a heat map, which are the same on dark paper: style.css leaves this ink as it is."""
HEAT, DARK = ("#9ecae1", "#f7f4f0", ALARM), 0.8
"""Colours of a heat map at the lowest value, at zero and at the highest, and where white is easier to read on them."""

HIDDEN = re.compile(
    r'<path class="(?:background|foreground)"[^>]*(?:d="M0,0h0v0h0Z"|display="none")[^>]*/>'
    r'|(?<=role-axis") data-text="[^"]*"|(?<=-text") data-text="[^"]*"| pointer-events="none"| aria-hidden="true"'
    r'| aria-roledescription="[^"]*"| role="graphics-[a-z]*"| fill-opacity="1"| opacity="1"| stroke-width="1"'
    r'| [xy]2="0"| transform="translate\(0,0\)"| xmlns:xlink="[^"]*"| version="1.1"| font-family="[^"]*"'
)
"""Of SVG as it is made: paths of no extent, and attributes that say nothing in a page or stand at its root."""
PLACES, DECIMALS = re.compile(r' (?:transform|d|[xy]2?)="[^"]*"'), re.compile(r"(\.\d)\d+")


@singledispatch
def specification(panel: object) -> alt.TopLevelMixin:
    """What Vega-Lite draws of a panel.

    Raises:
        ValueError: a value is not finite.
    """
    raise TypeError(f"{type(panel).__name__} is no kind of panel")


def svg(panel: Panel | Forest | Heat) -> Markup:
    """A panel as an SVG element, its texts escaped."""
    with debug_mode(False):  # Altair looks at each part of a description as it is made: half of the time
        described = json.dumps(specification(panel).to_dict(validate=False))
    drawn = _draw_svg(described)
    label = f"{panel.title}: {panel.finding}"
    named = Markup(' role="img" aria-label="{}" font-family="{}" ').format(label, FONT)
    return Markup(_compact_svg(drawn).replace(" ", named, 1))


@lru_cache(512)
def _draw_svg(described: str) -> str:
    """The SVG of a description in Vega-Lite; a site shows some figures twice."""
    return str(vl_convert.vegalite_to_svg(described, config=CONFIG, allowed_base_urls=[]))


def _compact_svg(drawn: str) -> str:
    """The same picture with places to a tenth of a pixel, without what is not seen: half the bytes.

    It has one label for screen readers; what its marks mean stands in `data-text`, for those who point at them.
    """
    drawn = HIDDEN.sub("", drawn.replace(' aria-label="', ' data-text="'))
    return PLACES.sub(lambda place: DECIMALS.sub(r"\1", place.group()), drawn)


@specification.register
def _series(panel: Panel) -> alt.TopLevelMixin:
    """Curves, scatters and categories."""
    if any(isinstance(point.x, str) for series in panel.series for point in series.points):
        return _categories(panel)
    far = _infinity_place(panel)
    xs = [_place(x, far) for x in _all_x(panel)]
    x_low, x_high = _span(xs, log=panel.log)
    if panel.log and not panel.x_ticks:  # from one power of ten on, or with space for names left of the least
        space = (min(xs) / max(xs)) ** (LEFT * panel.named)
        x_low = min(10.0 ** math.floor(math.log10(x_low) + 0.1), min(xs) * space)
    y_low, y_high = _span(_all_y(panel), log=panel.log and panel.identity)
    if panel.identity:
        x_low, x_high = y_low, y_high = min(x_low, y_low), max(x_high, y_high)
    scale = alt.Scale(type="log" if panel.log else "linear", domain=[x_low, x_high], nice=False, zero=False)
    ticks = [_place(tick, far) for tick in panel.x_ticks or () if not isinstance(tick, str)]
    ticks = ticks or (_decades(x_low, x_high, far) if panel.log else [])
    axis = _axis(ticks or None, integers=all(float(x).is_integer() for x in xs), far=far)
    rows = _rows(panel, far)
    both_log = panel.log and panel.identity
    y_scale = alt.Scale(type="log" if both_log else "linear", domain=[y_low, y_high], nice=False, zero=False)
    spans = (x_low, x_high), (y_low, y_high)
    ends = list[dict[str, Any]]()
    width, height = map(float, panel.size)
    places = _places_of_names(panel, rows, *spans, panel.size)
    if panel.named and places is None:  # the names of what stands at ∞ move to the frame, or else all
        ends = [row for row in rows if far and row["x"] == far]
        width, height = _size(panel, ends)
        inside = [row for row in rows if row not in ends]
        places = _places_of_names(panel, inside, *spans, (width, height), bound=far if ends else 0.0)
        if places is None:
            ends, (width, height) = rows, _size(panel, rows)
    x = alt.X("x:Q", title=wrapped(panel.x_label, width), scale=scale, axis=axis)
    y = alt.Y("y:Q", title=panel.y_label, scale=y_scale, axis=axis if both_log else alt.Axis())
    layers = [*_levels(panel), *([_identity(x, y, y_low, y_high)] if panel.identity else [])]
    layers += _marks(rows, x, y)
    layers += _end_labels(ends, *spans, height) if ends else []
    layers += _at_points(places) if places else []
    return alt.layer(*layers).properties(width=width, height=height, title=wrapped(panel.title, width + AXIS, 7.4))


def _categories(panel: Panel) -> alt.TopLevelMixin:
    """Categories along the axis, the series of each side by side."""
    width, height = panel.size
    names = [str(x) for x in panel.x_ticks or dict.fromkeys(str(x) for x in _all_x(panel))]
    rows = _rows(panel, 0.0)
    y_low, y_high = _span(_all_y(panel))
    angle = -35 if LETTER * (max(map(len, names)) + 1) * len(names) > width else 0
    axis = alt.Axis(labelAngle=angle, labelOverlap=False, grid=False)
    x = alt.X("x:N", title=panel.x_label or None, sort=names, scale=alt.Scale(domain=names, padding=0.2), axis=axis)
    y = alt.Y("y:Q", title=panel.y_label, scale=alt.Scale(domain=[y_low, y_high], nice=False, zero=False))
    places = [(row["x"], row["series"]) for row in rows]
    dodged = len({place for place, _ in places}) < len(set(places))
    order = list(dict.fromkeys(series.name for series in panel.series))
    offset = {"xOffset": alt.XOffset("series:N", sort=order, scale=alt.Scale(domain=order, paddingOuter=0.3))}
    layers = [*_levels(panel), *_marks(rows, x, y, offset if dodged else {})]
    return alt.layer(*layers).properties(width=width, height=height, title=wrapped(panel.title, width + AXIS, 7.4))


@specification.register
def _forest(panel: Forest) -> alt.TopLevelMixin:
    names = [row.name for row in panel.rows]
    rows = [
        {"name": row.name, "x": row.mean, "low": row.low, "high": row.high, "text": row.text,
         "colour": COLOURS[0] if row.decided else MUTED}
        for row in panel.rows
    ]  # fmt: skip
    low, high = _span([0.0, *(value for row in panel.rows for value in (row.low, row.high))])
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    few = alt.Axis(tickCount=4)
    width = max(150.0, min(360.0, WIDEST - AXIS - LETTER * max((len(name) for name in names), default=0)))
    x, colour = alt.X("x:Q", title=panel.x_label, scale=scale, axis=few), alt.Color("colour:N", scale=None)
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelOverlap=False, grid=False))
    base = _chart(rows)
    zero = _chart([{"x": 0.0}]).mark_rule(color=INK, strokeDash=[4, 3], aria=False).encode(x=x)
    bars = base.mark_rule(aria=False, strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title=panel.x_label, axis=few), x2=alt.X2("high:Q"), y=y, color=colour
    )
    marks = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=x, y=y, color=colour, description=alt.Description("text:N")
    )
    return alt.layer(zero, bars, marks).properties(width=width, height=alt.Step(20), title=panel.title)


@specification.register
def _heat(panel: Heat) -> alt.TopLevelMixin:
    top = panel.top or max((abs(cell.value) for cell in panel.cells), default=0.0) or 1.0
    rows = [
        {"row": cell.row, "column": cell.column, "value": cell.value, "text": cell.text,
         "shown": format_difference(cell.value, 2), "ink": PAPER if cell.value > DARK * top else BLACK,
         "weight": "bold" if cell.marked else "normal"}
        for cell in panel.cells
    ]  # fmt: skip
    columns = list(dict.fromkeys(cell.column for cell in panel.cells))
    angle = -35 if max(map(len, columns), default=0) * LETTER > 50 else 0
    x = alt.X(
        "column:N",
        sort=columns,
        title=panel.column_label or None,
        axis=alt.Axis(orient="top", labelAngle=angle, labelOverlap=False),
    )
    y = alt.Y("row:N", sort=list(dict.fromkeys(cell.row for cell in panel.cells)), title=panel.row_label or None)
    scale = alt.Scale(domain=[-top, 0, top], range=list(HEAT), interpolate="rgb")
    base = _chart(rows).encode(x=x, y=y)
    squares = base.mark_rect().encode(
        color=alt.Color("value:Q", scale=scale, legend=None), description=alt.Description("text:N")
    )
    both = []
    for weight in ("normal", "bold"):
        written = base.transform_filter(alt.datum.weight == weight).mark_text(
            aria=False, fontWeight=weight, fontSize=LABEL
        )
        both.append(written.encode(text=alt.Text("shown:N"), color=alt.Color("ink:N", scale=None)))
    layers = alt.layer(squares, *both).resolve_scale(color="independent")
    room = WIDEST - 50 - LETTER * max((len(cell.row) for cell in panel.cells), default=0)
    step = max(38.0, min(56.0, room / max(len(columns), 1)))
    return layers.properties(width=alt.Step(step), height=alt.Step(22), title=panel.title)


def _chart(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def _rows(panel: Panel, far: float) -> list[dict[str, Any]]:
    """Every point as Vega-Lite reads it; what is grey comes first and lies below."""
    rows = []
    for series in sorted(panel.series, key=lambda line: (line.alarm, not line.muted)):
        for point in series.points:
            x: float | str = point.x if isinstance(point.x, str) else _place(point.x, far)
            row = {"series": series.name, "x": x, "y": point.y, "text": point.text}
            row |= {"colour": series.colour, "shape": series.shape, "line": series.line, "mark": series.markers}
            for axis, interval in (("x", point.x_interval), ("y", point.y_interval)):
                if interval:
                    row |= {f"{axis}_low": interval[0], f"{axis}_high": interval[1]}
            rows.append(row)
    return rows


def _marks(rows: list[dict[str, Any]], x: alt.X, y: alt.Y, offset: dict[str, Any] | None = None) -> list[alt.Chart]:
    """Lines, intervals and markers, in this order."""
    colour, layers = alt.Color("colour:N", scale=None), []
    offset = offset or {}
    if joined := [row for row in rows if row["line"]]:
        lines = _chart(joined).mark_line(aria=False, strokeWidth=1.8)
        layers.append(lines.encode(x=x, y=y, color=colour, detail=alt.Detail("series:N"), order=alt.Order("x:Q")))
    for axis in ("x", "y"):
        if held := [row for row in rows if f"{axis}_low" in row and row["mark"]]:
            bars = _chart(held).mark_rule(aria=False, strokeWidth=1.1, opacity=0.75)
            low, high = (alt.X, alt.X2) if axis == "x" else (alt.Y, alt.Y2)
            between = {axis: low(f"{axis}_low:Q"), f"{axis}2": high(f"{axis}_high:Q")}
            layers.append(bars.encode(**({"x": x, "y": y} | between | offset), color=colour))
    if marked := [row for row in rows if row["mark"]]:
        shape = alt.Shape("shape:N", scale=None)
        marks = _chart(marked).mark_point(filled=True, size=60, opacity=1)
        layers.append(
            marks.encode(x=x, y=y, color=colour, shape=shape, description=alt.Description("text:N"), **offset)
        )
    return layers


def _levels(panel: Panel) -> list[alt.Chart]:
    return [
        _chart([{"y": level.y, "text": f"{level.name}: {level.y:.3f}"}])
        .mark_rule(color=INK, strokeWidth=1.4, strokeDash=list(DASHES[level.kind][0]))
        .encode(y=alt.Y("y:Q"), description=alt.Description("text:N"))
        for level in panel.levels
    ]


def _identity(x: alt.X, y: alt.Y, low: float, high: float) -> alt.Chart:
    line = _chart([{"x": low, "y": low}, {"x": high, "y": high}])
    return line.mark_line(color=SOFT, strokeDash=[4, 3], aria=False).encode(x=x, y=y)


def _size(panel: Panel, ends: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Width and height between the axes; names to the right of the frame take from the one and need the other."""
    width, height = panel.size
    names = {row["series"] for row in ends}
    longest = LETTER * max(map(len, names), default=0)
    return max(140.0, min(width, WIDEST - AXIS - 18 - longest)), max(height, ROW * len(names))


def _end_labels(
    rows: list[dict[str, Any]], x_span: tuple[float, float], y_span: tuple[float, float], height: float
) -> list[alt.Chart]:
    """Names to the right of the frame, each as near to the end of its line as the others allow."""
    last = {row["series"]: row for row in rows}
    ends = sorted(last.values(), key=lambda row: -row["y"])
    low, high = y_span
    wanted = [(high - row["y"]) / (high - low) * height for row in ends]
    places = [high - place / height * (high - low) for place in separate(wanted, 0.0, height)]
    named = [row | {"at": place, "right": x_span[1]} for row, place in zip(ends, places, strict=True)]
    thin: dict[str, Any] = {"aria": False, "strokeWidth": 0.7, "strokeDash": [1, 2], "color": SOFT}
    leads, slanted = _chart(named).mark_rule(**thin), _chart(named).mark_rule(**thin, x2Offset=13)
    texts = _chart(named).mark_text(align="left", dx=16, fontSize=LABEL, aria=False)
    right, across = alt.X("right:Q"), alt.X2("right:Q")
    return [
        leads.encode(x=alt.X("x:Q"), x2=across, y=alt.Y("y:Q")),
        slanted.encode(x=right, x2=across, y=alt.Y("y:Q"), y2=alt.Y2("at:Q")),
        texts.encode(x=right, y=alt.Y("at:Q"), text=alt.Text("series:N"), color=_readable_colour()),
    ]


def _places_of_names(
    panel: Panel,
    rows: list[dict[str, Any]],
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    size: tuple[float, float],
    bound: float = 0.0,
) -> list[dict[str, Any]] | None:
    """The last row of every series with the middle of its name, `across` and `at`; None where they have no place.

    size: width and height between the axes, in pixels.
    bound: the x that names stay left of; 0 for none.
    """
    if not panel.named or not rows or any(series.line for series in panel.series):
        return None
    width, height = size
    (left, right), (low, high) = x_span, y_span

    def across(x: float) -> float:
        x, first, last = (math.log10(value) if panel.log else value for value in (x, left, right))
        return (x - first) / (last - first) * width

    last = {row["series"]: row for row in rows}
    ends = sorted(last.values(), key=lambda row: (-row["y"], row["series"]))
    lines = [(high - level.y) / (high - low) * height for level in panel.levels]
    points = [(across(row["x"]), (high - row["y"]) / (high - low) * height, row["series"]) for row in ends]
    places = labels(points, across(bound) - 8 if bound else width, height, lines)
    if places is None:
        return None
    named = []
    for row, (middle, down) in zip(ends, places, strict=True):
        share = middle / width
        place = left * (right / left) ** share if panel.log else left + share * (right - left)
        named.append(row | {"across": place, "at": high - down / height * (high - low)})
    return named


def _at_points(named: list[dict[str, Any]]) -> list[alt.Chart]:
    """Names at points, each at the nearest place where it covers neither another name nor a mark."""
    texts = _chart(named).mark_text(fontSize=LABEL, aria=False)
    return [texts.encode(x=alt.X("across:Q"), y=alt.Y("at:Q"), text=alt.Text("series:N"), color=_readable_colour())]


def _readable_colour() -> alt.Color:
    """The colour of a name: its system's, where that is not too pale to be read."""
    return alt.condition(alt.datum.colour == MUTED, alt.value(SOFT), alt.Color("colour:N", scale=None))


def _axis(ticks: list[float] | None, *, integers: bool, far: float) -> alt.Axis:
    """Ticks at given places; none between whole numbers; ∞ at the place of what has no bound."""
    number = "format(datum.value, '~g')" if ticks else "datum.label"
    options: dict[str, Any] = {"values": ticks} if ticks else {"tickMinStep": 1} if integers else {}
    if far:
        return alt.Axis(labelExpr=f"datum.value >= {far!r} * 0.999 ? '∞' : {number}", **options)
    return alt.Axis(labelExpr=number, **options) if ticks else alt.Axis(**options)


def _all_x(panel: Panel) -> list[Any]:
    points = [point for series in panel.series for point in series.points]
    return [x for point in points for x in (point.x, *(point.x_interval or ()))] + list(panel.x_ticks or ())


def _all_y(panel: Panel) -> list[float]:
    points = [point for series in panel.series for point in series.points]
    return [y for point in points for y in (point.y, *(point.y_interval or ()))] + [level.y for level in panel.levels]


def _infinity_place(panel: Panel) -> float:
    """Where ∞ stands; 0 where nothing does."""
    xs = [x for x in _all_x(panel) if not isinstance(x, str)]
    known = [x for x in xs if math.isfinite(x) and x > 0]
    return 10.0 * max(known, default=0.1) if any(math.isinf(x) for x in xs) else 0.0


def _decades(low: float, high: float, far: float) -> list[float]:
    """Powers of ten within bounds, and where ∞ stands."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers if not far or 10.0**power < far / 3] + [far] * bool(far)


def _place(x: float, far: float) -> float:
    return far if math.isinf(x) and far else float(x)


def _span(values: Sequence[float], *, log: bool = False) -> tuple[float, float]:
    """Bounds of an axis: all values and a margin."""
    if not values:
        return (0.1, 1.0) if log else (0.0, 1.0)
    if not all(math.isfinite(value) and (value > 0 or not log) for value in values):
        raise ValueError("a figure needs finite values, on a log scale above zero")
    if log:
        low, high = _span([math.log10(value) for value in values])
        return 10.0**low, 10.0**high
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin
