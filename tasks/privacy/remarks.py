"""Gaps and reasons of ledgers, with the numbers and names that their sentences have."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

from tasks.privacy.terms import Gap, Reason


class Term(BaseModel):
    """A gap or a reason, with the numbers and names that its sentence has. In JSON an id alone is a string."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    values: dict[str, int | float | str] = {}

    @model_validator(mode="before")
    @classmethod
    def _from_id(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value

    def __hash__(self) -> int:
        return hash((self.id, *sorted(self.values.items())))

    @model_serializer
    def _short(self) -> Any:
        return {"id": self.id, "values": self.values} if self.values else self.id


class KnownGap(Term):
    """A gap of `Gap`."""

    id: Gap


class Explanation(Term):
    """A reason of `Reason`."""

    id: Reason


def gap(name: Gap, **values: int | float | str) -> KnownGap:
    """A gap with what its sentence names."""
    return KnownGap(id=name, values=values)


def because(name: Reason, **values: int | float | str) -> Explanation:
    """A reason with what its sentence names."""
    return Explanation(id=name, values=values)
