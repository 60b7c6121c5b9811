"""DVC's view of the project, read once by a command: what changed, and running a stage in DVC's stead.

`dvc repro --single-item` costs seconds for every stage, in which DVC reads every dvc.yaml again. Here they are read
once, and for a suite only those that lead to it. A stage is still compared, restored from the cache, committed and
locked by DVC's own code, in the order of `dvc.stage.Stage.run`.
"""

from __future__ import annotations

import gc
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tasks.errors import ConfigurationError

COMMON = (Path("dvc.yaml"), Path("data/dvc.yaml"))
SUITES = Path("suites")


class Project:
    """The stages of some dvc.yaml files, and their graph (it points from a stage to those that it needs)."""

    def __init__(self, repo: Any, files: Iterable[Path]) -> None:
        from dvc.repo.index import Index

        self._repo = repo
        self._mutex = threading.RLock()
        self._depth = 0
        with _without_collection():
            read = [stage for file in files for stage in Index.from_file(repo, str(file)).stages]
            self.graph = Index(repo, stages=read).graph
        self.stages: dict[str, Any] = {stage.addressing: stage for stage in read}
        """By DVC's address, such as `suites/gerai/dvc.yaml:train@gerai-bpr`."""
        self.root = Path(repo.root_dir)

    def below(self, stage: Any) -> Iterator[Any]:
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
        with self.locked():
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
            ConfigurationError: an input or, after the run, an output is missing; or another command holds one of them.
        """
        stage = self.stages[address]
        with self._files_of(stage):
            with self.locked():
                if not force and not stage.changed():
                    return False
                stage.remove_outs(ignore_remove=False, force=False)
                if not force and self._restored(stage):
                    self._save(stage)
                    return False
                read = self._inputs(stage)
            command(stage.cmd)
            with self.locked():
                if changed := [name for name, value in self._inputs(stage).items() if read.get(name) != value]:
                    raise ConfigurationError(f"{', '.join(changed)}: changed while the stage ran; run it again")
                self._save(stage)
        return True

    def _inputs(self, stage: Any) -> dict[str, Any]:
        """Hash of every file that a stage depends on, value of every parameter."""
        stage.save_deps()
        values: dict[str, Any] = {}
        for dep in stage.deps:
            values |= dep.hash_info.value if hasattr(dep, "params") else {str(dep): dep.hash_info.value}
        return values

    def _restored(self, stage: Any) -> bool:
        """Whether the outputs for these very inputs were in DVC's cache, and are now in their place."""
        from dvc.stage.cache import RunCacheNotFoundError

        try:
            self._repo.stage_cache.restore(stage)
        except RunCacheNotFoundError:
            return False
        return True

    def _save(self, stage: Any) -> None:
        stage.save(run_cache=all(out.use_cache for out in stage.outs))
        stage.commit()
        stage.dump(update_pipeline=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """DVC's lock, waited for, also by a thread that holds it; its errors become ours."""
        with self._mutex, _errors():
            if not self._depth:
                self._repo.lock.lock()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._repo.lock.unlock()

    @contextmanager
    def _files_of(self, stage: Any) -> Iterator[None]:
        """Keep other DVC commands from what a running stage reads and writes."""
        from dvc.rwlock import rwlock

        read, written = ([str(file.fs_path) for file in ones] for ones in (stage.deps, stage.outs))
        command_line = " ".join(
            sys.argv
        )  # as DVC's own functions call us, which take the same locks while this one is held
        held = rwlock(self._repo.tmp_dir, self._repo.fs, command_line, read, written, False)
        with self._mutex, _errors():
            held.__enter__()
        try:
            yield
        finally:
            with self._mutex:
                held.__exit__(None, None, None)


@contextmanager
def opened(suite: str | None = None) -> Iterator[Project]:
    """The project of the current folder: all of it, or what leads to the report of one suite.

    Raises:
        ConfigurationError: a dvc.yaml cannot be used.
    """
    from dvc.repo import Repo

    logging.getLogger("dvc").setLevel(logging.ERROR)  # "updating lock file" after every stage, "is empty"
    own = [SUITES / suite / "dvc.yaml"] if suite else sorted(SUITES.glob("*/dvc.yaml"))
    with _errors(), _parameters_read_fast(), Repo(_wait_for_lock=True) as repo:
        yield Project(repo, [file for file in (*COMMON, *own) if file.is_file()])


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
