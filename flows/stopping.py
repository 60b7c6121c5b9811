"""How a command that is asked to stop ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: a closed terminal
CODE = 130
"""Exit code of what was stopped, as shells have it."""


def at_once() -> None:
    """Until a command begins, a signal that asks to stop ends this process with a line: there is nothing to clear up.

    What is imported meanwhile may make anything of an exception.
    """

    def stop(_: int, __: FrameType | None) -> None:
        os.write(2, b"dprec: interrupted\n")
        os._exit(CODE)

    _handle(stop)


def as_usual() -> None:
    """Have `SIGNALS` do what they do in Python; what is ignored, as `nohup` has it, stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@contextmanager
def end_on_signal(message: str) -> Iterator[None]:
    """Any signal that asks this process to stop ends what it does with `message` and exit code 130.

    Also when it was started in the background, where shells switch Ctrl-C off: a stop must reach the stages. With
    `nohup` it survives its terminal. Libraries may wrap the interruption in an error of their own; the stop is what the
    user must hear of. Afterwards, such a signal is a KeyboardInterrupt.
    """
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        signal.default_int_handler(number, frame)

    _handle(stop)
    try:
        yield
    except BaseException:
        if not stopped:
            raise
        print(message, file=sys.stderr)
        raise SystemExit(CODE) from None


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Processes that are started meanwhile do not see Ctrl-C, which is for this one: it ends them itself."""
    resource_tracker.ensure_running()  # which would unblock it again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handle(stop: signal._HANDLER) -> None:
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
