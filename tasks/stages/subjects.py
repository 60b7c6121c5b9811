"""What a check looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks.quality.rules import Table


@dataclass(frozen=True)
class Subject:
    """What a check looks at.

    files: all files it reads; each must be there.
    tables: reads them and gives the tables with their rules; DataError if a file is not what it should be.
    """

    files: list[Path]
    tables: Callable[[], list[Table]]
