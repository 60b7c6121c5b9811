"""What the replicas with networks of users have of the published files, and what is to be found in them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score

from tasks.core.raw import RawTables
from tasks.datasets.synthetic.trust import TRAPS
from tests.datasets.replicas import converted, generated


@pytest.fixture(scope="module")
def ciao(tmp_path_factory: pytest.TempPathFactory) -> RawTables:
    return converted(generated(tmp_path_factory.mktemp("replica") / "raw", "ciao, timed", 1.0), "ciao, timed")


def test_at_scale_1_it_has_the_published_sizes_tails_and_traps(ciao: RawTables) -> None:
    """The figures of the real release, as counted in its files."""
    ratings, social = ciao.scan("interactions").collect(), ciao.scan("social").collect()
    assert len(ratings) == 284_086
    assert ratings["user"].n_unique() == ratings["user"].max() == 7_375
    assert (ratings["item"].n_unique(), ratings["item"].max()) == (105_114, 106_797)
    assert ratings["category"].unique().sort().to_list() == list(range(1, 29))
    assert (ratings["timestamp"].min(), ratings["timestamp"].max()) == (959_670_000, 1_302_591_600)
    assert (ratings["rating"] == 0).sum() == 34
    assert len(ratings) - len(ratings.unique(["user", "item"])) == 1_436
    assert ratings["timestamp"].is_sorted()
    assert len(social) == len(social.unique()) == 111_781
    activity, popularity = (ratings.group_by(name).len()["len"] for name in ("user", "item"))
    assert activity.min() >= 4
    assert activity.quantile(0.99) > 10 * activity.median()
    assert (popularity == 1).mean() == pytest.approx(0.64, abs=0.05)  # as the real one
    assert popularity.max() > 400


@pytest.fixture(scope="module")
def social(ciao: RawTables) -> tuple[pl.DataFrame, csr_array, csr_array, NDArray[np.int64], NDArray[np.int64]]:
    """Ratings; which and how (residuals) users rated; relations, and relations joined at random (same degrees)."""
    ratings = ciao.scan("interactions").filter(pl.col("rating") > 0).unique(["user", "item"], keep="first").collect()
    edges = ciao.scan("social").select("source", "target").collect().sample(20_000, seed=0).to_numpy()
    chance = np.stack([edges[:, 0], np.random.default_rng(0).permutation(edges[:, 1])], axis=1)
    chance = chance[chance[:, 0] != chance[:, 1]]  # users agree with themselves

    def damped(column: str) -> pl.Expr:
        return (pl.col("residual").sum() / (pl.len() + 5)).over(column)

    ratings = ratings.with_columns(residual=pl.col("rating") - pl.col("rating").mean())
    ratings = ratings.with_columns(residual=pl.col("residual") - damped("item"))
    ratings = ratings.with_columns(residual=pl.col("residual") - damped("user"))
    at = (ratings["user"].to_numpy(), ratings["item"].to_numpy())
    rated = csr_array((np.ones(len(ratings)), at))
    return ratings, rated, csr_array((ratings["residual"].to_numpy(), at)), edges, chance


def test_users_rate_as_those_whom_they_trust_beyond_what_product_and_user_explain(social) -> None:  # type: ignore[no-untyped-def]
    _, rated, residual, edges, chance = social

    def correlation(pairs: NDArray[np.int64]) -> float:
        first, second = residual[pairs[:, 0]], residual[pairs[:, 1]]
        both = rated[pairs[:, 0]].multiply(rated[pairs[:, 1]])
        deviation = np.sqrt(first.multiply(first).multiply(both).sum() * second.multiply(second).multiply(both).sum())
        return float(first.multiply(second).sum() / deviation)

    assert correlation(edges) > 0.1
    assert correlation(edges) > correlation(chance) + 0.05


@pytest.mark.parametrize("name", ["ciao", "epinions", "epinions, timed"])
def test_relations_and_traps_grow_with_the_scale(tmp_path: Path, name: str) -> None:
    layout, _, timed = name.partition(", ")
    raw = converted(generated(tmp_path / "raw", name, 0.05), name)
    ratings, social = raw.scan("interactions").collect(), raw.scan("social").collect()
    assert ratings["user"].max() <= round(TRAPS[layout].last_user * 0.05) + 1
    repeated = len(ratings) - ratings.select("user", "item").n_unique()
    assert repeated == pytest.approx(TRAPS[layout].repeats * 0.05, abs=1)
    trust = TRAPS[layout].trust["timestamps" if timed else "plain"]
    assert len(social) == pytest.approx(trust.relations * 0.05, abs=2)
    assert (social["source"] == social["target"]).sum() == pytest.approx(trust.loops * 0.05, abs=2)
    assert social.select("source", "target").is_duplicated().any() == (round(trust.repeats * 0.05) > 0)
    if timed:
        assert ratings["slot"].unique().sort().to_list() == social["slot"].unique().sort().to_list() == [*range(1, 12)]


PAIRS = {"weibo": ("weibo1", "weibo2"), "foursquare-twitter": ("foursquare", "twitter")}
NETWORKS = [(pair, network) for pair, networks in PAIRS.items() for network in networks]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Scale 1; of Foursquare-Twitter a tenth of the posts."""
    root = tmp_path_factory.mktemp("pairs")
    posts = {"weibo": 1.0, "foursquare-twitter": 0.1}
    return {name: generated(root / name, name, 1.0, posts=share) for name, share in posts.items()}


