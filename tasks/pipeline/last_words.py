"""What a stage that failed says: in one line."""

from __future__ import annotations

import errno

from tasks.core.errors import ByHandError, DamagedError, DprecError

DECIDES_NOTHING = True
DAMAGED = ": `dprec scrub` removes what is damaged, and `dprec run SUITE` has it computed again"
"""What follows the message of a `DamagedError`."""


def one_line(error: BaseException) -> str:
    """An error as it is shown: on one line, but for data to be fetched by hand, which takes three."""
    if isinstance(error, ByHandError):
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        place = error.filename2 or error.filename or "an output"  # of a copy, both are named
        return f"no space left on the disk while writing {place}; free some and run it again"
    line = " ".join(str(error).split())
    if not isinstance(error, DprecError | OSError):
        return f"{type(error).__name__}: {line} (--debug shows where)"
    return line + DAMAGED if _is_damage(error) else line


def _is_damage(error: BaseException | None) -> bool:
    """Whether this error, or its cause, is about a damaged output."""
    return error is not None and (isinstance(error, DamagedError) or _is_damage(error.__cause__))
