"""Types of tables and their rows, for annotations alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

Row = dict[str, Any]
"""A row of a table, or a record of results, by column: as `iter_rows(named=True)` of polars or JSON gives it."""
Columns = Mapping[str, pl.DataType | type[pl.DataType]]
"""Column -> its type."""
