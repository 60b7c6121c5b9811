"""What is wrong with a file of parameters, in one line."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import ValidationError

from tasks.config.fields import FEATURES, NETWORKS, SHOWN
from tasks.config.tasks import ATTACKS

DECIDES_NOTHING = True
_PERTURBED_KIND = re.compile(r"^(perturbed\.[^.]+)\.(features|networks(\.(published|released|rigorous))?)(?=\.|$)")


class Problem(NamedTuple):
    """What is wrong with a key, which is empty where all of a file is meant."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text


def first_error(error: ValidationError) -> Problem:
    """The first problem of a pydantic error."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    for kind in ATTACKS:  # pydantic names the kind it checks, which is no key
        where = where.replace(f"attack.{kind}", "attack", 1)
    where = _PERTURBED_KIND.sub(r"\1", where)
    message = problem["msg"]
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
    elif problem["type"] == "extra_forbidden":
        message = "unknown key"
    elif problem["type"] == "missing":
        message = "this key is missing"
    elif problem["type"] == "unknown_mechanism":
        message = f"mechanism: must be one of {', '.join(map(repr, [*FEATURES, *NETWORKS]))}"
    elif not isinstance(problem["input"], dict | list):
        message = f"{message} (is {repr(problem['input'])[:SHOWN]})"
    return Problem(where, message)
