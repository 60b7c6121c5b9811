"""Which committed outputs are of older code or parameters: `python -m flows.stale`, which CI runs.

Locks are compared with commands, parameters and code.json, and code.json with the code; no data are looked at. No stage
that leads to a suite's report may differ, unless `.ci/stale.yaml` names the suite, or the stage, with a date and a
reason. What is named there and does not differ is refused, too.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from flows import plan, settings
from flows.dvc import Project, name_of, open_project
from tasks.config import messages
from tasks.config.params import load
from tasks.core.errors import ConfigurationError, DataError, DprecError
from tasks.pipeline import keys
from tasks.pipeline.common import read_json

if TYPE_CHECKING:
    from flows.dvc import Stage

ALLOWED = Path(".ci/stale.yaml")


class Reason(BaseModel):
    """Why a suite or a stage may be stale."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    since: date
    reason: str


def stale_stages(project: Project) -> dict[str, str]:
    """Stage -> what of it is not as its lock says."""
    stages = {name_of(stage): stage for stage in project.stages.values()}
    return {name: why for name, stage in stages.items() if name != plan.CODE and (why := _difference(stage))}


def _difference(stage: Stage) -> str:
    if not any(out.hash_info for out in stage.outs):
        return "never run"
    if stage.cmd_changed:
        return "its command changed"
    parameters = [dep for dep in stage.deps if hasattr(dep, "params")]
    if names := [name for dep in parameters for name in plan.differing_parameters(dep)]:
        return f"{names[0]} changed"
    files = [*stage.outs, *(dep for dep in stage.deps if dep not in parameters)]
    return "" if all(file.hash_info for file in files) else "it reads or writes other files"


def read_allowed() -> dict[str, Reason]:
    """What may be stale.

    Raises:
        ConfigurationError: one line that names the first wrong key.
    """
    if not ALLOWED.exists():
        return {}
    content = messages.read(ALLOWED)
    try:
        return TypeAdapter(dict[str, Reason]).validate_python(content)
    except ValidationError as error:
        raise ConfigurationError(f"{ALLOWED}: {messages.first_error(error)}") from error


def problems(project: Project, excused: dict[str, Reason]) -> list[str]:
    """A line for every suite with stages that may not be stale and are, and for every excuse that is not needed."""
    stale, unused, lines = stale_stages(project), {*excused}, []
    for report in sorted(name for name in project.stages if name.startswith("report@")):
        suite = report.removeprefix("report@")
        needed = sorted(stale.keys() & {name_of(stage) for stage in plan.needs(project, project.stages[report])})
        unused -= {*needed, suite} if needed else set()
        wrong = [name for name in needed if name not in excused]
        if wrong and suite not in excused:
            lines.append(f"{suite}: {len(wrong)} stages are stale, such as {wrong[0]} ({stale[wrong[0]]})")
    return lines + [f"{ALLOWED}: {name} is not stale; take it off the list" for name in sorted(unused)]


def main() -> None:
    """Raise a DprecError with everything that is stale and may not be."""
    for path, expected in keys.contents(load()).items():
        if read_json(path) != expected:
            raise ConfigurationError(f"{path}: is behind the code; run `dvc repro code`, and commit it")
    settings.apply(Path.cwd())
    with open_project() as project:
        if lines := problems(project, read_allowed()):
            raise DataError("; ".join(lines) + "; run these suites and commit what they give")


if __name__ == "__main__":
    try:
        main()
    except DprecError as error:
        print(f"stale: {error}", file=sys.stderr)
        raise SystemExit(1) from None
