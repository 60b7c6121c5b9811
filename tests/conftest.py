"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Both measure the machine, which may be busy.
settings.register_profile("dprec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dprec")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with real data sets, in mirror layout; tests that need it are skipped where it is absent."""
    root = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("DPREC_MIRROR"), root.parent / "shared" / "datasets"):
        if candidate and (Path(candidate) / "ml-100k" / "ml-100k.zip").is_file():
            return Path(candidate)
    pytest.skip("needs the real data sets: set DPREC_MIRROR to a mirror folder")
