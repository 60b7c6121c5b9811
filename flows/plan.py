"""What a run would do, as DVC knows it: the stages of a target in order, and why each must run or need not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import ConfigurationError


@dataclass(frozen=True)
class Step:
    """One stage of the plan."""

    name: str
    """The stage without its folder, e.g. `train@gerai-bpr`; no two stages share it."""
    address: str
    """What DVC calls it, e.g. `suites/gerai/dvc.yaml:train@gerai-bpr`."""
    needs: tuple[str, ...]
    """Names of the stages of the plan whose outputs it reads directly."""
    reasons: tuple[str, ...]
    """What changed since its last run; empty if nothing did."""
    follows: tuple[str, ...]
    """Those of `needs` that will run first: it runs again if their outputs come out different."""
    outputs: tuple[str, ...]
    """Files and folders it writes, relative to the project."""

    @property
    def cached(self) -> bool:
        """Nothing it depends on changed, and nothing will."""
        return not self.reasons and not self.follows

    @property
    def why(self) -> str:
        """One line for people."""
        if self.reasons:
            return "; ".join(self.reasons)
        return f"after {', '.join(self.follows)}" if self.follows else "up to date"


@dataclass(frozen=True)
class Plan:
    """The steps that lead to `target`, each after everything it needs."""

    target: str
    steps: tuple[Step, ...]

    @property
    def pending(self) -> tuple[Step, ...]:
        """The steps that will, or may, run."""
        return tuple(step for step in self.steps if not step.cached)

    def step(self, name: str) -> Step:
        """The step called `name` (KeyError if there is none)."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)


def read(target: str) -> Plan:
    """Ask DVC for the graph below `target` in the project of the current folder, and for what changed in it.

    Nothing is run. While another DVC command holds the project's lock, this waits for it.

    Raises:
        ConfigurationError: there is no such stage, or dvc.yaml cannot be used.
    """
    with _project() as repo:
        collected = repo.stage.collect(target)
        changes = repo.status(targets=[target], with_deps=True)
        return Plan(target, tuple(_steps(repo, collected, changes)))


def read_all() -> list[Plan]:
    """The plans of the stages that nothing else needs: together, everything that dvc.yaml describes.

    Raises:
        ConfigurationError: dvc.yaml cannot be used.
    """
    with _project() as repo:
        changes = repo.status()
        graph = repo.index.graph
        last = sorted((stage for stage in graph if graph.in_degree(stage) == 0), key=_name)
        return [Plan(_name(stage), tuple(_steps(repo, [stage], changes))) for stage in last]


@contextmanager
def _project() -> Iterator[Any]:
    """DVC's view of the project, locked: it reads every dvc.yaml again, for seconds, whenever it takes the lock."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo

    try:
        with Repo(_wait_for_lock=True) as repo, lock_repo(repo):
            yield repo
    except DvcException as error:
        message, cause = " ".join(str(error).split()), error.__cause__
        while cause is not None:
            if mark := getattr(cause, "problem_mark", None):
                message += f" at line {mark.line + 1}"
            cause = cause.__cause__
        raise ConfigurationError(message) from error


def _steps(repo: Any, targets: list[Any], changes: dict[str, list[Any]]) -> Iterator[Step]:
    """Depth first, so that every step comes after what it needs (DVC's graph points from a stage to those)."""
    graph, root = repo.index.graph, Path(repo.root_dir)
    done: dict[Any, Step] = {}

    def visit(stage: Any) -> Iterator[Step]:
        if stage in done:
            return
        needed = sorted(graph.successors(stage), key=_name)
        for other in needed:
            yield from visit(other)
        done[stage] = Step(
            name=_name(stage),
            address=stage.addressing,
            needs=tuple(_name(other) for other in needed),
            reasons=_reasons(stage, changes.get(stage.addressing, [])),
            follows=tuple(_name(other) for other in needed if not done[other].cached),
            outputs=tuple(Path(out.fs_path).relative_to(root).as_posix() for out in stage.outs),
        )
        yield done[stage]

    for target in targets:
        yield from visit(target)


def _name(stage: Any) -> str:
    return str(stage.addressing).rpartition(":")[2]


def _reasons(stage: Any, changes: list[Any]) -> tuple[str, ...]:
    """DVC's account of a stage's changes as short phrases; a parameter is named by its key."""
    if changes and not any(out.hash_info for out in stage.outs):
        return ("never run",)
    found, absent = [], []
    for change in changes:
        if isinstance(change, str):  # "changed command", "always changed"
            found.append({"changed command": "its command changed"}.get(change, change))
            continue
        for kind, entries in change.items():
            for path, how in entries.items():
                if isinstance(how, dict):
                    found += [f"{key} {_verb(state)}" for key, state in how.items()]
                elif kind == "changed deps" and how == "deleted":
                    absent.append(f"{path} is missing")
                else:
                    found.append(f"{path} {_verb(how)}")
    # an input that is missing says nothing more than that the stage which writes it comes first
    return tuple(found or absent)


def _verb(state: str) -> str:
    return {"modified": "changed", "deleted": "is missing", "new": "is new"}.get(state, f"is {state}")
