"""What documents tell those who have the official data of a replica: the replica's suite becomes that of the data."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from tasks.config import references
from tasks.config.params import load
from tasks.datasets import SOURCES

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = [
    block
    for block in re.findall(r"```\n(.*?)```", (ROOT / "docs/dpcrosue.md").read_text(encoding="utf-8"), re.DOTALL)
    if "cp -r suites/" in block
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[3])
def test_the_suite_of_a_replica_becomes_that_of_the_official_data(block: str, tmp_path: Path) -> None:
    first, *changes, last = block.strip().splitlines()
    dataset, suite = first.removeprefix("dprec data verify "), last.removeprefix("dprec run ")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "suites", tmp_path / "suites")
    file = tmp_path / "params.yaml"
    source = import_module(SOURCES[dataset.replace("-", "_")]).SOURCE
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"(?m)^(datasets:.*)$", rf"\1\n  {dataset}: {source.entry}", text), encoding="utf-8")
    subprocess.run(["bash", "-ec", "\n".join(changes)], cwd=tmp_path, check=True)
    params = load(file)
    references.check(params)
    assert params.processed[params.suites[suite].data].dataset == dataset
    assert f"{suite.removesuffix('-text')}-twin" not in params.suites
    assert not (tmp_path / "suites" / suite / "dvc.lock").exists()


def test_both_kinds_of_networks_with_texts_have_their_commands() -> None:
    assert len(BLOCKS) == 2
