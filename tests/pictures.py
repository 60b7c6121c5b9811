"""The pictures of the README, taken of the pages of committed results: `make pictures`."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tasks.pages import site
from tasks.stages.report import paper_of, results_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PICTURES = {
    "report": ("suites/gerai/index.html", ""),
    "card": ("cards/gerai/gerai-dpmf.html", "#privacy-loss"),
    "attacks": ("suites/dpcrosue/attacks.html", "#figure-dpcrosue-vectors"),
}
"""Name -> page, and what of it is cut out; empty for its first screen."""


def main() -> None:
    """Write docs/report.png, docs/card.png and docs/attacks.png."""
    files: dict[str, str] = {}
    for suite in ("gerai", "dpcrosue"):
        results = results_of(suite)
        files |= site.draw(results, paper_of(results), site.make(results, paper_of(results)).cards)
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 720})
        for name, (page, part) in PICTURES.items():
            file = Path(folder, f"{name}.html")
            file.write_text(files[page], encoding="utf-8")
            tab.goto(file.as_uri())
            shown = tab.locator(part).first if part else tab
            shown.screenshot(path=f"docs/{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
