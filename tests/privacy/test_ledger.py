"""A ledger entry survives JSON, and cannot stay silent about a missing guarantee."""

import math

import pytest
from pydantic import ValidationError

from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.remarks import gap

ENTRY = LedgerEntry(
    protects="feature",
    unit="features",
    neighbouring="replace",
    mechanism="piecewise",
    accounting="published",
    claimed_epsilon=20.0,
    claimed_delta=0.0,
    accounted_epsilon=0.1 + 0.2,
    accounted_delta=1e-5,
    gaps=(gap("fitted-ranges", columns="age"), gap("seed")),
    events=(Event(kind="pure-local", parameters={"epsilon": 2.5}, count=8),),
)


def test_an_entry_survives_json() -> None:
    assert LedgerEntry.model_validate_json(ENTRY.model_dump_json()) == ENTRY


def test_no_guarantee_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="reason"):
        LedgerEntry.model_validate(ENTRY.model_dump() | {"accounted_epsilon": None})
    entry = LedgerEntry.model_validate(ENTRY.model_dump() | {"accounted_epsilon": None, "reasons": ["labels-read"]})
    assert entry.accounted_epsilon is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"accounted_epsilon": math.inf},
        {"claimed_epsilon": -1.0},
        {"claimed_epsilon": math.nan},
        {"accounted_delta": 1.0},
        {"protects": "everything"},
        {"unit": "everyone"},
        {"gaps": ["not one of the ids"]},
        {"note": "unknown field"},
    ],
)
def test_impossible_entries_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LedgerEntry.model_validate(ENTRY.model_dump() | wrong)
