"""Made-up results, collected and read as the stages do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tasks.reporting.core.results import Results
from tasks.stages import collect, report
from tests.reporting import example


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
