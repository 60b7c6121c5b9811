from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from tasks.core.contracts import RatingScale
from tasks.core.errors import DataError
from tasks.datasets.trust import CIAO, EPINIONS, ReleaseOptions, TrustNetwork
from tasks.papers.privsr.protocol import Options, prepare
from tasks.papers.protocol import NetworkCount, Prepared
from tests.datasets import formats
from tests.protocols.tables import as_published, assert_same, interactions, random_interactions, shuffled, stored

SCALE = RatingScale(low=1, high=5, step=1)
OPTIONS = Options(
    keep={"rating": (1, None)}, min_item_raters=3, min_user_ratings=1, folds=5, valid_share=0.1, split_seed=0
)


def changed(**options: object) -> Options:
    return Options.model_validate(OPTIONS.model_dump() | options)


def trust(*rows: tuple[int, int]) -> pl.DataFrame:
    schema = {"source": pl.Int64, "target": pl.Int64}
    return pl.DataFrame(list(rows), schema, orient="row").with_columns(relation=pl.lit("trust"))


@pytest.fixture(scope="module")
def random_tables() -> dict[str, pl.DataFrame]:
    people = 10 + 7 * np.random.default_rng(1).integers(0, 120, (800, 2))
    return {"interactions": random_interactions(1500, 90, 300, low=0), "social": trust(*people.tolist())}


@pytest.fixture(scope="module")
def prepared(random_tables: dict[str, pl.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(stored(tmp_path_factory.mktemp("raw"), random_tables, scale=SCALE, time="seconds"), OPTIONS)


def test_products_of_few_raters_are_left_out_once(
    random_tables: dict[str, pl.DataFrame], prepared: Prepared, tmp_path: Path
) -> None:
    """Distinct raters with a rating on the scale, of which the latest counts."""
    latest: dict[int, dict[int, float]] = {}
    rated = random_tables["interactions"].filter(pl.col("rating") >= 1).sort("timestamp", "rating")
    for user, item, rating in rated.select("user", "item", "rating").rows():
        latest.setdefault(item, {})[user] = rating
    expected = {(user, item, mine[user]) for item, mine in latest.items() if len(mine) >= 3 for user in mine}
    tables = as_published(prepared, tmp_path)
    users, items = (tables[name]["original"].cast(pl.Int64).to_list() for name in ("user_ids", "item_ids"))
    rows = tables["interactions"].select("user", "item", "rating").rows()
    assert {(users[user], items[item], rating) for user, item, rating in rows} == expected
    assert len(rows) == len(expected)
    assert min(len(mine) for mine in latest.values()) < 3


def test_least_numbers_are_counted_once_products_first(tmp_path: Path) -> None:
    rows = interactions((1, 1, 5, 1), (2, 1, 4, 1), (2, 2, 3, 1), (2, 3, 3, 1), (3, 2, 3, 1))
    raw = stored(tmp_path, {"interactions": rows, "social": trust((1, 2), (2, 3))}, scale=SCALE, time="seconds")
    actual = prepare(raw, changed(min_item_raters=2, min_user_ratings=2))
    assert actual.tables["user_ids"]["original"].to_list() == ["2"]
    assert actual.tables["item_ids"]["original"].to_list() == ["1", "2"]
    sizes = [(count.users, count.items, count.interactions) for count in actual.counts[:5]]
    assert sizes == [(3, 3, 5), (3, 3, 5), (3, 3, 5), (3, 2, 4), (1, 2, 2)]
    with pytest.raises(DataError, match=r"none are left .users-with, least 3"):
        prepare(raw, changed(min_item_raters=2, min_user_ratings=3))


def test_trust_is_between_users_left_and_counted(random_tables: dict[str, pl.DataFrame], prepared: Prepared) -> None:
    users = prepared.tables["user_ids"]["original"].cast(pl.Int64).to_list()
    pairs = random_tables["social"].select("source", "target").rows()
    inside = [pair for pair in pairs if set(pair) <= set(users)]
    others = [pair for pair in inside if pair[0] != pair[1]]
    steps = [count.links for count in prepared.counts if isinstance(count, NetworkCount)]
    assert steps == [len(pairs), len(inside), len(others), len(set(others))]
    assert len(set(steps)) == 4
    actual = prepared.tables["social"].select("source", "target").rows()
    assert [(users[source], users[target]) for source, target in actual] == sorted(set(others))


@pytest.mark.parametrize("seed", range(3))
def test_without_times_the_order_of_the_rows_means_nothing(
    random_tables: dict[str, pl.DataFrame], tmp_path: Path, seed: int
) -> None:
    first = stored(tmp_path / "one", random_tables, scale=SCALE)
    other = stored(tmp_path / "other", shuffled(random_tables, seed), scale=SCALE)
    expected = prepare(first, OPTIONS)
    assert_same(prepare(other, OPTIONS), expected)
    ratings = expected.tables["interactions"]["rating"]
    assert (ratings != ratings.round()).any()  # means


def test_each_rating_is_in_a_random_fold_and_the_first_is_the_test(prepared: Prepared) -> None:
    rows, folds = prepared.tables["interactions"], prepared.tables["folds"]
    assert folds.select("user", "item").equals(rows.select("user", "item"))
    assert_binomial(folds["fold"] == 2, 0.2)
    assert folds["fold"].unique().sort().to_list() == list(range(5))
    assert (folds["fold"] == 0).equals(rows["split"] == "test")
    assert (folds["validates"] & (folds["fold"] != 0)).equals(rows["split"] == "valid")
    assert_binomial(folds["validates"], 0.1)


def assert_binomial(chosen: pl.Series, share: float) -> None:
    """Within five standard deviations."""
    assert abs(chosen.sum() - share * len(chosen)) <= 5 * (share * (1 - share) * len(chosen)) ** 0.5


@pytest.mark.parametrize("x", [0, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_each_rating_is_sensitive_with_probability_x(prepared: Prepared, x: float) -> None:
    assert_binomial(prepared.tables["folds"]["sensitivity"] < x, x)


def test_sensitivity_has_nothing_to_do_with_folds(prepared: Prepared, tmp_path: Path, random_tables: dict) -> None:
    """Hypergeometric: of some 1,000 ratings half are sensitive, in each fold too, within 5 standard deviations."""
    folds = prepared.tables["folds"]
    shares = folds.group_by("fold").agg((pl.col("sensitivity") < 0.5).mean(), pl.len())
    assert ((shares["sensitivity"] - 0.5).abs() < 5 * 0.5 / shares["len"].sqrt()).all()
    raw = stored(tmp_path, random_tables, scale=SCALE, time="seconds")
    fewer = prepare(raw, changed(folds=2)).tables["folds"]
    assert fewer["sensitivity"].equals(folds["sensitivity"])
    assert not prepare(raw, changed(split_seed=1)).tables["folds"]["sensitivity"].equals(folds["sensitivity"])


@pytest.mark.parametrize(
    ("published", "release", "expected"),
    [
        (CIAO, "plain", (7340, 21880, 183837, 111527)),
        (EPINIONS, "timestamps", (22119, 59104, 633042, 298513)),
    ],
)
def test_what_real_data_leave(
    mirror: Path, tmp_path: Path, published: TrustNetwork, release: Literal["plain", "timestamps"], expected: object
) -> None:
    """Users, products, ratings, trust relations; Table 1 of the paper has other numbers, as the module says."""
    folder = formats.obtained(published, tmp_path, mirror, ReleaseOptions(release=release))
    last = prepare(formats.converted(published, folder), OPTIONS).counts[-1]
    assert (last.users, last.items, last.interactions, last.links) == expected
