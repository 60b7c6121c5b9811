"""Pages in a real browser: words, height, widths, accessibility, and what their script does."""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.conftest import SUITES

AXE = Path(".axe/node_modules/axe-core/axe.min.js")
SHA256 = "7dbfabdfc6062936d79c873ddbb5f811a1219fca3928bd8cc9dd81f1e65f4720"
"""Of axe-core 4.11.1, as `make axe` installs it."""
SERIOUS = """rules => axe.run(document, {resultTypes: ['violations'], ...(rules && {runOnly: rules})}).then(found =>
  found.violations.filter(rule => ['serious', 'critical'].includes(rule.impact))
    .map(rule => [rule.id, rule.nodes.length, rule.nodes[0].html]))"""
OVER_ALL = (
    "index.html", "leaderboards.html", "leaderboards/ml-100k.html", "cards.html", "cards/gerai/gerai-gerai.html",
    "coverage.html", "docs/glossary.html", "docs/index.html", "docs/methods.html",
)  # fmt: skip
WORDS, PIXELS, OPEN = 1500, 4000, 9500
"""Most of a page as it opens, and of a page of reproduction with all its folds open."""


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


def test_every_page_is_short_asks_for_nothing_and_never_scrolls_sideways(
    tab: Any, folder: Path, shipped: dict[str, str], tmp_path: Path
) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: asked.append(str(error)))
    tab.on("console", lambda message: asked.append(message.text))
    (tmp_path / "index.html").write_text(shipped["index.html"], encoding="utf-8")
    pages = [tmp_path / "index.html"]
    pages += [path for path in sorted(folder.rglob("*.html")) if path.parent.name not in SUITES]
    pages += sorted((folder / "cards/demo").glob("*.html"))[:2]
    pages += [path for name in SUITES[1::2] for path in sorted((folder / "suites" / name).glob("*.html"))]
    too_long = []
    for path in pages:
        tab.set_viewport_size({"width": 420, "height": 900})
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 420, path
        tab.set_viewport_size({"width": 1280, "height": 900})
        words, height, width = tab.evaluate(
            "[document.body.innerText.split(/\\s+/).length, document.body.scrollHeight, "
            "document.documentElement.scrollWidth]"
        )
        assert width <= 1280, path
        too_long += [(path.name, words, height)] if words > WORDS or height > PIXELS else []
        if path.name == "reproduction.html":
            tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            opened = tab.evaluate("document.body.scrollHeight")
            too_long += [(path.name, opened)] if opened > OPEN else []
    assert too_long == []
    assert asked == [path.as_uri() for path in pages]


@pytest.mark.parametrize("file", OVER_ALL)
def test_axe_finds_nothing_serious(tab: Any, folder: Path, file: str) -> None:
    if pictures := os.environ.get("DPREC_SCREENSHOTS"):
        Path(pictures).mkdir(parents=True, exist_ok=True)
        for width in (1280, 420):
            tab.set_viewport_size({"width": width, "height": 900})
            tab.goto((folder / file).as_uri())
            tab.screenshot(path=Path(pictures, f"{file.replace('/', '-')}-{width}.png"), full_page=True)
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: `make axe`")
    rules = AXE.read_bytes()
    assert hashlib.sha256(rules).hexdigest() == SHA256
    tab.goto((folder / file).as_uri())
    tab.evaluate(rules.decode())
    assert tab.evaluate(SERIOUS, None) == []
    tab.emulate_media(color_scheme="dark")
    assert tab.evaluate(SERIOUS, ["color-contrast"]) == []


@pytest.fixture
def board(tab: Any, folder: Path) -> Any:
    """The page of the cards, whose tables hold all that rows are filtered by; all of them opened."""
    tab.goto((folder / "cards.html").as_uri())
    tab.evaluate("document.querySelectorAll('main > details').forEach(fold => { fold.open = true; })")
    return tab


def visible(table: Any) -> list[list[str]]:
    script = "rows => rows.filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.innerText))"
    return list(table.locator("tbody tr").evaluate_all(script))


def epsilons(table: Any) -> list[float]:
    script = "rows => rows.filter(row => !row.hidden).map(row => row.dataset.epsilon)"
    return [float(value) for value in table.locator("tbody tr").evaluate_all(script)]


def test_tables_are_filtered_by_band_of_epsilon_finite_ones_gain_and_real_data(board: Any) -> None:
    section = board.locator("#interaction")
    table, tools = section.locator("table"), section.locator(".tools")
    every = epsilons(table)
    for band, holds in (
        ("ε ≤ 1", lambda value: value <= 1),
        ("1 < ε ≤ 10", lambda value: 1 < value <= 10),
        ("ε > 10", lambda value: 10 < value < float("inf")),
    ):
        tools.locator("select").select_option(band)
        assert sorted(epsilons(table)) == sorted(filter(holds, every))
    tools.locator("select").select_option("any ε")
    tools.get_by_label("finite ε").check()
    assert 0 < len(epsilons(table)) < len(every)
    assert float("inf") not in epsilons(table)
    tools.get_by_label("finite ε").uncheck()
    tools.get_by_label("higher mean than noisy popularity").check()
    shown = table.locator("tbody tr:visible").evaluate_all("rows => rows.map(row => row.dataset.above)")
    assert set(shown) == {"1"}
    tools.get_by_label("real data").check()
    assert all("SYNTHETIC" not in row[2] for row in visible(table))
    tools.get_by_role("searchbox").fill("dpmf-rigorous")
    assert {row[0].split()[0] for row in visible(table)} == {"dpmf-rigorous"}


