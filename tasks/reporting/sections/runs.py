"""How a system was run: the commands that give its row again, its parameters, its commit and its data."""

from __future__ import annotations

import json

from tasks.reporting.core.results import Results, System

UNRECORDED = "not recorded"


def system_terms(results: Results, system: System) -> list[tuple[str, str]]:
    """Terms and texts for the row of a system."""
    stages = ["train", *(["attack"] if results.run("attack", system.experiment) else [])]
    commands = [f"dvc repro suites/{results.suite}/dvc.yaml:{stage}@{system.experiment}" for stage in stages]
    ran = [run for stage in stages if (run := results.run(stage, system.experiment))]
    commits = dict.fromkeys(f"{run.revision} ({run.stage}, {run.started})" for run in ran)
    return [
        ("Command", "; ".join(commands)),
        ("Parameters", json.dumps(system.parameters, sort_keys=True, ensure_ascii=False)),
        ("Commit", ", ".join(commits) or UNRECORDED),
        ("Data", f"{system.dataset}, SHA-256 {results.fingerprints.get(system.dataset, UNRECORDED)}"),
    ]
