"""Where torch computes: on the CPU, or on a CUDA device, as the variable DPREC_DEVICE says.

A device decides how sums are rounded and how long they take. It is no part of a configuration, of a unit's key or of a
mechanism: initial weights, batches and noise are drawn on the CPU from the same generators and moved, so every device
is given the same draws, and what is kept is kept as CPU tensors, so a run may be resumed on another device. Committed
results are the CPU's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from tasks.core.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

DECIDES_NOTHING = True
VARIABLE = "DPREC_DEVICE"
_held: ContextVar[torch.device | None] = ContextVar("device", default=None)
_chosen: list[torch.device] = []


def chosen() -> torch.device:
    """The device of models and attacks: that of `hold`, else of DPREC_DEVICE, else the CPU.

    Raises:
        ConfigurationError: see `parse`.
    """
    device = _held.get() or parse(os.environ.get(VARIABLE, "cpu"))
    _chosen[:] = [device]
    return device


@contextmanager
def hold(device: torch.device) -> Iterator[None]:
    """While the block runs, `chosen` gives this device, whatever the variable says."""
    token = _held.set(device)
    try:
        yield
    finally:
        _held.reset(token)


@cache
def parse(text: str) -> torch.device:
    """The device of `cpu`, `cuda`, `cuda:N`, or `auto`: CUDA where there is one, else the CPU.

    Raises:
        ConfigurationError: it is none of these, or names a CUDA device that is not there.
    """
    import torch

    matched = re.fullmatch(r"auto|cpu|cuda(?::(0|[1-9]\d*))?", text)
    if matched is None:
        raise ConfigurationError(f"{VARIABLE}: {text!r} is none of auto, cpu, cuda and cuda:N; leave it out for cpu")
    there, number = 0 if text == "cpu" else torch.cuda.device_count(), int(matched[1] or 0)
    if text == "cpu" or (text == "auto" and not there):
        return torch.device("cpu")
    if number >= there:
        what = f"has {there} CUDA devices, from cuda:0" if there else "has no CUDA device that torch can use"
        raise ConfigurationError(f"{VARIABLE}: {text} was asked for, and this machine {what}; say auto or cpu")
    return torch.device("cuda", number)


def accelerator(*, asked: bool) -> str:
    """What this process chose last, such as `cuda:0 (NVIDIA H100)`; empty for the CPU.

    Args:
        asked: whether also to say what it would choose, if it has not chosen yet.
    """
    device = _chosen[0] if _chosen else chosen() if asked else None
    if device is None or device.type != "cuda":
        return ""
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})"
