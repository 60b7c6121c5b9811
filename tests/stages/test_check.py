"""The check stage: a verdict and docs for every contract, and a stop with one line when the data are not right."""

import hashlib
import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tasks.config.fields import BASE
from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.raw import write_raw_schema
from tasks.pipeline.common import require_passed, write_json
from tasks.quality import metrics
from tasks.quality.rules import Table, holds
from tasks.stages import check
from tasks.stages.checks import attacks
from tests import parameters
from tests.parameters import ROOT
from tests.quality import tables
from tests.quality.changes import value

PARAMS = load(ROOT / "params.yaml")
DATA = "demo"
PERTURBED = next(name for name, release in PARAMS.perturbed.items() if release.data == DATA)
WORDS = next(iter(PARAMS.words))
EXPERIMENT = next(name for name, experiment in PARAMS.experiments.items() if experiment.suite == "demo")
NAMES = dict.fromkeys(("raw", "processed", "metrics"), DATA)
NAMES |= {"perturbed": PERTURBED, "words": WORDS, "recommendations": EXPERIMENT}


def put(path: str, table: pl.DataFrame, contract: pa.Schema) -> None:
    file = Path("data") / f"{path}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    contracts.write(table, file, contract)


def make() -> None:
    """A project folder with small good data in every layer that a check looks at."""
    parameters.copy(Path())
    raw = Path("data/interim/demo")
    raw.mkdir(parents=True)
    for name, table in tables.raw_tables().items():
        table.write_parquet(raw / f"{name}.parquet")
    write_raw_schema(tables.RAW_SCHEMA, raw)
    write_json(raw / "source.json", {"synthetic": True})
    layout = dict.fromkeys(("user_ids", "item_ids"), contracts.ID_MAP)
    layout |= {"interactions": contracts.INTERACTIONS, "users": contracts.users_schema(tables.FEATURES)}
    for name, table in tables.processed_tables().items():
        put(f"processed/demo/{name}", table, layout[name])
    release, columns = PARAMS.perturbed[PERTURBED], tables.SCHEMA.columns
    zeros = next(iter(tables.perturbed_tables().values())).with_columns(pl.exclude("user") * 0.0)
    for epsilon, seed in product(release.epsilon, release.seeds):
        put(f"perturbed/{PERTURBED}/epsilon={epsilon:g}/seed-{seed}", zeros, contracts.features_schema(columns))
    words = tables.words_table(PARAMS.words[WORDS].dimension)
    put(f"words/{WORDS}/features", words, contracts.features_schema(words.columns[1:]))
    write_json(Path(f"data/words/{WORDS}/words.json"), {})
    for folder in ("processed/demo", f"perturbed/{PERTURBED}", f"words/{WORDS}"):
        write_json(Path("data") / folder / "schema.json", tables.SCHEMA.model_dump(mode="json"))
    write_runs()


def write_runs() -> None:
    suite = PARAMS.suites["demo"]
    evaluation = suite.evaluation
    assert evaluation.negatives
    names = {
        "train": metrics.ranking_metrics(evaluation.k, evaluation.negatives),
        "attack": attacks.attribute(suite, next(iter(suite.experiments.values())), BASE),
    }
    for name, experiment in suite.experiments.items():
        for setting, seed in product(experiment.settings(), experiment.seeds):
            lists = tables.recommended(max(evaluation.k))
            put(f"runs/demo/{name}/released/{setting}/seed-{seed}", lists, contracts.RECOMMENDATIONS)
        about = {"suite": "demo", "dataset": DATA, "model": experiment.model}
        for stage, measured in names.items():
            table = metrics.measurements(name, experiment.settings(), experiment.seeds, measured)
            table = table.with_columns(value=pl.lit(0.25), **{key: pl.lit(value) for key, value in about.items()})
            put(f"runs/demo/{name}/{stage}/metrics", table, contracts.METRICS)


def verdict(layer: str, name: str) -> dict:
    return json.loads(Path(f"data/quality/{layer}/{name}.json").read_text(encoding="utf-8"))


