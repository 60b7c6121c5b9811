"""What a run would do, as DVC knows it: the stages of a target in order, and why each must run or need not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.project import Project, name_of
from tasks.errors import ConfigurationError

FIRST = "first run"
"""Why a stage runs of which neither the workspace nor DVC's cache has outputs."""
SHOWN = 3
"""Names in a reason; of more the rest is counted."""
CODE = "code.json"
PARAMETERS = "params"
"""What DVC calls the hash of parameters."""


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
        return f"after {_shorten(self.follows)}" if self.follows else "up to date"


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


def read(target: str, project: Project) -> Plan:
    """The stages below `target`, e.g. `report@gerai`, and what changed in them. Nothing is run.

    Raises:
        ConfigurationError: there is no such stage.
    """
    if target not in project.stages:
        raise ConfigurationError(f"{target}: there is no such stage in dvc.yaml; `dprec check` shows what there is")
    return Plan(target, tuple(_steps(project, project.stages[target], {})))


def read_all(project: Project) -> list[Plan]:
    """The plans of the stages that nothing else needs: together, everything that every dvc.yaml describes."""
    graph = project.graph
    done: dict[Any, Step] = {}
    last = [stage for stage in graph if graph.in_degree(stage) == 0]
    last.sort(key=lambda stage: (not name_of(stage).startswith("report@"), name_of(stage)))  # then unused data sets
    return [Plan(name_of(stage), tuple(_steps(project, stage, done))) for stage in last]


def discard_damaged(todo: Plan, project: Project) -> list[str]:
    """Remove what the stages that will run would read, where it is not what dvc.lock says; its paths.

    The stages that wrote it then have no outputs, so they come first: the plan must be read again.
    """
    written = {name: todo.step(name).address for step in todo.pending for name in step.needs if todo.step(name).cached}
    return project.discard_damaged([project.stages[address] for address in written.values()])


def _steps(project: Project, target: Any, done: dict[Any, Step]) -> Iterator[Step]:
    """Every step after what it needs; done: those that are known already, which this adds to."""
    for stage in project.needs(target):
        if stage not in done:
            needed = sorted(project.graph.successors(stage), key=name_of)
            done[stage] = Step(
                name=name_of(stage),
                address=stage.addressing,
                needs=tuple(name_of(other) for other in needed),
                reasons=_reasons(stage, project.changes(stage)),
                follows=tuple(name_of(other) for other in needed if not done[other].cached),
                outputs=tuple(Path(out.fs_path).relative_to(project.root).as_posix() for out in stage.outs),
            )
        yield done[stage]


_CODE_OF = {"download": "code or the user's own file changed"}
"""Stage -> what its fingerprint is of, beside code alone."""


def _reasons(stage: Any, changes: list[Any]) -> tuple[str, ...]:
    """DVC's account of a stage's changes as short phrases; of many names the first few."""
    if changes and not any(out.hash_info for out in stage.outs):
        return (FIRST,)
    reasons: list[str] = []
    parameters: list[str] = []
    files: list[str] = []
    absent = False
    for change in changes:
        if isinstance(change, str):  # "changed command", "always changed"
            reasons.append({"changed command": "command changed"}.get(change, change))
            continue
        for kind, entries in change.items():
            for path, how in entries.items():
                if isinstance(how, dict):
                    by_code = Path(path).name == CODE
                    reasons += [_CODE_OF.get(stage.name.partition("@")[0], "code changed")] if by_code else []
                    parameters += [] if by_code else _parameters(stage, path, how)
                elif kind == "changed deps" and how == "deleted":
                    absent = True
                elif how == "not in cache" and not any(out.exists for out in stage.outs):
                    return (FIRST,)
                elif how in ("deleted", "not in cache"):
                    reasons.append("outputs missing")
                else:
                    files.append(f"{path} is new" if how == "new" else f"{path} changed")
    reasons += [f"parameters changed: {_shorten(list(dict.fromkeys(parameters)))}"] if parameters else []
    reasons += [_shorten(files)] if files else []
    # an input that is missing says nothing more than that the stage which writes it comes first
    return tuple(dict.fromkeys(reasons)) or (("inputs missing",) if absent else ())


def _parameters(stage: Any, path: str, keys: dict[str, str]) -> list[str]:
    """Names of the parameters below the keys of a file that differ from those of the last run."""
    names: list[str] = []
    for dep in stage.deps:
        if dep.hash_name == PARAMETERS and str(dep) == path:
            before, now = dep.hash_info.value or {}, dep.read_params()
            for key in keys:
                names += _differing_names(key.rpartition(".")[2], before.get(key), now.get(key))
    return names or [key.rpartition(".")[2] for key in keys]


def _differing_names(name: str, before: Any, now: Any) -> list[str]:
    """The innermost names at which two values differ; that of a list is its own."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [] if before == now else [name]
    return [inner for key in {**before, **now} for inner in _differing_names(str(key), before.get(key), now.get(key))]


def _shorten(names: list[str] | tuple[str, ...]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])} and {len(names) - SHOWN + 1} more"
