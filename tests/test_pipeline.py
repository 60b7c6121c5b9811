"""Every dvc.yaml is the table's, and DVC's graph of them is the one that is meant."""

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from flows import plan
from flows.dvc import Project, _repo, name_of
from tasks.config.params import Params, load
from tasks.pipeline import dvc_files
from tests.parameters import ROOT

SUITES = ("demo", "dipsgnn", "dpcrosue", "dpvae", "frontier-ml-1m-held-out", "gerai", "membership", "privsr")
"""Of all tasks and kinds of attack; DVC takes seconds to read the others, which are written from the same table."""


@pytest.fixture(scope="module")
def params() -> Params:
    return load(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with chdir(ROOT):
        files = [Path("dvc.yaml"), Path("data/dvc.yaml"), *(Path("suites", name, "dvc.yaml") for name in SUITES)]
        with _repo() as repo:
            yield Project(repo, files)


def listed(stage: Any) -> list[tuple[str, str]]:
    """(file, key) of the parameters that a stage depends on."""
    own = [dep for dep in stage.deps if hasattr(dep, "params")]
    return [(Path(dep.fs_path).relative_to(ROOT).as_posix(), key) for dep in own for key in dep.params]


def below(project: Project, name: str) -> set[str]:
    return {stage.addressing for stage in plan.needs(project, project.stages[name])}


def test_every_dvc_yaml_is_what_the_table_says(params: Params) -> None:
    """`dprec pipeline` writes them. None is written by hand."""
    written = {ROOT / path: text for path, text in dvc_files.texts(params).items()}
    actual = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("**/dvc.yaml") if ".venv" not in path.parts}
    assert actual == written


def test_every_command_is_the_same_with_and_without_a_shell(project: Project) -> None:
    commands = [stage.cmd for stage in project.stages.values()]
    assert [command for command in commands if not re.fullmatch(r"python -m [a-z._]+( [a-z0-9/-]+)?", command)] == []


def test_a_stage_is_tied_to_its_own_fingerprint_and_to_no_module(project: Project) -> None:
    for address, stage in project.stages.items():
        kind, _, key = name_of(stage).partition("@")
        if kind == "code":
            continue
        own = str(Path(address.rpartition(":")[0]).with_name("code.json")) if ":" in address else "code.json"
        assert [code for file, code in listed(stage) if file == own] == [f"{kind}.{key}"], address
        files = [Path(dep.fs_path).relative_to(ROOT) for dep in stage.deps if not hasattr(dep, "params")]
        assert not [path for path in files if path.parts[0] != "data"], address


def test_a_stage_depends_on_its_own_parameters_and_on_no_others(project: Project) -> None:
    tables = {"datasets", "processed", "perturbed", "words", "embeddings", "aligned", "experiments"}
    for address, stage in project.stages.items():
        kind, _, own = name_of(stage).partition("@")
        suite = address.removeprefix("suites/").partition("/")[0] if address.startswith("suites/") else own
        of_suite = kind in ("attack-edges", "attack-membership", "audit", "audit-training", "check-metrics", "collect")
        for file, key in listed(stage):
            own_files = {f"suites/{suite}/{file}" for file in ("params.yaml", "attack.yaml")}
            assert Path(file).name == "code.json" or file in {"params.yaml", *own_files}, address
            table_, _, entry = key.partition(".")
            if table_ in tables and not of_suite:
                assert entry == own or entry.startswith(f"{own}."), f"{address}: {key}"


def test_nothing_depends_on_a_folder_above_what_a_stage_writes(project: Project) -> None:
    """DVC could not tell what of it is there: `dvc repro --pull --allow-missing` names what is read."""
    written = {out.fs_path for stage in project.stages.values() for out in stage.outs}
    above = {str(folder) for path in written for folder in Path(path).parents}
    for address, stage in project.stages.items():
        actual = [dep for dep in stage.deps if dep.fs_path in above and name_of(stage) != "code"]
        assert not actual, address


def test_a_report_waits_for_every_stage_of_its_suite_and_for_no_other_suite(project: Project, params: Params) -> None:
    """Also for the checks of what was released and is not attacked."""
    kinds = {name: {suite.task, suite.attack and suite.attack.kind} for name, suite in params.suites.items()}
    assert set().union(*(kinds[name] for name in SUITES)) >= set().union(*kinds.values()) - {None}
    for suite in SUITES:
        needed = below(project, f"report@{suite}")
        assert {address for address in project.stages if address.startswith(f"suites/{suite}/")} <= needed
        assert not [address for address in needed if address.startswith("suites/") and f"/{suite}/" not in address]


def test_the_demo_needs_no_other_data_set(project: Project) -> None:
    data = {address for address in below(project, "report@demo") if address.startswith("data/")}
    assert not [address for address in data if not address.endswith(("@demo", "@gerai-demo"))]


def test_data_that_no_suite_reads_are_not_among_what_dvc_repro_computes(project: Project) -> None:
    everything = set().union(*(below(project, address) for address in project.stages if "/" not in address))
    assert "data/dvc.yaml:download@ml-100k" in everything
    assert "data/dvc.yaml:download@ml-20m" not in everything


def test_a_file_that_is_behind_is_written_anew_and_one_of_somebodys_own_is_left_alone(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(dvc_files.write(params)) == len(dvc_files.texts(params))
    assert dvc_files.outdated_files(params) == {}
    gone = Path("suites/gone/dvc.yaml")
    gone.parent.mkdir(parents=True)
    gone.write_text("stages: {}\n")
    Path("data/dvc.yaml").write_text(dvc_files.HEADER)
    assert dvc_files.write(params) == [gone, Path("data/dvc.yaml")]
    with Path("suites/demo/dvc.yaml").open("ab") as damaged:
        damaged.write(b"\xff")  # not even text
    assert dvc_files.write(params) == [Path("suites/demo/dvc.yaml")]
    assert not gone.exists()
    Path("dvc.yaml").write_text("stages: {}\n")
    Path("data/dvc.yaml").unlink()
    assert dvc_files.write(params) == []
