"""Whatever a file holds, it is read, or refused in one line that names it; `make fuzz` looks longer.

A case that goes wrong is seen again by `python -m tests.fuzz NAME NUMBER`.
"""

import pytest

from tasks.datasets import FORMATS
from tests.fuzz.cases import run
from tests.fuzz.samples import UNCHECKED, samples

CASES = 25
"""Of each sample."""


@pytest.mark.parametrize("name", samples())
def test_what_is_spoilt_loads_or_is_refused_in_one_line(name: str) -> None:
    refused = [run(name, number) is not None for number in range(CASES)]
    assert any(refused)


def test_every_format_is_among_them() -> None:
    assert {name.partition(",")[0] for name in samples()} - {"glove", "archive", "params"} == set(FORMATS) - UNCHECKED
