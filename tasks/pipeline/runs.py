"""Units of work: the pieces of a stage's work that stand alone, such as one setting with one seed.

A unit has a folder under data/checkpoints/, named by everything that decides its results. Any process may work on it,
and several may work on the units of one stage: each unit is taken by one of them at a time. Its results appear whole,
with a manifest, and are believed only while they agree with it; so are the states that an unfinished unit keeps. The
stage puts the finished units together.

    python -m tasks.stages.STAGE NAME                 what DVC runs: every unit, then the outputs
    python -m tasks.stages.STAGE NAME --unit LABEL    this unit alone, and no outputs; --key KEY: if its folder has
                                                      this name here, too
    python -m tasks.stages.STAGE NAME --force [TIME]  units that were finished before are worked on again, too
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from tasks.core import contracts
from tasks.core.disk import rename
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline.common import PROCESSED, atomic_write, file_digest, read_json, remove, text_digest, write_json
from tasks.pipeline.provenance import COST, cost_added, of_unit
from tasks.pipeline.screen import Screen

LOCK = "lock"
"""In a unit's folder: held while it is worked on."""
MANIFEST = "manifest.json"
SECONDS = "seconds.json"
"""Of a finished unit, what its epochs took: for the provenance, never for an output."""
ASIDE = ".set-aside-"
"""In the name of what lay where a unit keeps its own."""
LAST, BEFORE = "last", "before"
"""The two states that an unfinished unit keeps."""
_METRICS = {"setting": pl.String, "seed": pl.Int64, "metric": pl.String, "k": pl.Int32, "value": pl.Float64}
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Unit:
    """A piece of work that stands alone."""

    label: str
    """What it is called on the screen and by `--unit`, e.g. `base-seed-0`; no two units of a stage share it."""
    folder: Path

    @property
    def done(self) -> Path:
        """Its results, once it is finished."""
        return self.folder / "done"

    @property
    def written(self) -> float:
        """When it was finished, in seconds since 1970; 0 if it is not."""
        try:
            return (self.done / MANIFEST).stat().st_mtime
        except OSError:
            return 0.0

    @property
    def progress(self) -> Path:
        """What it keeps until then."""
        return self.folder / "progress"


@dataclass(frozen=True)
class SeedUnit(Unit):
    """One setting with one seed, or a part of what is done at these."""

    setting: str
    seed: int
    part: str = ""
    """A network, where each has a unit."""
    inputs: Any = None
    """What the stage has read of it."""

    @property
    def key(self) -> dict[str, object]:
        """In records of all units, those of this one."""
        return {"setting": self.setting, "seed": self.seed} | ({"network": self.part} if self.part else {})


_Unit = TypeVar("_Unit", bound=Unit)


@dataclass(frozen=True)
class Work(Generic[_Unit]):
    """What a stage does for one name."""

    title: str
    """What the screen calls it."""
    units: Sequence[_Unit]
    run: Callable[[_Unit, Path, Screen], None]
    """Works on a unit and writes its results into an empty folder."""
    assemble: Callable[[], None]
    """Puts the results of all units together as the stage's outputs."""
    kept: Path | None = None
    """The folder that holds the folders of these units and of former ones, which are cleared away."""

    @property
    def lock(self) -> Path:
        """Held while results are put together, and while those of a unit are replaced."""
        return self.units[0].folder.parent.with_name(f".{text_digest(self.title)[:16]}.lock")


def folder_of(parent: Path, label: str, *decides: object) -> Path:
    """Where a unit lies; decides: everything that its results depend on, as JSON values."""
    return parent / f"{label}-{text_digest(json.dumps(decides, sort_keys=True))[:16]}"


def read_records(units: Iterable[SeedUnit], file: str) -> list[dict[str, object]]:
    """The records that all units kept in a file of this name, each with its unit's setting and seed."""
    return [unit.key | record for unit in units for record in read_json(unit.done / file)]


def write_results(folder: Path, **results: object) -> None:
    """Write what a unit came to: name -> what a file of JSON has."""
    for name, value in results.items():
        write_json(folder / f"{name}.json", value)


def by_setting(units: Iterable[SeedUnit], file: str) -> dict[str, dict[str, object]]:
    """Setting -> seed -> what the unit kept in a file of this name."""
    kept: dict[str, dict[str, object]] = {}
    for unit in units:
        kept.setdefault(unit.setting, {})[str(unit.seed)] = read_json(unit.done / file)
    return kept


