import copy
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from tasks.core.errors import DataError
from tasks.core.raw import RawTables
from tasks.datasets import custom
from tasks.datasets.custom import ObtainOptions, ReadOptions, obtain, source
from tasks.datasets.encoding import encode
from tasks.datasets.fetch import Places
from tasks.papers.gerai import protocol as gerai
from tests.datasets import formats

PROTOCOL = gerai.Options(split_seed=0, test_share=0.2, valid_share=0.05)
READ: dict[str, Any] = {
    "separator": ",",
    "interactions": {"user": "who", "item": "what", "rating": "stars", "timestamp": "when"},
    "rating_scale": {"low": 1, "high": 5, "step": 0.5},
    "time": "seconds",
    "users": {
        "user": "id",
        "features": [
            {"name": "age", "column": "years", "kind": "numeric", "low": 0, "high": 120, "sensitive": False},
            {
                "name": "gender",
                "column": "sex",
                "kind": "categorical",
                "categories": ["F", "M", "?"],
                "unknown": "?",
                "sensitive": True,
            },
        ],
    },
    "social": {"source": "from", "target": "to", "relation": "how"},
}
FILES = {
    "interactions.csv": "who,what,stars,when\n"
    "7,10,5,881250949\n8,10,3.5,881250950\n7,20,1,881250951\n7,10,4,881250952\n",
    "users.csv": "id,years,sex\n7,24,F\n8,53,\n9,31,M\n",
    "social.csv": "from,to,how\n7,8,trusts\n9,9,follows\n",
}


def options(**changes: Any) -> ReadOptions:
    return ReadOptions.model_validate(copy.deepcopy(READ) | changes)


def alone(folder: Path) -> dict[str, Any]:
    """Leave the interactions alone, and say so."""
    for table in ("users", "social"):
        (folder / f"{table}.csv").unlink()
    return {"users": None, "social": None}


def converted(folder: Path, **changes: Any) -> RawTables:
    return formats.converted(custom, folder, options(**changes))


def refused(folder: Path, match: str, **changes: Any) -> None:
    formats.refused(custom, folder, match, options(**changes))


def test_every_column_that_is_named_arrives(folder: Path) -> None:
    raw = converted(folder)
    assert raw.schema.tables == ("interactions", "social", "users")
    files = {"schema.json", *(f"{name}.parquet" for name in raw.schema.tables)}
    assert {path.name for path in raw.folder.iterdir()} == files
    assert (raw.schema.time, raw.schema.scale and raw.schema.scale.levels[:2]) == ("seconds", (1, 1.5))
    actual = raw.scan("interactions").collect()
    assert actual.schema == {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float32, "timestamp": pl.Int64}
    assert actual.rows() == [
        (7, 10, 5.0, 881250949), (8, 10, 3.5, 881250950), (7, 20, 1.0, 881250951), (7, 10, 4.0, 881250952),
    ]  # fmt: skip
    assert raw.scan("users").collect().rows() == [(7, 24.0, "F"), (8, 53.0, None), (9, 31.0, "M")]
    assert raw.scan("social").collect().rows() == [(7, 8, "trusts"), (9, 9, "follows")]
    age, gender = raw.schema.features
    assert (age.low, age.high, age.bounds, age.sensitive) == (0, 120, "public", False)
    assert (gender.categories, gender.unknown, gender.sensitive) == (("F", "M", "?"), "?", True)
    assert gender.bounds == "public"


def test_ids_are_text_in_all_tables_as_soon_as_one_is(folder: Path) -> None:
    with (folder / "social.csv").open("a") as file:
        file.write("007,8,trusts\n")
    refused(folder, "social.csv:4: from is '007', not a user of .*users.csv")
    with (folder / "users.csv").open("a") as file:
        file.write("007,30,M\n")
    raw = converted(folder)
    assert raw.scan("interactions").collect()["user"].to_list() == ["7", "8", "7", "7"]
    assert raw.scan("interactions").collect()["item"].to_list() == [10, 10, 20, 10]
    assert raw.scan("users").collect()["user"].to_list() == ["7", "8", "9", "007"]
    assert raw.scan("social").collect()["source"].to_list() == ["7", "9", "007"]


