"""Suites that docs/SUITE/ holds ready: without committed results, they are this project's once a user runs them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from flows import entries
from flows.execution import say
from tasks import device
from tasks.config import params
from tasks.config.fields import NAME
from tasks.errors import ConfigurationError

PREPARED = Path("docs")


def require_known(suite: str, *, to_run: bool = False, elsewhere: bool = False) -> None:
    """Refuse a suite that this project does not have, before anything is done; a prepared one will do `to_run`.

    Args:
        suite: its name.
        to_run: whether it is to run, on the device that was asked for.
        elsewhere: whether on the devices of a cluster's workers.

    Raises:
        ConfigurationError: the parameters are wrong, there is no such suite, or, `to_run`, no such device.
    """
    suites = params.load().suites
    if to_run and not elsewhere:
        require_device()
    if suite not in suites and _is_prepared(suite):
        if not to_run:
            raise ConfigurationError(f"{PREPARED / suite}: no suite yet; `dprec run {suite}` copies it to suites/")
        return
    params.entry("suites", suite, suites)


def require_device() -> None:
    """Refuse a device that is not there before a run has come to the stage that would use it.

    Raises:
        ConfigurationError: see `tasks.device.parse`.
    """
    if device.VARIABLE in os.environ:
        device.parse(os.environ[device.VARIABLE])


def take_prepared(suite: str) -> None:
    """Copy a prepared suite to suites/, whole or not at all, unless it is there. Anyone who calls it holds the project.

    Raises:
        ConfigurationError: the project's parameters are wrong, or lack what it needs; nothing was copied.
    """
    if not _is_prepared(suite) or params.own_file(suite).is_file():
        return
    params.load()  # what is wrong with other suites is no fault of this one
    ready = PREPARED / suite
    try:
        entries.add(suite, {}, {file: (ready / file).read_text(encoding="utf-8") for file in params.OWN_FILES})
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; docs/scale.md says what {suite} needs") from error
    say(f"suites/{suite}", f"copied from {ready}")


def _is_prepared(suite: str) -> bool:
    return bool(re.fullmatch(NAME, suite)) and (PREPARED / suite / "params.yaml").is_file()
