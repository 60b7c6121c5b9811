"""`dprec audit` in the process of a test."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command import dprec
from tests.parameters import ROOT

Here = Callable[..., CompletedProcess[str]]
SCHEMA = ROOT / "tasks/external/audit.schema.json"


@pytest.fixture
def here() -> Here:
    return lambda folder, *arguments: dprec(Path(folder), "audit", *arguments)
