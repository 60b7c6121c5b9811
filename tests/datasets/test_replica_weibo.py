from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score

from tasks.datasets import SOURCES, weibo
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import weibo as replica_weibo
from tasks.datasets.synthetic.weibo import ObtainOptions, obtain
from tasks.raw import RawTables, read_raw

USERS = (8_117, 8_539)


def made(folder: Path, *, scale: float, posts: float = 1.0, seed: int = 1) -> Path:
    folder.mkdir(parents=True)
    obtain(folder, Places(None, folder, folder), ObtainOptions(scale=scale, posts=posts, seed=seed))
    return folder


def converted(folder: Path) -> RawTables:
    """Through the reader of the real data set."""
    place = folder / "tables"
    place.mkdir()
    weibo.convert(folder, place, weibo.ReadOptions())
    return read_raw(place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("replica") / "whole", scale=1.0)


@pytest.fixture(scope="module")
def raw(folder: Path) -> RawTables:
    return converted(folder)


def test_at_scale_1_it_has_the_papers_sizes(raw: RawTables) -> None:
    for network, users, posts in zip(weibo.NETWORKS, USERS, (158_823, 153_741), strict=True):
        tables = raw.network(network)
        assert tables.scan("users").collect().height == users
        assert tables.scan("posts").collect().height == posts
        social = tables.scan("social").collect()
        assert social.unique().height == social.height == 12_000
        assert (social["source"] != social["target"]).all()
    assert raw.scan("anchors").collect().height == 2_969


def test_an_anchor_user_has_one_id_similar_names_and_one_gender(folder: Path) -> None:
    left, right = (pl.read_csv(folder / f"user_info{k}.csv", infer_schema=False) for k in (1, 2))
    both = left.join(right, on="_id", validate="1:1")
    assert len(both) == 2_969
    assert 0.01 < (both["NickName"] == both["NickName_right"]).mean() < 0.3
    first, other = both["NickName"].str.slice(0, 4), both["NickName_right"].str.slice(0, 4)
    assert 0.3 < (first == other).mean() < 0.8
    known = both.drop_nulls(["Gender", "Gender_right"])
    assert (known["Gender"] == known["Gender_right"]).all()
    assert len(known) < len(both)


def test_the_traps_of_such_tables_are_there(folder: Path) -> None:
    table = pl.read_csv(folder / "user_info1.csv", infer_schema=False)
    assert table.columns == ["", "Unnamed: 0", *weibo.COLUMNS]
    assert table["Num_Fans"].str.ends_with(".0").any()
    assert table["Num_Fans"].null_count() > 0
    for sign in ("\n", '"', ","):
        assert table["BriefIntroduction"].str.contains(sign, literal=True).any()
    posts = pl.read_csv(folder / "cleaned_blog1.csv", infer_schema=False)
    assert posts["con"].str.contains("\n").any()


def test_an_anchor_users_neighbourhoods_overlap_across_networks_but_are_not_the_same(folder: Path) -> None:
    first, second = (
        pl.DataFrame(np.load(folder / f"newrel{k}.npy"), schema=["source", "target"], orient="row") for k in (1, 2)
    )
    both = [pl.read_csv(folder / f"user_info{k}.csv")["_id"] for k in (1, 2)]
    anchors = both[0].filter(both[0].is_in(both[1].implode()))
    inside = first.filter(pl.all_horizontal(pl.all().is_in(anchors.implode())))
    common = inside.join(second, on=["source", "target"]).height / inside.height
    renamed = inside.select(pl.all().replace_strict(anchors, anchors.shuffle(seed=0)))
    assert 0.2 < common < 0.75
    assert common > 20 * renamed.join(second, on=["source", "target"]).height / inside.height


@pytest.mark.parametrize("network", weibo.NETWORKS)
def test_friends_have_the_same_interests(raw: RawTables, network: str) -> None:
    labels = raw.network(network).scan("labels").collect().drop_nulls()
    values = labels.drop("user").to_numpy().astype(float)
    values -= values.mean(axis=0)
    row = {"old": labels["user"], "new": np.arange(len(labels))}
    edges = raw.network(network).scan("social").select("source", "target").collect()
    known = edges.select(pl.all().replace_strict(**row, default=None)).drop_nulls().to_numpy()

    def alike(pairs: np.ndarray) -> float:
        return float((values[pairs[:, 0]] * values[pairs[:, 1]]).sum(axis=1).mean())

    chance = np.stack([known[:, 0], np.random.default_rng(0).permutation(known[:, 1])], axis=1)
    assert alike(known) > alike(chance) + 0.1


def test_words_give_interests_gender_and_occupation_away(raw: RawTables) -> None:
    tables = raw.network("weibo1")
    texts = tables.scan("posts").group_by("user").agg(pl.col("text").str.join(" ")).collect()
    people = texts.join(tables.scan("labels").collect(), on="user")
    people = people.join(tables.scan("users").select("user", "gender", "occupation").collect(), on="user")
    people = people.sort("user").head(3000)
    words = CountVectorizer(token_pattern=r"\S+", min_df=5).fit_transform(people["text"].to_list())
    words.data = np.log1p(words.data)
    for column, margin in (("interests_0", 0.015), ("gender", 0.15), ("occupation", 0.03)):
        rows = people[column].is_not_null().arg_true().to_numpy()
        label = people[column].cast(pl.String).to_numpy()[rows]
        majority = np.unique(label, return_counts=True)[1].max() / len(label)
        assert cross_val_score(RidgeClassifier(alpha=100), words[rows], label, cv=3).mean() > majority + margin


def test_the_reader_takes_it_at_any_scale(tmp_path: Path) -> None:
    for scale in (0.0001, 0.002, 0.03):
        raw = converted(made(tmp_path / str(scale), scale=scale))
        for network, users in zip(weibo.NETWORKS, USERS, strict=True):
            assert raw.network(network).scan("users").collect().height == max(4, round(users * scale))
    assert raw.scan("anchors").collect().height == round(2_969 * 0.03)


def test_fewer_posts_leave_users_and_friendships_as_they_are(tmp_path: Path) -> None:
    few, many = (converted(made(tmp_path / str(posts), scale=0.03, posts=posts)) for posts in (0.1, 1.0))
    assert few.network("weibo1").scan("posts").collect().height == round(158_823 * 0.003)
    assert few.network("weibo1").scan("users").collect().height == many.network("weibo1").scan("users").collect().height
    assert few.scan("anchors").collect().equals(many.scan("anchors").collect())


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    first, again, other = (
        {file.name: file.read_bytes() for file in made(tmp_path / f"{seed}-{n}", scale=0.005, seed=seed).iterdir()}
        for n, seed in enumerate((5, 5, 6))
    )
    assert first == again
    assert {name.format(k) for name in weibo.FILES for k in (1, 2)} | {"NOTE"} == first.keys()
    assert all(first[name] != other[name] for name in first)


def test_everything_says_that_it_is_synthetic(folder: Path) -> None:
    assert "SYNTHETIC" in (folder / "NOTE").read_text()
    assert replica_weibo.SOURCE.synthetic
    assert "SYNTHETIC" in replica_weibo.SOURCE.licence
    assert SOURCES["twin_weibo"] == "tasks.datasets.synthetic.weibo"


@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"scale": float("nan")}, {"posts": 0.0}, {"seed": -1}])
def test_options_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ObtainOptions.model_validate({"scale": 1.0, "seed": 0} | wrong)
