"""A browser, and the site of some committed suites."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.pages import documents, site
from tasks.pages.page import render
from tasks.results.summary import coverage
from tasks.stages.report import collected, paper_of, results_of
from tests.pages import committed

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SUITES = ("demo", "dpcrosue-ione", "dpvae-ml-1m", "gerai", "membership", "privsr")
"""Real and synthetic data, all levels, two suites on one split, one without a paper and one without utility."""
SIZES = pl.read_csv("docs/release-users.csv")
DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path("docs").glob("*.md"))} | {
    "index-of-nothing": "# A\n\n## Gain\n\n| a |\n| --- |\n| <script>alert(1)</script> |\n"
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, where there is one. While it is open an event loop runs, so it does not outlive its module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium is installed: no page is opened")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def made() -> list[site.Made]:
    """Everything that is shown of `SUITES`."""
    return [site.make(committed.results(name), committed.paper(name)) for name in SUITES]


@pytest.fixture(scope="session")
def files(made: list[site.Made]) -> dict[str, str]:
    """Address -> page, or JSON, of the site of `SUITES`."""
    counted = coverage(
        committed.results("gerai").published, [(of.facts, of.comparison, of.paper.methods) for of in made]
    )
    drawn = {page.address: render(page, ["abc"]) for page in site.pages(made, counted, SIZES, [], "HEAD")}
    drawn |= {page.address: render(page) for page in documents.pages(DOCUMENTS | documents.of_package("dprec"))}
    for of in made:
        name = of.facts.suite
        drawn |= site.draw(committed.results(name), committed.paper(name), of.cards)
    return drawn


@pytest.fixture(scope="session")
def shipped() -> dict[str, str]:
    """Address -> page, of those over all committed suites, as the site has them."""
    made = [site.make(results, paper_of(results)) for results in map(results_of, collected())]
    counted = coverage(
        committed.results("gerai").published, [(of.facts, of.comparison, of.paper.methods) for of in made]
    )
    return {page.address: render(page) for page in site.pages(made, counted, SIZES)}


@pytest.fixture(scope="session")
def folder(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files."""
    place = tmp_path_factory.mktemp("site")
    for file, text in files.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text, encoding="utf-8")
    return place