def test_ids_that_turn_to_text_late_are_text_from_the_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.datasets.tables.BATCH", 10)
    changes = alone(folder)
    (folder / "interactions.csv").unlink()
    ids = [*map(str, range(35)), "x35", *map(str, range(36, 50))]
    table = pl.DataFrame({"who": ids, "what": range(50), "stars": 3, "when": range(50)})
    table.write_parquet(folder / "interactions.parquet")
    actual = converted(folder, **changes).scan("interactions").collect()
    assert actual["user"].to_list() == ids
    assert actual["item"].to_list() == list(range(50))


def test_a_column_may_say_the_part_of_an_interaction(folder: Path) -> None:
    changes = alone(folder) | {"interactions": READ["interactions"] | {"split": "part"}}
    table = FILES["interactions.csv"].replace("\n", ",train\n").replace("when,train", "when,part")
    (folder / "interactions.csv").write_text(table)
    assert set(converted(folder, **changes).scan("interactions").collect()["split"]) == {"train"}
    (folder / "interactions.csv").write_text(table + table.splitlines()[1].replace("train", "test") + "\n")
    refused(folder, "interactions.csv: 1 pairs are in several parts, such as", **changes)
    (folder / "interactions.csv").write_text(table + "8,20,2,881250953,dev\n")
    refused(folder, "interactions.csv:6: part is 'dev', not one of train, valid, test", **changes)


@pytest.mark.parametrize("time", ["order", "none"])
def test_without_ratings_and_times_the_rows_remain(folder: Path, time: str) -> None:
    columns = {"user": "who", "item": "what", "rating": None, "timestamp": None}
    raw = converted(folder, interactions=columns, rating_scale=None, time=time, **alone(folder))
    assert (raw.schema.scale, raw.schema.time, raw.schema.features) == (None, time, ())
    actual = raw.scan("interactions").collect()
    assert actual["rating"].null_count() == actual["timestamp"].null_count() == 4
    assert time == "none" or actual["position"].to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("time", "text"), [("seconds", "881250949"), ("milliseconds", "881250949999"), ("iso", "1997-12-04T15:55:49Z")]
)
def test_times_become_seconds(folder: Path, time: str, text: str) -> None:
    (folder / "interactions.csv").write_text(f"who,what,stars,when\n7,10,5,{text}\n")
    raw = converted(folder, time=time)
    assert raw.schema.time == "seconds"
    assert raw.scan("interactions").collect()["timestamp"].to_list() == [881250949]


def test_categories_that_are_not_listed_are_those_found(folder: Path) -> None:
    feature = {"name": "g", "column": "sex", "kind": "categorical", "sensitive": True, "unknown": "unknown"}
    raw = converted(folder, users={"user": "id", "features": [feature]})
    assert raw.schema.features[0].categories == ("F", "M", "unknown")
    assert raw.schema.features[0].bounds == "fitted"
    assert raw.scan("users").collect().rows() == [(7, "F"), (8, None), (9, "M")]
    feature = {"name": "age", "column": "years", "kind": "numeric", "sensitive": False}
    raw = converted(folder, users={"user": "id", "features": [feature]})
    assert (raw.schema.features[0].low, raw.schema.features[0].high) == (None, None)


def test_a_number_with_the_value_of_a_row_is_named_in_parquet_too(folder: Path) -> None:
    table = pl.read_csv(folder / "interactions.csv")
    (folder / "interactions.csv").unlink()
    table.with_columns(who=pl.Series([7, 8, 6, 7])).write_parquet(folder / "interactions.parquet")
    refused(folder, "interactions.parquet:3: who is '6', not a user of .*users.csv")
    table.with_columns(stars=pl.Series([1, None, 2, 3])).write_parquet(folder / "interactions.parquet")
    refused(folder, "interactions.parquet:2: stars is empty")


def test_a_category_with_blanks_is_refused_where_categories_are_those_found(folder: Path) -> None:
    (folder / "users.csv").write_text("id,years,sex\n7,24,F\n8,53, F\n9,31,M\n")
    feature = {"name": "g", "column": "sex", "kind": "categorical", "sensitive": True}
    refused(folder, "users.csv:3: sex is ' F', not a category", users={"user": "id", "features": [feature]})


