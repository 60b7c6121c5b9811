"""One runner of all stages with units (`tasks.pipeline.runs`): a stage is a class derived from `Job`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from typing_extensions import override

from tasks.config.networks import Alignment, NetworkEmbeddings
from tasks.config.params import Experiment, Params, entry, load
from tasks.pipeline import runs
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import CHECKPOINTS, RUNS, atomic_write, read_json, require_inputs, write_json
from tasks.pipeline.keys import fingerprint
from tasks.pipeline.screen import Screen

if TYPE_CHECKING:
    from tasks.core.rows import Row

_Unit = TypeVar("_Unit", bound=runs.Unit)
_Entry = TypeVar("_Entry", bound=Experiment | NetworkEmbeddings | Alignment)


class Job(Generic[_Unit]):
    """What a stage does for one name."""

    stage: ClassVar[str]
    shares: ClassVar[bool] = False
    """Whether units of other names are kept in the same folder, from which nothing is then cleared away."""
    data: str
    """The processed data that it is about."""
    output: Path
    """A folder, or a file of JSON."""

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
    def main(cls, name: str, *options: Any, **named: Any) -> dict[str, object]:
        """Perform the work for `name`, with the options of `runs.perform`."""
        return runs.perform(cls.work(name), *options, **named)

    @classmethod
    def commands(cls, module: str) -> tuple[Callable[[str], runs.Work[_Unit]], Callable[..., dict[str, object]]]:
        """`work` and `main` for the stage's module, which is run where it is what Python was called with."""
        if module == "__main__":
            run_stage(cls.main, units=True)
        return cls.work, cls.main

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
    def write(self, units: list[_Unit], path: Path) -> dict[str, Any] | None:
        """Write what all units found: into a folder, with counts for inputs.json; None: as the file `path`."""

    def refuse(self) -> None:
        """Refuse what was found, once it is written."""

    def assemble(self, units: list[_Unit], checks: list[dict[str, object]]) -> None:
        """Put the results of all units together as the stage's output, and refuse it where it must be."""
        with atomic_write(self.output) as path:
            if not self.output.suffix:
                path.mkdir()
            counts = self.write(units, path)
            if counts is not None:
                runs.write_inputs(path, self.data, checks, **counts)
        self.refuse()

    @cached_property
    def code(self) -> str:
        """The fingerprint of the stage's code."""
        return fingerprint(self.stage, self.name, self.params)


class SeedJob(Job[runs.SeedUnit], Generic[_Entry]):
    """On an entry of a suite's file: every setting with every seed is a unit, or several."""

    section: ClassVar[str]
    """Of the parameters, the one that has the entry."""
    options: _Entry
    reads: dict[str, str]
    """Processed data -> the layer and name of what is read with them."""
    released: Path | None = None
    """A folder apart from `output`, which `release` fills from every unit."""
    system: str
    """What metrics are of."""

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.options = entry(self.section, name, getattr(params, self.section))
        self.data, self.kept = self.options.data, CHECKPOINTS / self.section / name

    @override
    def checks(self) -> list[dict[str, object]]:
        read = [check for names in self.reads.items() for check in require_inputs(*names, self.options.suite)]
        return [check for number, check in enumerate(read) if check not in read[:number]]

    def unit(self, setting: str, seed: int, inputs: object, *decides: object, part: str = "") -> runs.SeedUnit:
        """decides: all that its results depend on, as JSON values."""
        label = "-".join(filter(None, (setting, part, f"seed-{seed}")))
        return runs.SeedUnit(label, runs.folder_of(self.kept, label, *decides), setting, seed, part, inputs)

    def release(self, unit: runs.SeedUnit, folder: Path) -> None:
        """Copy what is handed on of a unit as it is."""

    @override
    def assemble(self, units: list[runs.SeedUnit], checks: list[dict[str, object]]) -> None:
        if self.released is not None:
            with atomic_write(self.released) as folder:
                for unit in units:
                    self.release(unit, folder)
        super().assemble(units, checks)

    @override
    def write(self, units: list[runs.SeedUnit], path: Path) -> dict[str, object]:
        self.write_metrics(units, path)
        write_json(path / "ledger.json", self.ledger(units))
        write_json(path / "history.json", self.history(units))
        return {}

    def write_metrics(self, units: list[runs.SeedUnit], path: Path) -> None:
        """What all units measured."""
        rows = runs.read_records(units, "metrics.json")
        runs.write_metrics(rows, path, self.options.suite, self.name, self.data, self.system)

    def history(self, units: list[runs.SeedUnit]) -> Any:
        """What all units keep of their epochs."""
        return runs.by_setting(units, "history.json")

    def ledger(self, units: list[runs.SeedUnit]) -> list[Row]:
        """What all units spent, and what was spent on what they read."""
        entries = list[dict[str, Any]]()
        for unit in units:
            entries += [unit.key | record for record in (*self.inherited(unit), *read_json(unit.done / "ledger.json"))]
        return entries

    def inherited(self, unit: runs.SeedUnit) -> Iterable[dict[str, object]]:  # noqa: ARG002
        """What was spent on what a unit reads, as other stages say now: of finished units, too.

        Their entries also tell of releases next to the one that was read.
        """
        return ()


class TrainingJob(SeedJob[Experiment]):
    """Stage `train` of an experiment."""

    stage, section = "train", "experiments"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.suite, self.system = params.suites[self.options.suite], self.options.system
        self.title, self.kept = name, CHECKPOINTS / self.options.suite / name
        self.released, self.output = (RUNS / self.options.suite / name / part for part in ("released", "train"))
