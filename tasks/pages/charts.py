"""The kinds of charts, a small function each: Altair describes, vl-convert draws static SVG. Words stand elsewhere.

No script runs in a picture, no font and no data are fetched, and the same rows give the same bytes. Colours are those
of light paper; style.css exchanges them on dark paper. What a mark means stands in `data-text`, for pointing at it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode
from markupsafe import Markup

Rows = Sequence[Mapping[str, Any]]
COLOURS = ("#0072b2", "#d55e00", "#008a66", "#b3548c", "#b27d00", "#3b93c9", "#4d4d4d")
"""style.css has their counterparts on dark paper."""
SHAPES = {
    "circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆", "cross": "✚", "triangle-down": "▼",
    "triangle-right": "▶",
}  # fmt: skip
"""Vega-Lite's name of a mark -> its sign in a legend."""
INK, SOFT, LINE, BLACK, PAPER = "#1c2024", "#565f68", "#cfd5da", "#000000", "#ffffff"
HEAT, DARK = ("#9ecae1", "#f7f4f0", "#c8102e"), 0.8
"""Colours of a heat map at the lowest value, at zero and at the highest, and where white is easier to read on them."""
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
CONFIG = {
    "background": None,
    "font": FONT,
    "padding": 4,
    "view": {"stroke": LINE},
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "offset": 8},
    "axis": {"gridColor": LINE, "gridOpacity": 0.6, "domainColor": LINE, "tickColor": LINE, "labelColor": INK,
             "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
             "labelLimit": 240},
    "legend": {"labelFontSize": 12, "labelColor": INK, "titleColor": INK, "labelLimit": 220, "symbolOpacity": 1},
}  # fmt: skip
HIDDEN = re.compile(
    r'<path class="(?:background|foreground)"[^>]*(?:d="M0,0h0v0h0Z"|display="none")[^>]*/>'
    r'|(?<=role-axis") data-text="[^"]*"|(?<=-text") data-text="[^"]*"| pointer-events="none"| aria-hidden="true"'
    r'| aria-roledescription="[^"]*"| role="graphics-[a-z]*"| fill-opacity="1"| opacity="1"| stroke-width="1"'
    r'| [xy]2="0"| transform="translate\(0,0\)"| xmlns:xlink="[^"]*"| version="1.1"| font-family="[^"]*"'
)
"""Of SVG as it is made: paths of no extent, and attributes that say nothing in a page or stand at its root."""
PLACES, DECIMALS = re.compile(r' (?:transform|d|[xy]2?)="[^"]*"'), re.compile(r"(\.\d)\d+")


def svg(chart: alt.TopLevelMixin, label: str) -> Markup:
    """A chart as an SVG element, its texts escaped; `label` is what a screen reader says."""
    with debug_mode(False):  # Altair looks at each part of a description as it is made: half of the time
        described = json.dumps(chart.to_dict(validate=False))
    named = Markup(' role="img" aria-label="{}" font-family="{}" ').format(label, FONT)
    return Markup(_drawn(described).replace(" ", named, 1))


@lru_cache(512)
def _drawn(described: str) -> str:
    """The SVG of a description, with places to a tenth of a pixel and without what is not seen: half the bytes."""
    drawn = str(vl_convert.vegalite_to_svg(described, config=CONFIG, allowed_base_urls=[]))
    drawn = HIDDEN.sub("", drawn.replace(' aria-label="', ' data-text="'))
    return PLACES.sub(lambda place: DECIMALS.sub(r"\1", place.group()), drawn)


def heat(title: str, rows: Rows, digits: int = 2) -> Markup:
    """Cells with `row`, `column`, `value`, `text` (on hovering) and `strong` (in bold); zero is white, above it red."""
    top = max((abs(cell["value"]) for cell in rows), default=0.0) or 1.0
    cells = [
        {"row": cell["row"], "column": cell["column"], "value": cell["value"], "text": cell["text"],
         "shown": f"{cell['value']:+.{digits}f}".replace("-", "−"),
         "ink": PAPER if cell["value"] > DARK * top else BLACK, "strong": bool(cell["strong"])}
        for cell in rows
    ]  # fmt: skip
    columns, names = (list(dict.fromkeys(cell[key] for cell in cells)) for key in ("column", "row"))
    axis = alt.Axis(orient="top", labelAngle=-35 if max(map(len, columns), default=0) > 7 else 0, labelOverlap=False)
    x, y = alt.X("column:N", sort=columns, title=None, axis=axis), alt.Y("row:N", sort=names, title=None)
    scale = alt.Scale(domain=[-top, 0, top], range=list(HEAT), interpolate="rgb")
    base = _chart(cells).encode(x=x, y=y)
    fill = alt.Color("value:Q", scale=scale, legend=None)
    layers = [base.mark_rect().encode(color=fill, description=alt.Description("text:N"))]
    for strong in (False, True):
        written = base.transform_filter(alt.datum.strong == strong)
        written = written.mark_text(aria=False, fontSize=12, fontWeight="bold" if strong else "normal")
        layers.append(written.encode(text=alt.Text("shown:N"), color=alt.Color("ink:N", scale=None)))
    drawn = alt.layer(*layers).resolve_scale(color="independent")
    return svg(drawn.properties(width=alt.Step(52), height=alt.Step(22), title=title), title)


