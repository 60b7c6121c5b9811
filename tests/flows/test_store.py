"""What the machines of a cluster share: what is put into a store comes back, or is refused."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.store import Store
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline import runs
from tests.flows.conftest import Project


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, store_address: str) -> Store:
    return Store(store_address if request.param == "folder" else f"memory://{tmp_path}")


def test_a_store_gives_back_what_was_put_there(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data/below").mkdir(parents=True)
    Path("data/below/one").write_text("one")
    Path("two").write_text("two")
    listed = store.put_files([Path("data"), Path("two")])
    place = tmp_path / "place"
    place.mkdir()
    store.get_files(listed, place)
    assert (place / "data/below/one").read_text() == "one"
    assert (place / "two").read_text() == "two"
    assert listed == store.put_files([Path("two"), Path("data")])


def unit_in(tmp_path: Path) -> Path:
    done = tmp_path / "unit-0123" / "done"
    (done / "below").mkdir(parents=True)
    (done / "below/value").write_text("v")
    (done / "empty").mkdir()
    runs.seal(done, "unit-0123")
    return done


def test_a_units_results_are_believed_only_as_its_manifest_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, done = Store(str(tmp_path / "store")), unit_in(tmp_path)
    assert not store.get_unit("kept/unit-0123", tmp_path / "back")
    store.put_unit(done, "kept/unit-0123")
    assert store.get_unit("kept/unit-0123", tmp_path / "back")
    assert (tmp_path / "back/below/value").read_text() == "v"
    [value] = [file for file in (tmp_path / "store/files").iterdir() if file.read_text() == "v"]
    value.write_text("w")
    capsys.readouterr()
    assert not store.get_unit("kept/unit-0123", tmp_path / "again")
    [line] = [line for said in capsys.readouterr() for line in said.splitlines()]
    assert "kept/unit-0123" in line
    assert f"files/{value.name}: not what its name says, and removed" in line
    assert not store.get_unit("kept/unit-0456", tmp_path / "again")
    assert not any(capsys.readouterr()), "one that no one put there is no damage"
    assert not (tmp_path / "again").exists()
    assert not value.exists(), "it would be taken for what its name says"
    (done / "below/value").write_text("edited")
    with pytest.raises(DataError, match="not the file that was written"):
        store.put_unit(done, "kept/unit-0123")


@pytest.mark.parametrize("name", ["../out", "/out", "below/../../out"])
def test_a_list_cannot_write_outside_its_folder(name: str, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    (tmp_path / "file").write_text("x")
    digest = store._put(tmp_path / "file")
    (tmp_path / "place").mkdir()
    with pytest.raises(DataError, match="leads out of its folder"):
        store.get_files(store._put(json.dumps({name: digest}).encode()), tmp_path / "place")
    assert not (tmp_path / "out").exists()


def test_a_file_of_another_length_is_put_there_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    (tmp_path / "file").write_text("whole")
    there = tmp_path / "store/files" / store._put(tmp_path / "file")
    there.write_text("who")
    store._put(tmp_path / "file")
    assert there.read_text() == "whole"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ssh://somebody:made-up@localhost/dprec", "holds a password"),
        ("simplecache::sftp://somebody:made-up@localhost/dprec", "holds a password"),
        ("https://made-up@localhost/dprec", "holds a password"),
        ("s3://somebody:made/made-up@bucket/dprec", "holds a password"),
        ("s3://bucket/dprec?X-Amz-Signature=made-up", "holds a query"),
        ("nosuch://[host/dprec", "no store that can be opened"),
    ],
)
def test_an_address_that_is_none_or_has_a_secret_is_refused_without_showing_it(address: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        Store(address)
    assert "made-up" not in str(refused.value)


def test_a_folder_may_be_called_as_a_query_is(tmp_path: Path) -> None:
    assert Store(str(tmp_path / "what?now"))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An emulator of S3 on this machine, with an empty bucket `there`; the file system at it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0)
    files = pytest.importorskip("s3fs")
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (keys | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
        monkeypatch.setenv(name, value)
    opened = files.S3FileSystem(skip_instance_cache=True)
    opened.makedirs("there", exist_ok=True)  # the emulator keeps it for the whole process
    yield opened
    server.stop()


@pytest.mark.slow
def test_a_store_on_s3_has_a_bucket_and_gives_back_what_was_put_there(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such bucket"):
        Store("s3://missing/dprec")
    assert s3.ls("") == ["there"]
    store = Store("s3://there/dprec")
    store.put_unit(unit_in(tmp_path), "kept/unit-0123")
    assert store.get_unit("kept/unit-0123", tmp_path / "back")
    assert (tmp_path / "back/below/value").read_text() == "v"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["folder", "s3"])
def test_a_second_clone_runs_nothing_of_what_a_remote_has(
    where: str, finished: Project, tmp_path: Path, address: str, request: pytest.FixtureRequest
) -> None:
    storage = str(tmp_path / "storage")
    if where == "s3":
        pytest.importorskip("dvc_s3")
        request.getfixturevalue("s3")
        storage = "s3://there/dprec"
    finished.call("git", "add", "-A")
    finished.call("git", "commit", "-q", "-m", "locks")
    second = Project(tmp_path / "second")
    finished.call("git", "clone", "-q", ".", str(second.root))
    for project, command in ((finished, "push"), (second, "pull")):
        assert project.dvc("remote", "add", "--local", "--default", "store", storage) == 0
        assert not (second.root / "data/reports").exists()
        assert project.dvc(command, "--quiet", "--with-deps", "report@demo") == 0
    assert (second.root / "data/reports/demo/index.html").read_text() == "report@demo"
    assert "up to date" in second.call(sys.executable, "-m", "dvc", "repro").stdout
    result = second.run("demo", PREFECT_API_URL=address)
    assert result.returncode == 0
    assert all(line.endswith("cached") for line in result.stdout.splitlines()[:-1])
    assert second.ran() == []
