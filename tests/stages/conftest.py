"""Folders inside which tests of stages run."""

import shutil
from pathlib import Path

import pytest

from tests import parameters


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of one's own, as `tiny` of the test's module builds it."""
    request.module.tiny.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the project's parameters; there is no mirror."""
    parameters.copy(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPREC_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def inside(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace that the test's module has `made`, only to be read."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def copied(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to be changed."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "copy"))
    return Path.cwd()
