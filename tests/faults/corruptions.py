"""State that is damaged between two runs: units, cache, locks, outputs, databases, parameters.

The next run goes on as if nothing were wrong, or ends with one line; then the remedy is what the line names.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.faults.suite import DPREC, END_SECONDS, RUN, Row, Setup, Suite

Damage = Callable[[Suite], None]
OWN = "suites/demo/params.yaml"
RESULTS = ("result.json", "metrics.json")
"""Of units of attacks and of training."""


def rows(setup: Setup) -> Iterator[Row]:
    """Every kind of state, each damage once."""
    begun = _begun(setup)
    changed = setup.finished.copy(setup.folder.with_name("changed"))
    own = (changed.root / OWN).read_text()
    changed.write(OWN, own.replace("learning_rate: 0.005", "learning_rate: 0.01"))  # so that stages have work to do
    right = changed.copy(setup.folder.with_name("right"))
    right.call(*RUN, **setup.known).check_returncode()
    for what, damages in KINDS.items():
        if setup.match not in what:
            continue
        of_begun = what == "states of unfinished units"
        expected, wrong = setup if of_begun else replace(setup, finished=right), []
        for name, damage in damages.items():
            suite = (begun if of_begun else changed).copy(setup.folder)
            if what == "outputs":
                suite.call("dvc", "status", "-q")  # DVC has read the files of this copy: now it goes by their times
            damage(suite)
            lines = [f"{name}: {line}" for line in _after(expected, suite)]
            print(lines[0] if lines else f"{name}: right", flush=True)
            wrong += lines
        yield f"damaged: {what}", len(damages), wrong


def _begun(setup: Setup) -> Suite:
    """The suite after a run that was killed in the middle of training."""
    while True:
        suite = setup.template.copy(setup.folder.with_name("begun"))
        running = suite.begin(*RUN, **setup.known)
        while running.poll() is None and not list(
            suite.root.glob("data/checkpoints/*/*/*/progress/before/manifest.json")
        ):
            time.sleep(0.02)
        running.kill()
        running.wait()
        assert not suite.left(END_SECONDS)
        if list(suite.root.glob("data/checkpoints/*/*/*/progress/before")):
            return suite


def _after(setup: Setup, suite: Suite) -> list[str]:
    """What is wrong after the run that meets the damage and, if it ends with one line, after its remedy."""
    met = suite.call(*RUN, PREFECT_HOME=str(suite.root / ".prefect"), **_server(setup, suite))
    if met.returncode == 0:
        return [f"other results: {', '.join(differ)}"] if (differ := setup.differs(suite)) else []
    if met.stderr.count("\n") != 1:
        return [f"more than a line: {met.stderr!r}"]
    for named, remedy in REMEDIES.items():
        if named in met.stderr:
            suite.call(*remedy)
            return setup.recovers(suite)
    return [f"neither recovered nor a remedy named: {met.stderr!r}"]


REMEDIES = {
    "run `dprec scrub`": (*DPREC, "scrub"),
    ".prefect/prefect.db away": ("mv", ".prefect/prefect.db", "aside.db"),
    "suites/demo/dvc.yaml": ("git", "checkout", "-q", "suites/demo/dvc.yaml"),
    "params.yaml": ("git", "checkout", "-q", "params.yaml"),
}
"""What a line names -> the command that it asks for."""


def _server(setup: Setup, suite: Suite) -> dict[str, str]:
    """The server that is up, unless the database of the suite's own is what was damaged."""
    return {} if (suite.root / OWN_SERVER).exists() else setup.known


OWN_SERVER = ".prefect/own"
"""A file that git and DVC ignore: it marks a suite whose run starts a server of its own."""


