"""Stage `embed`: users' attributes as word vectors, with a record of where every word's vector is from."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.config.params import load
from tasks.core import contracts
from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.datasets import glove
from tasks.pipeline.common import PLACED, PROCESSED, digest, read_json, write_json
from tasks.stages import embed, train
from tasks.stages.inputs import read_inputs
from tests.stages import test_train, tiny

OUT = embed.WORDS / "tiny"
DIMENSION = 3
FEATURES = (
    Feature(name="age", kind="numeric", low=1, high=120),
    Feature(name="gender", kind="categorical", categories=("F", "M"), sensitive=True),
    Feature(name="job", kind="categorical", categories=("writer", "homemaker", "xyz"), sensitive=True),
)
COLUMNS = [f"{feature.name}.{number}" for feature in FEATURES for number in range(DIMENSION)]
WORDS = [
    *("the", "of", "female", "male", "writer", "home", "maker"),
    *("child", "teen", "young", "adult", "older", "elderly"),
]


def people() -> pl.DataFrame:
    """In no order."""
    rng = np.random.default_rng(1)
    n = tiny.N_USERS
    return pl.DataFrame(
        {
            "user": rng.permutation(n).astype(np.int32),
            "age": rng.integers(1, 100, n).astype(np.float32),
            "gender": rng.choice(["F", "M"], n),
            "job": rng.choice(["writer", "homemaker", "xyz"], n),
        }
    )


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPREC_MIRROR", raising=False)
    contracts.write(people(), PROCESSED / "tiny" / "users.parquet", contracts.users_schema(FEATURES))
    schema = tiny.SCHEMA.model_copy(update={"features": FEATURES})
    write_json(PROCESSED / "tiny" / "schema.json", schema.model_dump(mode="json"))


def ask_for(vectors: str) -> None:
    entry = {"data": "tiny", "vectors": vectors, "dimension": DIMENSION, "seed": 5}
    tiny.write_parameters(tiny.parameters(words={"tiny": entry}), Path())


def place(file: Path) -> None:
    """A part of GloVe's file with these words."""
    numbers = np.random.default_rng(2).normal(size=(len(WORDS), glove.WIDTH))
    file.parent.mkdir(parents=True)
    lines = (" ".join([word, *map(str, row)]) for word, row in zip(WORDS, numbers.tolist(), strict=True))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def features() -> pl.DataFrame:
    return contracts.read(OUT / "features.parquet", contracts.features_schema(COLUMNS))


@pytest.mark.parametrize("vectors", ["glove", "hashed"])
def test_every_user_has_the_vectors_of_the_words_for_the_users_attributes(vectors: str) -> None:
    ask_for(vectors)
    place(PLACED / glove.FILE.name)
    embed.main("tiny")
    assert {path.name for path in OUT.iterdir()} == {"features.parquet", "schema.json", "words.json"}
    table = features()
    assert table["user"].to_list() == list(range(tiny.N_USERS))
    assert table.drop("user").to_numpy().min() >= 0
    assert table.drop("user").to_numpy().max() <= 1
    bands = pl.sum_horizontal(pl.col("age") >= first for first in (13, 20, 35, 46, 65))
    known = people().sort("user").with_columns(band=bands)
    for attribute, value in (("age", "band"), ("gender", "gender"), ("job", "job")):
        columns = [column for column in COLUMNS if column.startswith(f"{attribute}.")]
        both = known.join(table, on="user").select(value, *columns)
        # one vector per value, and as many vectors as values
        assert both.unique().height == both[value].n_unique() == both.select(columns).unique().height


def test_the_record_says_where_every_vector_is_from_and_whom_it_touches() -> None:
    ask_for("glove")
    place(PLACED / glove.FILE.name)
    embed.main("tiny")
    actual = read_json(OUT / "words.json")
    jobs = dict(people()["job"].value_counts().iter_rows())
    assert actual["attributes"]["job"] == {"writer": ["writer"], "homemaker": ["homemaker"], "xyz": ["xyz"]}
    assert actual["attributes"]["gender"] == {"F": ["female"], "M": ["male"]}
    assert actual["words"]["writer"] == {"how": "vocabulary", "parts": ["writer"], "users": jobs["writer"]}
    assert actual["words"]["homemaker"] == {"how": "sub-words", "parts": ["home", "maker"], "users": jobs["homemaker"]}
    assert actual["words"]["xyz"] == {"how": "hashed", "parts": [], "users": jobs["xyz"]}
    assert actual["origins"] == {
        "vocabulary": {"words": 9, "users": tiny.N_USERS},
        "sub-words": {"words": 1, "users": jobs["homemaker"]},
        "hashed": {"words": 1, "users": jobs["xyz"]},
    }
    assert (actual["n_users"], actual["columns"]) == (tiny.N_USERS, COLUMNS)
    assert actual["vocabulary"]["words"] == len(WORDS)
    assert 0 < actual["vocabulary"]["variance_kept"] < 1


