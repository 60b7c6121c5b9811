"""What the toy task releases: lists like those of `top-k`."""

from __future__ import annotations

from tasks.stages.checks.lists import TOP_K as TOY

__all__ = ["TOY"]