def write_metrics(
    records: list[dict[str, object]], target: Path, suite: str, experiment: str, data: str, model: str
) -> None:
    """Write metrics.parquet (METRICS) of records of setting, seed, metric, k and value; there may be none."""
    about = {"suite": suite, "experiment": experiment, "dataset": data, "model": model}
    table = pl.DataFrame(records, _METRICS).with_columns(**{name: pl.lit(value) for name, value in about.items()})
    contracts.write(table, target / "metrics.parquet", contracts.METRICS)


def write_inputs(target: Path, data: str, checks: list[dict[str, object]], **counts: object) -> None:
    """Write inputs.json: the checks that were passed, whether the data are synthetic, and what was counted."""
    synthetic = contracts.read_schema(PROCESSED / data / "schema.json").synthetic
    write_json(target / "inputs.json", {"checks": checks, "synthetic": synthetic} | counts)


def perform(
    work: Work[_Unit],
    unit: str | None = None,
    force: bool | float = False,
    record: Callable[[dict[str, object]], None] | None = None,
    key: str | None = None,
) -> dict[str, object]:
    """Finish the units that are not, and assemble the stage's outputs.

    Args:
        unit: work on this one alone, and assemble nothing.
        force: work on units, too, that were finished before; a time (seconds since 1970): before that.
        record: keeps what is returned while no other process replaces the outputs.
        key: the name that the unit's folder must have, which holds its configuration, its inputs and its code.

    Returns:
        For the stage's provenance: what the epochs of every unit took, in seconds, and the cost of every unit.

    Raises:
        ConfigurationError: there is no such unit, or it has another key here.
    """
    chosen = [candidate for candidate in work.units if unit in (None, candidate.label)]
    if not chosen:
        labels = ", ".join(candidate.label for candidate in work.units)
        raise ConfigurationError(f"{work.title}: has no unit {unit!r}; its units: {labels}")
    if key not in (None, here := chosen[0].folder.name):
        raise ConfigurationError(
            f"{socket.gethostname()} has other code, packages or inputs: the unit {key} is {here} here; "
            "bring its clone to the same revision and its environment to that requirements.lock"
        )
    since = time.time() if force is True else float(force)
    while True:
        with Screen(work.title, len(chosen)) as screen:
            for patient in (False, True):  # what another process works on is waited for once nothing else is left
                chosen = [left for left in chosen if not _finish(left, work, screen, since, patient=patient)]
        if unit is not None:
            return {}
        with FileLock(work.lock):
            chosen = [left for left in work.units if not is_finished(left, moves=False)]
            if chosen:  # results were damaged, or set aside by another process, since this one looked at them
                continue
            work.assemble()
            _clear(work)
            seconds = {candidate.label: _seconds(candidate) for candidate in work.units}
            timings: dict[str, object] = {"epoch_seconds": {label: each for label, each in seconds.items() if each}}
            timings["units"] = {candidate.label: of_unit(candidate.folder)._asdict() for candidate in work.units}
            if record is not None:
                record(timings)
            return timings


def _clear(work: Work[_Unit]) -> None:
    """Remove the folders of former units, but for those that another process works on, with other parameters."""
    current = {candidate.folder.name for candidate in work.units}
    for folder in work.kept.iterdir() if work.kept is not None else ():
        if folder.name.partition(ASIDE)[0] in current:
            continue
        try:
            with FileLock(folder / LOCK, timeout=0) if folder.is_dir() else nullcontext():
                remove(folder)
        except (Timeout, IsADirectoryError):
            continue


def _ready(unit: Unit) -> None:
    """Make the unit's folder; what lies in its place, or in that of its lock, is set aside."""
    for path, there in ((unit.folder, Path.is_dir), (unit.folder / LOCK, Path.is_file)):
        if os.path.lexists(path) and (path.is_symlink() or not there(path)):
            aside = path.with_name(f"{path.name}{ASIDE}{time.time_ns()}")
            print(f"{path}: not what is kept there; set aside as {aside.name}", file=sys.stderr, flush=True)
            rename(path, aside, durable=False)
    unit.folder.mkdir(parents=True, exist_ok=True)


