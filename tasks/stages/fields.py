"""Kinds of values that params.yaml and suites/<suite>/params.yaml have, and the base of the types that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

BASE = "base"
"""The setting of an experiment that no sweep changed."""
OF_DATA = ("features_epsilon", "sensitive_share")
"""Keys of a setting that choose its data; all others are the model's own configuration."""


def model_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Of a setting, what the model is configured by."""
    return {key: value for key, value in config.items() if key not in OF_DATA}


def distinct(values: list[Any]) -> list[Any]:
    """The same values (ValueError: one is repeated)."""
    repeated = {value for value in values if values.count(value) > 1}
    if repeated:
        raise ValueError(f"{sorted(repeated)[0]} is repeated")
    return values


def known(kind: str, names: Callable[[], list[str]]) -> AfterValidator:
    """Lets only registered names pass; `kind` says of what."""

    def check(name: str) -> str:
        if name not in names():
            raise ValueError(f"unknown {kind} {name!r}; known: {', '.join(sorted(names()))}")
        return name

    return AfterValidator(check)


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(distinct)]
Cutoffs = Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(distinct)]
Share = Annotated[float, Field(gt=0, lt=1)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]


class Strict(BaseModel):
    """No unknown keys, and no guessing: a quoted number, or `true` for 1, is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
