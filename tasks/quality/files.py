"""What holds before any table is looked at: every file is there and can be read."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tasks.quality.rules import Table, null


def files(problems: Mapping[str, str | None]) -> Table:
    """The files of a check: file -> why it cannot be used, or None."""
    frame = pl.DataFrame(
        {"file": list(problems), "problem": list(problems.values())}, schema={"file": pl.String, "problem": pl.String}
    )
    return Table(
        "files", frame, (null("problem", "must be empty: every file is there and can be read"),), ids=("file",)
    )
