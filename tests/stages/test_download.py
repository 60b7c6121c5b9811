"""Stage `download`: the raw folder appears whole, from any source, or not at all."""

import hashlib
import shutil
from pathlib import Path

import pytest

from tasks.datasets.movielens import ML_100K
from tasks.pipeline.common import PLACED, RAW, digest, read_json
from tasks.stages import download


@pytest.fixture(autouse=True)
def workspace(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return project


def place(zipped: Path) -> None:
    PLACED.mkdir(parents=True)
    shutil.copy(zipped, PLACED / "ml-100k.zip")


def test_the_demo_is_generated_with_its_record_and_licence(capsys: pytest.CaptureFixture[str]) -> None:
    download.main("demo")
    source = read_json(RAW / "demo" / "source.json")
    assert source["synthetic"] is True
    assert source["dataset"] == "demo"
    assert set(source["files"]) == {file.name for file in (RAW / "demo").iterdir()} - {"source.json"}
    for name, facts in source["files"].items():
        content = (RAW / "demo" / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert capsys.readouterr().out.count("SYNTHETIC") == 1


def test_a_mirror_and_a_placed_file_give_the_same_folder(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPREC_MIRROR", str(mirror))
    download.main("ml-100k")
    first = digest(RAW / "ml-100k")
    assert read_json(RAW / "ml-100k" / "source.json")["address"] == ML_100K.SOURCE.address
    assert "no redistribution" in capsys.readouterr().out

    monkeypatch.setenv("DPREC_MIRROR", "/nowhere")
    place(mirror / ML_100K.SOURCE.files[0].mirror_path)
    download.main("ml-100k")
    assert digest(RAW / "ml-100k") == first
