"""Writes what an audit found: audit.json, index.html and, for the owner of the data alone, exposed.csv."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tasks.core.disk import atomic_write, require_writable
from tasks.core.errors import ConfigurationError
from tasks.external import folders
from tasks.external.findings import Answer, Audit
from tasks.pages.page import Page
from tasks.pages.page import render as draw

FILES = ("audit.json", "index.html", "exposed.csv")
FORMATS = ("dprec-audit/1", "dprec-audit/2")
"""Of audit.json, from the first version on."""
MOST_CURVES = 6
"""Of a figure: more cannot be distinguished."""


def require_folder(out: Path) -> None:
    """Refuse a folder that cannot be made or replaced, before an audit that may take hours.

    Raises:
        ConfigurationError: there is a file or a link of that name, or a folder that holds something else; or it is the
            current folder.
        PermissionError: the folder above may not be written to.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()) or not out.name:
        raise ConfigurationError(f"--out {out}: there is a file or a link of that name; choose another folder")
    if out.is_mount():  # which cannot be renamed
        raise ConfigurationError(f"--out {out}: is a mount point; choose a folder in it, such as {out / 'audit'}")
    entries = sorted(out.iterdir()) if out.is_dir() else []
    known = {*FILES, folders.IGNORED} if _is_audit(out / FILES[0]) else set()
    if others := [path.name for path in entries if path.name not in known or path.is_dir()]:
        raise ConfigurationError(f"--out {out}: holds {others[0]}, which no audit wrote; choose another folder")
    require_writable(out)


def _is_audit(path: Path) -> bool:
    """Whether a file is what `write` calls audit.json, of whatever version."""
    try:
        return json.loads(path.read_bytes())["format"] in FORMATS
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write(audit: Audit, exposed: pl.DataFrame | None, out: Path) -> list[Path]:
    """Replace the folder of an audit; the paths of its files. The same audit gives the same bytes.

    Raises:
        ConfigurationError, PermissionError: see `require_folder`.
    """
    require_folder(out)
    content = json.dumps(audit.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    texts = dict(zip(FILES, (content, render(audit)), strict=False))
    if exposed is not None and len(exposed):
        texts[FILES[-1]] = exposed.write_csv()
    with atomic_write(out) as new:
        folders.make(new)
        for name, text in texts.items():
            with folders.secret(new / name) as file:
                file.write(text)
    return [out / name for name in texts]


def render(audit: Audit) -> str:
    """The page, self-contained and without ids of users or items."""
    context = {"audit": audit, "questions": [_question(*numbered) for numbered in enumerate(audit.answers, 1)]}
    return draw(Page("index.html", "audit.html.j2", context, folders.TEMPLATES), home=False)


def _question(number: int, answer: Answer) -> dict[str, object]:
    """An answer, where its details are ("" for none), the attack that decides, all attacks as rows, and ROC curves."""
    curves = sorted((attack for attack in answer.attacks if attack.roc), key=lambda attack: attack.p or 0.0)
    rows = []
    for attack in answer.attacks:
        measures = {measure.name: measure for measure in (*attack.measures, *attack.controls)}
        leak = "shown" if attack.shown else "not shown"
        row = {"attack": attack.name, "p": attack.p_corrected, "leak": leak, "measures": measures}
        rows.append(row | {name: measure.value for name, measure in measures.items()})
    return {
        "answer": answer,
        "href": f"#answer-{number}" if answer.attacks or answer.notes else "",
        "best": next((attack for attack in answer.attacks if attack.name == answer.decided_by), None),
        "attacks": rows,
        "roc": {attack.name: attack.roc for attack in curves[:MOST_CURVES]},
    }
