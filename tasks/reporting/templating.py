"""Templates of pages, and the one script that pages have."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tasks.reporting.core import drawing
from tasks.reporting.core.chart import ALARM, COLOURS


def environment(*packages: str) -> Environment:
    """What draws templates, everything escaped; ids that it gives out are unique among those of one environment.

    packages: whose own templates are looked for first.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in (*packages, __package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    used: Counter[str] = Counter()

    def anchor(text: str) -> str:
        name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
        used[name] += 1
        return name if used[name] == 1 else anchor(f"{name}-{used[name]}")

    made.filters["svg"] = drawing.svg
    made.filters["paint"] = paint
    made.globals["anchor"] = anchor
    return made


def paint(colour: str) -> str:
    """A colour of figures in CSS: as style.css has it for the paper at hand, itself where it is on any."""
    if colour == ALARM:
        return "var(--alarm)"
    return f"var(--c{COLOURS.index(colour)})" if colour in COLOURS else colour


def script(templates: Environment) -> dict[str, Markup]:
    """The text of the pages' script, and the digest by which their policy allows it."""
    assert templates.loader is not None
    text = templates.loader.get_source(templates, "page.js")[0]
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"script": Markup(text), "digest": Markup(digest)}
