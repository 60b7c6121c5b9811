"""What a run would do, as DVC knows it: the stages of a target in order, and why each must run or need not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import networkx

from flows.dvc import Project, errors, name_of, open_project, parameters
from flows.execution import Processes, say
from tasks.config import params, references
from tasks.core.errors import ConfigurationError
from tasks.pipeline import dvc_files

if TYPE_CHECKING:
    from flows.dvc import ParamsDependency, Stage

CODE = "code"
"""The stage that checks all parameters and fingerprints the code of all other stages."""
CODE_FILE = "code.json"
FIRST = "first run"
"""Why a stage runs of which neither the workspace nor DVC's cache has outputs."""
LOST = {"deleted", "not in cache"}
"""What DVC says of a file that is not there."""
SHOWN = 3
"""Names in a reason; of more the rest is counted."""
_MISSING = object()


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
    command: str = ""

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


def read(target: str, project: Project, *, force: bool = False) -> Plan:
    """The stages below `target`, e.g. `report@gerai`, and what changed in them. Nothing is run.

    force: every stage is to run.

    Raises:
        ConfigurationError: there is no such stage.
    """
    if target not in project.stages:
        raise ConfigurationError(f"{target}: there is no such stage in dvc.yaml; `dprec check` shows what there is")
    steps = _steps(project, project.stages[target], {})
    return Plan(target, tuple(replace(step, reasons=("forced",)) if force else step for step in steps))


def read_all(project: Project) -> list[Plan]:
    """The plans of the stages that nothing else needs: together, everything that every dvc.yaml describes."""
    graph = project.graph
    done: dict[Stage, Step] = {}
    last = [stage for stage in graph if graph.in_degree(stage) == 0]
    last.sort(key=lambda stage: (not name_of(stage).startswith("report@"), name_of(stage)))  # then unused data sets
    return [Plan(name_of(stage), tuple(_steps(project, stage, done))) for stage in last]


def needs(project: Project, stage: Stage) -> Iterator[Stage]:
    """A stage and all that it needs, each after what it needs itself."""
    return networkx.dfs_postorder_nodes(project.graph, stage, sort_neighbors=partial(sorted, key=name_of))


def _steps(project: Project, target: Stage, done: dict[Stage, Step]) -> Iterator[Step]:
    """Every step after what it needs; done: those that are known already, which this adds to."""
    for stage in needs(project, target):
        if stage not in done:
            needed = sorted(project.graph.successors(stage), key=name_of)
            with errors():
                reasons = _reasons(stage)
            done[stage] = Step(
                name=name_of(stage),
                address=stage.addressing,
                needs=tuple(name_of(other) for other in needed),
                reasons=reasons,
                follows=tuple(name_of(other) for other in needed if not done[other].cached),
                command=stage.cmd,
            )
        yield done[stage]


def _reasons(stage: Stage) -> tuple[str, ...]:
    """What changed since a stage's last run, as short phrases; empty if nothing did."""
    deps = [] if stage.frozen else stage.deps
    of_parameters = [dep for dep in deps if hasattr(dep, "params")]
    code = [dep for dep in of_parameters if Path(dep.def_path).name == CODE_FILE]
    names = dict.fromkeys(name for dep in of_parameters if dep not in code for name in differing_parameters(dep))
    read = [change for dep in deps if dep not in of_parameters for change in dep.status().items()]
    written = [change for out in stage.outs for change in out.status().items()]
    lost = {how for _, how in written} & LOST
    files = [f"{path} {'is new' if how == 'new' else 'changed'}" for path, how in (*read, *written) if how not in LOST]
    what = "code or the user's own file" if name_of(stage).startswith("download@") else "code"
    phrases = {
        f"{what} changed": any(map(differing_parameters, code)),
        "outputs missing": lost,
        "always changed": stage.is_callback or stage.always_changed,
        "command changed": stage.changed_stage(),
        f"parameters changed: {_shorten(list(names))}": names,
        _shorten(files): files,
    }
    # an input that is missing says nothing more than that the stage which writes it comes first
    reasons = tuple(phrase for phrase, holds in phrases.items() if holds) or (("inputs missing",) if read else ())
    nowhere = "not in cache" in lost and not any(out.exists for out in stage.outs)
    return (FIRST,) if reasons and (nowhere or not any(out.hash_info for out in stage.outs)) else reasons


def differing_parameters(dep: ParamsDependency) -> list[str]:
    """Names of the parameters below the keys of a file that differ from those of the last run.

    DVC itself reads the file again for every stage, and visits all that it holds for every key.
    """
    before, now = dep.hash_info.value or {}, parameters(dep.fs_path)
    keys = dep.params or {**before, **now}
    return [
        name
        for key in keys
        for name in _differing_names(key.rpartition(".")[2], before.get(key, _MISSING), _value(now, key))
    ]


def _value(table: object, key: str) -> object:
    """What a key such as `experiments.a` stands for."""
    for part in key.split("."):
        table = table.get(part, _MISSING) if isinstance(table, dict) else _MISSING
    return table


def _differing_names(name: str, before: object, now: object) -> list[str]:
    """The innermost names at which two values differ; that of a list is its own."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [] if before == now else [name]
    return [inner for key in {**before, **now} for inner in _differing_names(str(key), before.get(key), now.get(key))]


def _shorten(names: Sequence[str]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])} and {len(names) - SHOWN + 1} more"


def _show_traceback(line: str) -> None:
    """Of the stage `code`, whose last line is the error that this process ends with."""
    if os.environ.get("DPREC_DEBUG") == "1":
        print(line)


@contextmanager
def current_project(suite: str | None = None, *, patient: bool = True) -> Iterator[Project]:
    """The project, all of it or what leads to a suite's report, with every dvc.yaml and code.json up to date.

    suite, patient: as of `flows.dvc.open_project`.

    Raises:
        Busy: another process holds something that is needed, and nothing is to be waited for.
        ConfigurationError: the parameters are wrong, or a dvc.yaml cannot be used.
        StageFailed: the stage `code` failed.
    """
    loaded = params.load()
    references.check_references(loaded)
    for path in dvc_files.write(loaded):
        say(path.as_posix(), "written again from the parameters")
    with open_project(suite, patient=patient) as project:
        if CODE not in project.stages:  # a user's own pipeline
            references.check_configs(loaded)
        elif project.reproduce(CODE, lambda command: Processes().run(command, _show_traceback)):
            say(CODE, "code.json is up to date")
        yield project
