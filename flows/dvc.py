"""The one door to DVC: what changed and why, and running a stage in DVC's stead. No other module imports DVC.

`dvc repro --single-item` takes seconds for every stage, in which it reads every dvc.yaml again. Here one `Repo` reads
them once, for a suite only those that lead to it, and a stage is compared, restored, committed and locked by DVC's own
functions, in the order of `dvc.stage.Stage.run`. Most of these are no documented interface: with other versions than
`TRIED`, or on request, every stage runs by `dvc --wait-for-lock repro --single-item` instead, which is slower.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import re
import shlex
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dvc.config import Config
from dvc.exceptions import DvcException
from dvc.fs import localfs
from dvc.logger import setup
from dvc.repo import Repo
from dvc.utils.serialize import load_path

from flows.execution import Busy, holder, lives, say
from flows.locks import LOCAL, computed_here, settle, take_committed, write_entry
from flows.settings import is_writable, keep_shipped
from tasks.core.errors import ConfigurationError
from tasks.pipeline.common import atomic_write, remove
from tasks.pipeline.provenance import is_tracked

TRIED = {"dvc": "3.67.1", "dvc-data": "3.18.3", "dvc-objects": "5.2.0"}
"""Versions with which what follows was tried; `Output` and `Stage` are used as DVC itself does, and `_load` and
`_get_cache_dir` of its cache of runs."""
with suppress(ImportError):  # of those alone; with others stages run by `dvc repro`, without any of these
    from dvc.dvcfile import Lockfile
    from dvc.lock import LockError, make_lock
    from dvc.repo.index import Index
    from dvc.rwlock import rwlock
    from dvc.stage.cache import _can_hash, _get_stage_hash
    from dvc.stage.loader import StageLoader
    from dvc_data.hashfile.state import StateNoop

if TYPE_CHECKING:
    from dvc.dependency import ParamsDependency as ParamsDependency
    from dvc.output import Output
    from dvc.stage import Stage as Stage

BY_REPRO = "DPREC_DVC_REPRO"
"""Set to 1 in the environment, stages run by `dvc repro`."""


class Project:
    """The stages of some dvc.yaml files, and their graph (it points from a stage to those that it needs).

    Args:
        repo: DVC's view of the current folder.
        files: the dvc.yaml files.
        patient: wait for other processes that hold something; otherwise they are named, and that is all.
    """

    def __init__(self, repo: Repo, files: list[Path], *, patient: bool = True) -> None:
        self._repo, self._files, self._patient = repo, files, patient
        untried = [f"{name} {version(name)} was not tried" for name, tried in TRIED.items() if version(name) != tried]
        self.why_by_repro = "as asked for" if os.environ.get(BY_REPRO) == "1" else ", ".join(untried)
        """Why stages run by `dvc repro`; empty if they do not."""
        self.stopped = threading.Event()
        """Set it, and nothing is waited for any more."""
        self._waited_for: set[str] = set()
        self._mutex = threading.RLock()
        self.root = Path(repo.root_dir)
        self._objects = Path(repo.cache.local.path)
        if not self.why_by_repro:
            drop_dead_owners(repo)
        gc.disable()  # no search for garbage while a million objects are made that stay: a third of the time
        try:
            index = self._index()
            self.graph = index.graph
        finally:
            gc.freeze()
            gc.enable()
        self.stages: dict[str, Stage] = {stage.addressing: stage for stage in index.stages}
        """By DVC's address, such as `suites/gerai/dvc.yaml:train@gerai-bpr`."""

    def input_files(self, address: str) -> list[Path]:
        """The files and folders that a stage depends on, relative to the project; its parameters are none of them."""
        deps = (dep for dep in self.stages[address].deps if not hasattr(dep, "params"))
        return [Path(dep.fs_path).relative_to(self.root) for dep in deps]

    def reproduce(self, address: str, run: Callable[[str], None], *, force: bool = False) -> bool:
        """Bring one stage up to date, whose inputs must be; whether its command ran.

        Args:
            address: what DVC calls the stage.
            run: runs a command line and raises if it fails; DVC's lock is free meanwhile.
            force: run the stage in any case.

        Raises:
            ConfigurationError: an input or, after the run, an output is missing.
            Busy: another command holds one of them, and nothing is to be waited for.
        """
        stage = self.stages[address]
        if not force and not self._is_changed(stage):
            return False
        if self.why_by_repro:
            run(f"dvc --wait-for-lock repro {'--force ' if force else ''}--single-item {shlex.quote(address)}")
            return True
        with self._hold(name_of(stage), stage.deps, stage.outs):
            with self._lock():
                stage.remove_outs()
                if not force and self._restore(stage):
                    self._save(stage)
                    return False
                read = _inputs(stage)
            run(stage.cmd)
            with self._lock():
                if changed := [name for name, value in _inputs(stage).items() if read.get(name) != value]:
                    raise ConfigurationError(f"{', '.join(changed)}: changed while the stage ran; run it again")
                self._save(stage)
        return True

    def scrub(self) -> list[str]:
        """Remove all objects of the cache and all outputs that are not what their hashes say; their paths.

        Outputs that DVC itself sees to differ, by their times, are left to it; all are where stages run by `dvc repro`.
        """
        names = re.compile(r"[0-9a-f]{30}(\.dir)?")  # what a killed process left has others
        objects = [path for path in sorted(self._objects.glob("??/*")) if names.fullmatch(path.name)]
        damaged = [path.relative_to(self.root).as_posix() for path in objects if not _is_intact(path)]
        if self.why_by_repro:
            return damaged
        outs = [out for stage in self.stages.values() for out in stage.outs if out.use_cache and out.hash_info]
        outs = [out for out in outs if not out.workspace_status()]
        self._repo.cache.local.state = StateNoop()  # from here on DVC hashes what it compares
        for out in outs:
            with self._hold(str(out), [], [out]), self._lock():
                if out.changed_checksum():
                    remove(Path(out.fs_path))
                    damaged.append(str(out))
                elif out.changed_cache():
                    out.commit(relink=False)
        return damaged

    def settle(self, suite: str) -> None:
        """After a run, leave a suite's lock as committed where it can be."""
        if not self.why_by_repro:
            settle(suite, shared=bool(self._repo.config["remote"]))

    def _index(self) -> Index:
        """DVC's view of all stages; a damaged dvc.lock is replaced by the committed one, while no process writes it."""
        if self.why_by_repro:
            return self._repo.index
        locks = [lock for file in self._files if (lock := file.with_name("dvc.lock")).is_file()]
        with suppress(DvcException):
            if all(lock.read_bytes().endswith(b"\n") for lock in locks):
                return self._read()
        with self._lock():  # DVC writes them in place
            for lock in filter(self._is_damaged, locks):
                take_committed(lock)
            return self._read()

    def _read(self) -> Index:
        stages = []
        for file in self._files:
            stages += (read := Index.from_file(self._repo, str(file)).stages)
            if (lock := computed_here(file.with_name("dvc.lock"))).parent == LOCAL:
                try:
                    entries = load_path(str(lock), localfs)["stages"]
                except (DvcException, KeyError, TypeError):  # damaged: the committed one is used
                    lock.unlink()
                    continue
                for stage in read:
                    StageLoader.fill_from_lock(stage, entries.get(stage.name))
        return Index(self._repo, stages=stages)

    def _is_damaged(self, lock: Path) -> bool:
        content = lock.read_bytes()
        try:
            Lockfile(self._repo, str(lock)).load()
        except DvcException:
            return b"<<<<<<<" not in content  # a merge is the user's
        return not content.endswith(b"\n")

    def _is_changed(self, stage: Stage) -> bool:
        with self._mutex, errors():
            always = stage.is_callback or stage.always_changed or stage.changed_stage()
            return bool(always or any(entry.status() for entry in (*([] if stage.frozen else stage.deps), *stage.outs)))

    def _restore(self, stage: Stage) -> bool:
        """Whether the outputs for these very inputs were in DVC's cache, undamaged, and are now in their place."""
        if not _can_hash(stage):
            return False
        complete = all(out.hash_info for out in stage.outs) and not any(dep.status() for dep in stage.deps)
        if not complete or stage.changed_stage():
            stage.save_deps()
            self._drop_damaged_runs(stage)
            if not (entry := self._repo.stage_cache._load(stage)):
                return False
            StageLoader.fill_from_lock(stage, entry)
        if not self._are_cached(out.hash_info.value for out in stage.outs):
            return False
        stage.checkout()
        return True

    def _save(self, stage: Stage) -> None:
        if _can_hash(stage):
            self._drop_damaged_runs(stage)
        stage.save(run_cache=all(out.use_cache for out in stage.outs))
        stage.commit()
        if not self._are_cached(out.hash_info.value for out in stage.outs if out.use_cache):
            stage.commit()  # damaged objects that were there before are gone now
        lock = Path(stage.path).with_suffix(".lock")
        with atomic_write(lock) as new:  # DVC writes it in its place, where a kill leaves half of it
            write_entry(lock, new, stage.name, lambda: Lockfile(self._repo, str(new)).dump(stage))

    def _drop_damaged_runs(self, stage: Stage) -> None:
        """Remove the records of earlier runs with these inputs if one is no text: DVC fails on it."""
        folder = Path(self._repo.stage_cache._get_cache_dir(_get_stage_hash(stage)))
        try:
            for record in folder.glob("*"):
                record.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            remove(folder)

    def _are_cached(self, names: Iterable[str]) -> bool:
        """Whether objects and all that they list are in the cache, undamaged; what is damaged is removed."""
        cached = True
        for name in names:
            path = self._objects / name[:2] / name[2:]
            if not path.is_file() or not _is_intact(path):
                cached = False
            elif name.endswith(".dir"):
                cached &= self._are_cached(entry["md5"] for entry in json.loads(path.read_bytes()))
        return cached

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """DVC's lock of the project, waited for; its errors become ours."""
        with self._mutex, errors():
            while True:
                try:
                    self._repo.lock.lock()
                    break
                except LockError:
                    self._wait("DVC", holder(Path(self._repo.tmp_dir, "lock")))
            try:
                yield
            finally:
                self._repo.lock.unlock()

    @contextmanager
    def _hold(self, what: str, read: Iterable[Output], written: Iterable[Output]) -> Iterator[None]:
        """Keep other DVC commands from files that are read or written here, once they let go of them."""
        paths = [[str(file.fs_path) for file in files] for files in (read, written)]
        while True:
            with self._mutex, errors():
                drop_dead_owners(self._repo)
                # named as DVC's own functions call us, which take the same locks while these are held
                locked = rwlock(self._repo.tmp_dir, self._repo.fs, " ".join(sys.argv), *paths, False)
                try:
                    locked.__enter__()
                    break
                except LockError as error:
                    owner = re.search(r"\(PID (\d+)\): (.*)", str(error))
            self._wait(what, f"process {owner[1]} ({owner[2]})" if owner else "another process")
        try:
            yield
        finally:
            with self._mutex, suppress(AssertionError, KeyError, ValueError, DvcException):  # it was damaged meanwhile
                locked.__exit__(None, None, None)

    def _wait(self, what: str, owner: str) -> None:
        if not self._patient or self.stopped.is_set():
            raise Busy(f"{what}: held by {owner}; run this again once it has ended")
        if owner not in self._waited_for:
            self._waited_for.add(owner)
            say(what, f"waits for {owner}")
        self.stopped.wait(0.5)


