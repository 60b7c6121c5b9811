"""Folders inside which tests of stages run."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from tests import parameters


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of one's own, as the test's module, or its `tiny`, builds it."""
    monkeypatch.chdir(tmp_path)
    (request.module if hasattr(request.module, "build") else request.module.tiny).build(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace that the test's module makes, in the folder that it is called in."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        request.module.make()
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the project's parameters; there is no mirror."""
    parameters.copy(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPREC_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def inside(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace that is `made`, only to be read."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def copied(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to be changed."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "copy"))
    return Path.cwd()
