import math
import statistics
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.contracts import users_schema
from tasks.datasets import ml_100k
from tasks.datasets.encoding import encode
from tasks.datasets.features import NO_RATING, user_features
from tasks.errors import DataError
from tasks.evaluation.splits import per_user

OCCUPATIONS = ("artist", "student", "writer")
PEOPLE = pl.DataFrame(
    {
        "user": [1, 0, 2, 3],
        "age": [35, 34, 45, 46],
        "gender": ["F", "M", "M", "F"],
        "occupation": [*OCCUPATIONS, "writer"],
    },
    schema_overrides={"user": pl.Int32},
)


def interactions(*rows: tuple[int, int, float, str]) -> pl.DataFrame:
    schema = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32, "split": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


RATINGS = interactions(
    (0, 0, 5, "train"), (0, 1, 4, "train"), (0, 2, 1, "train"), (0, 3, 5, "train"), (0, 4, 3, "test"),
    (1, 0, 2, "train"), (1, 1, 2, "valid"), (2, 0, 3, "test"), (3, 2, 1, "train"), (3, 3, 2, "train"),
)  # fmt: skip


def obvious(ratings: list[float]) -> dict[str, float]:
    """The 18 numbers as METHODS words them, one at a time."""
    n = len(ratings)
    counts = {level: sum(rating == level for rating in ratings) for level in range(1, 6)}
    return {
        "n_ratings": n,
        **{f"count_{level}": count for level, count in counts.items()},
        **{f"ratio_{level}": count / n for level, count in counts.items()},
        "ratio_high": sum(rating >= 4 for rating in ratings) / n,
        "ratio_low": sum(rating <= 2 for rating in ratings) / n,
        "entropy": -sum(count / n * math.log(count / n) for count in counts.values() if count),
        "median_rating": statistics.median(ratings),
        "min_rating": min(ratings),
        "max_rating": max(ratings),
        "mean_rating": statistics.mean(ratings),
    }


def compare(table: pl.DataFrame, ratings: pl.DataFrame) -> None:
    for row in table.iter_rows(named=True):
        mine = ratings.filter((pl.col("user") == row["user"]) & (pl.col("split") == "train"))["rating"].to_list()
        for name, value in obvious(mine).items():
            assert row[name] == pytest.approx(value, abs=1e-6), (row["user"], name)


def test_numbers_are_those_of_the_training_ratings_alone() -> None:
    table, features = user_features(RATINGS, PEOPLE, OCCUPATIONS)
    compare(table.filter(pl.col("user") != 2), RATINGS)
    assert table["user"].to_list() == [0, 1, 2, 3]
    assert table.columns == users_schema(features).names
    assert [len(features), sum(feature.kind == "numeric" for feature in features)] == [21, 18]


def test_a_user_without_training_ratings_is_neutral() -> None:
    table, _ = user_features(RATINGS, PEOPLE, OCCUPATIONS)
    row = table.row(2, named=True)
    assert all(row[name] == 0 for name in row if name.startswith(("n_", "count", "ratio", "entropy")))
    assert [row[name] for name in row if name.endswith("_rating")] == [NO_RATING] * 4


def test_held_out_ratings_change_nothing() -> None:
    expected, _ = user_features(RATINGS, PEOPLE, OCCUPATIONS)
    changed = RATINGS.with_columns(rating=pl.when(pl.col("split") == "train").then("rating").otherwise(1))
    assert user_features(changed, PEOPLE, OCCUPATIONS)[0].equals(expected)


def test_ages_fall_into_the_groups_of_the_paper() -> None:
    table, _ = user_features(RATINGS, PEOPLE, OCCUPATIONS)
    assert table["age"].to_list() == ["under-35", "35-45", "35-45", "over-45"]


def test_only_counts_have_fitted_bounds_and_only_attributes_are_sensitive() -> None:
    table, features = user_features(RATINGS, PEOPLE, OCCUPATIONS)
    fitted = {feature.name: feature for feature in features if feature.bounds == "fitted"}
    assert set(fitted) == {"n_ratings", *(f"count_{level}" for level in range(1, 6))}
    assert (fitted["n_ratings"].low, fitted["n_ratings"].high) == (0, 4)
    assert [feature.name for feature in features if feature.sensitive] == ["gender", "age", "occupation"]
    assert encode(table, features).shape == (4, 18 + 2 + 3 + len(OCCUPATIONS))


def test_ratings_off_the_scale_and_unknown_users_are_refused() -> None:
    with pytest.raises(DataError, match=r"user 0, item 9: rating is 6\.0"):
        user_features(pl.concat([RATINGS, interactions((0, 9, 6, "train"))]), PEOPLE, OCCUPATIONS)
    with pytest.raises(DataError, match="user 8 has no row"):
        user_features(pl.concat([RATINGS, interactions((8, 9, 3, "train"))]), PEOPLE, OCCUPATIONS)


def test_ml_100k_has_44_encoded_columns_in_bounds(mirror: Path, tmp_path: Path) -> None:
    places = {"placed": tmp_path / "placed", "downloads": tmp_path / "downloads"}
    ml_100k.obtain(tmp_path, mirror=str(mirror), progress=False, **places)
    raw = ml_100k.read(tmp_path)
    ratings = raw.ratings.with_columns(pl.col("user") - 1, pl.col("rating").cast(pl.Float32))
    split = per_user(
        ratings["user"].to_numpy(),
        ratings["item"].to_numpy(),
        test_share=0.2,
        valid_share=0.05,
        rng=np.random.default_rng(0),
    )
    ratings = ratings.with_columns(split=pl.Series(split))
    table, features = user_features(ratings, raw.users.with_columns(pl.col("user") - 1), raw.occupations)
    compare(table.head(60), ratings)
    encoded = encode(table, features)
    assert encoded.shape == (943, 44)
    assert np.abs(encoded).max() == 1
    # What a majority guess scores, as METHODS section 7 states it.
    majority = [table[name].value_counts()["count"].max() / 943 for name in ("gender", "age", "occupation")]
    assert majority == pytest.approx([0.710, 0.577, 0.208], abs=5e-4)
