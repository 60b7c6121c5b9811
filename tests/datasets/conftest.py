from pathlib import Path

import pytest

from tests.datasets.formats import write


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The small files that a format's tests are about: `FILES` of their module, if it has them."""
    (raw := tmp_path / "raw").mkdir()
    for name, content in getattr(request.module, "FILES", {}).items():
        write(raw, name, content)
    return raw
