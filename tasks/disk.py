"""Bringing files to the disk: what is renamed into its place is whole there, even after a power cut; digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk."""
    for written in [*path.rglob("*"), path] if path.is_dir() else [path]:
        _sync(written)


def rename(source: Path, target: Path, *, durable: bool = True) -> None:
    """Rename a file or a folder, in whose place there may be a file or an empty folder.

    Args:
        durable: have its content on the disk before, and its new name there after.

    Raises:
        OSError: as `os.replace`.
    """
    if durable:
        sync(source)
    os.replace(source, target)
    if durable:
        _sync(target.parent)


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
