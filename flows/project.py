"""DVC's view of the project, read once by a command: what changed, and running a stage in DVC's stead.

`dvc repro --single-item` costs seconds for every stage, in which DVC reads every dvc.yaml again. Here they are read
once, and for a suite only those that lead to it. A stage is still compared, restored from the cache, committed and
locked by DVC's own code, in the order of `dvc.stage.Stage.run`.
"""

from __future__ import annotations

import gc
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flows import locks, storage
from flows.execution import say
from flows.lockfiles import is_cut, recover
from flows.locks import Busy
from tasks.errors import ConfigurationError
from tasks.stages.common import atomic_write, remove

COMMON = (Path("dvc.yaml"), Path("data/dvc.yaml"))
SUITES = Path("suites")
LET_IN_SECONDS = 1.0
"""For so long DVC's lock is held on end while another DVC command needs it back: DVC waits three seconds for it."""


class Project:
    """The stages of some dvc.yaml files, and their graph (it points from a stage to those that it needs)."""

    def __init__(self, repo: Any, files: Iterable[Path], *, patient: bool = True) -> None:
        from dvc.repo.index import Index

        self._repo = repo
        self._patient = patient
        self._waited_for: set[str] = set()
        self._held_seconds = 0.0
        self.stopped = threading.Event()
        """Set it, and nothing is waited for any more."""
        self._mutex = threading.RLock()
        self._depth = 0
        with _without_collection():
            read = [stage for file in files for stage in Index.from_file(repo, str(file)).stages]
            self.graph = Index(repo, stages=read).graph
        self.stages: dict[str, Any] = {stage.addressing: stage for stage in read}
        """By DVC's address, such as `suites/gerai/dvc.yaml:train@gerai-bpr`."""
        self.root = Path(repo.root_dir)

    def needs(self, stage: Any) -> Iterator[Any]:
        """A stage and all that it needs, each after what it needs itself."""
        done: set[Any] = set()

        def visit(stage: Any) -> Iterator[Any]:
            if stage not in done:
                done.add(stage)
                for other in sorted(self.graph.successors(stage), key=name_of):
                    yield from visit(other)
                yield stage

        yield from visit(stage)

    def changes(self, stage: Any) -> list[Any]:
        """What changed since a stage's last run, as `dvc status` has it; empty if nothing did."""
        with self.lock():
            status = unwrap(type(stage).status)  # without locking every file by itself: ours is DVC's lock for all
            return list(status(stage, check_updates=True).get(stage.addressing, []))

    def reproduce(self, address: str, command: Callable[[str], None], *, force: bool = False) -> bool:
        """Bring one stage up to date; its inputs must be.

        Args:
            address: what DVC calls the stage.
            command: runs a command line and raises if it fails; DVC's lock is free meanwhile.
            force: run it in any case.

        Returns:
            Whether its command ran.

        Raises:
            ConfigurationError: an input or, after the run, an output is missing.
            Busy: another command holds one of them, and nothing is to be waited for.
        """
        stage = self.stages[address]
        if not force and not self.changes(stage):
            return False
        with self._hold(name_of(stage), stage.deps, stage.outs):
            with self.lock():
                stage.remove_outs(ignore_remove=False, force=False)
                if not force and self._restore(stage):
                    self._save(stage)
                    return False
                read = self._inputs(stage)
            command(stage.cmd)
            with self.lock():
                if changed := [name for name, value in self._inputs(stage).items() if read.get(name) != value]:
                    raise ConfigurationError(f"{', '.join(changed)}: changed while the stage ran; run it again")
                self._save(stage)
        return True

    def input_files(self, address: str) -> list[Path]:
        """The files and folders that a stage depends on, relative to the project, beside its parameters."""
        deps = (dep for dep in self.stages[address].deps if not hasattr(dep, "params"))
        return [Path(dep.fs_path).relative_to(self.root) for dep in deps]

    def _inputs(self, stage: Any) -> dict[str, Any]:
        """Hash of every file that a stage depends on, value of every parameter."""
        stage.save_deps()
        values: dict[str, Any] = {}
        for dep in stage.deps:
            values |= dep.hash_info.value if hasattr(dep, "params") else {str(dep): dep.hash_info.value}
        return values

    def _restore(self, stage: Any) -> bool:
        """Whether the outputs for these very inputs were in DVC's cache, undamaged, and are now in their place."""
        from dvc.stage.cache import RunCacheNotFoundError

        try:
            with storage.hashed_objects(self._repo):
                self._repo.stage_cache.restore(stage)
        except RunCacheNotFoundError:
            return False
        return True

    def _save(self, stage: Any) -> None:
        from dvc.dvcfile import Lockfile

        with storage.hashed_objects(self._repo):
            stage.save(run_cache=all(out.use_cache for out in stage.outs))
            stage.commit()
        lock = Path(stage.path).with_suffix(".lock")
        with atomic_write(lock) as place:  # DVC writes it in its place, where a kill leaves half of it
            if lock.exists():
                shutil.copyfile(lock, place)
            Lockfile(self._repo, str(place)).dump(stage)

    def discard_damaged(self, stages: Iterable[Any]) -> list[str]:
        """Remove outputs of stages that are not what dvc.lock says although DVC takes them for it; their paths.

        What was compared today and did not change since is not read again.
        """
        verified = storage.Verified(Path(self._repo.tmp_dir))
        damaged = [
            str(out)
            for stage in stages
            for out in stage.outs
            if not verified.is_recent(out) and self._is_damaged(stage, out)
        ]
        verified.add([out for stage in stages for out in stage.outs if not storage.seen_to_differ(out)])
        return damaged

    def verify(self) -> Iterator[str]:
        """Remove all objects of the cache and all outputs that are not what their hashes say, said and yielded."""
        outs = ((stage, out) for stage in self.stages.values() for out in stage.outs)
        damaged = (str(out) for stage, out in outs if self._is_damaged(stage, out))
        for path in chain(storage.damaged_objects(self._repo), damaged):
            say(path, "damaged and removed")
            yield path

    def _is_damaged(self, stage: Any, out: Any) -> bool:
        """Whether an output is not what its hash says: then it is removed, otherwise its objects are in the cache."""
        if storage.seen_to_differ(out):
            return False
        with self._hold(name_of(stage), [out], []), self.lock():
            intact = storage.output_intact(self._repo, out)
            if intact and out.changed_cache():
                out.commit(relink=False)
        if not intact:
            with self._hold(name_of(stage), [], [out]):
                remove(Path(out.fs_path))
        return not intact

    @contextmanager
    def lock(self) -> Iterator[None]:
        """DVC's lock, waited for, also by a thread that holds it; its errors become ours."""
        with self._mutex, _errors():
            if not self._depth:
                self._lock()
            self._depth += 1
            start = time.monotonic()
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._held_seconds += time.monotonic() - start
                    self._repo.lock.unlock()

    def _lock(self) -> None:
        from dvc.lock import LockError

        if self._held_seconds > LET_IN_SECONDS:
            self._held_seconds = 0.0
            if locks.clear(self._repo):  # it asks for the lock every half second
                time.sleep(0.7)
        while True:
            try:
                self._repo.lock.lock()
                return
            except LockError:
                self._wait("DVC", locks.holder(self._repo))

    def _wait(self, what: str, owner: str) -> None:
        """Wait a moment for another process, and say so the first time."""
        if not self._patient or self.stopped.is_set():
            raise Busy(f"{what}: held by {owner}; run this again once it has ended")
        if owner not in self._waited_for:
            self._waited_for.add(owner)
            say(what, f"waits for {owner}")
        self.stopped.wait(0.5)

    @contextmanager
    def _hold(self, what: str, read: Iterable[Any], written: Iterable[Any]) -> Iterator[None]:
        """Keep other DVC commands from files that are read or written here, once they let go of them."""
        paths = [[str(file.fs_path) for file in files] for files in (read, written)]
        while True:
            with self._mutex, _errors():
                try:
                    held = locks.take(self._repo, *paths)
                    break
                except Busy as error:
                    owner = str(error)
            self._wait(what, owner)
        try:
            yield
        finally:
            with self._mutex:
                locks.release(held)


