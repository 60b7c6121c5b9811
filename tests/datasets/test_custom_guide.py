"""What docs/custom-data.md shows is what runs."""

import re
from pathlib import Path

import pytest
import yaml

from tasks.config.params import load
from tasks.config.references import check
from tasks.datasets.custom import ObtainOptions, ReadOptions, convert, obtain
from tasks.datasets.fetch import Places
from tasks.raw import read_raw
from tests import parameters
from tests.datasets.test_custom import ready

ROOT = Path(__file__).resolve().parents[2]


def guide(language: str) -> list[str]:
    text = (ROOT / "docs" / "custom-data.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_what_the_guide_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    for name, content in zip(("ratings", "people", "follows"), guide("csv"), strict=True):
        (tmp_path / "shop" / f"{name}.csv").write_text(content)
    shown = {table: entries for text in guide("yaml") for table, entries in yaml.safe_load(text).items()}
    params = parameters.read()
    params["suites"]["shop"] = {key: shown.pop(key) for key in parameters.OWN if key in shown}
    for table, entries in shown.items():
        params[table] = params[table] | entries
    checked = load(parameters.write(params, tmp_path))
    check(checked, tmp_path / "params.yaml")

    shop = checked.datasets["shop"]
    (tmp_path / "raw").mkdir()
    (tmp_path / "tables").mkdir()
    obtain(tmp_path / "raw", Places(None, tmp_path, tmp_path), ObtainOptions.model_validate(shop.obtain))
    convert(tmp_path / "raw", tmp_path / "tables", ReadOptions.model_validate(shop.read))
    prepared = ready(read_raw(tmp_path / "tables"))
    assert (prepared.n_users, prepared.n_items) == (3, 3)
    assert prepared.tables["users"]["plan"].to_list() == ["basic", "none", "premium"]
