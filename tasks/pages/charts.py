"""The kinds of charts, a small function each: Altair describes, vl-convert draws static SVG. Words stand elsewhere.

No script runs in a picture, no font and no data are fetched, and the same rows give the same bytes. Colours are those
of light paper; style.css exchanges them on dark paper. What a mark means stands in `data-text`, for pointing at it.
Vega places the names of points and leaves out those without room, so every chart has its rows next to it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode
from markupsafe import Markup

Rows = Sequence[Mapping[str, Any]]
COLOURS = ("#0072b2", "#d55e00", "#008a66", "#b3548c", "#b27d00", "#3b93c9", "#4d4d4d")
"""style.css has their counterparts on dark paper."""
INK, SOFT, LINE, BLACK, PAPER = "#1c2024", "#565f68", "#cfd5da", "#000000", "#ffffff"
SHAPES = {
    "circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆", "cross": "✚", "triangle-down": "▼",
    "triangle-right": "▶",
}  # fmt: skip
"""Vega-Lite's name of a mark -> its sign in a legend."""
HEAT, DARK = ("#9ecae1", "#f7f4f0", "#c8102e"), 0.8
"""Colours of a heat map at the lowest value, at zero and at the highest, and where white is easier to read on them."""
DASHES = ([1, 0], [5, 2], [1.5, 1.5])
MARKS = {"claimed": "diamond", "accounted": "circle", "audited": "M0,-1.2V1.2"}
"""Kind of ε -> the shape of its mark."""
ANCHORS = ["top-right", "top-left", "bottom-right", "bottom-left", "top", "bottom", "right", "left"]
"""Where a name may stand next to its point, the first that is free; above and below it covers no line."""
MANY = 12
"""Values along an axis that are no sweep any more, but epochs: without marks and on a linear axis."""
LOG_FROM = 9.0
"""From this ratio of the largest to the least value of a sweep on, its axis is logarithmic, unless steps are equal."""
LONG = 14
"""Letters of a name from which on a legend has two columns instead of three."""
RIGHTMOST = 0.01
"""Of false positive rates, the largest at which one of 0 is drawn."""
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
UNPLACED = re.compile(r'<text[^>]* opacity="0">[^<]*</text>')
"""Names without room."""
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
    vega = vl_convert.vegalite_to_vega(described, config=CONFIG)
    for mark in vega["marks"]:
        if mark.get("name") == "names_marks":
            _place(mark)
    drawn = UNPLACED.sub("", str(vl_convert.vega_to_svg(vega, allowed_base_urls=[])))
    drawn = HIDDEN.sub("", drawn.replace(' aria-label="', ' data-text="'))
    return PLACES.sub(lambda place: DECIMALS.sub(r"\1", place.group()), drawn)