@contextmanager
def open_project(suite: str | None = None, *, patient: bool = True) -> Iterator[Project]:
    """The project of the current folder: all of it, or what leads to the report of one suite.

    suite: None for all of them; patient: as of `Project`.

    Raises:
        ConfigurationError: a dvc.yaml cannot be used.
        Busy: another process holds something.
    """
    setup()  # DVC does so when it is loaded, and would undo the following
    logging.getLogger("dvc").setLevel(logging.ERROR)  # "updating lock file" after every stage, "is empty"
    logging.getLogger("dvc_data").setLevel(logging.CRITICAL)  # files that it could not copy; the error says why
    logging.getLogger("dvc.progress").setLevel(logging.CRITICAL)  # its bars would break through the one view of a run
    files = [Path("dvc.yaml"), Path("data/dvc.yaml"), *sorted(Path("suites").glob(f"{suite or '*'}/dvc.yaml"))]
    parameters.cache_clear()
    with errors(), _repo() as repo:
        yield Project(repo, list(filter(Path.is_file, files)), patient=patient)


def name_of(stage: Stage) -> str:
    """A stage without its folder, e.g. `train@gerai-bpr`; no two stages share it."""
    return str(stage.addressing).rpartition(":")[2]


def drop_dead_owners(repo: Repo) -> None:
    """Drop locks on files whose owners are gone: DVC takes an owner for alive while any process has its id."""
    path = Path(repo.tmp_dir, "rwlock")
    with make_lock(f"{path}.lock", tmp_dir=repo.tmp_dir, wait=True), suppress(FileNotFoundError):
        since, locked = path.stat().st_mtime, None
        kept: dict[str, Any] = {"write": {}, "read": {}}
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):  # else nothing that DVC wrote
            locked = kept | json.loads(path.read_bytes())
            kept["write"] = {file: owner for file, owner in locked["write"].items() if lives(owner, since)}
            readers = {file: [user for user in users if lives(user, since)] for file, users in locked["read"].items()}
            kept["read"] = {file: owners for file, owners in readers.items() if owners}
        if kept != locked:
            with atomic_write(path, durable=False) as new:
                new.write_text(json.dumps(kept), encoding="utf-8")


