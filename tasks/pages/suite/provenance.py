"""When, where and how the results were made, what that took, and which parameters decided it."""

from __future__ import annotations

import json
from typing import Any

from tasks.results.load import Results, Run

HOUR = 3600.0


def provenance(results: Results) -> dict[str, Any]:
    """What fills `suite/provenance.html.j2`."""
    labels = {system.experiment: system.label for system in results.suite.systems}
    machines = list(dict.fromkeys(map(_machine, results.runs)))
    rows = [
        vars(run) | {"label": labels.get(run.name, run.name), "machine": machines.index(_machine(run)) + 1}
        for run in results.runs
    ]
    parameters = {system.label: system.parameters for system in results.suite.systems}
    parameters |= {"attack": results.suite.attack} if results.suite.attack else {}
    return {
        "runs": rows,
        "n_revisions": len(results.revisions),
        "cpu_hours": sum(run.cpu_seconds for run in results.runs) / HOUR,
        "peak_memory": max((run.peak_memory_mb for run in results.runs), default=0),
        "machines": [
            {"about": "", "number": number, "processor": processor, "cores": cores, "packages": packages}
            for number, (processor, cores, packages) in enumerate(machines, 1)
        ],
        "parameters": {name: json.dumps(keys, indent=2, sort_keys=True) for name, keys in parameters.items()},
        "fingerprints": [{"name": name, "digest": digest} for name, digest in results.suite.fingerprints.items()],
    }


def _machine(run: Run) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    return run.processor, run.cores, tuple(sorted(run.packages.items()))
