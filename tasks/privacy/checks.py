"""What every mechanism refuses before it touches data: impossible budgets, values out of range, broken blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SMALLEST_EPSILON = 1e-300
"""Below, constants of mechanisms overflow. Noise has a bound of its own: `tasks.privacy.secure.check_scale`."""


def check_epsilon(epsilon: float) -> None:
    """Refuse a budget that is not a positive finite number, or too small for double precision.

    Raises:
        ValueError: epsilon is zero, negative, below `SMALLEST_EPSILON`, infinite or NaN.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a positive finite number (is {epsilon})")
    if epsilon < SMALLEST_EPSILON:
        raise ValueError(f"the budget is too small: epsilon must be at least {SMALLEST_EPSILON:g} (is {epsilon:g})")


def check_budget(epsilon: float) -> None:
    """Refuse a budget as `check_epsilon` does, unless it is infinite, which stands for no noise."""
    if epsilon != math.inf:
        check_epsilon(epsilon)


def check_delta(delta: float) -> None:
    """Refuse a δ outside (0, 1)."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1) (is {delta})")


def check_at_least(minimum: int, **values: float) -> None:
    """Refuse a value below the least."""
    for name, value in values.items():
        if value < minimum:
            raise ValueError(f"{name} must be at least {minimum} (is {value})")


def check_finite(**values: float) -> None:
    """Refuse a value that is negative or not a finite number."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number, 0 or more (is {value})")


def check_unit_interval(values: NDArray[np.floating], columns: Sequence[str]) -> None:
    """Refuse values outside [-1, 1] (the interval of LDP means), NaN included.

    Args:
        values: (n_rows, n_columns).
        columns: names of the columns.

    Raises:
        ValueError: names the first such column, how many of its rows are affected, and the first of them.
    """
    # min and max pass NaN on, so a NaN fails these comparisons like any value that is out of range.
    if not values.size or (values.min() >= -1 and values.max() <= 1):
        return
    wrong = ~((values >= -1) & (values <= 1))
    column = int(wrong.any(axis=0).argmax())
    row = int(wrong[:, column].argmax())
    raise ValueError(
        f"column {columns[column]!r}: {int(wrong[:, column].sum())} of {len(wrong)} rows are outside [-1, 1] "
        f"(first: row {row}, value {values[row, column]:g})"
    )


def check_one_hot(block: NDArray[np.floating], name: str) -> None:
    """Refuse a block whose rows are not one 1 among 0s.

    Args:
        block: (n_rows, n_categories).
        name: name of the categorical column.

    Raises:
        ValueError: names the column, how many of its rows are affected, and the first of them.
    """
    binary = ((block == 0) | (block == 1)).all(axis=1)
    wrong = ~binary | (block.sum(axis=1, dtype=np.float64) != 1)
    if count := int(wrong.sum()):
        raise ValueError(
            f"column {name!r}: {count} of {len(block)} rows are not one-hot (first: row {int(wrong.argmax())})"
        )