@contextmanager
def open_project(suite: str | None = None, *, patient: bool = True) -> Iterator[Project]:
    """The project of the current folder: all of it, or what leads to the report of one suite.

    Args:
        suite: None for all of them.
        patient: wait for other processes that hold something; otherwise they are named, and that is all.

    Raises:
        ConfigurationError: a dvc.yaml cannot be used.
        Busy: another process holds something.
    """
    from dvc.logger import setup

    setup()  # DVC does so when it is loaded, and would undo the following
    logging.getLogger("dvc").setLevel(logging.ERROR)  # "updating lock file" after every stage, "is empty"
    logging.getLogger("dvc_data").setLevel(logging.CRITICAL)  # files that it could not copy; the error says why
    logging.getLogger("dvc.progress").setLevel(logging.CRITICAL)  # its bars would break through the one view of a run
    own = [SUITES / suite / "dvc.yaml"] if suite else sorted(SUITES.glob("*/dvc.yaml"))
    with _errors(), _parameters_read_fast(), storage.repository() as repo:
        locks.clear(repo)
        files = [file for file in (*COMMON, *own) if file.is_file()]
        for lock in filter(is_cut, (file.with_name("dvc.lock") for file in files)):
            recover(repo, lock, patient=patient)
        yield _read(repo, files, patient=patient)


