"""Keys of stages: fingerprints of their code, in a code.json next to the dvc.yaml that describes them.

A stage's key there moves when, and only when, the code that decides its output changes (`tasks.core.fingerprints`), so
DVC reruns exactly that. The files are in git: their diff says which results a change touches. DVC reads one again for
each of its stages: so there is one for each dvc.yaml, and in JSON, which takes a tenth of YAML's time.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tasks.config.params import Params, load
from tasks.core.errors import ConfigurationError
from tasks.core.fingerprints import Source
from tasks.pipeline import table
from tasks.pipeline.common import text_digest
from tasks.pipeline.stage import Stage

DECIDES_NOTHING = True
STAGES = "tasks.stages"


def contents(params: Params) -> dict[Path, dict[str, dict[str, str]]]:
    """What every code.json should say: stage -> instance -> fingerprint."""
    digests = fingerprints(params)
    return {
        Path(table.code_file(file)): {
            stage.name: {key: digests[stage.name][key] for key in stage.items} for stage in stages
        }
        for file, stages in table.dvc_files(params).items()
    }


def fingerprints(params: Params, source: Source | None = None) -> dict[str, dict[str, str]]:
    """Stage -> instance -> fingerprint, of every stage that the parameters name, in our tree or in another."""
    source = source or tree()
    digests: dict[str, dict[str, str]] = {}
    for stages in table.dvc_files(params).values():
        for stage in stages:
            of_kind = digests.setdefault(stage.name, {})
            of_kind |= {key: _key(stage, key, source) for key in stage.items}
    return digests


def _key(stage: Stage, key: str, source: Source) -> str:
    """A stage's key: its code, and what else decides its outputs."""
    digest = source.digest(f"{STAGES}.{stage.module}", stage.plugins(key))
    decides = stage.decides(key)
    return text_digest(json.dumps([digest, decides]))[:16] if decides else digest


@cache
def tree() -> Source:
    """The source tree that this process runs."""
    return Source(Path(__file__).resolve().parents[2])


def fingerprint(stage: str, key: str, params: Params) -> str:
    """The fingerprint of the code that a stage runs, as it is now: it names checkpoints.

    Raises:
        ConfigurationError: the parameters name no such stage.
    """
    node = table.find_stage(stage, key, params)
    return tree().digest(f"{STAGES}.{node.module}", node.plugins(key))


def require_current(module: str, argument: str) -> None:
    """Refuse to run a stage whose key in code.json is not its code's: DVC would take its output for the old code's.

    What the parameters do not name is left to the stage, which says what there is.

    Raises:
        ConfigurationError: code.json is missing, unreadable, or behind the code.
    """
    params = load()
    if (entry := table.find(module, argument, params)) is None:
        return
    file, stage, key = entry
    remedy = "run `dvc repro code` (`dprec run SUITE` does so by itself)"
    try:
        recorded = json.loads(Path(file).read_text(encoding="utf-8"))[stage.name][key]
    except FileNotFoundError:
        raise ConfigurationError(f"{file}: not found; {remedy}") from None
    except (KeyError, TypeError, ValueError):
        raise ConfigurationError(f"{file}: has no fingerprint of {stage.name}@{key}; {remedy}") from None
    if recorded != _key(stage, key, tree()):
        raise ConfigurationError(f"{file}: {stage.name}.{key} is behind the code; {remedy}")
