"""What `dprec release` says of a release: its card as a page, and the paragraph that the command ends with."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.pages.page import TEMPLATES, Page, environment, render


def card(ledger: Mapping[str, Any]) -> str:
    """The card, self-contained, from the facts of ledger.json."""
    return render(Page("card.html", "release/card.html.j2", {"ledger": ledger}), home=False)


def paragraph(ledger: Mapping[str, Any], files: Sequence[str]) -> str:
    """Unit, ε, δ, from whom, under which conditions, utility, audit and files, as plain text."""
    template = environment(TEMPLATES).get_template("release/paragraph.txt.j2")
    return html.unescape(" ".join(template.render(ledger=ledger, files=files).split()))
