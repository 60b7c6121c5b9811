"""What a check looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import ConfigurationError
from tasks.quality.rules import Table


@dataclass(frozen=True)
class Subject:
    """What a check looks at.

    files: all files it reads; each must be there.
    tables: reads them and gives the tables with their rules; DataError if a file is not what it should be.
    """

    files: list[Path]
    tables: Callable[[], list[Table]]


def known(section: str, key: str, table: dict[str, Any]) -> Any:
    """What params.yaml has under a name.

    Raises:
        ConfigurationError: there is no such name.
    """
    if key not in table:
        file = "suites/*/params.yaml" if section in ("experiments", "embeddings", "aligned") else "params.yaml"
        raise ConfigurationError(f"{file}: {section} has no {key!r}; known: {', '.join(sorted(table))}")
    return table[key]
