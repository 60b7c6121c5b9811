"""What params.yaml may say to a source or a format beyond its name."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """No unknown keys, and no guessing: a quoted number, or `true` for 1, is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NoOptions(Options):
    """For a source or format that leaves nothing open."""
