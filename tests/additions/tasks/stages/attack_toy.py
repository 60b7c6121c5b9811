"""Stage `attack-toy`: what a coin tells of a suite's systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from tasks.config.attacks import ToyAttack  # type: ignore[attr-defined]
from tasks.pipeline.command import run_stage
from tasks.stages.attacks import SuiteAttack, Unit


class Coin(SuiteAttack[ToyAttack, str]):
    """Every system is a unit."""

    stage, kind, writes = "attack-toy", ToyAttack, "toy"

    def plan(self) -> Iterator[Unit[str]]:
        """Each system."""
        return (self.unit(system, system, system) for system in self.options.systems)

    def attack(self, target: str, _: Path, __: Callable[[int], None]) -> dict[str, Any]:
        """A row of `tasks.results.significance.GAINS`."""
        about = {"target": "toy", "experiment": target, "attacker": "coin", "control": "chance"}
        return about | {"value": 0.5, "gain": 0.0, "low": -0.1, "high": 0.1}

    def write(self, units: list[Unit[str]], path: Path) -> dict[str, Any]:
        """All rows."""
        pl.DataFrame([unit.result() for unit in units]).write_parquet(path / "toy.parquet")
        return {}


work, main = Coin.work, Coin.main

if __name__ == "__main__":
    run_stage(main, units=True)
