"""Which committed outputs are of older code or parameters: `python -m tasks.stages.stale`, which CI runs.

Locks are compared with the files of parameters and with code.json, and code.json with the code; no data are looked at.
No stage that leads to a suite's report may differ, unless `.ci/stale.yaml` names the suite, or the stage, with a date
and a reason. What is named there and does not differ is refused, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tasks.config import strict_yaml
from tasks.config.messages import first_error
from tasks.config.params import Params, load
from tasks.errors import ConfigurationError, DataError, DprecError
from tasks.stages import code, table
from tasks.stages.stage import Stage

ALLOWED = Path(".ci/stale.yaml")
_KEY = re.compile(r"\$\{(key|item\.(\w+))\}")


class Reason(BaseModel):
    """Why a suite or a stage may be stale."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    since: date
    reason: str


@dataclass(frozen=True)
class Step:
    """A stage of one dvc.yaml, with everything that its lock says but hashes."""

    name: str
    file: str
    """The dvc.yaml."""
    command: str
    deps: tuple[str, ...]
    outs: tuple[str, ...]
    params: dict[str, tuple[str, ...]]
    """File -> keys."""


class _Locks(yaml.CSafeLoader):
    """DVC writes YAML 1.2, in which 1e-05 is a number."""


_Locks.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+e[-+]?[0-9]+$"), [*"-+0123456789"])


def steps(params: Params) -> Iterator[Step]:
    """Every stage but `code`."""
    for file, stages in table.dvc_files(params).items():
        for stage in stages:
            for key in stage.items:
                yield _step(file, stage, key)


def _step(file: str, stage: Stage, key: str) -> Step:
    def fill(texts: tuple[str, ...]) -> tuple[str, ...]:
        known = {"key": key} | {f"item.{name}": value for name, value in stage.items[key].items()}
        return tuple(_KEY.sub(lambda match: known[match[1]], text) for text in texts)

    files = {table.code_file(file): (f"{stage.name}.${{key}}",), **stage.params}
    return Step(
        f"{stage.name}@{key}",
        file,
        f"python -m tasks.stages.{stage.module} {fill((stage.argument,))[0]}",
        fill(stage.deps),
        fill((*stage.outs, *stage.committed)),
        {path: fill(keys) for path, keys in files.items()},
    )


def stale_stages(params: Params) -> dict[str, str]:
    """Stage -> what of it is not as its lock says.

    Raises:
        DataError: a lock cannot be read.
    """
    files: dict[str, Any] = {}
    differences = {}
    for step in steps(params):
        for path in (*step.params, lock := str(Path(step.file).with_suffix(".lock"))):
            if path not in files:
                files[path] = _read(Path(path))
        if why := _difference(step, (files[lock].get("stages") or {}).get(step.name), files):
            differences[step.name] = why
    return differences


def _difference(step: Step, locked: dict[str, Any] | None, files: dict[str, Any]) -> str:
    if locked is None:
        return "never run"
    if locked["cmd"] != step.command:
        return "its command changed"
    recorded = locked.get("params", {})
    for path, keys in step.params.items():
        for key in keys:
            if (old := recorded.get(path, {}).get(key, ...)) is ... or old != _value(files[path], key):
                return f"{key} changed"
        if more := recorded[path].keys() - {*keys}:
            return f"{min(more)} is no parameter of it any more"
    if {dep["path"] for dep in locked.get("deps", ())} != {*step.deps}:
        return "it reads other files"
    return ""


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_Locks)
    except FileNotFoundError:
        return {}
    except (ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: not readable ({error}); restore it with git") from error
    return content if isinstance(content, dict) else {}


def _value(content: Any, key: str) -> Any:
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def leading_to(name: str, known: dict[str, Step]) -> set[str]:
    """A stage and all that it needs."""
    writers = {out: step.name for step in known.values() for out in step.outs}
    reached: set[str] = set()
    left = [name]
    while left:
        step = known[left.pop()]
        if step.name not in reached:
            reached.add(step.name)
            for dep in step.deps:
                places = [dep, *map(str, Path(dep).parents)]
                left += [writers[place] for place in places if place in writers]
                left += [writer for out, writer in writers.items() if out.startswith(f"{dep}/")]
    return reached


def read_allowed() -> dict[str, Reason]:
    """What may be stale.

    Raises:
        ConfigurationError: one line that names the first wrong key.
    """
    if not ALLOWED.exists():
        return {}
    given = strict_yaml.read(ALLOWED, "it names what may be stale; without the file nothing may")
    try:
        return TypeAdapter(dict[str, Reason]).validate_python(given)
    except ValidationError as error:
        raise ConfigurationError(f"{ALLOWED}: {first_error(error)}") from error


def problems(params: Params, excused: dict[str, Reason]) -> list[str]:
    """A line for every suite with stages that may not be stale and are, and for every excuse that is not needed."""
    known = {step.name: step for step in steps(params)}
    stale = stale_stages(params)
    unused, lines = {*excused}, []
    for suite in params.suites:
        own = sorted(leading_to(f"report@{suite}", known) & stale.keys())
        unused -= {*own, suite} if own else set()
        wrong = [name for name in own if name not in excused]
        if wrong and suite not in excused:
            lines.append(f"{suite}: {len(wrong)} stages are stale, such as {wrong[0]} ({stale[wrong[0]]})")
    return lines + [f"{ALLOWED}: {name} is not stale; take it off the list" for name in sorted(unused)]


def main() -> None:
    """Raise a DprecError with everything that is stale and may not be."""
    params = load()
    for path, wanted in code.contents(params).items():
        if _read(path) != wanted:
            raise ConfigurationError(f"{path}: is behind the code; run `dvc repro code`, and commit it")
    if lines := problems(params, read_allowed()):
        raise DataError("; ".join(lines) + "; run these suites and commit what they give")


if __name__ == "__main__":
    try:
        main()
    except DprecError as error:
        print(f"stale: {error}", file=sys.stderr)
        raise SystemExit(1) from None
