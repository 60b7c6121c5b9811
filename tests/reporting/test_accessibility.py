"""Pages from committed results in a real browser: rules of accessibility, width, size, first paint, screenshots."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tasks.reporting import site
from tasks.stages import coverage
from tests.reporting.committed import drawn

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / ".axe/node_modules/axe-core/axe.min.js"
SHA256 = "7dbfabdfc6062936d79c873ddbb5f811a1219fca3928bd8cc9dd81f1e65f4720"
"""Of axe-core 4.11.1, as `make axe` installs it."""
PAGES = {"demo": "suites/demo/index.html", "index": "index.html", "cards": "cards.html", "why": "why-dpvae.html"}
SIZES = ((1280, 900), (420, 900))
LARGEST = 1_500_000  # bytes of a page
SHEET = 1045
"""Pixels across a sheet of A4 on its side, without its margins."""
SERIOUS = """rules => axe.run(document, {resultTypes: ['violations'], ...(rules && {runOnly: rules})}).then(found =>
  found.violations.filter(rule => ['serious', 'critical'].includes(rule.impact))
    .map(rule => [rule.id, rule.nodes.length, rule.nodes[0].html]))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the demo alone, and the page of a paper's reversed pairs, all of them open."""
    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        suite = drawn("demo")
        counted = coverage.lines([])
    written = site.pages([suite], counted, {}) | {PAGES["demo"]: suite.page}
    paper = site.pages([drawn("dpvae")], counted, {})[PAGES["why"]]
    written[PAGES["why"]] = paper.replace("<details>", "<details open>")
    for file, text in written.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text, encoding="utf-8")
    return place


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(browser: Any, folder: Path, page: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: `make axe`")
    rules = AXE.read_bytes()
    assert hashlib.sha256(rules).hexdigest() == SHA256
    tab = browser.new_page(viewport={"width": SIZES[0][0], "height": SIZES[0][1]})
    tab.goto((folder / PAGES[page]).as_uri())
    tab.evaluate(rules.decode())
    assert tab.evaluate(SERIOUS, None) == []
    tab.emulate_media(color_scheme="dark")
    assert tab.evaluate(SERIOUS, ["color-contrast"]) == []
    tab.close()


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_their_screens_are_small_and_drawn_at_once(browser: Any, folder: Path, page: str) -> None:
    file = folder / PAGES[page]
    assert file.stat().st_size <= LARGEST
    kept = Path(os.environ.get("DPREC_SCREENSHOTS") or folder / "screenshots")
    for width, height in SIZES:
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(file.as_uri())
            tab.screenshot(path=kept / f"{page}-{width}-{scheme}.png")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            painted = tab.evaluate("performance.getEntriesByType('paint').map(entry => entry.startTime)")
            assert min(painted, default=0) < 5000, "milliseconds; under 1000 on a machine that does nothing else"
            tab.close()


def test_a_row_opens_by_keyboard_and_a_filter_does_not_read_what_is_folded(browser: Any, folder: Path) -> None:
    tab = browser.new_page()
    tab.goto((folder / PAGES["demo"]).as_uri())
    table, tools = tab.locator("#headline table").first, tab.locator("#headline .tools").first
    row = table.locator("tr:not(.reference)").filter(has=tab.locator("details")).first
    row.locator("summary").press("Enter")
    assert "dvc repro suites/demo/dvc.yaml:train@" in row.locator("dl").inner_text()
    tools.get_by_role("searchbox").fill("dvc repro")
    assert table.locator("tbody tr:visible").count() == 0
    tools.get_by_role("searchbox").fill("dpmf-rigorous")
    assert table.locator("tbody tr:visible th .name").all_inner_texts() == ["dpmf-rigorous"]
    with tab.expect_download() as download:
        tools.get_by_role("button", name="CSV").click()
    assert "dvc repro" not in Path(download.value.path()).read_text(encoding="utf-8")
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["privsr", "dpcrosue-weibo-twin"])
def test_the_widest_tables_fit_a_printed_page(browser: Any, tmp_path: Path, suite: str) -> None:
    file = tmp_path / "index.html"
    file.write_text(drawn(suite).page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": SHEET, "height": 700})
    tab.emulate_media(media="print")
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= SHEET
    tab.close()


def test_tables_of_few_rows_are_exported_and_not_filtered(browser: Any, folder: Path) -> None:
    tab = browser.new_page()
    tab.goto((folder / PAGES["cards"]).as_uri())
    every, card = tab.locator("#systems .tools"), tab.locator(".tools").last
    assert every.get_by_role("searchbox").count() == 1
    assert card.get_by_role("button", name="CSV").count() == 1
    assert card.get_by_role("searchbox").count() == 0
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["dpcrosue", "dpcrosue-ione"])
def test_the_first_figure_of_the_longest_first_screen_is_whole_on_a_phone(
    browser: Any, tmp_path: Path, suite: str
) -> None:
    """... also where no utility is measured, and another figure stands there."""
    file = tmp_path / "index.html"
    file.write_text(drawn(suite).page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": SIZES[1][0], "height": SIZES[1][1]})
    tab.goto(file.as_uri())
    box = tab.locator("#frontier svg").bounding_box()
    assert box["y"] + box["height"] <= SIZES[1][1]
    tab.close()