def test_without_glove_everything_is_hashed_and_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREC_MIRROR", "/nowhere")
    embed.main("tiny")  # the tiny workspace's own entry
    actual = read_json(OUT / "words.json")
    assert actual["vocabulary"] is None
    assert actual["origins"]["hashed"] == {"words": 11, "users": tiny.N_USERS}


def test_a_placed_file_and_a_mirrors_give_the_same_bytes_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ask_for("glove")
    place(tmp_path / "mirror" / glove.FILE.mirror_path)
    monkeypatch.setenv("DPREC_MIRROR", str(tmp_path / "mirror"))
    embed.main("tiny")
    before = digest(OUT)
    embed.main("tiny")
    assert digest(OUT) == before
    monkeypatch.delenv("DPREC_MIRROR")
    place(PLACED / glove.FILE.name)
    embed.main("tiny")
    assert digest(OUT) == before


def test_users_without_features_are_refused() -> None:
    schema = tiny.SCHEMA.model_copy(update={"features": ()})
    write_json(PROCESSED / "tiny" / "schema.json", schema.model_dump(mode="json"))
    with pytest.raises(DataError) as error:
        embed.main("tiny")
    assert str(error.value) == (
        "data/processed/tiny/schema.json: users have no features, so there is nothing to embed; "
        "take words.tiny out of params.yaml"
    )


def experiment_on_embedded_features() -> None:
    """An experiment whose model reads features, on word vectors that passed their check."""
    shutil.rmtree(Path("suites"))
    experiment = tiny.experiment("gerai", test_train.CONFIG | {"epsilon": 0.4, "epochs": 1}, features="words/tiny")
    evaluation = {"k": [5, 10], "negatives": 20, "seed": 1, "recall": "relevant"}
    changed = tiny.parameters(experiments={"tiny-gerai": experiment}, suites=tiny.suites(), evaluation=evaluation)
    tiny.write_parameters(changed, Path())
    tiny.write_interactions(test_train.interactions(), features=FEATURES, n_items=test_train.N_ITEMS)
    embed.main("tiny")
    tiny.passed("words", "tiny")


def test_a_model_gets_the_vectors_whatever_its_seed() -> None:
    experiment_on_embedded_features()
    params = load()
    experiment = params.experiments["tiny-gerai"]
    inputs = read_inputs(experiment, params, experiment.config)
    given = inputs.features(0)
    assert (given.shape, given.dtype) == ((tiny.N_USERS, len(FEATURES) * DIMENSION), np.float32)
    assert (given == features().sort("user").select(COLUMNS).to_numpy()).all()
    assert (given == inputs.features(1)).all()
    before = inputs.digest
    shuffled = features().sample(fraction=1, shuffle=True, seed=3)
    contracts.write(shuffled, OUT / "features.parquet", contracts.features_schema(COLUMNS))
    again = read_inputs(experiment, params, experiment.config)
    assert again.digest != before
    assert (again.features(0) == given).all()


def test_a_run_on_embedded_features_waits_for_their_check_and_protects_nothing_of_them() -> None:
    experiment_on_embedded_features()
    train.main("tiny-gerai")
    run = Path("data/runs/tiny/tiny-gerai/train")
    assert [check["contract"] for check in read_json(run / "inputs.json")["checks"]] == ["processed", "words"]
    entries = [entry for entry in read_json(run / "ledger.json") if entry["protects"] == "feature"]
    assert {(entry["mechanism"], entry["accounted_epsilon"]) for entry in entries} == {("none", None)}
    tiny.passed("words", "tiny", success=False)
    with pytest.raises(DataError, match="failed their check"):
        train.main("tiny-gerai")


def test_movielens_occupations_have_vectors_from_the_mirrors_part_of_glove(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 21: 15 by name, 6 by their parts, none hashed."""
    from tasks.datasets.synthetic.demo import OCCUPATIONS

    monkeypatch.setenv("DPREC_MIRROR", str(mirror))
    ask_for("glove")
    job = Feature(name="occupation", kind="categorical", categories=tuple(OCCUPATIONS))
    users = pl.DataFrame({"user": range(21), "occupation": list(OCCUPATIONS)}, schema_overrides={"user": pl.Int32})
    contracts.write(users, PROCESSED / "tiny" / "users.parquet", contracts.users_schema((job,)))
    schema = tiny.SCHEMA.model_copy(update={"features": (job,), "n_users": 21})
    write_json(PROCESSED / "tiny" / "schema.json", schema.model_dump(mode="json"))
    embed.main("tiny")
    origins = read_json(OUT / "words.json")["origins"]
    assert {how: origin["words"] for how, origin in origins.items()} == {"vocabulary": 15, "sub-words": 6, "hashed": 0}
