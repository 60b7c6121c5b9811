"""One runner of all stages with units (`tasks.stages.runs`): a stage is a class derived from `Job`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch

from tasks.config.params import Params, load
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.common import CHECKPOINTS
from tasks.stages.screen import Screen

_Unit = TypeVar("_Unit", bound=runs.Unit)


class Job(Generic[_Unit]):
    """What a stage does for one name."""

    stage: ClassVar[str]
    shares: ClassVar[bool] = False
    """Whether units of other names are kept in the same folder, from which nothing is then cleared away."""

    def __init__(self, name: str, params: Params) -> None:
        self.name, self.params = name, params
        self.title, self.kept = f"{self.stage} {name}", CHECKPOINTS / self.stage / name

    @classmethod
    def work(cls, name: str) -> runs.Work[_Unit]:
        """What the stage does for `name`."""
        torch.set_num_threads(1)
        job = cls(name, load())
        checks, units = job.checks(), list(job.plan())
        kept = None if cls.shares else job.kept
        return runs.Work(job.title, units, job.run, lambda: job.assemble(units, checks), kept)

    @classmethod
    def main(cls, name: str, *options: Any, **named: Any) -> dict[str, Any]:
        """Perform the work for `name`, with the options of `runs.perform`."""
        return runs.perform(cls.work(name), *options, **named)

    @abstractmethod
    def checks(self) -> list[dict[str, Any]]:
        """The checks of all that is read, which must have passed."""

    @abstractmethod
    def plan(self) -> Iterable[_Unit]:
        """Every unit, in a folder that `runs.folder_of` names by all that decides its results."""

    @abstractmethod
    def run(self, unit: _Unit, path: Path, screen: Screen) -> None:
        """Work on a unit and write its results into an empty folder."""

    @abstractmethod
    def assemble(self, units: list[_Unit], checks: list[dict[str, Any]]) -> None:
        """Put the results of all units together as the stage's outputs."""

    @cached_property
    def code(self) -> str:
        """The fingerprint of the stage's code."""
        return fingerprint(self.stage, self.name, self.params)