def by_epsilon(title: str, points: Rows, across: Rows, *, x: str, y: str) -> Markup:
    """Utility by ε of one level, on a log axis with 0 at its left edge and ∞ at its right edge.

    Args:
        title: what a screen reader says.
        points: `name`, `utility`, and ε as `claimed`, `accounted` and `audited`, each None for none.
        across: `name` and `utility` of systems that are drawn as lines.
        x, y: titles of the axes.
    """
    spent = [row[kind] for row in points for kind in MARKS if row[kind] is not None]
    finite = [value for value in spent if value and math.isfinite(value)] or [1.0]
    near = 10.0 ** (math.floor(math.log10(min(finite)) + 1e-9) - (0 in spent))
    far = 10.0 ** (math.ceil(math.log10(max(finite)) - 1e-9) + 1)
    marks, spans = _marks(points, near, far)
    ticks = [10.0**power for power in range(round(math.log10(near)), round(math.log10(far)) + 1)]
    zero = f"datum.value <= {near} * 1.001 ? '0' : " if 0 in spent else ""
    tick_text = f"datum.value >= {far} * 0.999 ? '∞' : {zero}format(datum.value, '~g')"
    scale = alt.Scale(type="log", domain=[near, far], nice=False, padding=12)
    epsilon = alt.X("x:Q", title=x, scale=scale, axis=alt.Axis(values=ticks, labelExpr=tick_text))
    utility = alt.Y("utility:Q", title=y, scale=alt.Scale(zero=False, nice=False, padding=16))
    kinds = [kind for kind in MARKS if any(mark["kind"] == kind for mark in marks)]
    shapes = alt.Scale(domain=kinds, range=[MARKS[kind] for kind in kinds])
    shape = alt.Shape("kind:N", title=None, scale=shapes, legend=alt.Legend(orient="top"))
    colour, end = alt.Color("colour:N", scale=None), alt.X("to:Q")
    dots = _chart(marks).mark_point(filled=False, size=70, strokeWidth=1.8, opacity=1)
    free = [row for row in across if row["name"] not in {point["name"] for point in points}]
    texts = _chart(free).mark_text(dy=-6, color=SOFT, fontSize=12)
    layers = [
        _chart(across).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=utility, description="text:N"),
        texts.encode(x=alt.value(215), y=utility, text="name:N"),
        _chart(spans).mark_rule(opacity=0.5).encode(x=epsilon, x2="to:Q", y=utility, color=colour),
        dots.encode(x=epsilon, y=utility, color=colour, shape=shape, description="text:N"),
        _chart(spans).mark_point(opacity=0).encode(x=end, y=utility).properties(name="ends"),
        _chart(spans).mark_text().encode(x=end, y=utility, text="name:N").properties(name="names"),
    ]
    return svg(alt.layer(*layers).properties(width=430, height=270), title)


def _marks(points: Rows, near: float, far: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A mark for each ε of each point, but for a bound of 0, which proves nothing; and the span of each point's."""
    marks, spans = [], []
    for number, row in enumerate(points):
        known = {kind: row[kind] for kind in MARKS if row[kind] is not None and (kind != "audited" or row[kind])}
        about = {"name": row["name"], "utility": row["utility"], "colour": COLOURS[number % len(COLOURS)]}
        places = {kind: far if math.isinf(value) else max(value, near) for kind, value in known.items()}
        for kind, value in known.items():
            text = f"{row['name']}: {kind} {'∞' if math.isinf(value) else f'{value:.4g}'}"
            marks.append(about | {"kind": kind, "x": places[kind], "text": text})
        spans.append(about | {"x": min(places.values()), "to": max(places.values())})
    return marks, spans


def frontier(title: str, points: Rows, across: Rows, *, x: str, y: str) -> Markup:
    """Utility along the finite ε of one level, a line for each system, with what audits prove at least.

    Args:
        title: what a screen reader says.
        points: `name`, `epsilon` (> 0), `utility` and `audited` (a lower bound; None or 0: none).
        across: `name` and `utility` of systems that are drawn as lines.
        x, y: titles of the axes.
    """
    names = list(dict.fromkeys(row["name"] for row in points))
    shown = [{**row, "text": f"{row['name']}: {row['epsilon']:.3g}"} for row in points]
    proved = [{**row, "text": f"{row['name']}: ≥ {row['audited']:.3g}"} for row in shown if row["audited"]]
    values = [row["epsilon"] for row in shown] + [row["audited"] for row in proved]
    low, high = min(values) / 1.3, max(values) * 1.3
    ticks = [lead * 10.0**power for power in range(-4, 4) for lead in (1, 2, 5)]
    if high / low > 50:
        ticks = [10.0**power for power in range(-4, 4)]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=[tick for tick in ticks if low <= tick <= high], format="~g")
    epsilon = alt.X("epsilon:Q", title=x, scale=scale, axis=axis)
    bound = alt.X("audited:Q", title=x, scale=scale, axis=axis)
    utility = alt.Y("utility:Q", title=y, scale=alt.Scale(zero=False, padding=16), axis=alt.Axis(tickCount=5))
    paint = alt.Scale(domain=names, range=[COLOURS[number % len(COLOURS)] for number in range(len(names))])
    colour = alt.Color("name:N", scale=paint, legend=alt.Legend(title=None, orient="bottom", columns=3))
    layers = [
        _chart(across).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=utility),
        _chart(across)
        .mark_text(align="left", baseline="bottom", dy=-2, color=SOFT, fontSize=12)
        .encode(x=alt.value(3), y=utility, text="name:N"),
        _chart(proved).mark_rule(opacity=0.5).encode(x=epsilon, x2="audited:Q", y=utility, color=colour),
        _chart(proved)
        .mark_tick(thickness=2, size=12, orient="vertical")
        .encode(x=bound, y=utility, color=colour, description="text:N"),
        _chart(shown).mark_line(strokeWidth=1.6).encode(x=epsilon, y=utility, color=colour),
        _chart(shown)
        .mark_point(filled=True, size=40, opacity=1)
        .encode(x=epsilon, y=utility, color=colour, description="text:N"),
    ]
    return svg(alt.layer(*layers).properties(width=310, height=230), title)


