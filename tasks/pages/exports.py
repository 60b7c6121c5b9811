"""Privacy cards in the forms of others, and what `dprec release` says of a release.

Forms: OpenDP's registry of deployments, and CycloneDX's bills of materials.

OpenDP: schemas/deployments-schema.yaml of opendp/deployments-registry-data; whoever deploys adds curator, region and
authors. The schema has no infinite ε, which is left out with its reason in the details, and no audited one.
CycloneDX 1.6 has `properties` of a model card.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.pages.page import TEMPLATES, Page, environment, render

if TYPE_CHECKING:
    from tasks.core.rows import Row

FOLDER = TEMPLATES / "release"
"""Drawn without the terms of suites, whose YAML a release does without."""


def opendp(facts: Mapping[str, object], date: str, folder: Path = TEMPLATES) -> str:
    """A record of OpenDP's registry as JSON, published on a date such as 2026-11-28.

    folder: whose template draws it from the facts.
    """
    text = environment(folder).get_template("opendp.json.j2").render(facts, date=date)
    return _as_text(json.loads(html.unescape(text)))


def cyclonedx(name: str, properties: Mapping[str, object]) -> str:
    """A bill of materials of one model as JSON, with `dprec:` properties; None is left out."""
    entries = [
        {"name": f"dprec:{key}", "value": value if isinstance(value, str) else json.dumps(value)}
        for key, value in properties.items()
        if value is not None
    ]
    model = {"type": "machine-learning-model", "name": name, "modelCard": {"properties": entries}}
    return _as_text({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [model]})


def _as_text(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def card(ledger: Mapping[str, object]) -> str:
    """The card, self-contained, from the facts of ledger.json."""
    return render(Page("card.html", "card.html.j2", {"ledger": ledger}, FOLDER), home=False)


def plain_text(template: str, **slots: object) -> str:
    """What the command says of a release of this `ledger` and `files`, or of a `command` that would make one."""
    return html.unescape(environment(FOLDER).get_template(f"{template}.txt.j2").render(slots))


def records(ledger: Row, date: str) -> dict[str, str]:
    """Name of file -> the release as a record of OpenDP's registry, and as a bill of materials.

    date: of publication, such as 2026-11-28.
    """
    utility, audit = ledger["utility"], ledger["audit"]
    properties = {
        **{key: ledger[key] for key in ("unit", "neighbouring", "epsilon", "delta", "noise")},
        "conditional-on": ", ".join(ledger["conditions"]) or None,
        "gaps": ledger["gaps"] or None,
        "audited-epsilon": None if audit is None else max(bounds["f_dp"] for bounds in audit["canaries"].values()),
        "ndcg@10": None if utility is None else utility["ndcg"],
    }
    return {
        "opendp.json": opendp({"ledger": ledger}, date, FOLDER),
        "cyclonedx.json": cyclonedx("release", properties),
    }