def _read(repo: Any, files: list[Path], *, patient: bool) -> Project:
    """The stages, although a dvc.lock may be damaged."""
    from dvc.exceptions import DvcException

    written: set[Path] = set()
    while True:
        try:
            return Project(repo, files, patient=patient)
        except DvcException as error:
            path = Path(getattr(error, "path", ""))
            merged = path.is_file() and b"<<<<<<<" in path.read_bytes()  # which is the user's
            if path.name != "dvc.lock" or not path.is_file() or merged or path in written:
                raise
            if not recover(repo, path, patient=patient):
                written.add(path)
            repo._reset()


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage while a million objects are made that stay, nor among them later: a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _parameters_read_fast() -> Iterator[None]:
    """Parse a file of parameters once for as long as it does not change, and look keys up.

    DVC parses it again for every stage that depends on it, and visits all that the file holds for every key.
    """
    from dvc.dependency import param
    from dvc.utils.serialize import LOADERS

    parse, visiting = {ending: LOADERS[ending] for ending in (".yaml", ".json")}, param.dpath
    parsed: dict[tuple[str, int, int], Any] = {}

    def load(path: str, fs: Any = None) -> Any:
        stat = Path(path).stat()
        key = path, stat.st_mtime_ns, stat.st_size
        if key not in parsed:
            parsed[key] = parse[Path(path).suffix](path, fs=fs)
        return parsed[key]

    def get(table: Any, key: str, separator: str) -> Any:
        """As dpath.get for keys that are no patterns, which ours never are."""
        for part in key.split(separator):
            if not isinstance(table, dict) or part not in table:
                raise KeyError(key)
            table = table[part]
        return table

    LOADERS.update(dict.fromkeys(parse, load))
    param.dpath = SimpleNamespace(get=get)
    try:
        yield
    finally:
        LOADERS.update(parse)
        param.dpath = visiting


def name_of(stage: Any) -> str:
    """A stage without its folder, e.g. `train@gerai-bpr`; no two stages share it."""
    return str(stage.addressing).rpartition(":")[2]


@contextmanager
def _errors() -> Iterator[None]:
    from dvc.exceptions import DvcException

    try:
        yield
    except (DvcException, FileNotFoundError) as error:
        message, cause = " ".join(str(error).split()), error.__cause__
        while cause is not None:
            if mark := getattr(cause, "problem_mark", None):
                message += f" at line {mark.line + 1}"
            cause = cause.__cause__
        if lock := re.search(r"'(?:\./)?(\S*dvc\.lock)'", message):
            remedy = f"restore it with `git restore {lock[1]}`, or remove it if git does not have it"
            message = f"{lock[1]}: is no lock of DVC ({message}); {remedy}"
        raise ConfigurationError(message) from error
