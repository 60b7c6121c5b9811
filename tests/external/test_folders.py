"""Git takes nothing of what an audit writes, wherever that is; a folder that was there is left as it is."""

import stat
from pathlib import Path

import pytest

from tasks.core.errors import ConfigurationError, DataError
from tasks.external import folders, writing
from tasks.external.canaries import plant
from tasks.external.command import Repeated, repeat
from tasks.external.findings import Audit
from tasks.external.reading import Names
from tasks.external.run import AuditRequest
from tests.command import git
from tests.external.test_canaries import ratings
from tests.external.worlds import quiet


def test_git_takes_no_folder_that_an_audit_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    table = ratings(tmp_path)
    plant(table, 10, 3, 1, tmp_path / "below/planted", Names())
    with pytest.raises(DataError):
        repeat(Repeated("false {train} {out}", 2, tmp_path / "audit-runs"), AuditRequest(table, table), quiet)
    monkeypatch.setattr(writing, "render", lambda _: "")
    writing.write(Audit.model_construct(), None, tmp_path / "audit")
    assert all((tmp_path / name).is_dir() for name in ("below/planted", "audit-runs", "audit"))
    assert git(tmp_path, "ls-files", "--others", "--exclude-standard").split() == [table.name]


def test_a_folder_that_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    folders.make(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_audit_replaces_an_audit_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "render", lambda _: "")
    out, linked = tmp_path / "audit", tmp_path / "linked"
    linked.write_text(precious := '{"format": "dprec-audit/1"}')
    out.mkdir()
    (out / "audit.json").symlink_to(linked)
    (out / "exposed.csv").touch(0o644)
    data, page = writing.write(Audit.model_construct(), None, out)
    assert (data.is_symlink(), linked.read_text(), (out / "exposed.csv").exists()) == (False, precious, False)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (data, page)} == {0o600}
    (out / "notes.txt").touch()
    (web := tmp_path / "web").mkdir()
    (web / "index.html").write_text("precious")
    (mine := tmp_path / "mine").mkdir()
    (mine / "audit.json").write_text('{"name": "of accounts"}')
    monkeypatch.chdir(tmp_path)
    for refused, why in (
        (out, "holds notes.txt, which no audit wrote"),
        (web, "holds index.html, which no audit wrote"),
        (mine, "holds audit.json, which no audit wrote"),
        (Path(), "choose another folder"),
        (linked / "audit", "not a folder that may"),
    ):
        with pytest.raises((ConfigurationError, PermissionError), match=why):
            writing.write(Audit.model_construct(), None, refused)
    assert data.exists()
