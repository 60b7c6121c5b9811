"""Folders of what an audit writes, which names people or has rows of theirs: git leaves them out."""

from __future__ import annotations

from pathlib import Path


def make(folder: Path) -> None:
    """Make a folder that git ignores, and those above it; one that is there is left as it is, and may be a project."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
