"""One runner of all stages that attack: a kind of attack is a module with a class derived from `Attack`.

It attacks what one experiment released, or systems of a suite, in units (`tasks.pipeline.runs`). A unit is named by
everything that decides what is found, so a rerun resumes where it stopped; what all units found is then put together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from tasks.config.params import Params, attack_of, entry
from tasks.config.tasks import Attack as Options
from tasks.core.errors import DataError
from tasks.pipeline import runs
from tasks.pipeline.common import QUALITY, RUNS, read_json, require_passed, write_json
from tasks.pipeline.jobs import Job
from tasks.pipeline.screen import Screen
from tasks.pipeline.table import find_stage

RESULT = "result.json"
_Options = TypeVar("_Options", bound=BaseModel)
_Kind = TypeVar("_Kind", bound=Options)
_Target = TypeVar("_Target")


@dataclass(frozen=True)
class Unit(runs.Unit, Generic[_Target]):
    """What is attacked at a time."""

    target: _Target
    steps: int = 1

    def result(self) -> Any:
        """What `Attack.attack` returned, once the unit is finished."""
        return read_json(self.done / RESULT)


class Attack(Job[Unit[_Target]], Generic[_Options, _Target]):
    """A kind of attack, on one name."""

    options: _Options

    @abstractmethod
    def attack(self, target: _Target, path: Path, step: Callable[[int], None]) -> Any:
        """What is found, as JSON; tables and arrays may be written below `path`."""

    def unit(self, label: str, target: _Target, *decides: object, steps: int = 1) -> Unit[_Target]:
        """A unit of this attack.

        Args:
            decides: all that results depend on besides code and parameters of the attack, as JSON values.
            steps: how many the screen shows progress in.
        """
        return Unit(label, self.folder(label, *decides), target, steps)

    def folder(self, label: str, *decides: object) -> Path:
        """The folder of a unit, named by all that decides its result."""
        return runs.folder_of(self.kept, label, *decides, self.options.model_dump(mode="json"), self.code)

    def run(self, unit: Unit[_Target], path: Path, screen: Screen) -> None:
        """Attack, and write what is found."""
        screen.begin(unit.label, unit.steps)
        try:
            write_json(path / RESULT, self.attack(unit.target, path, screen.step))
        except DataError as error:
            raise DataError(f"{unit.label}: {error}") from error
        screen.step(unit.steps)


class ExperimentAttack(Attack[_Kind, _Target]):
    """On what one experiment released."""

    kind: type[_Kind]

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.experiment = entry("experiments", name, params.experiments)
        self.options = attack_of(self.experiment.suite, params, self.kind)
        self.data = self.experiment.data
        self.released, self.output = (RUNS / self.experiment.suite / name / part for part in ("released", "attack"))

    def checks(self) -> list[dict[str, object]]:
        """That of what was released."""
        return [require_passed("recommendations", self.name, self.experiment.suite)]

    def write_metrics(self, records: list[dict[str, object]], path: Path) -> None:
        """Write metrics.parquet into the folder `path`, from records of setting, seed, metric, k and value."""
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

    def checks(self) -> list[dict[str, object]]:
        """Those of all that the table says it reads."""
        read = find_stage(self.stage, self.name, self.params).deps
        verdicts = [path for path in map(Path, read) if path.is_relative_to(QUALITY)]
        of_suite = {"recommendations": self.name}
        return [require_passed(path.parent.name, path.stem, of_suite.get(path.parent.name)) for path in verdicts]
