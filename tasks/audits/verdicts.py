"""What samples of an audit prove of the model's ledger, how much they could have proved, and what would be detected."""

from __future__ import annotations

from typing import Any

from tasks.audits import Samples, auditor
from tasks.privacy.audits.audit import Audit, audit, verdict
from tasks.privacy.audits.power import power

CONFIDENCE = 0.999
"""Of all bounds that are taken together, those of a suite or of a command: if all models are sound, any of them is
refuted once in a thousand times, or less (Bonferroni: each of m bounds holds at 1 - 0.001/m)."""
ROUNDED = 1e-6
"""By how much of itself an accounted ε may be above what is claimed."""


def lower_bound(samples: Samples, confidence: float = CONFIDENCE) -> Audit:
    """The lower bound on ε that samples prove, at the δ of the ledger.

    To be compared with `samples.entry.accounted_epsilon`, by `tasks.privacy.audits.audit.verdict`.
    """
    return audit(samples.present, samples.without, confidence, samples.entry.accounted_delta)


def corrected_confidence(audits: int) -> float:
    """The confidence of each of so many audits, such that all hold together at `CONFIDENCE`."""
    return 1 - (1 - CONFIDENCE) / max(audits, 1)


def record(name: str, samples: Samples, confidence: float) -> dict[str, Any]:
    """What an audit shows, as a record of audit.json: what it is of, the bound, and what it could have shown.

    `verdict` is about the claim, or what is accounted where nothing is claimed; where more is accounted than claimed,
    an audit that does not refute the claim was too weak. `fault`: more is proved than is accounted. `power`: the
    smallest ε that it would have refuted, None for none.
    """
    entry, result = samples.entry, lower_bound(samples, confidence)
    held = entry.accounted_epsilon if entry.claimed_epsilon is None else entry.claimed_epsilon
    assert held is not None, "an audit is held against something"
    accounted = entry.accounted_epsilon
    said = verdict(result, held)
    if said == "consistent" and accounted is not None and accounted > held * (1 + ROUNDED):
        said = "inconclusive"
    return {
        "audit": name,
        "worst_case": auditor(name).worst_case,
        "protects": entry.protects,
        "mechanism": entry.mechanism,
        "neighbouring": entry.neighbouring,
        "observer": entry.observer,
        "epsilon_claimed": held,
        "epsilon_accounted": accounted,
        "delta": entry.accounted_delta,
        "audited_epsilon": result.epsilon,
        "confidence": result.confidence,
        "samples": result.samples,
        "provable": result.provable,
        "power": power(result, (samples.present, samples.without), held, entry.events, entry.accounted_delta),
        "verdict": said,
        "fault": accounted is not None and result.epsilon > accounted,
    }
