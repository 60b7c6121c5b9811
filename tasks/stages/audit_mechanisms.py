"""All registered audits by themselves, without a suite: what `dprec mechanisms` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any

from tasks.audits import AUDITS, CLAIMS
from tasks.audits.verdicts import corrected_confidence, is_fault, record
from tasks.errors import ConfigurationError
from tasks.privacy.audits.audit import verdict
from tasks.stages.parent import workers

SEED = 0


def require_known(names: Sequence[str]) -> list[str]:
    """The audits of these names, all if none is given.

    Raises:
        ConfigurationError: there is no such audit.
    """
    for name in names:
        if name not in AUDITS:
            raise ConfigurationError(f"audits: there is no {name!r}; known: {', '.join(AUDITS)}")
    return list(names) or list(AUDITS)


def run(names: Sequence[str], jobs: int) -> Iterator[dict[str, Any]]:
    """The record of each audit as it ends, with `claim`: whether it is of a claim without any accounted ε.

    Args:
        jobs: processes side by side.
    """
    confidence = corrected_confidence(len(names))
    with workers(jobs) as pool:
        for done in as_completed([pool.submit(_record, name, confidence) for name in names]):
            yield done.result()


def _record(name: str, confidence: float) -> dict[str, Any]:
    result = record(name, confidence, SEED)
    audited, claimed, accounted = (result[key] for key in ("audited_epsilon", "epsilon_claimed", "epsilon_accounted"))
    judged = verdict(audited, claimed, accounted, tuple(result["controls"].values()))
    return result | {"verdict": judged, "fault": is_fault(result), "claim": name in CLAIMS}
