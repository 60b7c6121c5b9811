"""The pictures of the README, taken of the pages of committed results: `make pictures`."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from tasks.reporting import site
from tasks.stages.report import read
from tests.reporting.conftest import BROWSERS

WIDTH, HEIGHT = 1280, 720
MARGIN = 8
"""Pixels around what is cut out of a page."""


def main() -> None:
    """Write docs/report.png, docs/card.png and docs/attacks.png."""
    gerai, crosue = (site.suite(*read(name)) for name in ("gerai", "dpcrosue"))
    pages = {"report": gerai.page, "card": site.pages([gerai], [], {})["cards.html"], "attacks": crosue.page}
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, text in pages.items():
            file = Path(folder, f"{name}.html")
            file.write_text(text, encoding="utf-8")
            tab.goto(file.as_uri())
            if name == "report":
                tab.screenshot(path=f"docs/{name}.png")
            elif name == "card":
                _cut(tab, "#card-gerai-dpmf", "#card-gerai-dpmf ~ details", name)
            else:
                _cut(tab, "#chart-attacks", "#chart-attacks", name)
        browser.close()


def _cut(tab: Any, first: str, last: str, name: str) -> None:
    """A picture of what lies between two elements, both included."""
    above, below = (tab.locator(selector).first.bounding_box() for selector in (first, last))
    top = above["y"] - MARGIN
    clip = {"x": above["x"] - MARGIN, "y": top, "width": above["width"] + 2 * MARGIN}
    height = below["y"] + below["height"] + MARGIN - top
    tab.screenshot(path=f"docs/{name}.png", full_page=True, clip={**clip, "height": height})


if __name__ == "__main__":
    main()
