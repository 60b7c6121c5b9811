"""Suites without committed results, which are this project's once a user runs them.

They are in docs/SUITE/, or what a suite of a replica, SUITE-twin, is on the data that the replica stands for.
"""

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
    if suite not in suites and (folder := _prepared(suite)):
        if not to_run:
            raise ConfigurationError(f"{folder}: no suite yet; `dprec run {suite}` makes one of it in suites/")
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
    folder = _prepared(suite)
    if folder is None or params.own_file(suite).is_file():
        return
    params.load()  # what is wrong with other suites is no fault of this one
    texts = {file: _real((folder / file).read_text(encoding="utf-8"), suite) for file in params.OWN_FILES}
    try:
        entries.add(suite, {}, texts)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; docs/data.md says what {suite} needs") from error
    say(f"suites/{suite}", f"made from {folder}")


def _prepared(suite: str) -> Path | None:
    """The folder that a suite can be made of."""
    if not re.fullmatch(NAME, suite):
        return None
    folders = PREPARED / suite, params.own_file(f"{suite}-twin").parent
    return next((folder for folder in folders if (folder / "params.yaml").is_file()), None)


def _real(text: str, suite: str) -> str:
    """A file of the replica's suite on the data that it stands for; what is said of the replica is left out."""
    if f"{suite}-twin" not in text:
        return text
    text = text.replace(f"{suite}-twin", suite).replace("on a replica of", "on")
    return re.sub(r"^about:.*?\n(?=\w)", 'about: {part: "", limits: ""}\n\n', text, flags=re.MULTILINE | re.DOTALL)
