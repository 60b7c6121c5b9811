"""`dprec audit` in the process of a test."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command import dprec

Here = Callable[..., CompletedProcess[str]]


@pytest.fixture
def here() -> Here:
    return lambda folder, *arguments: dprec(Path(folder), "audit", *arguments)
