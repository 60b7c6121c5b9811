"""Privacy cards in the forms of others: OpenDP's registry of deployments, and CycloneDX's bills of materials.

Records: schemas/deployments-schema.yaml of opendp/deployments-registry-data; curator, region and authors are left to
whoever deploys. It knows no infinite ε, which is left out with the reason in its details, and none
that is audited. CycloneDX 1.6 has `properties` of a model card.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.pages.page import TEMPLATES, environment


def opendp(template: str, facts: Mapping[str, Any], date: str, folder: Path = TEMPLATES) -> str:
    """A record of OpenDP's registry as JSON.

    Args:
        template: draws it from the facts; in `folder`.
        date: of publication, such as 2026-11-28.
    """
    text = environment(folder).get_template(template).render(facts, date=date)
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
