"""How much of its noise a private draw has: all of it, but in the positive control of an audit.

An audit that refutes nothing says something only if it refutes the same system with less noise (docs/methods.md §9).
Audits and the door for private draws alone import this module: a contract in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

share: ContextVar[float] = ContextVar("share", default=1.0)
"""What noise is multiplied by, and what budgets of coins are divided by."""


@contextmanager
def scaled(factor: float) -> Iterator[None]:
    """Leave only this share of the noise of whatever the calling thread draws privately meanwhile; 0: none."""
    if not 0 <= factor <= 1:
        raise ValueError(f"the share of noise that a control leaves must be in [0, 1] (is {factor})")
    token = share.set(factor)
    try:
        yield
    finally:
        share.reset(token)
