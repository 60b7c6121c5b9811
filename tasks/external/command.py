"""Runs someone's own training again and again on splits of their data, so that it can be audited with shadow runs.

A run has a folder, named by its number, with what it was given and the lists that it wrote. `DONE` is written last,
with digests of all of it and of the command: a run that agrees with it is not repeated. What a run writes meanwhile
lies in a folder of another name that no one else uses, so whatever kills the audit costs the runs that had begun.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.core.disk import rename
from tasks.core.errors import ConfigurationError, DataError
from tasks.external import folders, reading
from tasks.external.reading import Names
from tasks.external.run import AuditRequest, OtherRun, check
from tasks.external.splits import CANARIES, HISTORIES, PUBLIC, TRAIN, Splits

LISTS, DONE, PLAN = "lists.csv", "done.json", "plan.json"
OF_RUN = "DPREC_AUDITED_RUN"
"""The environment's word for the run that a process belongs to: its folder."""
MOMENT = 0.01
"""Seconds between two looks at the processes of a run that is ended."""
LOOKS = 100
"""At most, until two in a row find none: any may begin another while it is ended."""
LAST_WORDS = 300
"""Characters of a failed run's last line that are quoted."""


@dataclass(frozen=True)
class Repeated:
    """A command that trains and writes lists, and how often it is run.

    command: split as a shell would, but no shell runs it. In its arguments {train}, {histories}, {out} and {seed} are
        replaced. What names a file here is made absolute: each run has a working folder of its own.
    time_limit: seconds of each run.
    canaries: how many are planted.
    control: a command that trains the same without its protection, on splits of its own.
    """

    command: str
    runs: int
    work: Path
    time_limit: float = 3600.0
    canaries: int = 50
    control: Repeated | None = None


def repeat(job: Repeated, request: AuditRequest, say: Callable[[str], None]) -> AuditRequest:
    """Run the command on every split; what is to be audited then.

    request: its `train` is split; `jobs` is how many runs go on at the same time.

    Raises:
        ConfigurationError: the command lacks {train} or {out}, the folder was made for other data, or an option that
            the audit takes afterwards is wrong.
        DataError: a run failed, was too slow, changed what it was given or wrote no valid lists, or what it is given
            cannot be written (one line).
    """
    target, *shadows = _runs(job)
    control = [] if job.control is None else _runs(job.control)
    request = replace(request, canaries=target.canaries, control=control)
    check(request)
    if request.users is not None:
        reading.attributes(request.users, request.names, request.attributes)
    arguments = _absolute(job.command)
    folders.make(job.work)
    with _locked(job.work):
        splits = Splits(request.train, request.names, job.canaries, _plan(job, request.train, request.names))
        _side_by_side(_Runner(job, arguments, request.names, say, splits), request.jobs)
    if job.control is not None:
        repeat(job.control, request, lambda line: say(f"control, {line}"))
    return replace(
        request,
        train=target.train,
        recommendations=target.lists,
        public=job.work / _name(0) / PUBLIC,
        shadows=shadows,
    )


def _runs(job: Repeated) -> list[OtherRun]:
    folders_of_runs = (job.work / _name(number) for number in range(job.runs))
    return [OtherRun(run / TRAIN, run / LISTS, run / CANARIES if job.canaries else None) for run in folders_of_runs]


