"""What is wrong with a file of parameters, in one line."""

from __future__ import annotations

import re

from pydantic import ValidationError

from tasks.config.fields import SHOWN
from tasks.config.tasks import ATTACKS

_PERTURBED_KIND = re.compile(r"^(perturbed\.[^.]+)\.(features|networks(\.(published|released|rigorous))?)(?=\.|$)")


def first_error(error: ValidationError) -> str:
    """The first problem of a pydantic error as `key: what is wrong`."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    for kind in ATTACKS:  # pydantic names the kind it checks, which is no key
        where = where.replace(f"attack.{kind}", "attack", 1)
    where = _PERTURBED_KIND.sub(r"\1", where)
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "unknown key"
    elif problem["type"] == "missing":
        message = "this key is missing"
    elif not isinstance(problem["input"], dict | list):
        given = repr(problem["input"])[:SHOWN]
        message = f"{message} (is {given})" if problem["type"] != "value_error" else message
    return f"{where}: {message}" if where else message
