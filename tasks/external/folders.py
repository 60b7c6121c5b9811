"""Folders of templates, and of what an audit writes, which git leaves out: it names people or has rows of theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

TEMPLATES = Path(__file__).parent / "templates"


IGNORED = ".gitignore"


def make(folder: Path) -> None:
    """Make a folder that git ignores, and those above it; one that is there is left as it is, and may be a project."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    (folder / IGNORED).write_text("*\n", encoding="utf-8")


def secret(path: Path) -> TextIO:
    """A new text file, open, that its owner alone can read, in place of one of that name; a link is not followed."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(handle, "w", encoding="utf-8", newline="")