@dataclass
class _Runner:
    job: Repeated
    arguments: list[str]
    names: Names
    say: Callable[[str], None]
    splits: Splits
    _stopped: bool = False
    _alive: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, number: int) -> None:
        """Do a run, unless it is done or a stop was asked for.

        Raises:
            DataError: see `repeat`.
        """
        folder, command = self.job.work / _name(number), _digest_of_command(self.job.command, self.arguments)
        if self._stopped or _is_done(folder, command):
            return
        for left in self.job.work.glob(f"{folder.name}.*"):
            shutil.rmtree(left, ignore_errors=True)
        begun = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=self.job.work))
        self.splits.write(begun, number)
        before = _digests(begun)
        (begun / "folder").mkdir()
        start = time.monotonic()
        self._call(begun, number)
        shutil.rmtree(begun / "folder")
        files = _digests(begun)
        if changed := [name for name in before if files.get(name) != before[name]]:
            what = f"the command changed {begun / changed[0]}; it may write to {{out}} and its folder alone"
            raise DataError(f"{folder.name}: {what}")
        try:
            reading.lists(begun / LISTS, "lists", self.names)
        except DataError as error:
            raise DataError(f"{folder.name}: {error}") from None
        (begun / HISTORIES).unlink()
        del files[HISTORIES]
        (begun / DONE).write_text(json.dumps({"command": command, "files": files}, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        rename(begun, folder)
        self.say(f"{folder.name} (of {self.job.runs}): {time.monotonic() - start:.0f} s")

    def stop(self) -> None:
        """Begin no more runs, and end those that go on."""
        with self._lock:
            self._stopped = True
            for begun, process in self._alive.items():
                _kill(process, begun)

    def _call(self, begun: Path, number: int) -> None:
        files = {"train": TRAIN, "histories": HISTORIES, "out": LISTS}
        values = {name: str((begun / file).absolute()) for name, file in files.items()} | {"seed": str(number)}
        arguments = [re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], name[0]), word) for word in self.arguments]
        outputs = begun / "stdout.txt", begun / "stderr.txt"
        with outputs[0].open("wb") as out, outputs[1].open("wb") as errors, self._lock:
            if self._stopped:
                raise DataError(f"{_name(number)}: not begun, for a stop was asked for")
            try:
                process = subprocess.Popen(
                    arguments,
                    cwd=begun / "folder",
                    env=os.environ | {OF_RUN: str(begun.absolute())},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigurationError(f"--command: {arguments[0]} cannot be started: {error.strerror}") from None
            self._alive[begun] = process
        try:
            code = process.wait(self.job.time_limit)
            why = f"exit code {code}" if code > 0 else f"ended by signal {-code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"not done after {self.job.time_limit:g} s (--time-limit)"
        with self._lock:
            del self._alive[begun]
            _kill(process, begun)  # what it has left in the background, too
            process.wait()
        if why:
            words = _last_line(outputs[1]) or _last_line(outputs[0]) or "it wrote nothing"
            raise DataError(f"{_name(number)}: {why}: {words} ({outputs[0]}, {outputs[1]})")


def _kill(process: subprocess.Popen[bytes], begun: Path) -> None:
    """End a run with all its processes; on Linux also those in other sessions.

    One escapes that hides whose it is, or goes on under another number sooner than all can be listed.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    mark, absent = f"\0{OF_RUN}={begun.absolute()}\0".encode(), 0
    for _ in range(LOOKS):
        absent = 0 if _kill_marked(mark) else absent + 1
        if absent == 2:  # one that is being started has no environment for a moment
            return
        time.sleep(MOMENT)


def _kill_marked(mark: bytes) -> int:
    """End the processes that are there with these bytes in their environment; how many there were."""
    ended = 0
    for other in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone by now, or another user's
            if mark in b"\0" + other.read_bytes():
                os.kill(int(other.parent.name), signal.SIGKILL)
                ended += 1
    return ended


def _side_by_side(runner: _Runner, jobs: int) -> None:
    """All runs; after one fails those that go on are waited for, and no more are begun."""
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(runner.run, number) for number in range(runner.job.runs)]
        try:
            wait(runs, return_when=FIRST_EXCEPTION)
        except BaseException:
            runner.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    for number, run in enumerate(runs):
        if not run.cancelled():
            try:
                run.result()
            except OSError as error:  # that of a full disk names no file
                where = error.filename or runner.job.work
                raise DataError(f"{_name(number)}: {where}: {error.strerror}") from error


def _absolute(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"--command: {error}") from None
    for name in ("{train}", "{out}"):
        if not any(name in argument for argument in arguments):
            raise ConfigurationError(f"--command must have {name}; `dprec audit --help` says what it stands for")
    return [os.path.abspath(argument) if os.path.isfile(argument) else argument for argument in arguments]


def _plan(job: Repeated, train: Path, names: Names) -> int:
    """The seed of all coins of this folder, drawn from the operating system when it is new."""
    made_for = {"train": _digest(train), "canaries": job.canaries, "columns": dict(names.columns)}
    path = job.work / PLAN
    if not path.is_file():
        with folders.secret(path.with_suffix(".new")) as file:
            json.dump({"seed": secrets.randbits(128)} | made_for, file)
        rename(path.with_suffix(".new"), path)
    plan = json.loads(path.read_text())
    seed: int = plan.pop("seed")
    if plan != made_for:
        raise ConfigurationError(
            f"{job.work} has runs on other data, columns or canaries; choose another --work, or remove it"
        )
    return seed


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    with os.fdopen(os.open(work / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no child has it, as it would that of flock
        except OSError:
            raise ConfigurationError(f"another audit works in {work}; wait for it, or choose another --work") from None
        yield


def _is_done(folder: Path, command: str) -> bool:
    """Whether a run is finished by this command and all its files are as they were."""
    try:
        return bool(json.loads((folder / DONE).read_text()) == {"command": command, "files": _digests(folder)})
    except (OSError, ValueError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: _digest(path) for path in folder.iterdir() if path.is_file() and path.name != DONE}


def _digest_of_command(command: str, arguments: list[str]) -> str:
    """Of its words and of the files that it names, also in `sh -c "python a.py"` and `--config=b.yaml`."""
    words = [*arguments, *(word for argument in arguments for word in re.split(r"[\s\"'=:,;]+", argument))]
    paths = dict.fromkeys(path for word in dict.fromkeys(words) for path in _named(word))
    return hashlib.sha256(json.dumps([command, [_digest(path) for path in paths]]).encode()).hexdigest()


def _named(word: str) -> list[Path]:
    """The file that a word names, or the program of a folder; of Python also the modules and packages next to it."""
    path = Path(word)
    if not os.path.isfile(word):  # names may be too long
        path /= "__main__.py"
        if not os.path.isfile(path):
            return []
    if path.suffix != ".py":
        return [path]
    packages = (package.parent.rglob("*.py") for package in path.parent.glob("*/__init__.py"))
    return [path, *sorted({*path.parent.glob("*.py"), *(module for package in packages for module in package)})]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None


def _last_line(path: Path) -> str:
    if not path.is_file():  # the command may have removed it
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 10_000))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip()[-LAST_WORDS:] for line in reversed(lines) if line.strip()), "")


def _name(number: int) -> str:
    return f"run-{number:03d}"
