"""Stage `audit`: attack what a suite's private systems release, at the budgets that its experiments use.

Writes data/runs/<suite>/audit.json, one record for each audit and budget (`tasks.audits.judging.record`): the bound
that samples prove, the largest one that so many could have proved, the smallest ε that would have been refuted, and in
`covers` the experiments and settings that it is an audit of. Audits call the shipped models and mechanisms on worst
cases of their own, so that the stage needs the parameters and the processed data's schemas, no trained model.
"""

from __future__ import annotations

from typing import Any

from tasks.audits import auditor
from tasks.audits.judging import corrected_confidence, record
from tasks.config.params import entry, load
from tasks.errors import PrivacyError
from tasks.stages.audit_plan import plan
from tasks.stages.command import run_stage
from tasks.stages.common import RUNS, atomic_write, write_json

SEED = 0
"""Of every audit's samples: they say something about the code alone, and need only be the same in every run."""
MOST: int | None = None
"""Samples of either world; None: as many as each audit takes by itself."""


def main(name: str) -> None:
    """Audit what suite `name` releases.

    Raises:
        PrivacyError: an audit proves more than a ledger accounts for.
    """
    params = load()
    entry("suites", name, params.suites)
    planned = plan(name, params)
    confidence, size = corrected_confidence(len(planned)), {} if MOST is None else {"n_samples": MOST}
    records: list[dict[str, Any]] = []
    for job, covers in planned.items():
        samples = auditor(job.audit)(SEED, **(dict(job.arguments) | size))
        records.append(record(job.audit, samples, confidence) | {"network": job.network, "covers": covers})
    with atomic_write(RUNS / name / "audit.json") as place:
        write_json(place, records)
    for audited in records:
        if audited["fault"]:
            raise PrivacyError(
                f"{RUNS / name / 'audit.json'}: {audited['audit']}: {audited['mechanism']}: the ledger accounts for "
                f"epsilon {audited['epsilon_accounted']:g}, but what is released proves at least "
                f"{audited['audited_epsilon']:.3g}; mend it before anything is released"
            )


if __name__ == "__main__":
    run_stage(main)
