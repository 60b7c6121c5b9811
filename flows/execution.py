"""Running the command of a stage: its output line by line, its failure as one line, stopping it; who holds what."""

from __future__ import annotations

import io
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil

from flows import warm
from flows.server import CREDENTIAL
from tasks.core.errors import DprecError
from tasks.pipeline.common import DATA
from tasks.pipeline.parent import RUN, end_with

LOCK = DATA / ".lock"
REFRESH_SECONDS = 5.0  # between two states of one progress bar
GRACE_SECONDS = 20.0  # for an interrupted stage to put its files in order


class StageFailed(DprecError):
    """Raised when a stage did not end well; the message is the stage's own last word."""


class Killed(StageFailed):
    """Raised when a signal ended a stage."""


class Busy(DprecError):
    """Raised when another process holds what is needed; the message names it."""


@dataclass
class Processes:
    """The stages that are running, each in a process group of its own, so that all of them can be stopped."""

    _running: dict[subprocess.Popen[bytes] | warm.Fork, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(
        self,
        command: str,
        on_line: Callable[[str], None],
        on_share: Callable[[float], None] = lambda _: None,
        *,
        stage: str = "",
        force: bool = False,
    ) -> None:
        """Run a stage's command line, without a shell, giving each line of its output to `on_line`.

        Args:
            on_share: called with the share of its work that is done, before the line that says so.
            stage: that it is part of, for `end`.
            force: whether it works on finished units again.

        Raises:
            Killed: a signal ended it.
            StageFailed: it failed, or `stop` was called.
        """
        with self._lock:
            if self._stopped:
                raise StageFailed("not started: the run was stopped")
            process = _start(shlex.split(command), environment(force=force))
            self._running[process] = stage
        try:
            assert process.stdout is not None
            last = ""
            for line in filter(str.strip, _lines(process.stdout)):
                last, share = progress(line)
                if share is not None:
                    on_share(share)
                on_line(last)
            if process.wait() != 0:
                raise (Killed if process.returncode < 0 else StageFailed)(reason(last, process.returncode))
        except StageFailed:
            raise
        except BaseException:  # its lines have no reader any more
            _signal(process, signal.SIGKILL)
            process.wait()
            raise
        finally:
            with self._lock:
                del self._running[process]

    def end(self, stage: str) -> None:
        """Interrupt what runs as part of one stage."""
        with self._lock:
            running = [process for process, owner in self._running.items() if owner == stage]
        for process in running:
            _signal(process, signal.SIGINT)

    def stop(self) -> None:
        """End all running stages and start no others: Ctrl-C first, and after a while the hard way.

        Interrupted itself (Ctrl-C a second time), it takes the hard way at once.
        """
        with self._lock:
            self._stopped = True
            running = list(self._running)
        try:
            for number, patience in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGTERM, 3.0)):
                running = [process for process in running if _signal(process, number)]
                deadline = time.monotonic() + patience
                while running and time.monotonic() < deadline:
                    time.sleep(0.05)
                    running = [process for process in running if _signal(process, 0)]
        finally:
            for process in running:
                _signal(process, signal.SIGKILL)


def _start(command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes] | warm.Fork:
    """In a session of its own, without input, ending with this process; all that it says is in `stdout`."""
    match command:
        case ["python", "-m", str(module), *arguments] if warm.is_ready():
            return warm.Fork(module, arguments, env)
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        start_new_session=True,
        preexec_fn=partial(end_with, os.getpid()),
    )


def environment(*, force: bool = False) -> dict[str, str]:
    """The environment of a stage: this interpreter's programs come first, output is not held back.

    It names this process, with which the stage ends.
    """
    programs, path = str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)
    variables = {"PATH": f"{programs}{os.pathsep}{path}", "PYTHONUNBUFFERED": "1", RUN: str(os.getpid())}
    if force:
        variables["DPREC_FORCE"] = "1"
    inherited = {key: value for key, value in os.environ.items() if key != CREDENTIAL}  # a stage records nothing
    return inherited | variables


@contextmanager
def hold_project(what: str, *, wait: bool = False) -> Iterator[None]:
    """Hold the project for one run; a second one is refused, or waits. The same process may enter again.

    Raises:
        Busy: another run holds the project (and `wait` is false).
    """
    from filelock import FileLock, Timeout

    LOCK.parent.mkdir(exist_ok=True)
    owner = LOCK.with_name(f"{LOCK.name}.txt")  # what holds it, in words
    lock = FileLock(LOCK.resolve(), is_singleton=True, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        whose = owner.read_text("utf-8", "replace") if owner.is_file() else ""
        message = f"another run holds this project ({whose or 'just started'})"
        if not wait:
            raise Busy(f"{message}; wait for it with --wait") from None
        print(f"{message}; waiting for it to end", flush=True)
        lock.acquire()
    try:
        owner.write_text(f"{what}, process {os.getpid()}, since {time.strftime('%H:%M:%S')}", "utf-8")
        yield
    finally:
        lock.release()


def lives(owner: dict[str, Any], since: float) -> bool:
    """Whether the owner of a lock of DVC's still runs.

    Args:
        owner: its `pid` and `cmd`, the command line of which DVC notes the program's file.
        since: when the file of locks was last written, after the owner's start (seconds since 1970).
    """
    try:
        process = psutil.Process(owner["pid"])
        program = Path(owner["cmd"].partition(" ")[0])
        name = program.parent.name if program.stem == "__main__" else program.stem
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and process.create_time() <= since + 2.0  # clocks of files and of processes differ
            and (process.pid == os.getpid() or any(name in word for word in process.cmdline()))
        )
    except (psutil.NoSuchProcess, OverflowError):
        return False
    except psutil.AccessDenied:
        return True


def holder(lock: Path) -> str:
    """The process whose number the file of a lock holds."""
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(lock.read_text(encoding="utf-8")))
        return f"process {process.pid} ({' '.join(process.cmdline())})"
    return "another process"


def _signal(process: subprocess.Popen[bytes] | warm.Fork, number: int) -> bool:
    """Send a signal (0: none) to a stage's whole group, which may outlive DVC itself; whether there still is one."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Lines as they come; of the many states of a progress bar (which end in a carriage return) one now and then."""
    last_shown = -math.inf
    for line in io.TextIOWrapper(stream, "utf-8", "replace", newline=""):
        if line.endswith("\r"):
            if not line.strip() or time.monotonic() - last_shown < REFRESH_SECONDS:
                continue
            last_shown = time.monotonic()
        yield line.rstrip()


def progress(line: str) -> tuple[str, float | None]:
    """The text of a line and, where `tasks.pipeline.screen` printed it, what share of the stage's work is done."""
    try:
        record = json.loads(line)
        return record["text"], record["share"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return line, None


def reason(last: str, code: int) -> str:
    """The stage's own last line if it ended by itself; otherwise the signal that ended it."""
    if code == -signal.SIGKILL:
        return "killed by SIGKILL (out of memory?)"
    if code < 0:  # its last line is that of its work, such as a progress bar
        name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"  # a real-time one
        return f"killed by {name}; run it again, it goes on where it stopped"
    return last or f"ended with code {code}"


def say(stage: str, text: str) -> None:
    """One line of a run in the terminal, if that is still there."""
    with suppress(OSError):
        sys.stdout.write(f"{stage:<40} {text}\n")  # in one piece: stages speak at the same time
        sys.stdout.flush()
