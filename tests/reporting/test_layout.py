"""How numbers are written."""

import pytest

from tasks.reporting.core.layout import count, format_difference, join_words, number


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
