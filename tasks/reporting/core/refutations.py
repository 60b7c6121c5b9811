"""Which claimed budgets an audit refuted: at a lower bound on ε above what is claimed."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.reporting.core import ledger
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import Results


@dataclass(frozen=True)
class Refutation:
    """A claimed ε that is too small."""

    label: str
    """Systems that claim it; the mechanism where the audit did not say whose it is."""
    experiments: tuple[str, ...]
    """Of these systems; empty where the audit did not say."""
    claimed: float
    proved: float
    """Lower bound on ε at the audit's confidence."""
    confidence: float

    @property
    def text(self) -> str:
        """As a clause: who claims what, and what is proved."""
        return f"{self.label} claims ε = {self.claimed:.3g}, but ε ≥ {self.proved:.3g} is proved"


def refutations(results: Results) -> list[Refutation]:
    """Every refuted claim, the one that is furthest exceeded first; audits of several systems' lines once."""
    lines = [line for line in ledger.lines(results) if line.audit is not None]
    known = []
    for record in results.audit or ():
        if record["verdict"] != "refuted":
            continue
        labels = {line.system.experiment: line.system.label for line in lines if line.audit is record}
        label = join_words(list(labels.values())) or f"“{record['mechanism']}”"
        bounds = (float(record["epsilon_claimed"]), float(record["audited_epsilon"]), float(record["confidence"]))
        known.append(Refutation(label, tuple(labels), *bounds))
    return sorted(known, key=lambda refuted: refuted.claimed - refuted.proved)