def test_tables_sort_by_number_and_infinity_is_the_largest(board: Any) -> None:
    table = board.locator("#interaction table")
    heading = table.locator("thead tr:last-child th", has_text="accounted")
    column = heading.evaluate("cell => cell.cellIndex")
    for order, turned in (("ascending", False), ("descending", True)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        values = table.locator("tbody tr").evaluate_all(f"rows => rows.map(row => row.cells[{column}].dataset.sort)")
        numbers = [float(value) for value in values if value is not None]
        assert numbers == sorted(numbers, reverse=turned)
        assert float("inf") in numbers


def test_tables_are_exported_as_they_are_shown(board: Any) -> None:
    section = board.locator("#user")
    section.get_by_role("searchbox").fill("dpals")
    texts = {}
    for name in ("CSV", "JSON", "LaTeX"):
        with board.expect_download() as download:
            section.get_by_role("button", name=name).click()
        texts[name] = Path(download.value.path()).read_text(encoding="utf-8")
    head, *rows = csv.reader(io.StringIO(texts["CSV"]))
    assert len(set(head)) == len(head)
    assert len(rows) == len(visible(section.locator("table"))) > 1
    assert {row[0] for row in rows} == {"dpals"}
    record = json.loads(texts["JSON"])
    assert [list(row.values()) for row in record["rows"]] == rows
    assert record["revision"] == "abc"
    assert "−" not in texts["CSV"] + texts["JSON"], "no program reads that minus sign"
    assert not set(texts["LaTeX"]) & set("εδ∞±−≥–")
    assert texts["LaTeX"].count(r"\\") == len(rows) + 1


def test_a_link_to_a_filtered_row_shows_it_and_one_to_nothing_stops_nothing(board: Any) -> None:
    row = board.locator("#user tbody tr").last
    board.locator("#user").get_by_role("searchbox").fill("no such row")
    assert not row.is_visible()
    for name in (row.get_attribute("id"), "%E0%A4%A"):
        board.evaluate("name => { location.hash = name; }", name)
        board.wait_for_timeout(50)
    assert row.is_visible()


def test_a_row_opens_by_keyboard_and_filters_do_not_read_what_is_folded(tab: Any, folder: Path) -> None:
    tab.goto((folder / "leaderboards/ml-100k.html").as_uri())
    table = tab.locator("#table-ndcg10-by-user-level-ε")
    row = table.locator("tbody tr").first
    row.locator("summary").press("Enter")
    assert "dvc repro suites/" in row.locator("dl").inner_text()
    tab.get_by_role("searchbox").first.fill("dvc repro")
    assert table.locator("tbody tr:visible").count() == 0


def test_sections_show_as_they_are_looked_for_and_where_their_text_says_it(tab: Any, folder: Path) -> None:
    tab.goto((folder / "docs/index.html").as_uri())
    assert tab.locator("tbody tr:visible").count() == 0
    for word in ("TmF, edge DP", "no such word", "TmF, edge DP"):
        tab.get_by_role("searchbox").fill(word)
        rows = visible(tab.locator("table"))
        assert all(word in row[2][:60] for row in rows)
        assert any("top_m_filter" in row[2] for row in rows) == (word != "no such word")


def test_pointing_at_a_mark_shows_its_value(tab: Any, folder: Path) -> None:
    tab.goto((folder / "index.html").as_uri())
    mark = tab.locator("#cost svg path[data-text]").last
    mark.hover(force=True)
    assert tab.locator(".tip").inner_text() == mark.get_attribute("data-text")


def test_a_leak_has_the_colour_of_an_alarm_and_one_that_is_not_shown_has_none(tab: Any, folder: Path) -> None:
    tab.goto((folder / "index.html").as_uri())
    made = """states => states.map(state => {
      const cell = document.body.appendChild(document.createElement('p'));
      cell.className = `verdict ${state}`;
      return getComputedStyle(cell).color;
    })"""
    leak, refuted, none, blank = tab.evaluate(made, ["shown", "refuted", "not shown", ""])
    assert leak == refuted != none == blank


def test_without_script_all_content_is_there_and_print_hides_tools(browser: Any, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((folder / "index.html").as_uri())
    assert tab.locator("#table-papers tbody tr").count() >= 4
    assert tab.locator("svg[role=img]").count() == 3
    assert tab.locator(".tools").count() == 0
    context.close()
    tab = browser.new_page()
    tab.goto((folder / "index.html").as_uri())
    ink = "getComputedStyle(document.querySelector('svg text')).fill"
    light = tab.evaluate(ink)
    tab.emulate_media(color_scheme="dark")
    assert tab.evaluate(ink) != light
    tab.emulate_media(media="print")
    assert not tab.locator(".tools").first.is_visible()
    assert tab.locator("#table-papers").is_visible()
    tab.close()
