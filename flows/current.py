"""What every plan starts from: dvc.yaml and code.json that agree with the parameters and the code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flows.execution import Processes, say
from flows.project import Project, open_project
from tasks.config import params, references
from tasks.stages import dvc_files

CODE = "code"
"""The stage that checks all parameters and fingerprints the code of all other stages."""


@contextmanager
def current_project(suite: str | None = None, *, patient: bool = True) -> Iterator[Project]:
    """The project, all of it or what leads to a suite's report, with every dvc.yaml and code.json up to date.

    Args:
        suite, patient: as of `flows.project.open_project`.

    Raises:
        Busy: another process holds something that is needed, and nothing is to be waited for.
        ConfigurationError: the parameters are wrong, or a dvc.yaml cannot be used.
        StageFailed: the stage `code` failed.
    """
    loaded = params.load()
    references.check_references(loaded)
    for path in dvc_files.write(loaded):
        say(path.as_posix(), "written anew from the parameters")
    with open_project(suite, patient=patient) as project:
        if CODE not in project.stages:  # a pipeline of somebody's own
            references.check_configs(loaded)
        elif project.reproduce(CODE, lambda command: Processes().run(command, print)):
            say(CODE, "code.json is up to date")
        yield project
