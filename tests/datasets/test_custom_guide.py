"""What docs/custom-data.md shows is what runs."""

import re
from pathlib import Path

import pytest
import yaml

from tasks.config.params import Params, load
from tasks.config.references import check
from tasks.core.errors import DataError
from tasks.core.raw import read_raw
from tasks.datasets.custom import ObtainOptions, ReadOptions, convert, obtain
from tasks.datasets.fetch import Places
from tasks.pipeline import dvc_files, table
from tasks.stages import convert as stage
from tasks.stages import data, download
from tests import parameters
from tests.datasets.test_custom import ready
from tests.parameters import ROOT


def guide(language: str) -> list[str]:
    text = (ROOT / "docs" / "custom-data.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def shop(folder: Path) -> Params:
    """The guide's data set, as its reader has it."""
    (folder / "own").mkdir()
    for name, content in zip(("ratings", "people", "follows"), guide("csv"), strict=True):
        (folder / "own" / f"{name}.csv").write_text(content)
    shown = {table: entries for text in guide("yaml") for table, entries in yaml.safe_load(text).items()}
    params = parameters.read()
    params["suites"]["shop"] = {key: shown.pop(key) for key in parameters.OWN if key in shown}
    for section, entries in shown.items():
        params[section] = params[section] | entries
    return load(parameters.write(params, folder))


def test_what_the_guide_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checked = shop(tmp_path)
    check(checked, tmp_path / "params.yaml")

    dataset = checked.datasets["shop"]
    (tmp_path / "raw").mkdir()
    (tmp_path / "tables").mkdir()
    obtain(tmp_path / "raw", Places(None, tmp_path, tmp_path), ObtainOptions.model_validate(dataset.obtain))
    convert(tmp_path / "raw", tmp_path / "tables", ReadOptions.model_validate(dataset.read))
    prepared = ready(read_raw(tmp_path / "tables"))
    assert (prepared.n_users, prepared.n_items) == (3, 3)
    assert prepared.tables["users"]["plan"].to_list() == ["basic", "none", "premium"]


def test_an_own_file_that_changes_makes_its_download_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    params = shop(tmp_path)
    kind = table.find_stage("download", "shop", params)
    before = kind.decides("shop")
    Path("own/people.csv").write_text(Path("own/people.csv").read_text() + "57,30,basic\n")
    after = kind.decides("shop")
    assert [first == second for first, second in zip(before, after, strict=True)] == [True, False, True]
    assert kind.decides("ml-100k") == []
    root = yaml.safe_load(dvc_files.texts(params)[Path("dvc.yaml")])
    assert {"own/ratings.csv", "own/people.csv", "own/follows.csv"} <= {*root["stages"]["code"]["deps"]}
    Path("own/people.csv").unlink()
    assert kind.decides("shop")[1] == ""  # the stage then says what is missing
    root = yaml.safe_load(dvc_files.texts(params)[Path("dvc.yaml")])
    assert "own/people.csv" not in root["stages"]["code"]["deps"]  # without it no suite could run


@pytest.mark.parametrize(
    ("file", "wrong", "message"),
    [
        ("ratings", "17,espresso-machine,9,2024-05-31T18:30:00", r"^own/ratings\.csv:2: stars "),
        ("people", "17,old,basic", r"^own/people\.csv:2: age "),
        ("follows", "17,99", r"^own/follows\.csv:2: .*own/people\.csv"),
    ],
)
def test_what_is_wrong_in_an_own_file_is_said_of_it_and_not_of_a_copy(
    file: str, wrong: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop(tmp_path)
    path = Path(f"own/{file}.csv")
    header, _, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, wrong, *rows]) + "\n")
    download.main("shop")
    with pytest.raises(DataError, match=message):
        stage.main("shop")
    with pytest.raises(DataError, match=message):
        list(data.inspect("shop"))