def lines(title: str, rows: Rows, panels: Mapping[str, str], *, x: str, width: int = 190) -> Markup:
    """Lines over one x, with a panel for each of some columns, one below the other.

    Args:
        title: what a screen reader says.
        rows: `name` of the line, `x`, and the columns of `panels`; None for no value.
        panels: column -> title of its axis.
        x: title of the axis across.
        width: between the axes, in pixels; twice the height of a panel.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    places = range(len(names))
    columns = 2 if max(map(len, names), default=0) > LONG else 3
    legend = alt.Legend(orient="bottom", columns=columns, symbolSize=120, labelLimit=190) if any(names) else None
    styled: dict[str, Any] = {"title": None, "sort": names, "legend": legend}
    colours = alt.Scale(domain=names, range=[COLOURS[n % len(COLOURS)] for n in places])
    dashes = alt.Scale(domain=names, range=[DASHES[n // len(COLOURS) % len(DASHES)] for n in places])
    values = sorted({row["x"] for row in rows})
    few = len(values) <= MANY
    even = len({after - before for before, after in pairwise(values)}) < 2
    log = few and not even and values[0] > 0 and values[-1] / values[0] >= LOG_FROM
    scale = alt.Scale(type="log" if log else "linear", nice=False, zero=False)
    axis = alt.Axis(values=values, labelExpr="format(datum.value, '~g')") if few else alt.Axis(tickCount=4)
    across = alt.X("x:Q", title=x, scale=scale, axis=axis)
    marks: Any = alt.OverlayMarkDef(size=25) if few else False
    drawn = []
    for column, name in panels.items():
        shown = [{"name": row["name"], "x": row["x"], "y": row[column]} for row in rows if row[column] is not None]
        up = alt.Y("y:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=4))
        chart = _chart(shown).mark_line(strokeWidth=1.6, point=marks)
        chart = chart.encode(
            x=across,
            y=up,
            color=alt.Color("name:N", scale=colours, **styled),
            strokeDash=alt.StrokeDash("name:N", scale=dashes, **styled),
        )
        drawn.append(chart.properties(width=width, height=width // 2))
    return svg(alt.vconcat(*drawn, spacing=8), title)


def histograms(title: str, rows: Rows, *, x: str, y: str) -> Markup:
    """A histogram for each name over common bins; the area of a bar, which may be wide, is its share of users.

    rows: `name`, and `low`, `high` and `users` of each bin.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    total = {name: sum(row["users"] for row in rows if row["name"] == name) for name in names}
    width = min((row["high"] - row["low"] for row in rows if row["high"] > row["low"]), default=1.0)
    shown = [
        {**row, "zero": 0, "share": row["users"] / total[row["name"]] * width / (row["high"] - row["low"])}
        for row in rows
        if row["high"] > row["low"]
    ]
    bars = _chart(shown).mark_rect(color=COLOURS[0], opacity=0.85, stroke="#ffffff", strokeWidth=0.5)
    across = alt.X("low:Q", title=x, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=4))
    up = alt.Y("share:Q", title=y, axis=alt.Axis(format="~%", tickCount=3))
    bars = bars.encode(x=across, x2="high:Q", y=up, y2="zero:Q").properties(width=170, height=60)
    facet = alt.Facet("name:N", title=None, sort=names, header=alt.Header(labelFontSize=12, labelColor=INK))
    return svg(bars.facet(facet=facet, columns=2), title)


