"""Figures of every committed suite: their titles, their samples, and texts that neither cover one another nor leave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.reporting import page
from tasks.reporting.core import figures
from tasks.reporting.core.chart import ALARM, COLOURS, MUTED, Chart
from tasks.reporting.core.drawing import svg
from tasks.reporting.core.layout import Table
from tasks.reporting.core.section import Fold
from tests.reporting.committed import read, sections
from tests.reporting.pictures import picture

ROOT = Path(__file__).resolve().parents[2]
SUITES = sorted(folder.name for folder in (ROOT / "data/results").iterdir() if folder.is_dir())
OF_EACH_PAPER = ("demo", "gerai", "dipsgnn", "dpvae", "privsr", "dpcrosue-weibo-twin")
WORDS = 20
STUMBLES = re.compile(r"\b(yardsticks?|beside|told|tells?|fare|buys|say of|dealt)\b", re.IGNORECASE)
"""Words that readers stumble over in headings."""
LARGEST = 1_600_000  # bytes of a page, before compression


def charts(suite: str) -> list[Chart]:
    """All figures of a suite's page."""
    results, _, _ = read(suite)
    parts = sections(suite)
    charts = [figures.frontier(results, page.headline_cutoff(results))]
    charts += [chart for part in parts for chart in walked(part.blocks)]
    return [chart for chart in charts if chart.panels]


def walked(block: Any) -> Iterator[Chart]:
    """The figures of a block, or of several."""
    if isinstance(block, Chart):
        yield block
    elif isinstance(block, Fold):
        yield from walked(block.content)
    elif isinstance(block, list | tuple):
        for part in block:
            yield from walked(part)


@pytest.mark.slow
def test_a_page_with_every_history_is_small_enough() -> None:
    """The suite with most epochs, seeds and systems, its histories as long as they are configured."""
    results, report, claims = read("gerai")
    bins = [[place / 100, (place + 1) / 100, 10] for place in range(100)]
    spreads = [
        {"experiment": system.experiment, "metric": metric, "k": 10, "bins": bins}
        for system in results.compared
        for metric in ("ndcg", "exposure")
    ]
    systems = [
        replace(system, history={"base": {str(seed): history(int(epochs), seed) for seed in system.seeds}})
        if (epochs := system.config.get("epochs"))
        else system
        for system in results.systems
    ]
    full = replace(results, systems=tuple(systems), spreads=tuple(spreads))
    assert sum("base" in system.history for system in systems) >= 8
    text = page.render(full, report, claims, docs="", home="../../index.html")
    assert len(text.encode()) <= LARGEST


def history(epochs: int, seed: int) -> list[dict[str, float]]:
    """A record per epoch, no two alike."""
    return [
        {"epoch": x, "loss": 0.6849 * 0.97 ** (x + seed / 7), "valid": 0.2 - 0.1517 * 0.95 ** (x + seed / 9)}
        for x in range(1, epochs + 1)
    ]


@pytest.mark.parametrize("suite", OF_EACH_PAPER)
def test_pictures_stand_before_tables_and_tables_before_prose(suite: str) -> None:
    parts = sections(suite)
    anchors = [section.anchor for section in parts if any(section.blocks)]
    assert anchors.index("figures") < anchors.index("published")
    assert "limits" not in anchors or anchors.index("published") < anchors.index("limits")
    for section in parts:
        for part in "".join(map(letter, flat(section.blocks))).split("#"):
            assert part == "".join(sorted(part)), (section.anchor, part)


def flat(blocks: Any) -> Iterator[Any]:
    """The blocks of a section one by one."""
    for block in blocks:
        if isinstance(block, list | tuple):
            yield from flat(block)
        elif block is not None:
            yield block


def letter(block: Any) -> str:
    """A for a picture, B for a table, C for a list, # for a heading, which begins anew; nothing for anything else."""
    text = block if isinstance(block, str) else ""
    if text.startswith("<h3"):
        return "#"
    return "A" if isinstance(block, Chart) else "B" if isinstance(block, Table) else "C" * text.startswith("<ul>")


def test_at_most_seven_colours_are_drawn() -> None:
    assert len({*COLOURS, MUTED, ALARM}) <= 7


def test_the_first_figure_names_the_best_with_a_finite_budget_baselines_among_them() -> None:
    said = {suite: figures.frontier(read(suite)[0], 10).finding for suite in ("privsr", "dipsgnn", "gerai")}
    assert said["privsr"].startswith("baseline dp-bias is best with finite ε > 0, 0.1 for one sensitive rating (")
    assert said["dipsgnn"].startswith("dipsgnn-released is best with finite ε, 25 for several units (")
    assert said["gerai"].startswith("dpae is best with finite ε, 1 for a user (")


@pytest.mark.parametrize(
    "suite", [pytest.param(suite, marks=[pytest.mark.slow] * (suite not in OF_EACH_PAPER)) for suite in SUITES]
)
def test_headings_use_the_words_of_the_field(suite: str) -> None:
    texts = [section.heading for section in sections(suite)]
    for part in sections(suite):
        texts += [chart.heading for chart in walked(part.blocks)]
        texts += [str(block) for block in flat(part.blocks) if str(block).startswith("<h3")]
    assert [text for text in texts if STUMBLES.search(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_figures_say_what_they_show_and_can_be_read(suite: str) -> None:
    problems = []
    for chart in charts(suite):
        said = chart.heading.partition(": ")[2]
        problems += [(chart.anchor, "title", chart.heading)] * (not said or len(chart.heading.split()) > WORDS)
        problems += [(chart.anchor, "sample", chart.size)] * (
            not chart.size.startswith("n = ") or "n = 0" in chart.size
        )
        for panel in chart.panels:
            drawn = picture(svg(panel))
            what = (chart.anchor, panel.title)
            problems += [(*what, "cover one another", *pair) for pair in drawn.covered]
            problems += [(*what, "leaves the picture", text) for text in drawn.outside]
            problems += [(*what, "small", f"{drawn.smallest:.1f}")] * (drawn.smallest < 9)
    assert not problems, "\n".join(" | ".join(map(str, problem)) for problem in problems)
