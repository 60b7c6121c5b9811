"""Heat maps of attacks on two networks: every gain over every control, marked where its interval lies above zero."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasks.reporting.core import drawing
from tasks.reporting.core.chart import ALARM, COLOURS, MUTED, Chart, Heat, Panel, Point, Series, Square, share_scale
from tasks.reporting.core.layout import format_difference
from tasks.reporting.core.results import Results
from tasks.reporting.sections import controls
from tasks.reporting.templating import environment, paint
from tests.reporting import example_dpcrosue


@pytest.fixture(scope="module")
def full() -> Results:
    return example_dpcrosue.full()


def test_gains_over_each_control_are_drawn_and_leaks_marked(full: Results) -> None:
    chart = controls.chart(full)
    panels = [panel for panel in chart.panels if isinstance(panel, Heat)]
    assert len(panels) == len(chart.panels) == len(controls._attacked_attributes(full))
    assert len({panel.title for panel in panels}) == len(panels)
    for (network, attribute), panel in zip(controls._attacked_attributes(full), panels, strict=True):
        assert panel.title == f"{network.title}, {attribute}"
        drawn = {(cell.row, cell.column): (cell.value, cell.marked) for cell in panel.cells}
        differences = controls._compare_inference(full, network, attribute).values()
        assert drawn == {(of.system.label, of.control): (of.mean, of.low > 0) for of in differences}
        assert {cell.column for cell in panel.cells} >= {"majority", "random"}
    over = [cell for panel in panels for cell in panel.cells if cell.column == "random"]
    assert chart.finding.startswith(f"{sum(cell.marked for cell in over)} of {len(over)} attacks leak")


def test_the_section_begins_with_the_picture_and_structure_alone_has_none(full: Results) -> None:
    first, tables = controls.attacks_section(full).blocks
    assert [chart.anchor for chart in first] == ["chart-attacks"]  # type: ignore[union-attr]
    assert len(tables) == len(controls.attacks(full))  # type: ignore[arg-type]
    bare = controls.attacks_section(example_dpcrosue.ione())
    assert not any(bare.blocks)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 has it, of "#c8102e" or "rgb(200, 16, 46)"."""
    hexadecimal = re.findall(r"[0-9a-f]{2}", colour) if colour.startswith("#") else []
    parts = [int(part, 16) for part in hexadecimal] or [int(part) for part in re.findall(r"\d+", colour)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in parts)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def fills(panel: Heat) -> tuple[dict[str, str], dict[str, str]]:
    """Of cells and of their numbers, by the text of each."""
    drawn = str(drawing.svg(panel))
    cells = dict(re.findall(r'data-text="([^"]+)" d="[^"]*" fill="([^"]*)"', drawn))
    return cells, {text: ink for ink, text in re.findall(r'<text [^>]*fill="([^"]*)"[^>]*>([^<]*)</text>', drawn)}


def test_numbers_can_be_read_on_every_cell_and_dark_paper_changes_neither() -> None:
    numbers = [value / 100 for value in range(-20, 21, 2)]
    squares = [Square("a", str(value), value, format_difference(value, 2), False) for value in numbers]
    cells, inks = fills(Heat("t", "", "", squares))
    assert len(cells) == len(squares)
    style = (Path(drawing.__file__).parents[1] / "templates/style.css").read_text(encoding="utf-8")
    exchanged = re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', style)
    for text, cell in cells.items():
        light, dark = sorted((luminance(cell), luminance(inks[text])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, cell, inks[text])
        assert not {cell, inks[text]} & set(exchanged)


def test_a_value_has_one_colour_in_all_panels_of_a_chart() -> None:
    panels = [Heat(name, "", "", [Square("a", "x", 0.02, "low", False), Square("a", "y", top, "top", False)])
              for name, top in (("gender", 0.18), ("occupation", 0.02))]  # fmt: skip
    first, other = (fills(panel)[0]["low"] for panel in share_scale(panels))
    assert first == other != fills(panels[1])[0]["low"]


def test_legends_have_the_colours_of_their_lines_on_both_papers() -> None:
    style = (Path(drawing.__file__).parents[1] / "templates/style.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"(--\w+): (#[0-9a-f]{6})", part)) for part in style.split("@media", 1))
    for colour in (*COLOURS, ALARM):
        name = paint(colour).removeprefix("var(").removesuffix(")")
        assert light[name] == colour
        assert f'svg [stroke="{colour}"] {{ stroke: var({name}); }}' in style
        assert name in dark
    assert paint(MUTED) == MUTED
    series = Series("a", 1, [Point(1.0, 2.0, "a")])
    chart = Chart("c", "t", "", [Panel("p", "x", "y", [series])])
    drawn = environment().get_template("chart.html.j2").make_module({"sample": ""}).figure(chart)  # type: ignore[attr-defined]
    assert 'class="sign" style="color:var(--c1)"' in drawn
