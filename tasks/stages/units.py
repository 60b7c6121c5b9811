"""Which units a stage has, to share them among processes or machines.

    python -m tasks.stages.units MODULE NAME    {"LABEL": "FOLDER", ...} on one line, in the stage's own order
    python -m tasks.stages.units MODULE NAME --unit LABEL --key KEY    that unit, if its folder has this name here, too

`python -m tasks.stages.MODULE NAME --unit LABEL` works on one of them under any key. This is no part of the modules
that train and attack: what lists the work decides nothing of it.
"""

from __future__ import annotations

import json
import socket
import sys
from argparse import ArgumentParser
from pathlib import Path

from tasks.config.tasks import ATTACKS, resolve
from tasks.errors import ConfigurationError, DprecError
from tasks.stages import runs
from tasks.stages.common import private

ATTACKING = tuple(kind.module for kind in ATTACKS.values())
WORK = {
    module: f"tasks.stages.{module}:work"
    for module in ("align", "audit_training", "embed_networks", "train", "train_networks", *ATTACKING)
}
"""Module of a stage that has units -> what its work on one name consists of (`tasks.stages.runs.Work`)."""


def folders(module: str, name: str) -> dict[str, Path]:
    """Label -> folder of every unit, in the order in which the stage works on them; its inputs must be there."""
    if module not in WORK:
        raise ConfigurationError(f"{module}: no stage with units; those are {', '.join(WORK)}")
    return {unit.label: unit.folder for unit in resolve(WORK[module])(name).units}


def work_on(module: str, name: str, label: str, key: str, *, force: bool = False) -> None:
    """Work on one unit, if it is the one that is meant.

    Args:
        key: name of its folder where that was asked for, which holds its configuration, its inputs and its code.

    Raises:
        ConfigurationError: here it has another key.
    """
    units = folders(module, name)
    if label not in units:
        raise ConfigurationError(f"there is no unit {label!r}; those here are {', '.join(units)}")
    if units[label].name != key:
        raise ConfigurationError(
            f"{socket.gethostname()} has other code, packages or inputs: the unit {key} is {units[label].name} here; "
            "bring its clone to the same revision and its environment to that requirements.lock"
        )
    runs.perform(resolve(WORK[module])(name), label, force)


def main(arguments: list[str]) -> None:
    """The command line above."""
    parser = ArgumentParser("python -m tasks.stages.units")
    parser.add_argument("module", metavar="MODULE")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--unit", metavar="LABEL")
    parser.add_argument("--key", default="")
    parser.add_argument("--force", action="store_true")
    chosen = parser.parse_args(arguments)
    private()
    try:
        if chosen.unit is None:
            listed = {label: folder.as_posix() for label, folder in folders(chosen.module, chosen.name).items()}
            print(json.dumps(listed))
        else:
            work_on(chosen.module, chosen.name, chosen.unit, chosen.key, force=chosen.force)
    except (DprecError, OSError) as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(sys.argv[1:])
