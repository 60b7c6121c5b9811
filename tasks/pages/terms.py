"""The English of terms: `templates/terms.yaml`, the one place where a word of a ledger or an audit is changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Explanation, KnownGap

FILE = Path(__file__).parent / "templates" / "terms.yaml"


@cache
def english() -> dict[str, dict[str, Any]]:
    """Section of `FILE` -> id -> its English."""
    import yaml  # which an audit of files does without

    tables: dict[str, dict[str, Any]] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return tables


def sentence(term: KnownGap | Explanation) -> str:
    """A gap or a reason as a sentence, with its numbers and names."""
    table = english()["gaps" if isinstance(term, KnownGap) else "reasons"]
    return str(table[term.id].format(**term.values))


def neighbours(unit: str, neighbouring: str) -> str:
    """What two neighbouring inputs differ in."""
    return str(english()["neighbouring"][f"{unit} {neighbouring}"])


def mechanism(entry: LedgerEntry) -> str:
    """What a mechanism is called."""
    return str(english()["mechanisms"][entry.mechanism])


def conditions(ids: Iterable[str]) -> list[str]:
    """What a guarantee is conditional on."""
    return [str(english()["conditions"][name]) for name in ids]
