from pathlib import Path

import pytest

from tests.datasets.formats import write


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The small files that a format's tests are about: `FILES` of their module."""
    for name, content in request.module.FILES.items():
        write(tmp_path / "raw", name, content)
    return tmp_path / "raw"