def heat(title: str, rows: Rows, top: float) -> Markup:
    """Cells with `row`, `column`, `value`, `text` (on hovering) and `strong` (in bold); zero is white, above it red.

    top: the value that has the full colour; the same for maps that are compared.
    """
    top = top or 1.0
    cells = [
        {**cell, "shown": f"{cell['value']:+.2f}".replace("-", "−"),
         "ink": PAPER if cell["value"] > DARK * top else BLACK}
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
    return svg(drawn.properties(width=alt.Step(44), height=alt.Step(22), title=title), title)


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
        title, x, y: of the picture and its axes.
        rows: the points; those that a log axis cannot show are left out.
        log, log_y: whether x and y are drawn on log scales.
        marks: whether points have markers.
        level: a dashed line across, such as chance; `identity`: whether y = x is drawn, too.
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
    tick_text = f"datum.value >= {far!r} * 0.999 ? '∞' : format(datum.value, '~g')"
    values = ticks if len(ticks) <= MANY else alt.Undefined
    apart: dict[str, Any] = {"labelOverlap": "greedy", "labelSeparation": 6}
    axis = alt.Axis(labelExpr=tick_text, values=values, **apart) if endless else alt.Axis(format="~g", **apart)
    across = alt.X("x:Q", title=x, axis=axis, scale=alt.Scale(type="log" if log else "linear", zero=False, nice=False))
    up = alt.Y(
        "y:Q", title=y, axis=alt.Axis(format="~g"), scale=alt.Scale(type="log" if log_y else "linear", zero=False)
    )
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
    return svg(alt.layer(*layers).properties(width=size[0], height=size[1], title=title), title)


def roc(title: str, found: Mapping[str, Sequence[tuple[float, float]]]) -> Markup:
    """ROC curves on logarithmic axes, which show low false positive rates; the dashed line is chance.

    0 has no place on such axes. A false positive rate of 0 stands at the least of the others, `RIGHTMOST` at most; a
    true positive rate of 0 is left out. Source: Carlini et al. (S&P 2022), section II.

    Args:
        title: of the picture.
        found: name -> (false positive rate, true positive rate) from left to right; `legend` has the colours.
    """
    least = min([false for curve in found.values() for false, _ in curve if false > 0] + [RIGHTMOST])
    rows = [
        {"series": name, "x": max(false, least), "y": true} for name, curve in found.items() for false, true in curve
    ]
    axes = ("false positive rate", "true positive rate")
    return curves(title, rows, *axes, log=True, log_y=True, marks=False, identity=True, names=list(found))


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


def legend(names: Sequence[str]) -> list[dict[str, str]]:
    """`name`, `colour` and `sign` of each series of panels that share a legend."""
    return [
        {"name": name, "colour": colour, "sign": SHAPES[shape]}
        for name, (colour, shape) in zip(names, _styles(names), strict=True)
    ]


def csv_link(rows: Rows) -> str:
    """The address of rows as a CSV file that stands in the page."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return f"data:text/csv;charset=utf-8,{quote(text.getvalue())}"


def _chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def _place(mark: dict[str, Any]) -> None:
    """Let Vega place the names of points where they cover neither another name nor the frame."""
    text = {"text": {"field": "datum.name"}, "fill": {"field": "datum.colour"}, "fontSize": {"value": 12}}
    label = {"type": "label", "size": {"signal": "[width, height]"}, "anchor": ANCHORS, "offset": [3, 10, 20]}
    mark |= {"from": {"data": "ends_marks"}, "encode": {"enter": text}}
    mark["transform"] = [label | {"avoidBaseMark": False}]  # to avoid marks it would need a canvas


def _styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and shape of each name: after all colours are used they start again, with other shapes."""
    n, shapes = len(COLOURS), list(SHAPES)
    return [(COLOURS[place % n], shapes[(place + place // n) % len(shapes)]) for place in range(len(names))]
