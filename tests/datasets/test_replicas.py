"""What all replicas have in common: their sizes, their formats, and that they say what they are."""

from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, cross_val_score

from tasks.datasets import SOURCES
from tasks.datasets.synthetic import generator, yelp
from tests.datasets.learnable import matrix, recalls
from tests.datasets.replicas import DESCRIBED, REPLICAS, content, converted, generated

ITEMS = [name for name in REPLICAS if name.partition(",")[0] in DESCRIBED]


def described(name: str) -> generator.Description:
    return DESCRIBED[name.partition(",")[0]]


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("scale", [0.00001, 0.003])
def test_the_reader_of_the_real_data_set_finds_the_described_sizes(tmp_path: Path, name: str, scale: float) -> None:
    raw = converted(generated(tmp_path / "raw", name, scale), name)
    rows = raw.scan("interactions").collect()
    users, items, number = described(name).sizes(scale)
    assert rows.select(pl.col("user", "item").n_unique()).row(0) == (users, items)
    assert abs(len(rows) - number) <= (round(9_826 * scale) if name.startswith(("ciao", "epinions")) else 0)
    assert rows.group_by("user").len()["len"].min() >= described(name).min_rows
    if raw.schema.scale:
        shares = rows["rating"].value_counts(normalize=True).sort("rating")["proportion"].to_numpy()
        expected = np.array(described(name).levels)
        np.testing.assert_allclose(
            shares[-len(expected) :], expected / expected.sum(), atol=0.05 if scale < 0.001 else 0.01
        )


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("ml-100k", (943, 1_682, 100_000)),
        ("ml-1m", (6_040, 3_706, 1_000_209)),
        ("ml-20m", (138_493, 26_744, 20_000_263)),
        ("ml-latest-small", (610, 9_724, 100_836)),
        ("netflix", (480_189, 17_770, 100_480_507)),
        ("tmall", (424_170, 1_090_390, 54_925_330)),
        ("yelp", (1_987_897, 150_346, 6_990_280)),
        ("yelp-hin", (16_239, 14_284, 198_397)),
        ("ciao", (7_375, 105_114, 284_086 - 1_436)),
        ("epinions", (22_164, 296_277, 922_267 - 9_826)),
    ],
)
def test_at_scale_one_the_sizes_are_the_published_ones(name: str, sizes: tuple[int, int, int]) -> None:
    assert DESCRIBED[name].sizes(1.0) == sizes
    source, options, _, _ = REPLICAS[name]
    module = import_module(SOURCES[source])
    shown = module.source(module.ObtainOptions.model_validate({**options, "scale": 1.0, "seed": 1}))
    assert f"{sizes[2]:,} synthetic" in shown.holds
    assert shown.size == DESCRIBED[name].size


@pytest.mark.parametrize("name", REPLICAS)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path, name: str) -> None:
    first, again, other = (
        content(generated(tmp_path / f"{number}", name, 0.002, seed)) for number, seed in enumerate((5, 5, 6))
    )
    assert first == again
    assert first.keys() == other.keys()
    constant = {"u.genre", "u.info", "u.occupation"}
    assert all(first[file] != other[file] for file in first.keys() - constant)


@pytest.mark.parametrize("name", REPLICAS)
def test_everything_says_that_it_is_synthetic(tmp_path: Path, name: str) -> None:
    folder = generated(tmp_path / "raw", name, 0.0005)
    (note,) = (file for file in folder.iterdir() if file.name in ("NOTE", "README", "README.txt"))
    assert note.read_text().startswith("SYNTHETIC DATA\n")
    source = import_module(SOURCES[REPLICAS[name][0]]).SOURCE
    assert source.synthetic
    assert "SYNTHETIC" in source.licence


@pytest.mark.parametrize("name", ["ml-latest-small", "netflix", "tmall", "yelp", "yelp-hin", "ciao"])
def test_blocks_leave_no_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(generator, "BLOCK", 400)
    monkeypatch.setattr(yelp, "BLOCK", 400)
    rows = converted(generated(tmp_path / "raw", name, 0.002), name).scan("interactions").collect()
    users, items, number = described(name).sizes(0.002)
    assert rows.select(pl.col("user", "item").n_unique()).row(0) == (users, items)
    assert abs(len(rows) - number) <= 3


@pytest.mark.parametrize("name", REPLICAS)
@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"scale": float("nan")}, {"scale": "1"}, {"seed": -1}, {"posts": 0}])
def test_options_that_mean_nothing_are_refused(name: str, wrong: dict[str, object]) -> None:
    source, options, _, _ = REPLICAS[name]
    module = import_module(SOURCES[source])
    with pytest.raises(ValidationError):
        module.ObtainOptions.model_validate({**options, "scale": 1.0, "seed": 0} | wrong)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, pl.DataFrame]:
    """Of a replica that simple models learn from in seconds."""
    name, scale = request.param
    raw = converted(generated(tmp_path_factory.mktemp("replica") / "raw", name, scale), name)
    return {table: raw.scan(table).collect() for table in raw.schema.tables}


@pytest.mark.parametrize(
    ("tables", "n_items", "gain"),
    [
        (("ml-1m", 0.1), None, 1.15),
        (("ml-20m", 0.005), 800, 1.15),
        (("netflix", 0.002), 800, 1.15),
        (("tmall", 0.01), 500, 1.5),
        (("yelp", 0.01), 500, 1.4),
        (("yelp-hin", 1.0), 500, 1.4),
    ],
    indirect=["tables"],
)
def test_taste_is_personal_so_a_model_of_items_beats_popularity(
    tables: dict[str, pl.DataFrame], n_items: int | None, gain: float
) -> None:
    model, popularity, chance = recalls(matrix(tables["interactions"], n_items=n_items))
    assert model > gain * popularity > 2 * chance


@pytest.mark.parametrize(
    ("tables", "margins"),
    [
        (("ml-1m", 0.1), {"gender": 0.04, "age": 0.03, "occupation": 0.06}),
        (("tmall", 0.01), {"gender": 0.08, "age": 0.04}),
    ],
    indirect=["tables"],
)
def test_what_users_have_gives_attributes_away(tables: dict[str, pl.DataFrame], margins: dict[str, float]) -> None:
    rows = tables["interactions"].rename(
        {"category": "kind"} if "category" in tables["interactions"].columns else {"item": "kind"}
    )
    counts = rows.group_by("user", "kind").len().with_columns(kind=pl.col("kind").rank("dense") - 1)
    for attribute, margin in margins.items():
        users = tables["users"].filter(pl.col(attribute).is_not_null()).sort("user").with_row_index("row")
        known = counts.join(users.select("row", "user"), on="user").sort("row", "kind")
        has = np.zeros((len(users), counts["kind"].max() + 1))
        has[known["row"], known["kind"]] = np.log1p(known["len"].to_numpy())
        labels = users[attribute].to_numpy()
        majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
        folds = KFold(4, shuffle=True, random_state=0)
        assert cross_val_score(RidgeClassifier(alpha=100), has, labels, cv=folds).mean() > majority + margin, attribute
