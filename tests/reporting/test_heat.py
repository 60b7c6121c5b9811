"""Heat maps of attacks on two networks: every gain over every control, marked where its interval lies above zero."""

from __future__ import annotations

import pytest

from tasks.reporting.core.chart import Heat
from tasks.reporting.core.results import Results
from tasks.reporting.sections import controls
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
