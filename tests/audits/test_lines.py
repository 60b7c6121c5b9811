"""Every budget that a committed ledger claims or accounts has an audit that is of it, or a reason why it has none."""

from functools import cache
from typing import Any

import pytest

from tasks.audits import auditor, of_model
from tasks.config.params import load
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits.unaudited import is_private, reason
from tasks.stages.table_audits import names
from tests.results.made import COMMITTED, committed

SHARED = ("dpmf-ratings", "privsr")
SHORT = {"epochs": 1, "iterations_per_epoch": 2, "dimension": 1}
"""What a mechanism is does not depend on how long it is used."""
ALWAYS = (
    "edges",
    "edges/cells",
    "edges/filled",
    "edges/number",
    "edges/released",
    "features",
    "features/released",
    "texts",
)


@cache
def entry_of(name: str, arguments: tuple[tuple[str, Any], ...]) -> LedgerEntry:
    """What an audit is of."""
    return auditor(name)(0, 1, **dict(arguments)).entry


@pytest.mark.parametrize("suite", COMMITTED)
def test_every_private_line_has_an_audit_or_a_reason(suite: str) -> None:
    params = load()
    released = [(name, ()) for name in names(suite, params) if name in ALWAYS]
    entries = {
        (line.experiment, line.setting, line.entry.mechanism, line.entry.observer): line.entry
        for line in committed(suite).lines
        if is_private(line.entry)
    }
    for (name, setting, mechanism, observer), entry in entries.items():
        experiment = params.suites[suite].experiments[name]
        settings = experiment.settings()
        if setting not in settings:
            continue  # results may be older than parameters
        own = of_model(experiment.model, settings[setting])
        jobs = [
            *released,
            *((audit, tuple(sorted((own[audit] | SHORT).items())) if audit in SHARED else ()) for audit in own),
        ]
        audited = {(entry.mechanism, entry.observer) for entry in (entry_of(*job) for job in jobs)}
        if not observer:  # a line of results that are older than lines by observer is towards each of them
            audited |= {(audited_mechanism, "") for audited_mechanism, _ in audited}
        assert (mechanism, observer) in audited or reason(entry), f"{name}, {setting}: {mechanism}, {observer}"
