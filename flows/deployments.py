"""Schedules: the demo every night, the papers every week.

`dprec schedule` serves them from this machine, with the Prefect server at PREFECT_API_URL or one of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flows.server import CREDENTIAL, server

# Deployment -> (suite, cron in UTC). A weekly run of a suite starts from what DVC knows: unchanged stages stay cached.
# Not there: dipsgnn-ml-1m, whose part of MovieLens 1M only a mirror has.
SCHEDULES = {
    "demo-nightly": ("demo", "0 2 * * *"),
    "gerai-weekly": ("gerai", "0 3 * * 0"),
    "dipsgnn-weekly": ("dipsgnn", "0 3 * * 6"),
}


def deployments() -> list[Any]:
    """The scheduled runs as Prefect deployments of the one flow."""
    from flows.pipeline import regenerate

    return [
        regenerate.to_deployment(
            name=name,
            cron=cron,
            parameters={"suite": suite, "wait": True},
            description=f"Brings the report of {suite} up to date.",
            tags=[suite],
        )
        for name, (suite, cron) in SCHEDULES.items()
    ]


def _asked_for() -> str:
    """Where the credential is that the pages of our own server ask for: in a file that only its owner can read."""
    path = Path(os.environ.get("PREFECT_HOME", ".prefect")) / "credential"
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(os.environ[CREDENTIAL] + "\n")
    return f", which ask for what {path} holds"


def serve_schedules() -> None:
    """Serve the deployments until interrupted, one run at a time.

    Raises:
        ConfigurationError: no server is named and none can be started.
    """
    named = "PREFECT_API_URL" in os.environ
    address = server(pages=True)
    from prefect import serve

    for name, (suite, cron) in SCHEDULES.items():
        print(f"{name:<16} {suite:<8} {cron} (UTC)", flush=True)
    pages = address.removesuffix("/api") + ("" if named else _asked_for())
    print(f"runs are shown at {pages}; end with Ctrl-C", flush=True)
    serve(*deployments(), limit=1, print_starting_message=False)
