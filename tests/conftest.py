"""Fixtures shared by all tests."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tasks.disk import rename
from tasks.privacy.accounting import account
from tasks.privacy.accounting.ledger import Event

# Both measure the machine, which may be busy.
settings.register_profile("dprec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dprec")


@pytest.fixture(scope="session", autouse=True)
def accounted_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Privacy loss distributions are composed once for all tests and workers: that takes a second, and every fit of a
    private model asks for the same ones again."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "accounted"
    folder.mkdir(exist_ok=True)
    compute = account._compose

    def composed(events: Sequence[Event], noise_multiplier: float | None, delta: float) -> float:
        asked = repr(([event.model_dump_json() for event in events], noise_multiplier, delta))
        known = folder / hashlib.sha256(asked.encode()).hexdigest()
        if not known.exists():
            place = known.with_name(f"{known.name}.{os.getpid()}")
            place.write_text(repr(compute(events, noise_multiplier, delta)), encoding="utf-8")
            rename(place, known, durable=False)
        return float(known.read_text(encoding="utf-8"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account, "_compose", composed)
        yield


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with real data sets, in mirror layout; tests that need it are skipped where it is absent."""
    root = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("DPREC_MIRROR"), root.parent / "shared" / "datasets"):
        if candidate and (Path(candidate) / "ml-100k" / "ml-100k.zip").is_file():
            return Path(candidate)
    pytest.skip("needs the real data sets: set DPREC_MIRROR to a mirror folder")
