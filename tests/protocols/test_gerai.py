import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core.contracts import Feature, RatingScale, users_schema
from tasks.core.errors import DataError
from tasks.core.raw import RawTables
from tasks.datasets.encoding import encode
from tasks.datasets.movielens import ML_100K
from tasks.papers.gerai.protocol import Options, prepare, rating_features
from tests.datasets import formats
from tests.protocols import tables

SCALE = RatingScale(low=1, high=5, step=1)
OPTIONS = Options(split_seed=0, test_share=0.2, valid_share=0.05)


def interactions(*rows: tuple[int, int, float | None, str]) -> pl.DataFrame:
    schema = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32, "split": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


RATINGS = interactions(
    (0, 0, 5, "train"), (0, 1, 4, "train"), (0, 2, 1, "train"), (0, 3, 5, "train"), (0, 4, 3, "test"),
    (1, 0, 2, "train"), (1, 1, 2, "valid"), (2, 0, 3, "test"), (3, 2, 1, "train"), (3, 3, 2, "train"),
)  # fmt: skip


def obvious(ratings: list[float]) -> dict[str, float]:
    """The 18 numbers as docs/methods.md §2 words them, one at a time."""
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
    table, features = rating_features(RATINGS, 4, SCALE)
    compare(table.filter(pl.col("user") != 2), RATINGS)
    assert table["user"].to_list() == [0, 1, 2, 3]
    assert table.columns == users_schema(features).names
    assert len(features) == 18
    assert all(feature.kind == "numeric" for feature in features)


def test_a_user_without_training_ratings_is_neutral() -> None:
    table, _ = rating_features(RATINGS, 4, SCALE)
    row = table.row(2, named=True)
    assert all(row[name] == 0 for name in row if name.startswith(("n_", "count", "ratio", "entropy")))
    assert [row[name] for name in row if name.endswith("_rating")] == [3] * 4


def test_only_counts_have_fitted_bounds() -> None:
    _, features = rating_features(RATINGS, 4, SCALE)
    fitted = {feature.name: feature for feature in features if feature.bounds == "fitted"}
    assert set(fitted) == {"n_ratings", *(f"count_{level}" for level in range(1, 6))}
    assert (fitted["n_ratings"].low, fitted["n_ratings"].high) == (0, 4)


def test_half_stars_have_ten_levels_and_their_own_middle() -> None:
    halves = RATINGS.with_columns(rating=pl.col("rating") - 0.5)
    table, features = rating_features(halves, 4, RatingScale(low=0.5, high=5, step=0.5))
    names = [feature.name for feature in features]
    assert [name for name in names if name.startswith("count_")] == [f"count_{n / 2:g}" for n in range(1, 11)]
    assert table.row(2, named=True)["mean_rating"] == 2.75
    assert table["count_4.5"].to_list() == [2, 0, 0, 0]
    assert encode(table, features).shape == (4, len(names))


@pytest.mark.parametrize("rating", [6, 2.5, None])
def test_ratings_off_the_scale_are_refused(rating: float | None) -> None:
    wrong = pl.concat([RATINGS, interactions((0, 9, rating, "train"))])
    with pytest.raises(DataError, match=f"user 0, item 9: rating is {float(rating) if rating else None}, not 1 to 5"):
        rating_features(wrong, 4, SCALE)


def raw(folder: Path, attribute: str = "gender") -> RawTables:
    """Raw tables of users 10, 20, 30 who have an attribute, of which the last one's is missing."""
    rows = tables.interactions(
        (30, 7, 4.0, 3), (10, 7, 5.0, 1), (10, 8, 2.0, 2), (20, 9, 1.0, 5), (10, 7, 3.0, 9), (30, 8, 1.0, 1)
    )
    people = pl.DataFrame({"user": [10, 20, 30], attribute: ["F", "M", None]})
    feature = Feature(name=attribute, kind="categorical", categories=("F", "M", "?"), unknown="?", sensitive=True)
    return tables.stored(
        folder, {"interactions": rows, "users": people}, features=(feature,), scale=SCALE, time="seconds"
    )


