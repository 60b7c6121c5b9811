"""Processes for stages with the large libraries loaded already: importing them costs most stages more than their work.

Python's fork server imports them once per run; every stage is a fork of it. What belongs to this project is not loaded
before the fork, so a stage runs the code as it then is, just as `python -m` does.
"""

from __future__ import annotations

import logging
import os
import runpy
import signal
import sys
import threading
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from flows.stopping import interrupts_blocked

LOADED = (
    "torch._dynamo",  # the first optimiser of a process asks for it
    "scipy.optimize",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.metrics",
    "sklearn.neural_network",
    "pyarrow.parquet",
    "great_expectations",
)
"""Without polars, which starts threads when it is imported: a fork would not have them."""
STARTED = b"\n"
"""What a fork writes first."""
LOST = 255
"""Exit code that Python gives a process whose fork server ended before it could report one."""

_context = get_context("forkserver")
_ready, _ended = threading.Event(), threading.Event()
is_ready, has_ended = _ready.is_set, _ended.is_set
"""Whether a stage would start at once; whether loading has ended, well or not."""


@cache
def prepare() -> None:
    """Start loading, once, in the background; `is_ready` says when that is done. It ends with this process."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as every stage has it; libraries read it when they are loaded
    _context.set_forkserver_preload(list(LOADED))
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    try:
        with interrupts_blocked():
            first = _context.Process()  # it does nothing
            first.start()
        first.join()
        if first.exitcode == 0:
            _ready.set()
    except (OSError, EOFError) as error:
        logging.getLogger(__name__).info("the fork server is gone, stages run without it: %r", error)
    finally:
        _ended.set()


class Fork:
    """`python -m MODULE ARGUMENTS` in a fork, as `subprocess.Popen` with a session of its own would run it."""

    def __init__(self, module: str, arguments: list[str], environment: dict[str, str]) -> None:
        reader, writer = _context.Pipe(duplex=False)
        self._process: BaseProcess = _context.Process(target=_run, args=(module, arguments, environment, writer))
        self._process.start()
        writer.close()
        self.pid, self.returncode = self._process.pid or 0, 0
        self.stdout = os.fdopen(os.dup(reader.fileno()), "rb")
        reader.close()
        os.read(self.stdout.fileno(), len(STARTED))  # from here on it has a session of its own

    def wait(self) -> int:
        """Its exit code; where a signal ended it, the negative of that."""
        self._process.join()
        code = self._process.exitcode or 0
        self.returncode = -signal.SIGKILL if code == LOST else code  # no fork server: the stage is gone, or unwatched
        return self.returncode


def _run(module: str, arguments: list[str], environment: dict[str, str], output: Connection) -> None:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    os.write(1, STARTED)
    output.close()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, os.getcwd())
    sys.argv = ["-m", *arguments]  # as `python -m` has it while packages are loaded
    import_module("tasks.stages")  # which then ends it with the run; the fork server ends with the last of its forks
    runpy.run_module(module, run_name="__main__", alter_sys=True)