@pytest.fixture(scope="module")
def pairs(folders: dict[str, Path]) -> dict[str, RawTables]:
    return {name: converted(folder, name) for name, folder in folders.items()}


@pytest.mark.parametrize(("name", "scale"), [(name, scale) for name in PAIRS for scale in (0.0001, 0.002, 0.02)])
def test_the_reader_takes_pairs_at_any_scale(tmp_path: Path, name: str, scale: float) -> None:
    raw = converted(generated(tmp_path / "raw", name, scale), name)
    published = {"weibo": (8_117, 8_539), "foursquare-twitter": (5_392, 5_223)}[name]
    for network, users in zip(PAIRS[name], published, strict=True):
        assert raw.network(network).scan("users").collect().height == max(4, round(users * scale))


def edges(raw: RawTables, network: str) -> pl.DataFrame:
    return raw.network(network).scan("social").select("source", "target").collect()


@pytest.mark.parametrize(("name", "low"), [("weibo", 0.2), ("foursquare-twitter", 0.4)])
def test_an_anchor_users_neighbourhoods_overlap_across_networks_but_are_not_the_same(
    name: str, low: float, pairs: dict[str, RawTables]
) -> None:
    anchors = pairs[name].scan("anchors").collect()
    first, second = (edges(pairs[name], network) for network in PAIRS[name])
    moved = first.select(pl.all().replace_strict(anchors["source"], anchors["target"], default=None)).drop_nulls()
    common = moved.join(second, on=["source", "target"]).height / moved.height
    renamed = moved.select(pl.all().replace_strict(anchors["target"], anchors["target"].shuffle(seed=0)))
    assert low < common < 0.75  # IONE's release: 0.50
    assert common > 10 * renamed.join(second, on=["source", "target"]).height / moved.height


@pytest.mark.parametrize(("name", "network"), NETWORKS)
def test_friends_have_the_same_interests(name: str, network: str, pairs: dict[str, RawTables]) -> None:
    labels = pairs[name].network(network).scan("labels").collect().drop_nulls()
    values = labels.drop("user").to_numpy().astype(float)
    values -= values.mean(axis=0)
    row = np.arange(len(labels))
    known = edges(pairs[name], network).select(pl.all().replace_strict(labels["user"], row, default=None)).drop_nulls()
    known = known.to_numpy()

    def alike(pairs: np.ndarray) -> float:
        return float((values[pairs[:, 0]] * values[pairs[:, 1]]).sum(axis=1).mean())

    chance = np.stack([known[:, 0], np.random.default_rng(0).permutation(known[:, 1])], axis=1)
    assert alike(known) > alike(chance) + (0.1 if name == "weibo" else 0.15)


@pytest.mark.parametrize(
    ("name", "network", "margins"),
    [
        ("weibo", "weibo1", {"interests_0": 0.015, "gender": 0.15, "occupation": 0.03}),
        ("foursquare-twitter", "twitter", {"interests_0": 0.05, "gender": 0.05}),
    ],
)
def test_words_give_interests_and_attributes_away(
    name: str, network: str, margins: dict[str, float], pairs: dict[str, RawTables]
) -> None:
    tables = pairs[name].network(network)
    texts = tables.scan("posts").group_by("user").agg(pl.col("text").str.join(" ")).collect()
    people = texts.join(tables.scan("labels").collect(), on="user")
    people = people.join(tables.scan("users").select("user", "gender", "occupation").collect(), on="user")
    people = people.sort("user").head(3_000)
    words = csr_array(CountVectorizer(token_pattern=r"\S+", min_df=5).fit_transform(people["text"].to_list()))
    words.data = np.log1p(words.data)
    for column, margin in margins.items():
        rows = people[column].is_not_null().arg_true().to_numpy()
        label = people[column].cast(pl.String).to_numpy()[rows]
        majority = np.unique(label, return_counts=True)[1].max() / len(label)
        accuracy = cross_val_score(RidgeClassifier(alpha=100), words[rows], label, cv=3).mean()
        assert accuracy > majority + margin, column
