"""One runner of all stages that attack: a kind of attack is a module with a class derived from `Attack`.

It attacks what one experiment released, or systems of a suite, in units (`tasks.stages.runs`). A unit is named by
everything that decides what is found, so a rerun resumes where it stopped; what all units found is then put together.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from pydantic import BaseModel

from tasks.config import attacks
from tasks.config.params import Params, attack_of, entry, load
from tasks.errors import DataError
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, read_json, require_passed, write_json
from tasks.stages.screen import Screen

RESULT = "result.json"
_Options = TypeVar("_Options", bound=BaseModel)
_Kind = TypeVar("_Kind", bound=attacks.Attack)
_Target = TypeVar("_Target")


@dataclass(frozen=True)
class Unit(runs.Unit, Generic[_Target]):
    """What is attacked at a time."""

    title: str
    """What the screen calls it."""
    target: _Target
    steps: int = 1

    def result(self) -> Any:
        """What `Attack.attack` returned, once the unit is finished."""
        return read_json(self.done / RESULT)


class Attack(Generic[_Options, _Target]):
    """A kind of attack, on one name."""

    stage: ClassVar[str]
    options: _Options
    data: str
    output: Path

    def __init__(self, name: str, params: Params) -> None:
        self.name, self.params = name, params

    @classmethod
    def work(cls, name: str) -> runs.Work[Unit[_Target]]:
        """What the stage does for `name`."""
        torch.set_num_threads(1)
        attack = cls(name, load())
        checks, units = attack.checks(), list(attack.plan())
        return runs.Work(
            title=f"{cls.stage} {name}",
            units=units,
            run=attack._run,
            assemble=lambda: attack._assemble(units, checks),
            kept=attack.kept,
        )

    @abstractmethod
    def checks(self) -> list[dict[str, Any]]:
        """The checks of all that is read, which must have passed."""

    @abstractmethod
    def plan(self) -> Iterator[Unit[_Target]]:
        """Every unit, see `unit`."""

    @abstractmethod
    def attack(self, target: _Target, path: Path, step: Callable[[int], None]) -> Any:
        """What is found, as JSON; tables and arrays may be written below `path`."""

    @abstractmethod
    def write(self, units: list[Unit[_Target]], path: Path) -> dict[str, Any] | None:
        """Write what all units found: into a folder, with counts for inputs.json; None: as the file `path`."""

    def refuse(self) -> None:
        """Refuse what was found, once it is written."""

    @property
    def kept(self) -> Path | None:
        """The folder of all units; None: others have theirs there, too."""
        return CHECKPOINTS / self.stage / self.name

    @cached_property
    def code(self) -> str:
        """The fingerprint of the stage's code."""
        return fingerprint(self.stage, self.name, self.params)

    def unit(self, title: str, target: _Target, *decides: Any, steps: int = 1) -> Unit[_Target]:
        """decides: all that results depend on beside code and parameters of the attack, as JSON values."""
        label = re.sub(",? ", "-", title)
        return Unit(label, self.folder(label, *decides), title, target, steps)

    def folder(self, label: str, *decides: Any) -> Path:
        """Where a unit lies."""
        assert self.kept is not None
        return runs.folder_of(self.kept, label, *decides, self.options.model_dump(mode="json"), self.code)

    def _run(self, unit: Unit[_Target], path: Path, screen: Screen) -> None:
        screen.begin(unit.title, unit.steps)
        try:
            write_json(path / RESULT, self.attack(unit.target, path, screen.step))
        except DataError as error:
            raise DataError(f"{unit.title}: {error}") from error
        screen.step(unit.steps)

    def _assemble(self, units: list[Unit[_Target]], checks: list[dict[str, Any]]) -> None:
        with atomic_write(self.output) as path:
            if not self.output.suffix:
                path.mkdir()
            counts = self.write(units, path)
            if counts is not None:
                runs.write_inputs(path, self.data, checks, **counts)
        self.refuse()


class ExperimentAttack(Attack[_Kind, _Target]):
    """On what one experiment released."""

    kind: type[_Kind]

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.experiment = entry("experiments", name, params.experiments)
        self.options = attack_of(self.experiment.suite, params, self.kind)
        self.data = self.experiment.data
        self.released, self.output = (RUNS / self.experiment.suite / name / part for part in ("released", "attack"))

    def checks(self) -> list[dict[str, Any]]:
        """That of what was released."""
        return [require_passed("recommendations", self.name, self.experiment.suite)]

    def write_metrics(self, records: list[dict[str, Any]], path: Path) -> None:
        """Write metrics.parquet of records of setting, seed, metric, k and value."""
        runs.write_metrics(records, path, self.experiment.suite, self.name, self.data, self.experiment.system)


class SuiteAttack(Attack[_Kind, _Target]):
    """On systems of a suite together."""

    kind: type[_Kind]
    writes: ClassVar[str]

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.suite = entry("suites", name, params.suites)
        self.options = attack_of(name, params, self.kind)
        self.data, self.output = self.suite.data, RUNS / name / self.writes
