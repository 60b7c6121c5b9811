"""Loops over arrays that are compiled when they are first called, for the types that they are called with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

_Loop = TypeVar("_Loop", bound=Callable[..., Any])


def compiled(loop: _Loop) -> _Loop:
    """`loop` in machine code. Sums may be taken in another order; numbers that are not finite stay as they are."""

    @cache
    def machine_code() -> Callable[..., object]:
        import numba  # a second, which only those who call a loop wait for

        return numba.njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(loop)

    @wraps(loop)
    def call(*arguments: Any) -> Any:
        return machine_code()(*arguments)

    return call  # type: ignore[return-value]
