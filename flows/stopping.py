"""How a command that is asked to stop ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """Any signal that asks this process to stop ends what it does with `message` and exit code 130.

    Also when it was started in the background, where shells switch Ctrl-C off: a stop must reach the stages. Libraries
    may wrap the interruption in an error of their own; the stop is what the user must hear of.
    """
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        signal.default_int_handler(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last: a closed terminal
        signal.signal(number, stop)
    try:
        yield
    except BaseException:
        if not stopped:
            raise
        print(message, file=sys.stderr)
        raise typer.Exit(130) from None
