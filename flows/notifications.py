"""A message to a webhook whenever a run fails, as an automation of the Prefect server."""

from __future__ import annotations

from contextlib import suppress
from typing import cast
from urllib.parse import urlsplit
from uuid import UUID

from tasks.errors import ConfigurationError

NAME = "dprec-failures"
PAYLOAD = """{% set why = flow_run.state.message | replace("Flow run encountered an exception: StageFailed: ", "") %}\
{% set said = "dprec run " ~ flow_run.name ~ ": " ~ flow_run.state.name ~ ": " ~ why %}\
{"text": {{ said | tojson }}}"""
"""Prefect fills it in (Jinja)."""


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


def notify(url: str) -> None:
    """Have the Prefect server POST `{"text": MESSAGE}` to a webhook for every run that fails or crashes.

    Chat services such as Slack and Mattermost take that form. The address is kept as a secret on the server. Called
    again, it replaces the address.

    Raises:
        ConfigurationError: it is no http(s) address.
    """
    require_webhook(url)
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