def curves(
    title: str,
    rows: Rows,
    x: str,
    y: str,
    *,
    log: bool = False,
    log_y: bool = False,
    marks: bool = True,
    level: float | None = None,
    identity: bool = False,
    names: Sequence[str] = (),
    size: tuple[int, int] = (300, 210),
) -> Markup:
    """Lines of rows with `series`, `x`, `y`, `text` and, for an interval, `low` and `high`; an infinite x stands right.

    Args:
        title: of the picture.
        rows: the points; those that a log axis cannot show are left out.
        x: title of the axis.
        y: title of the axis.
        log: whether x is drawn on a log scale.
        log_y: whether y is.
        marks: whether points have markers.
        level: a dashed line across, such as chance.
        identity: whether y = x is drawn, dashed.
        names: of all series that panels side by side share, which have one legend (`legend`); empty: its own.
        size: width and height between the axes, in pixels.
    """
    shown = [row for row in rows if not (log and row["x"] <= 0) and not (log_y and row["y"] <= 0)]
    far = 10 * max((row["x"] for row in shown if math.isfinite(row["x"])), default=0.1)
    points = [{**row, "x": far if math.isinf(row["x"]) else row["x"]} for row in shown]
    key: dict[str, Any] = {"legend": None} if names else {}
    names = list(names or dict.fromkeys(row["series"] for row in points))
    ticks = sorted({row["x"] for row in points})
    endless = len(shown) and any(math.isinf(row["x"]) for row in shown)
    told = f"datum.value >= {far!r} * 0.999 ? '∞' : format(datum.value, '~g')"
    axis = (
        alt.Axis(labelExpr=told, **({"values": ticks} if len(ticks) < 9 else {})) if endless else alt.Axis(format="~g")
    )
    across = alt.X("x:Q", title=x, axis=axis, scale=alt.Scale(type="log" if log else "linear", zero=False, nice=False))
    up_axis = alt.Axis(format="~g")
    up = alt.Y("y:Q", title=y, axis=up_axis, scale=alt.Scale(type="log" if log_y else "linear", zero=False))
    colours, shapes = ([style[at] for style in _styles(names)] for at in (0, 1))
    colour = alt.Color("series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours), **key)
    base = _chart(points)
    layers = [base.mark_line(aria=False, strokeWidth=1.8).encode(x=across, y=up, color=colour)]
    if marks:
        shape = alt.Shape("series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=shapes), **key)
        dots = base.mark_point(filled=True, size=55, opacity=1)
        layers.append(dots.encode(x=across, y=up, color=colour, shape=shape, description=alt.Description("text:N")))
    if held := [row for row in points if row.get("low") is not None]:
        bars = _chart(held).mark_rule(aria=False, strokeWidth=1.1, opacity=0.75)
        layers.append(bars.encode(x=across, y=alt.Y("low:Q", title=y), y2="high:Q", color=colour))
    if level is not None:
        rule = _chart([{"y": level}]).mark_rule(color=INK, strokeDash=[6, 4], aria=False)
        layers.append(rule.encode(y="y:Q"))
    if identity and points:
        ends = [min(row["x"] for row in points), max(row["x"] for row in points)]
        line = _chart([{"x": end, "y": end} for end in ends]).mark_line(color=SOFT, strokeDash=[4, 3], aria=False)
        layers.append(line.encode(x=across, y=up))
    width, height = size
    return svg(alt.layer(*layers).properties(width=width, height=height, title=title), title)


def dots(title: str, rows: Rows, x: str, *, log: bool = False, level: float | None = None) -> Markup:
    """Marks of rows with `row` (a line each), `series`, `x` and `text`, such as one for each seed."""
    names, lines = (list(dict.fromkeys(row[key] for row in rows)) for key in ("series", "row"))
    scale = alt.Scale(type="log" if log else "linear", nice=False, zero=False)
    across = alt.X("x:Q", title=x, scale=scale, axis=alt.Axis(format="~g"))
    y = alt.Y("row:N", sort=lines, title=None, axis=alt.Axis(grid=True, labelOverlap=False))
    colours, shapes = ([style[at] for style in _styles(names)] for at in (0, 1))
    colour = alt.Color("series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours))
    shape = alt.Shape("series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=shapes))
    base = _chart(rows).mark_point(filled=True, size=60, opacity=0.85)
    layers = [base.encode(x=across, y=y, color=colour, shape=shape, description=alt.Description("text:N"))]
    if level is not None:
        layers.append(_chart([{"x": level}]).mark_rule(color=INK, strokeDash=[6, 4], aria=False).encode(x="x:Q"))
    return svg(alt.layer(*layers).properties(width=420, height=alt.Step(24), title=title), title)


def _chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def legend(names: Sequence[str]) -> list[dict[str, str]]:
    """`name`, `colour` and `sign` of each series of panels that share a legend."""
    return [
        {"name": name, "colour": colour, "sign": SHAPES[shape]}
        for name, (colour, shape) in zip(names, _styles(names), strict=True)
    ]


def _styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and shape of each name: after all colours are used they start again, with other shapes."""
    n, shapes = len(COLOURS), list(SHAPES)
    return [(COLOURS[place % n], shapes[(place + place // n) % len(shapes)]) for place in range(len(names))]