def edit(path: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path)).write_parquet(path)


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("layer", NAMES)
def test_good_data_pass_and_leave_a_verdict_with_docs(layer: str) -> None:
    name = NAMES[layer]
    check.main(f"{layer}/{name}")
    actual = verdict(layer, name)
    assert (actual["contract"], actual["name"], actual["success"], actual["failed"]) == (layer, name, True, 0)
    assert actual["evaluated"] == len(actual["results"]) > 5
    assert require_passed(layer, name)["success"]
    assert actual["checked"]
    for file, sha256 in actual["checked"].items():
        assert hashlib.sha256(Path(file).read_bytes()).hexdigest() == sha256
    index = Path(f"data/quality/{layer}/{name}/index.html").read_text(encoding="utf-8")
    assert f"{layer}/{name}" in index
    assert not list(Path("data").rglob("*.partial"))


@pytest.mark.usefixtures("copied")
def test_bad_rows_stop_the_pipeline_but_leave_the_verdict() -> None:
    path = "data/processed/demo/interactions.parquet"
    edit(path, value(6, "rating", 9.0))
    with pytest.raises(DataError) as error:
        check.main("processed/demo")
    assert str(error.value) == (
        "table interactions, column rating must be from 1 to 5; 1 of 72 rows: "
        "row 6 (user=1, item=6): rating is 9.0; see data/quality/processed/demo/index.html"
    )
    actual = verdict("processed", "demo")
    assert (actual["success"], actual["failed"]) == (False, 1)
    assert "row 6 (user=1, item=6)" in Path("data/quality/processed/demo/index.html").read_text(encoding="utf-8")
    with pytest.raises(DataError, match="failed their check"):
        require_passed("processed", "demo")


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite_pages(path: Path) -> None:
    """The file still begins and ends as Parquet does."""
    content = bytearray(path.read_bytes())
    content[40:120] = bytes(80)
    path.write_bytes(content)


def drop_column(path: Path) -> None:
    frame = pl.read_parquet(path)
    frame.drop(frame.columns[-1]).write_parquet(path)


def id_as_text(path: Path) -> None:
    pl.read_parquet(path).with_columns(pl.col("user").cast(pl.String)).write_parquet(path)


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_in_half, "not a readable Parquet file"),
        (overwrite_pages, "cannot be read"),
        (drop_column, "column '(timestamp|split|occupation)' is missing"),
        (Path.unlink, "no such table"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("path", ["interim/demo/users", "interim/demo/interactions", "processed/demo/interactions"])
def test_a_file_that_cannot_be_used_fails_the_check_with_its_name(
    path: str, damage: Callable[[Path], None], message: str
) -> None:
    file = Path(f"data/{path}.parquet")
    damage(file)
    layer = {"interim": "raw", "processed": "processed"}[path.split("/")[0]]
    with pytest.raises(DataError, match=re.escape(f"{file}: ") + message):
        check.main(f"{layer}/demo")
    with pytest.raises(DataError):
        require_passed(layer, "demo")


@pytest.mark.usefixtures("copied")
def test_an_error_in_a_rule_is_not_blamed_on_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("t", pl.LazyFrame({"x": ["a"]}), (holds("x", pl.col("y").is_finite(), "must be right"),))
    monkeypatch.setattr(check, "raw_tables", lambda _: [table])
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        check.main("raw/demo")
    assert not Path("data/quality/raw/demo.json").exists()


RELEASE = f"data/perturbed/{PERTURBED}/epsilon={PARAMS.perturbed[PERTURBED].epsilon[0]:g}"
LAST = PARAMS.perturbed[PERTURBED].seeds[-1]


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("name", "file", "damage", "message"),
    [
        ("processed/demo", "data/processed/demo/users.parquet", id_as_text, "column 'user' is String, not Int32"),
        (f"perturbed/{PERTURBED}", f"{RELEASE}/seed-{LAST}.parquet", Path.unlink, "is not there"),
        (f"words/{WORDS}", f"data/words/{WORDS}/features.parquet", drop_column, "column 'occupation.19' is missing"),
    ],
)
def test_a_file_that_does_not_keep_its_contract_fails_the_check(
    name: str, file: str, damage: Callable[[Path], None], message: str
) -> None:
    damage(Path(file))
    with pytest.raises(DataError, match=re.escape(f"{file}: {message}")):
        check.main(name)


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rwa/demo", "unknown layer 'rwa'; known: raw/NAME, processed/NAME"),
        ("raw", "params.yaml: datasets: there is no ''"),
        ("raw/none", "params.yaml: datasets: there is no 'none'; known: ciao, ciao-twin, demo"),
        ("metrics/none", "suites: there is no 'none'"),
    ],
)
def test_unknown_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        check.main(name)
