"""Fixtures shared by all tests."""

import gc
import hashlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

from tasks.config import strict_yaml
from tasks.disk import rename
from tasks.privacy.accounting import account
from tasks.privacy.accounting.ledger import Event

# Both measure the machine, which may be busy.
settings.register_profile("dprec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dprec")

# A shell lets what it starts in the background ignore Ctrl-C, and tests of stops would wait for their time limits.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


ACCOUNTED = Path(__file__).with_name("accounted.json")
"""Compositions of privacy losses that tests ask for, as the code of the present accountant gave them."""
SAMPLE = 64
"""Of so many of them about one is computed in every run, too, and compared."""
WRITE = bool(os.environ.get("DPREC_WRITE_ACCOUNTED"))
"""Whether this run computes all of them and writes ACCOUNTED again."""
_compose = account._compose


def accountant() -> str:
    """What decides a composition: the accountant's code, and the packages that it calls."""
    packages = [f"{name}=={version(name)}" for name in ("dp-accounting", "numpy", "scipy")]
    return hashlib.sha256(
        "\0".join([Path(account.__file__).read_text(encoding="utf-8"), *packages]).encode()
    ).hexdigest()


def known_compositions() -> dict[str, float]:
    """Of ACCOUNTED; nothing where the accountant is another one now."""
    written = json.loads(ACCOUNTED.read_text(encoding="utf-8"))
    return written["epsilons"] if written["accountant"] == accountant() and not WRITE else {}


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


def pytest_report_header() -> str | None:
    """Say why tests take longer than they need."""
    return None if known_compositions() else f"{ACCOUNTED.name} is of another accountant; write it by `make accounted`"


@pytest.fixture(scope="session", autouse=True)
def accounted_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Privacy loss distributions are composed once for all tests and workers, or taken from ACCOUNTED: that takes a
    second, and every fit of a private model asks for the same ones again."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "accounted"
    folder.mkdir(exist_ok=True)
    known = known_compositions()

    def composed(events: Sequence[Event], *others: Any) -> float:
        asked = repr(([event.model_dump_json() for event in events], *others))
        name = hashlib.sha256(asked.encode()).hexdigest()[:16]
        if name in known and int(name, 16) % SAMPLE:
            return known[name]
        file = folder / name
        if not file.exists():
            place = file.with_name(f"{name}.{os.getpid()}")
            place.write_text(repr(_compose(events, *others)), encoding="utf-8")
            rename(place, file, durable=False)
        epsilon = float(file.read_text(encoding="utf-8"))
        assert epsilon == pytest.approx(known.get(name, epsilon)), f"{ACCOUNTED.name} is not what {asked} gives"
        return epsilon

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account, "_compose", composed)
        yield


@pytest.fixture(scope="session", autouse=True)
def parsed_once() -> Iterator[None]:
    """The same text of YAML is parsed once: most tests of stages read all suites. Every reader gets its own copy."""
    load, known = yaml.load, dict[str, Any]()

    def parsed(text: Any, Loader: type) -> Any:
        if Loader is not strict_yaml._Loader or not isinstance(text, str):
            return load(text, Loader=Loader)
        if text not in known:
            known[text] = load(text, Loader=Loader)
        return deepcopy(known[text])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "load", parsed)
        yield


@pytest.fixture
def composed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the accountant itself."""
    monkeypatch.setattr(account, "_compose", _compose)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """All compositions that the run of `make accounted` asked for become ACCOUNTED."""
    if WRITE and not hasattr(session.config, "workerinput"):
        folder = session.config._tmp_path_factory.getbasetemp() / "accounted"
        epsilons = {file.name: float(file.read_text(encoding="utf-8")) for file in sorted(folder.iterdir())}
        text = json.dumps({"accountant": accountant(), "epsilons": epsilons}, indent=0)
        ACCOUNTED.write_text(f"{text}\n", encoding="utf-8")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with real data sets, in mirror layout; tests that need it are skipped where it is absent."""
    root = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("DPREC_MIRROR"), root.parent / "shared" / "datasets"):
        if candidate and (Path(candidate) / "ml-100k" / "ml-100k.zip").is_file():
            return Path(candidate)
    pytest.skip("needs the real data sets: set DPREC_MIRROR to a mirror folder")
