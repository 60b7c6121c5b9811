"""What samples of an audit prove of the model's ledger, and whether the same audit notices less noise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tasks.audits import Samples, auditor
from tasks.privacy.audits.audit import ROUNDED, Audit, audit
from tasks.privacy.controls import scaled

if TYPE_CHECKING:
    from tasks.core.rows import Row

CONFIDENCE = 0.999
"""Of all bounds that are taken together, those of a suite or of a command: if all models are sound, any of them is
refuted once in a thousand times, or less (Bonferroni: each of m bounds holds at 1 - 0.001/m)."""
CONTROLS = {"half": 0.5, "none": 0.0}
"""Name of a positive control -> the share of its noise that the audited system keeps. Half of the noise of a pure
mechanism is twice its ε, of Gaussian noise more."""


def lower_bound(samples: Samples, confidence: float = CONFIDENCE) -> Audit:
    """The lower bound on ε that samples prove, at the δ of the ledger.

    To be compared with `samples.entry.accounted_epsilon`, by `tasks.privacy.audits.audit.verdict`. What is accounted of
    Gaussian noise alone is judged as such.
    """
    entry = samples.entry
    gaussian = entry.accounted_epsilon is not None and all(event.kind == "gaussian" for event in entry.events)
    return audit(samples.present, samples.without, confidence, entry.accounted_delta, gaussian=gaussian)


def corrected_confidence(audits: int) -> float:
    """The confidence of each of so many audits, such that all hold together at `CONFIDENCE`."""
    return 1 - (1 - CONFIDENCE) / max(audits, 1)


def record(name: str, confidence: float, seed: int, **arguments: Any) -> Row:
    """Run an audit and its controls; what they show, as a record of audit.json.

    `epsilon_claimed` is what is accounted where nothing is claimed. `controls`: the bound that the same audit proves of
    the same system with less noise. They are run where they decide: a claim that is refuted needs none, and one that so
    many samples cannot refute, or below what is accounted, stays inconclusive. Controls have the audit's seed and
    arguments.
    """
    run = partial(auditor(name), seed, **arguments)
    samples = run()
    entry, result = samples.entry, lower_bound(samples, confidence)
    accounted = entry.accounted_epsilon
    claim = accounted if entry.claimed_epsilon is None else entry.claimed_epsilon
    assert claim is not None, "an audit is held against something"
    controls: dict[str, Audit] = {}
    is_met = accounted is not None and accounted <= claim * (1 + ROUNDED)
    if is_met and result.epsilon <= claim < result.provable:
        for control, share in CONTROLS.items():
            with scaled(share):
                controls[control] = lower_bound(run(), confidence)
    return {
        "audit": name,
        **{name: getattr(entry, name) for name in ("protects", "unit", "neighbouring", "mechanism", "observer")},
        "epsilon_claimed": claim,
        "epsilon_accounted": accounted,
        "delta": entry.accounted_delta,
        "audited_epsilon": result.epsilon,
        "confidence": result.confidence,
        "samples": result.samples,
        "provable": result.provable,
        "controls": {control: bound.epsilon for control, bound in controls.items()},
    }


def is_fault(audited: Row) -> bool:
    """Whether a record proves more than is accounted."""
    accounted = audited["epsilon_accounted"]
    return accounted is not None and audited["audited_epsilon"] > accounted
