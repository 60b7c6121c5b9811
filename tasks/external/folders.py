"""Folders of templates, and of what an audit writes, which git leaves out: it names people or has rows of theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

TEMPLATES = Path(__file__).parent / "templates"


def make(folder: Path) -> None:
    """Make a folder that git ignores, and those above it; one that is there is left as it is, and may be a project."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def secret(path: Path) -> TextIO:
    """A text file, empty and open, that its owner alone can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(handle, 0o600)
    return os.fdopen(handle, "w", encoding="utf-8", newline="")
