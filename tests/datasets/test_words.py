import polars as pl
import pytest

from tasks.contracts import Feature
from tasks.datasets import movielens
from tasks.datasets.words import AGE_BANDS, attribute, category_words
from tasks.errors import DataError


@pytest.mark.parametrize(
    ("name", "category", "words"),
    [
        ("gender", "F", "female"),
        ("gender", "M", "male"),
        ("occupation", "M", "m"),  # an abbreviation of that attribute only
        ("occupation", "administrator", "administrator"),
        ("occupation", "none", "none"),
        ("occupation", "Doctor/health care", "doctor health care"),
        ("occupation", "K-12 student", "student"),
        ("occupation", "self-employed self", "self employed"),
        ("occupation", "7", "7"),
        ("occupation", "?", "?"),
        ("age", "under-35", "child teen young"),
        ("age", "under-18", "child teen"),
        ("age", "35-45", "adult"),
        ("age", "45-49", "adult older"),
        ("age", "over-45", "older elderly"),
        ("age", "over 64", "elderly"),
        ("age", "56+", "older elderly"),
        ("age", "19", "teen"),
        ("age", "20", "young"),
        ("age", "retired", "retired"),
        ("zip", "35-45", "35 45"),
    ],
)
def test_a_category_is_called_by_words(name: str, category: str, words: str) -> None:
    assert category_words(name, category) == tuple(words.split())


def test_groups_that_follow_one_another_name_every_age_once_and_in_order() -> None:
    """MovieLens' groups of ages: what they touch covers all bands, and no group touches less than the one before."""
    bands = list(AGE_BANDS.values())
    for groups in (movielens.AGE_GROUPS, tuple(movielens.AGES.values())):
        touched = [[bands.index(word) for word in category_words("age", group)] for group in groups]
        assert sorted({band for group in touched for band in group}) == list(range(len(bands)))
        assert [group[0] for group in touched] == sorted(group[0] for group in touched)
        assert all(group == list(range(group[0], group[-1] + 1)) for group in touched)


def test_a_number_is_the_band_or_the_third_that_it_lies_in() -> None:
    ages = [0.0, 12, 13, 19.5, 20, 34, 35, 45, 46, 64, 65, 120]
    users = pl.DataFrame({"user": range(12), "age": ages, "count": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]})
    age = attribute(Feature(name="age", kind="numeric", low=0, high=120), users)
    assert [age.words[code] for code in age.codes] == [
        (word,) for word in ("child", "teen", "young", "adult", "older", "elderly") for _ in range(2)
    ]
    count = attribute(Feature(name="count", kind="numeric", low=0, high=9), users)
    assert [count.values[code] for code in count.codes] == ["low"] * 3 + ["medium"] * 3 + ["high"] * 6


def test_a_number_whose_bounds_are_the_datas_own_is_refused_unless_it_is_an_age() -> None:
    """One user's largest number would move the thirds, and so the vectors and gradients, of everyone else."""
    users = pl.DataFrame({"user": range(3), "reviews": [10, 20, 300], "age": [10, 20, 30]})
    with pytest.raises(DataError, match="'reviews' has the data's own minimum and maximum for bounds"):
        attribute(Feature(name="reviews", kind="numeric", low=10, high=300, bounds="fitted"), users)
    fitted, public = (
        attribute(Feature(name="age", kind="numeric", low=low, high=120, bounds=bounds), users)
        for low, bounds in ((10, "fitted"), (0, "public"))
    )
    assert fitted.codes.tolist() == public.codes.tolist() == [0, 2, 2]


def test_values_belong_to_users_in_any_row_order_and_unknown_is_a_category_like_others() -> None:
    job = Feature(name="job", kind="categorical", categories=("writer", "unknown"), unknown="unknown")
    users = pl.DataFrame({"user": [2, 0, 1], "job": ["writer", "unknown", "writer"], "age": [70.0, 1.0, 30.0]})
    actual = attribute(job, users)
    assert actual.codes.tolist() == [1, 0, 0]
    assert actual.users_with("unknown").tolist() == [True, False, False]
    assert not actual.users_with("other").any()
    assert attribute(Feature(name="age", kind="numeric", low=1, high=120), users).codes.tolist() == [0, 2, 5]
    with pytest.raises(DataError, match="'job': 1 values are outside the 2 categories"):
        attribute(job, users.with_columns(job=pl.Series(["writer", "unknown", "pilot"])))
