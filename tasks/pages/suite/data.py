"""What the numbers are of, and when, where and how they were made."""

from __future__ import annotations

import json
from typing import Any

from tasks.results.load import Results, Run
from tasks.results.tables import COUNTS

SMALLEST_GROUP = 10
"""Groups of fewer users are not counted on pages."""


def data(results: Results) -> dict[str, Any]:
    """What fills `suite/data.html.j2`: counts by step, networks, word vectors, checks, spreads over users."""
    spreads: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in results.spreads.to_dicts():
        rows = spreads.setdefault((row["metric"], row["k"]), [])
        rows.append({"name": results.labels[row["experiment"]], **row})
    counted = [name for name in list(COUNTS)[3:] if results.counts[name].is_not_null().any()]
    return {
        "counts": results.counts.to_dicts(),
        "counted": counted,
        "words": [row for vectors in results.suite.words for row in _words(vectors)],
        "checks": results.checks.to_dicts(),
        "spreads": [{"metric": metric, "k": k, "rows": rows} for (metric, k), rows in spreads.items()],
        "networks": [network.model_dump() for network in results.suite.networks],
    }


def _words(vectors: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the vectors of the words of one data set are from; `users` is None for a group that is too small."""
    return [
        {
            "name": vectors["name"],
            "how": how,
            "words": counted["words"],
            "users": counted["users"] if counted["users"] >= SMALLEST_GROUP else None,
        }
        for how, counted in vectors["origins"].items()
    ]


def provenance(results: Results) -> dict[str, Any]:
    """What fills `suite/provenance.html.j2`: what the stages took, and which parameters decided the results."""
    machines = list(dict.fromkeys(map(_machine, results.runs)))
    rows = [
        vars(run) | {"label": results.labels.get(run.name, run.name), "machine": machines.index(_machine(run)) + 1}
        for run in results.runs
    ]
    parameters = {system.label: system.parameters for system in results.suite.systems}
    parameters |= {"attack": results.suite.attack} if results.suite.attack else {}
    return {
        "runs": rows,
        "n_revisions": len(results.revisions),
        "cpu_hours": sum(run.cpu_seconds for run in results.runs) / 3600,
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
