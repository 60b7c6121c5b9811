"""Every budget that a committed ledger claims or accounts has an audit that is of it, or a reason why it has none."""

from functools import cache
from typing import Any

import pytest

from tasks.audits import auditor, of_model
from tasks.config.params import load
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core import audits
from tasks.stages.common import RESULTS
from tasks.stages.table_audits import names
from tests.reporting import committed

SUITES = sorted(path.parent.name for path in RESULTS.glob("*/results.json"))
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
    """What an audit is of; a mechanism has the budget in its name where messages have shared noise."""
    return auditor(name)(0, 1, **dict(arguments)).entry


@pytest.mark.parametrize("suite", SUITES)
def test_every_private_line_has_an_audit_or_a_reason(suite: str) -> None:
    results, _, _ = committed.read(suite)
    params = load()
    released = [(name, ()) for name in names(suite, params) if name in ALWAYS]
    for system in results.systems:
        experiment = params.suites[suite].experiments[system.experiment]
        private = [spent for spent in system.spent if audits.is_private(spent.entry)]
        settings = experiment.settings()
        for (setting, *_), entry in {
            (spent.setting, spent.entry.mechanism, spent.entry.observer): spent.entry
            for spent in private
            if spent.setting in settings  # results may be older than parameters
        }.items():
            own = of_model(experiment.model, settings[setting])
            jobs = [
                *released,
                *((name, tuple(sorted((own[name] | SHORT).items())) if name in SHARED else ()) for name in own),
            ]
            audited = {(entry.mechanism, entry.observer) for entry in (entry_of(*job) for job in jobs)}
            reason = audits.reason(entry)
            assert (entry.mechanism, entry.observer) in audited or reason, (
                f"{system.name}, {setting}: {entry.mechanism}, {entry.observer}"
            )