class _ReadOnlyRepo(Repo):
    """DVC's view of a project that may not be written to: its locks lie with what it remembers of files."""

    tmp_dir = property(lambda _: os.environ["DVC_SITE_CACHE_DIR"])

    def _ignore(self) -> None: ...


def _repo() -> Repo:
    if not is_tracked() and not Config(".dvc").get("core", {}).get("no_scm"):
        with Config(".dvc").edit("local") as local:  # an archive: DVC works without git from now on
            local.setdefault("core", {})["no_scm"] = True
        keep_shipped()
    try:
        return Repo() if is_writable(Path.cwd()) else _ReadOnlyRepo()
    except sqlite3.DatabaseError:  # what it remembers of files is damaged
        remove(Path(os.environ["DVC_SITE_CACHE_DIR"]))
        return Repo()


def _inputs(stage: Stage) -> dict[str, object]:
    """Hash of every file that a stage depends on, value of every parameter."""
    stage.save_deps()
    values = (dep.hash_info.value if hasattr(dep, "params") else {str(dep): dep.hash_info.value} for dep in stage.deps)
    return {name: value for each in values for name, value in each.items()}


@cache
def parameters(path: str) -> Any:
    """What a file of parameters holds, as DVC reads it; read once for every open project."""
    return load_path(path, localfs) if os.path.isfile(path) else {}


def _is_intact(path: Path) -> bool:
    """Whether an object of the cache is what its name says; otherwise it is removed."""
    with path.open("rb") as file:
        intact = hashlib.file_digest(file, "md5").hexdigest() == path.parent.name + path.name.removesuffix(".dir")
    if not intact:
        path.unlink()
    return intact


@contextmanager
def errors() -> Iterator[None]:
    """DVC's errors as one line."""
    try:
        yield
    except (DvcException, FileNotFoundError) as error:
        message, cause = " ".join(str(error).split()), error.__cause__
        while cause is not None:
            if mark := getattr(cause, "problem_mark", None):
                message += f" at line {mark.line + 1}"
            cause = cause.__cause__
        if Path(path := getattr(error, "path", "")).name == "dvc.lock":
            message += f"; restore it with `git restore {path}`, or remove it if git does not have it"
        raise ConfigurationError(message) from error
