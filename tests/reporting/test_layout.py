"""How numbers are written."""

import math

import pytest

from tasks.reporting.core.layout import (
    Cell,
    Heading,
    Row,
    Table,
    count,
    format_difference,
    join_words,
    missing_cell,
    number,
)


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [(0.5074, "0.507", "+0.507"), (-0.0123, "−0.012", "−0.012"), (-0.0001, "0.000", "0.000"), (0.0, "0.000", "0.000")],
)
def test_numbers_never_show_a_signed_zero(value: float, plain: str, with_sign: str) -> None:
    assert (number(value), format_difference(value)) == (plain, with_sign)


def test_lists_and_counts_read_as_prose() -> None:
    assert [join_words(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [count(1, "seed"), count(2, "seed")] == ["1 seed", "2 seeds"]


@pytest.mark.parametrize(
    ("cell", "value", "written"),
    [
        (Cell("−0.033"), -0.033, ""),
        (Cell("0.536 ± 0.010"), 0.536, "0.536"),
        (Cell("1,077"), 1077.0, "1077"),
        (Cell("≥ 0.93, passes"), 0.93, "0.93"),
        (Cell("", ("feature: 20, δ = 1e-05", "interaction: ∞"), "stack"), math.inf, "Infinity"),
        (Cell("", ("feature: –", "interaction: 0.4"), "stack"), 0.4, "0.4"),
        (Cell("", ("interaction: not audited",), "stack"), None, ""),
        (missing_cell("not run"), None, ""),
        (Cell("not run", ("paper 0.549",), "missing number"), None, ""),
        (Cell("dpvae-ml-20m-twin", kind=""), None, ""),
    ],
)
def test_cells_are_sorted_by_their_number(cell: Cell, value: float | None, written: str) -> None:
    assert (cell.value, cell.sort) == (value, written)


def test_columns_know_their_group_and_whether_they_hold_numbers() -> None:
    rows = [Row("x", [Cell("ml-20m", kind=""), Cell("1"), missing_cell()]), Row("y", [Cell("", kind=""), Cell("–")])]
    table = Table("t", [Heading(name) for name in "abcd"], rows, groups=[("", 1), ("of b", 2)])
    assert [(group, numeric) for _, group, numeric in table.columns] == [
        ("", False), ("", False), ("of b", True), ("of b", False)
    ]  # fmt: skip