def test_the_most_recent_of_repeated_ratings_is_kept(tmp_path: Path) -> None:
    prepared = prepare(raw(tmp_path), OPTIONS)
    assert [count.interactions for count in prepared.counts] == [6, 5]
    assert prepared.tables["interactions"].filter(pl.col("user") == 0)["rating"].to_list() == [3.0, 2.0]
    assert prepared.tables["user_ids"]["original"].to_list() == ["10", "20", "30"]
    assert prepared.tables["users"]["gender"].to_list() == ["F", "M", "?"]


def test_a_feature_with_the_name_of_a_number_about_ratings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="feature 'mean_rating' has the name of a number about ratings"):
        prepare(raw(tmp_path, "mean_rating"), OPTIONS)


def test_ml_100k_has_44_encoded_columns_in_bounds(mirror: Path, tmp_path: Path) -> None:
    prepared = prepare(formats.converted(ML_100K, formats.obtained(ML_100K, tmp_path, mirror)), OPTIONS)
    table = prepared.tables["users"]
    compare(table.head(60), prepared.tables["interactions"])
    encoded = encode(table, prepared.features)
    assert encoded.shape == (943, 44)
    assert np.abs(encoded).max() == 1
    assert [feature.name for feature in prepared.features if feature.sensitive] == ["gender", "age", "occupation"]


def timed(folder: Path, **columns: pl.Expr) -> RawTables:
    """Five users with six items each, but the last of them with two; the later the higher the item."""
    rows = tables.interactions(*((u, i, 3.0, i) for u in range(5) for i in range(2 if u == 4 else 6)))
    rows = rows.with_columns(**columns)
    return tables.stored(folder, {"interactions": rows}, scale=SCALE, time="seconds")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"split": "last"}, {0: "train", 1: "train", 4: "valid", 5: "test"}),
        ({"split": "time"}, {0: "train", 3: "train", 4: "valid", 5: "test"}),
        ({"split": "given"}, {0: "valid", 1: "train", 5: "train"}),
        ({"split": "last", "user_core": 3}, {0: "train", 4: "valid", 5: "test"}),
        ({"split": "time", "item_core": 5}, {0: "train", 1: "test"}),
    ],
)
def test_own_data_choose_a_split(tmp_path: Path, options: dict, expected: dict[int, str]) -> None:
    parts = pl.when(pl.col("item") == 0).then(pl.lit("valid")).otherwise(pl.lit("train"))
    raw = timed(tmp_path, split=parts)
    prepared = prepare(raw, Options(split_seed=0, test_share=0.15, valid_share=0.18, **options))
    rows = prepared.tables["interactions"]
    first = dict(rows.filter(pl.col("user") == 0).select("item", pl.col("split").cast(pl.String)).iter_rows())
    assert expected.items() <= first.items()
    assert prepared.n_users == (4 if "user_core" in options else 5)
    steps = {count.step for count in prepared.counts}
    assert ("users-trained" in steps) == (options["split"] in ("time", "given"))
    assert ("users-and-items-with" in steps) == bool({"user_core", "item_core"} & options.keys())
    assert prepared.n_items == (2 if "item_core" in options else 6)
    assert ("preparation" in prepared.conditions) == (options["split"] in ("time", "given"))


def test_a_split_without_what_it_needs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "timed").mkdir()
    raw = timed(tmp_path / "timed")
    shares = {"split_seed": 0, "test_share": 0.2, "valid_share": 0.1}
    with pytest.raises(DataError, match="no column says the part"):
        prepare(raw, Options(split="given", **shares))
    with pytest.raises(DataError, match=r"none are left .users-and-items-with"):
        prepare(raw, Options(user_core=9, **shares))
    with pytest.raises(DataError, match="nothing says which came first"):
        prepare(replace(raw, schema=raw.schema.model_copy(update={"time": "none"})), Options(split="last", **shares))
