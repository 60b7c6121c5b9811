"""What is wrong with a file of parameters, in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.config.fields import SHOWN
from tasks.config.tasks import ATTACKS
from tasks.errors import ConfigurationError

PARAMS_FILE = Path("params.yaml")
_Options = TypeVar("_Options", bound=BaseModel)
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
        values = repr(problem["input"])[:SHOWN]
        message = f"{message} (is {values})" if problem["type"] != "value_error" else message
    return f"{where}: {message}" if where else message


def options(kind: type[_Options], values: dict[str, Any], where: str, path: Path = PARAMS_FILE) -> _Options:
    """The options that params.yaml gives to a source, format or protocol.

    Raises:
        ConfigurationError: one line that names the first wrong key.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {where}.{first_error(error)}") from error
