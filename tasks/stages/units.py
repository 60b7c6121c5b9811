"""Which units a stage has, to share them among processes or machines.

    python -m tasks.stages.units MODULE NAME    {"LABEL": "FOLDER", ...} on one line, in the stage's own order

`python -m tasks.stages.MODULE NAME --unit LABEL` works on one of them. This is no part of the modules that train and
attack: what lists the work decides nothing of it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tasks.config.tasks import ATTACKS, resolve
from tasks.core.errors import ConfigurationError, DprecError
from tasks.pipeline.common import private

ATTACKING = tuple(kind.module for kind in ATTACKS.values())
WORK = {
    module: f"tasks.stages.{module}:work"
    for module in ("align", "audit", "audit_training", "embed_networks", "train", "train_networks", *ATTACKING)
}
"""Module of a stage that has units -> what its work on one name consists of (`tasks.pipeline.runs.Work`)."""


def folders(module: str, name: str) -> dict[str, Path]:
    """Label -> folder of every unit, in the order in which the stage works on them; its inputs must be there."""
    if module not in WORK:
        raise ConfigurationError(f"{module}: no stage with units; those are {', '.join(WORK)}")
    return {unit.label: unit.folder for unit in resolve(WORK[module])(name).units}


def main(module: str, name: str) -> None:
    """The command line above."""
    private()
    try:
        print(json.dumps({label: folder.as_posix() for label, folder in folders(module, name).items()}))
    except (DprecError, OSError) as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(*sys.argv[1:])
