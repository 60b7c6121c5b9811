"""Names get into commands, which DVC hands to a shell: whatever a shell would read as more than a word is refused."""

from pathlib import Path
from typing import Any

import pytest

from tasks.config.params import load
from tasks.core.errors import ConfigurationError
from tasks.pipeline import dvc_files
from tasks.stages import code
from tests import parameters

HOSTILE = ("x; touch FILE", "$(touch FILE)", "a.b", "../a", "-x", "x y", "x\n", "x'", "\u0445", "X", "", "${key}")
SHARED = ("datasets", "processed", "perturbed", "words")
OWN = {"experiments": "demo", "embeddings": "dpcrosue", "aligned": "dpcrosue"}


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    return parameters.read()


@pytest.mark.parametrize(
    ("section", "name"),
    [*(("datasets", name) for name in HOSTILE), *((section, HOSTILE[0]) for section in [*SHARED[1:], *OWN])],
)
def test_a_name_that_is_no_word_is_refused_as_parameters_load(
    raw: dict[str, Any], tmp_path: Path, section: str, name: str
) -> None:
    suites = {key: suite for key, suite in raw["suites"].items() if key == OWN.get(section, "demo")}
    table = raw | {"suites": suites}
    if section in SHARED:
        table |= {section: table[section] | {name: next(iter(table[section].values()))}}
    else:
        ((key, suite),) = suites.items()
        table["suites"] = {key: suite | {section: suite[section] | {name: next(iter(suite[section].values()))}}}
    path = parameters.write(table, tmp_path)
    with pytest.raises(ConfigurationError, match=rf"params.yaml: {section}\.") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_suite_whose_folder_is_no_word_is_refused(raw: dict[str, Any], tmp_path: Path) -> None:
    path = parameters.write(raw | {"suites": {"x; touch FILE": raw["suites"]["demo"]}}, tmp_path)
    with pytest.raises(ConfigurationError, match=r"no name of a suite"):
        load(path)


def test_plain_dvc_repro_stops_at_its_first_stage(
    raw: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it runs are the names of dvc.yaml, which is written from valid parameters alone; `code` comes first."""
    monkeypatch.chdir(tmp_path)
    table = raw | {"suites": {"demo": raw["suites"]["demo"]}}
    parameters.write(table, tmp_path)
    dvc_files.write(load())
    written = Path("data/dvc.yaml").read_text()
    parameters.write(table | {"datasets": raw["datasets"] | {HOSTILE[0]: raw["datasets"]["demo"]}}, tmp_path)
    with pytest.raises(ConfigurationError, match=r"datasets\.x; touch FILE"):
        code.main()
    assert Path("data/dvc.yaml").read_text() == written