def _finish(unit: _Unit, work: Work[_Unit], screen: Screen, since: float, *, patient: bool) -> bool:
    """Whether the unit is finished; False: another process works on it.

    since: results from before that time (seconds since 1970) are not believed. Several processes that are forced to
    work on all units share them, too.
    """
    _ready(unit)
    try:
        with ExitStack() as locks:
            locks.enter_context(FileLock(unit.folder / LOCK, timeout=-1 if patient else 0))
            forced = unit.written < since
            screen.next()
            if not forced and is_finished(unit):
                return True
            if forced:
                remove(unit.progress)
                remove(unit.folder / COST)
            with cost_added(unit.folder), atomic_write(unit.done) as target:
                target.mkdir()
                work.run(unit, target, screen)
                seal(target, unit.folder.name)
                locks.enter_context(FileLock(work.lock))
            remove(unit.progress)
            return True
    except Timeout:
        return False


def is_finished(unit: Unit, *, moves: bool = True) -> bool:
    """Whether a unit's results are there and agree with their manifest; `moves`: those that do not are set aside."""
    if not os.path.lexists(unit.done):
        return False
    try:
        verify(unit.done, unit.folder.name)
    except (DataError, FileNotFoundError) as error:
        if moves:
            aside = unit.folder / f"set-aside-{time.time_ns()}"
            rename(unit.done, aside, durable=False)
            print(f"{error}; set aside as {aside.name}, the unit is worked on again", file=sys.stderr, flush=True)
        return False
    return True


def seal(folder: Path, owner: str) -> None:
    """Write the manifest of a folder, last: whose it is, all that is in it, and the SHA-256 of every file."""
    write_json(folder / MANIFEST, {"unit": owner, "files": _files(folder)})


def verify(folder: Path, owner: str) -> None:
    """Check a folder against its manifest.

    Raises:
        DataError: it has none, it is another unit's, or anything in it is missing, changed, or not in the manifest.
    """
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder}: {'has no manifest' if folder.is_dir() else 'is no folder'}")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("unit") != owner:
        raise DataError(f"{folder}: its manifest is another unit's")
    expected, files = manifest.get("files"), _files(folder)
    if not isinstance(expected, dict):
        raise DataError(f"{folder}: its manifest lists no files")
    if expected != files:
        differ = (name for name in sorted({*files, *expected}) if expected.get(name) != files.get(name))
        raise DataError(f"{folder / next(differ, MANIFEST)}: not the file that was written")


def _files(folder: Path) -> dict[str, str]:
    """Everything below a folder, apart from its own manifest, with what it is."""
    paths = sorted(path for path in folder.rglob("*") if path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): _kind(path) for path in paths}


def _kind(path: Path) -> str:
    """The SHA-256 of a file, or what else lies there."""
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "folder"
    return file_digest(path) if path.is_file() else "other"


class Progress:
    """The states of an unfinished unit: the last and the one before, so that one may be damaged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def write(self) -> Iterator[Path]:
        """Yield a folder for a new state, which then is the last."""
        self._folder.mkdir(parents=True, exist_ok=True)
        last, before = self._folder / LAST, self._folder / BEFORE
        with atomic_write(self._folder / "new", durable=False) as target:
            target.mkdir()
            yield target
            seal(target, self._owner)
        if last.is_dir():
            remove(before)
            rename(last, before, durable=False)
        rename(self._folder / "new", last, durable=False)

    def restore(self, read: Callable[[Path], _Read]) -> _Read | None:
        """What `read` makes of the last state that can be used; None if there is none.

        One that is damaged, or that `read` has no use for, is discarded, and said so.
        """
        if os.path.lexists(self._folder) and not self._folder.is_dir():
            _discard(self._folder, NotADirectoryError.__name__)
        for name in (LAST, BEFORE):
            state = self._folder / name
            if not os.path.lexists(state):
                continue
            try:
                verify(state, self._owner)
                return read(state)
            except (DataError, OSError, SafetensorError, ArithmeticError, LookupError, RuntimeError, *_MISFIT) as error:
                _discard(state, " ".join(str(error).split()) or type(error).__name__)
        return None

    @property
    def _owner(self) -> str:
        return "/".join(self._folder.parts[-3:])


_MISFIT = (AssertionError, AttributeError, TypeError, ValueError)
"""What a model says of a state that is not its own."""


def _discard(state: Path, reason: str) -> None:
    print(f"{state}: discarded ({reason}); going on without it", file=sys.stderr, flush=True)
    remove(state)


def _seconds(unit: Unit) -> list[float]:
    path = unit.done / SECONDS
    return list(read_json(path)) if path.is_file() else []
