"""Every budget that a committed ledger claims or accounts has an audit that is of it, or a reason why it has none."""

from typing import get_args

import pytest

from tasks.audits import of_model
from tasks.audits.lines import AUDITED_LINES
from tasks.config.params import load
from tasks.privacy.audits.unaudited import REASONS, is_private, reason
from tasks.privacy.terms import Mechanism
from tasks.stages.table_audits import OF_FEATURES, OF_NETWORKS
from tests.results.made import COMMITTED, committed

WITHOUT_BUDGET = {"none", "blurme", "adversarial-training"}


@pytest.mark.parametrize("suite", COMMITTED)
def test_every_private_line_has_an_audit_or_a_reason(suite: str) -> None:
    params = load()
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
        audits = (*of_model(experiment.model, settings[setting]), *OF_FEATURES, *OF_NETWORKS)
        audited = {AUDITED_LINES[audit] for audit in audits}
        if not observer:  # a line of results that are older than lines by observer is towards each of them
            audited |= {(audited_mechanism, "") for audited_mechanism, _ in audited}
        assert (mechanism, observer) in audited or reason(entry), f"{name}, {setting}: {mechanism}, {observer}"


def test_every_mechanism_with_a_budget_has_an_audit_or_a_reason() -> None:
    """Of perturbed data, too, whose lines nobody knows before they are made."""
    audited = {mechanism for mechanism, _ in AUDITED_LINES.values()}
    assert set(get_args(Mechanism)) == audited | REASONS.keys() | WITHOUT_BUDGET
    assert not audited & WITHOUT_BUDGET