@pytest.mark.parametrize("years", ["1e308", "-1e308", "1e39", "nan", "-inf"])
def test_a_number_that_no_table_can_scale_is_refused(folder: Path, years: str) -> None:
    """The bounds of the data, 1e308 apart, would be infinite in float32."""
    (folder / "users.csv").write_text(f"id,years,sex\n7,24,F\n8,{years},M\n9,31,M\n")
    feature = {"name": "age", "column": "years", "kind": "numeric", "sensitive": False}
    refused(folder, r"users.csv:3: years is .*, not a number up to 1e\+18", users={"user": "id", "features": [feature]})


def test_a_file_that_is_not_read_is_named(folder: Path) -> None:
    refused(folder, "social.csv: `read` in params.yaml has no `social`", social=None)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rating_scale": None}, "rating_scale: give it with the column of ratings"),
        ({"time": "order"}, "time: say what the column of time stamps holds"),
        ({"separator": ":::"}, "separator: ':::' is not one character"),
        ({"separator": "x"}, "separator: 'x' is not one character"),
        ({"rating_scale": {"low": 1, "high": 5, "step": 0.3}}, "1 to 5 in steps of 0.3 is no scale"),
        ({"rating_scale": {"low": 5, "high": 1, "step": 1}}, "5 to 1 in steps of 1 is no scale"),
        ({"rating_scale": {"low": -1e308, "high": 1e308, "step": 1}}, "in steps of 1 is no scale"),
        ({"interactions": READ["interactions"] | {"item": "who"}}, "column 'who' is named twice"),
        ({"social": {"source": "from", "target": "from", "relation": None}}, "column 'from' is named twice"),
    ],
)
def test_options_that_contradict_one_another_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        options(**changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"name": "user"}, "'user' is the id's name"),
        ({"column": "id"}, "column 'id' is named twice"),
        ({"categories": ["F", "F"]}, "each named once"),
        ({"categories": []}, "each named once"),
        ({"unknown": "x"}, "`unknown` 'x' is not among the categories"),
        ({"low": 1.0}, "a category has no `low`"),
        ({"kind": "numeric"}, "a number has no categories"),
        ({"kind": "numeric", "categories": None, "unknown": None, "low": 1}, "give both `low` and `high`"),
        ({"kind": "numeric", "categories": None, "unknown": None, "low": 2, "high": 1}, "is not below"),
        ({"name": "age"}, "feature 'age' is named twice"),
    ],
)
def test_features_that_make_no_sense_are_refused(changes: dict[str, Any], match: str) -> None:
    age, gender = copy.deepcopy(READ["users"]["features"])
    with pytest.raises(ValidationError, match=match):
        options(users={"user": "id", "features": [age, gender | changes]})


def test_the_files_are_copied_under_the_names_of_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Ratings.CSV").write_text("a")
    (tmp_path / "mine" / "people.parquet").write_text("b")
    (tmp_path / "raw").mkdir()
    monkeypatch.chdir(tmp_path)
    given = {"interactions": "mine/Ratings.CSV", "users": str(tmp_path / "mine" / "people.parquet")}
    chosen = ObtainOptions.model_validate(given | {"synthetic": True, "licence": "none"})
    obtain(tmp_path / "raw", Places(None, tmp_path, tmp_path), chosen)
    assert {path.name: path.read_text() for path in (tmp_path / "raw").iterdir()} == {
        "interactions.csv": "a",
        "users.parquet": "b",
    }
    described = source(chosen)
    assert (described.synthetic, described.licence) == (True, "none")
    assert described.address == "own files (Ratings.CSV, people.parquet)"
    for path, match in (
        ("mine/ratings.xlsx", "is none of .csv"),
        ("mine/no.csv", "no.csv: not found; correct `social`"),
    ):
        (tmp_path / "mine" / "ratings.xlsx").write_text("{}")
        with pytest.raises(DataError, match=match):
            obtain(tmp_path / "raw", Places(None, tmp_path, tmp_path), chosen.model_copy(update={"social": path}))


def ready(raw: RawTables) -> gerai.Prepared:
    """Under GERAI's protocol; its features can be encoded."""
    prepared = gerai.prepare(raw, PROTOCOL)
    encode(prepared.tables["users"], prepared.features)
    return prepared
