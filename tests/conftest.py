"""Fixtures shared by all tests."""

import gc
import os
import signal
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numba
import pytest
import yaml
from hypothesis import HealthCheck, settings

from tasks.config import messages
from tasks.privacy.accounting import account
from tasks.privacy.accounting.ledger import Event

# The last two measure the machine, which may be busy.
settings.register_profile("dprec", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dprec")

# `&` and `nohup` have all that they start ignore Ctrl-C and hang-ups; tests of stops would wait for their time limits.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)


ROOT = Path(__file__).resolve().parents[1]
ACCOUNTANT = {name: getattr(account, name) for name in ("_compose", "POINTS", "ROUGH")}
COARSE = 2**12
"""Losses of the accountant in tests of everything else: its ε is an upper bound there, too, at most a hundredth larger
after a thousand sampled steps, and takes a twentieth of the time."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay until the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # tests have memory enough, and trees of code are many objects
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow ones first, so that no process is left with one at the end; all others stay in their order."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def composed_coarsely_and_once() -> Iterator[None]:
    """Every fit of a private model asks the accountant for the same compositions again."""
    known = dict[str, float]()

    def composed(events: Sequence[Event], *others: Any) -> float:
        asked = repr(([event.model_dump_json() for event in events], *others))
        if asked not in known:
            known[asked] = ACCOUNTANT["_compose"](events, *others)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account, "_compose", composed)
        patch.setattr(account, "POINTS", COARSE)
        patch.setattr(account, "ROUGH", COARSE)
        yield


@pytest.fixture(scope="session", autouse=True)
def parsed_once() -> Iterator[None]:
    """The same text of YAML is parsed once: most tests of stages read all suites. Every reader gets its own copy."""
    load, known = yaml.load, dict[str, Any]()

    def parsed(text: Any, Loader: type) -> Any:
        if Loader is not messages._Loader or not isinstance(text, str):
            return load(text, Loader=Loader)
        if text not in known:
            known[text] = load(text, Loader=Loader)
        return deepcopy(known[text])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "load", parsed)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Loops are compiled once for all processes; the constants that they read stand in their own files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(ROOT / ".pytest_cache" / "numba"))
        patch.setattr(numba, "njit", partial(numba.njit, cache=True))
        yield


@pytest.fixture
def composed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the accountant itself."""
    for name, value in ACCOUNTANT.items():
        monkeypatch.setattr(account, name, value)


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with real data sets, in mirror layout; tests that need it are skipped where it is absent."""
    for candidate in (os.environ.get("DPREC_MIRROR"), ROOT.parent / "shared" / "datasets"):
        if candidate and (Path(candidate) / "ml-100k" / "ml-100k.zip").is_file():
            return Path(candidate)
    pytest.skip("needs the real data sets: set DPREC_MIRROR to a mirror folder")