def rot(path: Path) -> None:
    """One bit of a file is another; its size, times, mode and inode stay."""
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(stat.st_mode)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def cut(path: Path) -> None:
    """Only the first half of a file is left."""
    stat, content = path.stat(), path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(content[: len(content) // 2])
    path.chmod(stat.st_mode)


def garbage(path: Path) -> None:
    """A file holds nothing that anyone wrote."""
    mode = path.stat().st_mode
    path.chmod(0o644)
    path.write_bytes(b"\0\xff{[%" * 40)
    path.chmod(mode)


def empty(path: Path) -> None:
    """A file holds nothing."""
    path.write_bytes(b"")


def _files(pattern: str, *how: Callable[[Path], None]) -> Damage:
    """Damage every file that a pattern names."""

    def damage(suite: Suite) -> None:
        paths = [path for path in suite.root.glob(pattern) if path.is_file()]
        assert paths, pattern
        for path in paths:
            for change in how:
                change(path)

    return damage


def _unit(*how: tuple[str, Callable[[Path], None]]) -> Damage:
    """Damage files of the finished units, whose outputs are gone from their place and from the cache."""

    def damage(suite: Suite) -> None:
        for pattern, change in how:
            _files(f"data/checkpoints/**/done/{pattern}", change)(suite)
        shutil.rmtree(suite.root / "data/runs")
        shutil.rmtree(suite.root / ".dvc/cache")

    return damage


def _uncached(damage: Damage) -> Damage:
    """Damage objects whose files must be checked out again."""

    def both(suite: Suite) -> None:
        damage(suite)
        for folder in ("raw", "processed", "runs"):
            shutil.rmtree(suite.root / "data" / folder)

    return both


def _replace(name: str, text: str) -> Damage:
    return lambda suite: suite.write(name, text)


def _remove(*names: str) -> Damage:
    def damage(suite: Suite) -> None:
        for name in names:
            shutil.rmtree(suite.root / name)

    return damage


def _file_for_folder(pattern: str) -> Damage:
    def damage(suite: Suite) -> None:
        for path in list(suite.root.glob(pattern)):
            shutil.rmtree(path)
            path.write_text("no folder")

    return damage


def _foreign_manifest(suite: Suite) -> None:
    for path in suite.root.glob("data/checkpoints/**/done/manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"unit": "another"}))
    _unit()(suite)


def _other_list(path: Path) -> None:
    path.chmod(0o644)
    path.write_text('[{"md5": "0123456789abcdef0123456789abcdef", "relpath": "x"}]')
    path.chmod(0o444)


def _reused(suite: Suite) -> None:
    """DVC's locks name a process that runs, and that is not the one that took them."""
    info = {"pid": os.getpid(), "cmd": "/usr/bin/dvc repro"}
    written = {str(suite.root / "data/runs/demo/demo-bpr/train"): info}
    suite.write(".dvc/tmp/rwlock", json.dumps({"write": written, "read": {}}))


def _state_database(suite: Suite) -> None:
    """DVC's memory of files' hashes, which lies outside the project."""
    program = "from dvc.repo import Repo; print(Repo().site_cache_dir)"
    folder = Path(suite.call("python", "-c", program).stdout.strip())
    for path in folder.glob("hashes/*/*.db"):
        garbage(path)


def _own_server(how: Callable[[Path], None]) -> Damage:
    def damage(suite: Suite) -> None:
        (suite.root / OWN_SERVER).touch()
        how(suite.root / ".prefect/prefect.db")

    return damage


KINDS: dict[str, dict[str, Damage]] = {
    "results of units and their manifests": {
        "a bit of a result": _unit(*((file, rot) for file in RESULTS)),
        "half a result": _unit(*((file, cut) for file in RESULTS)),
        "manifest of garbage": _unit(("manifest.json", garbage)),
        "no manifest": _unit(("manifest.json", Path.unlink)),
        "another unit's manifest": _foreign_manifest,
    },
    "states of unfinished units": {
        "a bit of the last state": _files("data/checkpoints/*/*/*/progress/last/state.json", rot),
        "half of the last state": _files("data/checkpoints/*/*/*/progress/last/state.json", cut),
        "both states": _files("data/checkpoints/*/*/*/progress/*/state.json", garbage),
        "manifest of the last state": _files("data/checkpoints/*/*/*/progress/last/manifest.json", empty),
        "a file for the folder of states": _file_for_folder("data/checkpoints/*/*/*/progress"),
    },
    "DVC's cache": {
        "a bit of every object": _uncached(_files(".dvc/cache/files/md5/*/*", rot)),
        "half of every object": _uncached(_files(".dvc/cache/files/md5/*/*", cut)),
        "lists of files of garbage": _uncached(_files(".dvc/cache/files/md5/*/*.dir", garbage)),
        "other lists of files": _uncached(_files(".dvc/cache/files/md5/*/*.dir", _other_list)),
        "what was run, of garbage": _uncached(_files(".dvc/cache/runs/*/*/*", garbage)),
        "no cache": _remove(".dvc/cache"),
    },
    "locks": {
        "dvc.lock of garbage": _files("**/dvc.lock", garbage),
        "empty dvc.lock": _files("**/dvc.lock", empty),
        "half of dvc.lock": _files("**/dvc.lock", cut),
        "locks of files of garbage": _replace(".dvc/tmp/rwlock", "\0{"),
        "locks of files, empty": _replace(".dvc/tmp/rwlock", ""),
        "locks of files, of a reused id": _reused,
        "locks of the project and of stages": _files("data/.lock*", garbage),
    },
    "outputs": {
        "a bit of data": _files("data/processed/demo/interactions.parquet", rot),
        "half of data": _files("data/processed/demo/interactions.parquet", cut),
        "a verdict of garbage": _files("data/quality/processed/demo.json", garbage),
        "a bit of a verdict": _files("data/quality/processed/demo.json", rot),
        "a file for a folder of outputs": _file_for_folder("data/runs/demo/*/train"),
    },
    "databases": {
        "Prefect's, of garbage": _own_server(garbage),
        "Prefect's, empty": _own_server(empty),
        "DVC's memory of hashes": _state_database,
    },
    "parameters": {
        "params.yaml of garbage": _files("params.yaml", garbage),
        "half of params.yaml": _files("params.yaml", cut),
        "dvc.yaml of garbage": _files("suites/demo/dvc.yaml", garbage),
    },
}
