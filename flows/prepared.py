"""Suites that docs/SUITE/ holds ready: without committed results, they are this project's once somebody runs them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from flows.execution import hold_project, say
from tasks.config import params, references
from tasks.config.fields import NAME
from tasks.errors import ConfigurationError
from tasks.stages.common import atomic_write, remove

PREPARED = Path("docs")


def take_prepared(suite: str, *, wait: bool) -> None:
    """Copy a prepared suite to suites/; do nothing where it is there, or none is prepared under this name.

    Args:
        wait: whether to wait for a run that holds the project.

    Raises:
        ConfigurationError: the project's parameters lack what the suite needs; nothing was copied.
    """
    ready, place = PREPARED / suite, params.SUITES / suite
    if not re.fullmatch(NAME, suite) or place.exists() or not (ready / "params.yaml").is_file():
        return
    with hold_project(f"suite {suite}", wait=wait):
        with atomic_write(place) as copy:
            shutil.copytree(ready, copy)
        try:
            references.check_references(params.load())
        except BaseException as error:
            remove(place)
            if isinstance(error, ConfigurationError):
                raise ConfigurationError(f"{error}; docs/scale.md says what {suite} needs") from error
            raise
        say(f"suites/{suite}", f"copied from {ready}")
