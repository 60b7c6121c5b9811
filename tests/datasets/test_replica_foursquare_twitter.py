from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score

from tasks.datasets import SOURCES, foursquare_twitter_text
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import foursquare_twitter as replica_foursquare_twitter
from tasks.datasets.synthetic.foursquare_twitter import ObtainOptions, obtain
from tasks.raw import RawTables, read_raw

NETWORKS = ("foursquare", "twitter")


def made(folder: Path, *, scale: float, posts: float = 1.0, seed: int = 1) -> Path:
    folder.mkdir(parents=True)
    obtain(folder, Places(None, folder, folder), ObtainOptions(scale=scale, posts=posts, seed=seed))
    return folder


def converted(folder: Path) -> RawTables:
    """Through the reader of the real data set."""
    place = folder / "tables"
    place.mkdir()
    foursquare_twitter_text.convert(folder, place, foursquare_twitter_text.ReadOptions())
    return read_raw(place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scale 1, but a tenth of the posts."""
    return made(tmp_path_factory.mktemp("replica") / "whole", scale=1.0, posts=0.1)


@pytest.fixture(scope="module")
def raw(folder: Path) -> RawTables:
    return converted(folder)


def test_at_scale_1_it_has_the_papers_sizes(raw: RawTables, folder: Path) -> None:
    assert replica_foursquare_twitter.POSTS == (48_756, 615_515)
    for network, users, follows, posts in zip(
        NETWORKS, (5_392, 5_223), (76_972, 164_919), (4_876, 61_552), strict=True
    ):
        tables = raw.network(network)
        assert tables.scan("users").collect().height == users
        social = tables.scan("social").collect()
        assert social.unique().height == social.height == follows
        assert (social["source"] != social["target"]).all()
        owners = folder / network / {"foursquare": "tips/user_tip", "twitter": "userTweet"}[network]
        assert owners.read_bytes().count(b"\n") == posts
    anchors = raw.scan("anchors").collect()
    assert len(anchors) == anchors["source"].n_unique() == anchors["target"].n_unique() == 3_388


def test_labels_are_known_of_as_many_foursquare_users_as_in_the_release(folder: Path) -> None:
    labels = pl.read_csv(folder / "foursquare/labels.tsv", separator="\t")
    assert labels["gender"].count() == 2_224
    assert labels["occupation_0"].count() == 316
    assert labels["interest_0"].count() == 3_637
    interests = labels.select(pl.sum_horizontal("^interest_.*$")).filter(labels["interest_0"].is_not_null())
    assert 3.0 < interests.to_series().mean() < 4.0  # the release: 3.45  # type: ignore[operator]


def test_the_traps_of_the_published_files_are_there(folder: Path) -> None:
    users = (folder / "foursquare/users/user").read_text().removesuffix("\n").split("\n")
    fields = [line.split("\t") for line in users]
    assert sorted({len(line) for line in fields}) == [11, 21]
    assert sum(len(line) == 11 for line in fields) == 1
    assert any("/" in line[2] for line in fields)
    assert any("," in line[12] for line in fields if len(line) == 21)
    names = {line.split("\t")[0].lower() for line in (folder / "twitter/user").read_text().split("\n")}
    linked = [line[7].rpartition("/")[2] for line in fields if line[7]]
    assert any(name.lower() not in names for name in linked)
    assert any(name.isupper() for name in linked)
    raw = (folder / "twitter/user").read_bytes()
    assert 0 < raw.count(b"\r") < 1000
    assert b"\r\n" not in raw
    assert all(line.count(b"\t") == 8 for line in raw.removesuffix(b"\n").split(b"\n"))
    bios = (folder / "foursquare/users/userbio").read_bytes()
    assert bios.endswith(b"\r")
    assert all(record.count(b"\t") == 1 for record in bios.removesuffix(b"\r").split(b"\r"))
    texts = (folder / "foursquare/tips/tipcleaned").read_bytes()
    assert b"\t\t\n" in texts
    assert any(byte > 127 for byte in texts)


def test_some_users_of_foursquare_have_written_nothing(raw: RawTables) -> None:
    tips = raw.network("foursquare").scan("users").collect()["tips"]
    assert 0.4 < (tips == 0).mean() < 0.8
    assert tips.max() > 20  # type: ignore[operator]


def edges(raw: RawTables, network: str) -> pl.DataFrame:
    return raw.network(network).scan("social").select("source", "target").collect()


def test_an_anchor_users_neighbourhoods_overlap_across_networks_but_are_not_the_same(raw: RawTables) -> None:
    anchors = raw.scan("anchors").collect()
    to_twitter = {"old": anchors["source"], "new": anchors["target"]}
    first = edges(raw, "foursquare").select(pl.all().replace_strict(**to_twitter, default=None)).drop_nulls()
    second = edges(raw, "twitter")
    common = first.join(second, on=["source", "target"]).height / first.height
    shuffled = {"old": anchors["target"], "new": anchors["target"].shuffle(seed=0)}
    renamed = first.select(pl.all().replace_strict(**shuffled))
    assert 0.4 < common < 0.75  # IONE's release: 0.50
    assert common > 10 * renamed.join(second, on=["source", "target"]).height / first.height


def test_anchor_users_have_similar_names_but_seldom_equal_ones(raw: RawTables) -> None:
    def hashes(network: str) -> np.ndarray:
        return raw.network(network).scan("users").select("^simhash_.*$").collect().to_numpy()

    source, target = raw.scan("anchors").collect().to_numpy().T
    first, second = hashes("foursquare")[source], hashes("twitter")[target]
    apart = (first != second).sum(axis=1)
    assert np.median(apart) < 10 < 13 < np.median((first != np.roll(second, 1, axis=0)).sum(axis=1))
    assert (apart == 0).mean() < 0.4
    assert (apart > 12).mean() > 0.05


@pytest.mark.parametrize("network", NETWORKS)
def test_friends_have_the_same_interests(raw: RawTables, network: str) -> None:
    labels = raw.network(network).scan("labels").collect().drop_nulls()
    values = labels.drop("user").to_numpy().astype(float)
    values -= values.mean(axis=0)
    row = {"old": labels["user"], "new": np.arange(len(labels))}
    known = edges(raw, network).select(pl.all().replace_strict(**row, default=None)).drop_nulls().to_numpy()

    def alike(pairs: np.ndarray) -> float:
        return float((values[pairs[:, 0]] * values[pairs[:, 1]]).sum(axis=1).mean())

    chance = np.stack([known[:, 0], np.random.default_rng(0).permutation(known[:, 1])], axis=1)
    assert alike(known) > alike(chance) + 0.15


def test_words_give_interests_and_gender_away(raw: RawTables) -> None:
    tables = raw.network("twitter")
    texts = tables.scan("posts").group_by("user").agg(pl.col("text").str.join(" ")).collect()
    people = texts.join(tables.scan("labels").collect(), on="user")
    people = people.join(tables.scan("users").select("user", "gender").collect(), on="user")
    for column, margin in (("interests_0", 0.05), ("gender", 0.05)):
        some = people.drop_nulls(column).sort("user")
        words = CountVectorizer(binary=True, min_df=5).fit_transform(some["text"].to_list())
        label = some[column].cast(pl.String).to_numpy()
        majority = np.unique(label, return_counts=True)[1].max() / len(label)
        assert cross_val_score(RidgeClassifier(alpha=100), csr_array(words), label, cv=3).mean() > majority + margin


def test_the_reader_takes_it_at_any_scale(tmp_path: Path) -> None:
    for scale in (0.0001, 0.002, 0.02):
        raw = converted(made(tmp_path / str(scale), scale=scale))
        for network, users in zip(NETWORKS, (5_392, 5_223), strict=True):
            assert raw.network(network).scan("users").collect().height == max(4, round(users * scale))
    assert raw.scan("anchors").collect().height == round(3_388 * 0.02)


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    first, again, other = (
        {file.relative_to(place).as_posix(): file.read_bytes() for file in place.rglob("*") if file.is_file()}
        for place in (made(tmp_path / f"{seed}-{n}", scale=0.005, seed=seed) for n, seed in enumerate((5, 5, 6)))
    )
    assert first == again
    assert set(foursquare_twitter_text.FILES) <= first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)


def test_everything_says_that_it_is_synthetic(folder: Path) -> None:
    assert "SYNTHETIC" in (folder / "NOTE").read_text()
    assert replica_foursquare_twitter.SOURCE.synthetic
    assert "SYNTHETIC" in replica_foursquare_twitter.SOURCE.licence
    assert SOURCES["twin_foursquare_twitter"] == "tasks.datasets.synthetic.foursquare_twitter"


@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"scale": float("nan")}, {"posts": 0.0}, {"seed": -1}])
def test_options_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ObtainOptions.model_validate({"scale": 1.0, "seed": 0} | wrong)
