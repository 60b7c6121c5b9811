"""Made-up results, collected and read as the stages do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tasks.reporting.core.results import Results
from tasks.stages import collect, report
from tests.drawn import drawn_once  # noqa: F401
from tests.reporting import example

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, where there is one. While it is open an event loop runs, so it does not outlive its module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium is installed: no page is opened")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Results]:
    """Build an example with the given arguments and read it."""

    def build(**arguments: Any) -> Results:
        place = example.build(tmp_path_factory.mktemp("example"), **arguments)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            collect.main(suite := arguments.get("suite", "gerai"))
            return report.read(suite)[0]

    return build


@pytest.fixture(scope="session")
def real(read: Callable[..., Results]) -> Results:
    """The suite `gerai` on data that are not marked synthetic."""
    return read()


@pytest.fixture(scope="session")
def demo(read: Callable[..., Results]) -> Results:
    """The suite `demo` on synthetic data."""
    return read(suite="demo", synthetic=True)


@pytest.fixture(scope="session")
def every(read: Callable[..., Results]) -> Results:
    """The suite `gerai` with all thirteen systems and their sweeps."""
    return read(models=example.ALL, sweep=True)
