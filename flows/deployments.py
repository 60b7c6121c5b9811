"""Schedules: the demo every night, every suite that needs nothing placed by hand every week.

`dprec schedule` serves them from this machine, with the Prefect server at PREFECT_API_URL or one of its own, which can
call a webhook for runs that fail.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

from flows.server import CREDENTIAL, serve, server
from tasks.config.params import Suite, load
from tasks.core.errors import ConfigurationError
from tasks.external.folders import secret
from tasks.pipeline.parent import RUN
from tasks.stages.data import are_obtainable

NIGHTLY = "demo"
"""The suite that runs every night; all others that are scheduled run every week."""
NAME = "dprec-failures"
PAYLOAD = """{% set why = flow_run.state.message | replace("Flow run encountered an exception: StageFailed: ", "") %}\
{% set said = "dprec run " ~ flow_run.name ~ ": " ~ flow_run.state.name ~ ": " ~ why %}\
{"text": {{ said | tojson }}}"""
"""Prefect fills it in (Jinja)."""


def schedules() -> dict[str, tuple[str, str]]:
    """Deployment -> suite and cron in UTC, of every suite whose data sets are generated or can be downloaded.

    A run starts from what DVC knows: unchanged stages stay cached. Suites whose data only a form or a mirror gives out
    are not there: no user may be at hand to place it.

    Raises:
        ConfigurationError: the parameters are wrong.
    """
    loaded = load()
    suites = [
        name
        for name, suite in sorted(loaded.suites.items())
        if are_obtainable({loaded.processed[data].dataset for data in _data(suite)}, loaded.datasets)
    ]
    weekly = [name for name in suites if name != NIGHTLY]
    table = {f"{NIGHTLY}-nightly": (NIGHTLY, "0 2 * * *")} if NIGHTLY in suites else {}
    for index, name in enumerate(weekly):
        table[f"{name}-weekly"] = name, f"0 {3 + index // 7} * * {index % 7}"
    return table


def _data(suite: Suite) -> set[str]:
    trained = {experiment.data for experiment in suite.experiments.values()}
    embedded = {embedding.data for embedding in suite.embeddings.values()}
    aligned = {alignment.data for alignment in suite.aligned.values()}
    return {suite.data, *trained, *embedded, *aligned, *filter(None, [suite.counts])}


def _asked_for() -> str:
    """Where the credential is that the pages of our own server ask for: in a file that only its owner can read."""
    path = Path(os.environ.get("PREFECT_HOME", ".prefect")) / "credential"
    with secret(path) as file:
        file.write(os.environ[CREDENTIAL] + "\n")
    return f", which ask for what {path} holds"


def serve_schedules(notify: str | None = None) -> None:
    """Serve the deployments until interrupted, one run at a time, and their reports.

    notify: the address of a webhook that is notified of every run that fails.

    Raises:
        ConfigurationError: no server is named and none can be started, or the webhook has no http(s) address.
    """
    if notify is not None:
        require_webhook(notify)
    named = "PREFECT_API_URL" in os.environ
    os.environ[RUN] = str(os.getpid())  # scheduled runs, which are processes of their own, end with this one
    address = server(pages=True)
    serve()
    if notify is not None:
        notify_of_failures(notify)
    elif not named:
        forget()

    for name, (suite, cron) in (table := schedules()).items():
        print(f"{name:<40} {suite:<33} {cron} (UTC)", flush=True)
    pages = address.removesuffix("/api") + ("" if named else _asked_for())
    print(f"runs are shown at {pages}; end with Ctrl-C", flush=True)
    _serve(table)


def _serve(table: dict[str, tuple[str, str]]) -> None:
    """As `prefect.serve`, but that SIGTERM is what the command makes of it: Prefect waits for itself in its handler."""
    from prefect.runner import Runner
    from prefect.types.entrypoint import EntrypointType

    from flows.pipeline import regenerate

    runner = Runner(limit=1)
    runner.handle_sigterm = signal.getsignal(signal.SIGTERM)  # type: ignore[assignment, method-assign]
    for name, (suite, cron) in table.items():
        deployment: Any = regenerate.to_deployment(
            name=name,
            cron=cron,
            parameters={"suite": suite, "wait": True},
            description=f"Brings the report of {suite} up to date.",
            tags=[suite],
            entrypoint_type=EntrypointType.MODULE_PATH,  # by its file, flows/ would come first where DVC is looked for
        )
        runner.add_deployment(deployment)
    asyncio.run(runner.start())


def require_webhook(url: str) -> None:
    """Refuse what is no address of a webhook, without showing it: it may hold a secret.

    Raises:
        ConfigurationError: it is no http(s) address.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("--notify (or DPREC_NOTIFY): not an http(s) address, such as https://HOST/PATH")


def notify_of_failures(url: str) -> None:
    """Have the Prefect server POST `{"text": MESSAGE}` to a webhook for every run that fails or crashes.

    Chat services such as Slack and Mattermost take that form. The address is kept as a secret on the server. Called
    again, it replaces the address.
    """
    from prefect.automations import Automation, EventTrigger, Posture
    from prefect.blocks.webhook import Webhook
    from prefect.events.actions import CallWebhook
    from prefect.types import SecretDict
    from pydantic import SecretStr

    forget()
    webhook = Webhook(url=SecretStr(url), method="POST", headers=SecretDict({"Content-Type": "application/json"}))
    Automation(
        name=NAME,
        description="Calls a webhook for runs that failed.",
        trigger=EventTrigger(
            expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": "regenerate"},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[CallWebhook(block_document_id=cast(UUID, webhook.save(NAME)), payload=PAYLOAD)],
    ).create()


def forget() -> None:
    """Have the Prefect server call no webhook any more."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        for automation in client.read_automations_by_name(NAME):
            client.delete_automation(automation.id)
        with suppress(ObjectNotFound):
            client.delete_block_document(client.read_block_document_by_name(NAME, "webhook").id)
