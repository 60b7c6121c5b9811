"""What `dprec release` says of a release: its card as a page, and the paragraph that the command ends with."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.pages import exports
from tasks.pages.page import TEMPLATES, Page, environment, render

FOLDER = TEMPLATES / "release"
"""Drawn without the terms of suites, whose YAML a release does without."""


def card(ledger: Mapping[str, Any]) -> str:
    """The card, self-contained, from the facts of ledger.json."""
    return render(Page("card.html", "card.html.j2", {"ledger": ledger}, FOLDER), home=False)


def paragraph(ledger: Mapping[str, Any], files: Sequence[str]) -> str:
    """Unit, ε, δ, from whom, under which conditions, utility, audit and files, as plain text."""
    template = environment(FOLDER).get_template("paragraph.txt.j2")
    return html.unescape(" ".join(template.render(ledger=ledger, files=files).split()))


def records(ledger: Mapping[str, Any], date: str) -> dict[str, str]:
    """Name of file -> the release as a record of OpenDP's registry, and as a bill of materials.

    date: of publication, such as 2026-11-28.
    """
    utility, audit = ledger["utility"], ledger["audit"]
    properties = {
        **{key: ledger[key] for key in ("unit", "neighbouring", "epsilon", "delta", "noise")},
        "conditional-on": ", ".join(ledger["conditions"]) or None,
        "audited-epsilon": None if audit is None else max(bounds["f_dp"] for bounds in audit["canaries"].values()),
        "ndcg@10": None if utility is None else utility["ndcg"][ledger["model"]],
    }
    return {
        "opendp.json": exports.opendp("opendp.json.j2", {"ledger": ledger}, date, FOLDER),
        "cyclonedx.json": exports.cyclonedx(f"release/{ledger['model']}", properties),
    }
