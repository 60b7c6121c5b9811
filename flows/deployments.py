"""Schedules: the demo every night, the papers every week.

`dprec schedule` serves them from this machine, with the Prefect server at PREFECT_API_URL or one of its own.
"""

from __future__ import annotations

from typing import Any

from flows.server import server

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


def serve_schedules() -> None:
    """Serve the deployments until interrupted, one run at a time.

    Raises:
        ConfigurationError: no server is named and none can be started.
    """
    address = server(pages=True)
    from prefect import serve

    for name, (suite, cron) in SCHEDULES.items():
        print(f"{name:<16} {suite:<8} {cron} (UTC)", flush=True)
    print(f"runs are shown at {address.removesuffix('/api')}; end with Ctrl-C", flush=True)
    serve(*deployments(), limit=1, print_starting_message=False)
