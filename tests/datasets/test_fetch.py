import errno
import fcntl
import hashlib
import random
import shutil
from dataclasses import replace
from io import BufferedWriter
from pathlib import Path

import httpx
import pytest

from tasks.core.errors import ByHandError, DataError
from tasks.datasets import transfer
from tasks.datasets.fetch import FormFile, Places, RemoteFile, local_file
from tasks.datasets.transfer import RetryPolicy
from tests.datasets.formats import places
from tests.datasets.server import serve, trickle

CONTENT = random.Random(0).randbytes(300_000)
QUICK = RetryPolicy(attempts=4, first_wait=0.001, timeout=5)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def published(server: str, content: bytes = CONTENT) -> RemoteFile:
    """The file with the given content, officially at `server`."""
    return RemoteFile(
        address=f"{server}/set.zip",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        mirror_path="set/set.zip",
    )


def get(file: RemoteFile, root: Path, mirror: str | None = None, retry: RetryPolicy = QUICK) -> bytes:
    with local_file(file, places(root, mirror), retry) as path:
        return path.read_bytes()


def left(root: Path) -> list[Path]:
    return list((root / "downloads").glob("*"))


def refused(file: RemoteFile, root: Path, match: str, mirror: str | None = None, retry: RetryPolicy = QUICK) -> None:
    with pytest.raises(DataError, match=match) as caught:
        get(file, root, mirror, retry)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("faults", "ranges"),
    [
        ([], []),
        ([50, 503, 50], ["bytes=150000-", "bytes=150000-", "bytes=225000-"]),  # goes on where it stopped
        ([50, "whole"], ["bytes=150000-"]),  # starts over where the server knows no ranges
    ],
)
def test_the_official_file_arrives_whole_and_the_download_is_tidied_away(
    tmp_path: Path, faults: list[int | str], ranges: list[str]
) -> None:
    with serve(CONTENT, *faults) as (server, handler):
        assert get(published(server), tmp_path) == CONTENT
    assert handler.ranges == [None, *ranges]
    assert left(tmp_path) == []


def test_what_an_interrupted_run_received_is_kept_for_the_next(tmp_path: Path) -> None:
    with serve(CONTENT, 50, 0, 0, 0) as (server, handler):
        refused(published(server), tmp_path, "150,000 bytes are kept and the next run goes on")
        assert [path.suffix for path in left(tmp_path)] == [".partial"]
        assert get(published(server), tmp_path) == CONTENT
    assert handler.ranges[-1] == "bytes=150000-"
    assert left(tmp_path) == []


def test_a_partial_file_longer_than_the_published_one_starts_over(tmp_path: Path) -> None:
    with serve(CONTENT, *[50] * QUICK.attempts) as (server, _):
        refused(published(server), tmp_path, "bytes are kept")
        (partial,) = left(tmp_path)
        partial.write_bytes(CONTENT + b"more")
        assert get(published(server), tmp_path) == CONTENT


def test_another_content_than_published_says_expected_and_found_and_leaves_nothing(tmp_path: Path) -> None:
    other = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with serve(other) as (server, _):
        match = f"sha256 is {hashlib.sha256(other).hexdigest()}, expected {hashlib.sha256(CONTENT).hexdigest()}"
        refused(published(server), tmp_path, match)
    with serve(CONTENT + b"x") as (server, _):
        refused(published(server), tmp_path, "size is 300,001 bytes, expected 300,000 bytes")
    with serve(CONTENT * 3) as (server, _):
        refused(published(server), tmp_path, "more than 600,000 bytes")
    assert left(tmp_path) == []


@pytest.mark.parametrize("status", [404, 403])
def test_a_refusal_is_not_asked_again_and_says_what_to_do(tmp_path: Path, status: int) -> None:
    with serve(CONTENT, status) as (server, handler):
        refused(published(server), tmp_path, rf"answered {status}.*DPREC_MIRROR.*placed/set\.zip")
    assert len(handler.ranges) == 1
    assert left(tmp_path) == []


def test_an_unreachable_address_says_what_to_do(tmp_path: Path) -> None:
    with serve(CONTENT) as (server, _):
        pass
    refused(published(server), tmp_path, r"not reachable.*nothing was received.*DPREC_MIRROR.*placed/set\.zip")
    assert left(tmp_path) == []


def test_a_mirror_address_may_pack_the_file_anew(tmp_path: Path) -> None:
    with serve(CONTENT[:1000]) as (server, _):
        file = published("http://127.0.0.1:9")
        assert get(file, tmp_path, mirror=f"{server}/mirror/") == CONTENT[:1000]


def test_a_caller_that_refuses_a_download_has_it_deleted(tmp_path: Path) -> None:
    def use(path: Path) -> None:
        raise DataError(f"{path}: not what was wanted")

    with serve(CONTENT) as (server, _):
        file = local_file(published(server), places(tmp_path), QUICK)
        with pytest.raises(DataError, match="not what was wanted"), file as path:
            use(path)
    assert left(tmp_path) == []


def test_a_mirror_folder_and_a_placed_file_are_used_where_they_lie(tmp_path: Path) -> None:
    file = published("http://127.0.0.1:9")
    kept = tmp_path / "mirror" / "set" / "set.zip"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"of the mirror")
    assert get(file, tmp_path, mirror=str(tmp_path / "mirror")) == b"of the mirror"
    placed = tmp_path / "placed" / "set.zip"
    placed.parent.mkdir()
    placed.write_bytes(b"of the user")
    assert get(file, tmp_path, mirror=str(tmp_path / "mirror")) == b"of the user"
    assert kept.exists()
    assert placed.exists()


def test_a_mirror_that_is_not_there_says_what_was_looked_for(tmp_path: Path) -> None:
    file = published("http://127.0.0.1:9")
    match = r"DPREC_MIRROR=.*/away: there is no such folder \(looked for .*/away/set/set.zip\)"
    refused(file, tmp_path, match, mirror=str(tmp_path / "away"))
    (tmp_path / "empty").mkdir()
    refused(file, tmp_path, "it holds no set/set.zip", mirror=str(tmp_path / "empty"))
    with serve(b"", 404) as (server, _):
        refused(file, tmp_path, rf"{server}/set/set.zip: answered 404", mirror=server)


def test_too_little_space_is_said_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda _: full)
    with serve(CONTENT) as (server, _):
        refused(published(server), tmp_path, "needs 300,000 more bytes, 10 are free")
    assert left(tmp_path) == []


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transfer.Transfer, "_require_space", lambda *_: None)
    monkeypatch.setattr(httpx.Response, "iter_raw", full)
    with serve(CONTENT) as (server, _):
        refused(published(server), tmp_path, "no space left for .*set.zip; free some")
    assert left(tmp_path) == []


def test_a_download_that_is_already_running_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = transfer.Transfer._lock

    def locked_by_another(running: transfer.Transfer, out: BufferedWriter) -> None:
        with running.partial.open("ab") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            original(running, out)

    monkeypatch.setattr(transfer.Transfer, "_lock", locked_by_another)
    with serve(CONTENT) as (server, handler):
        refused(published(server), tmp_path, "another run is downloading it")
    assert handler.ranges == []
    assert len(left(tmp_path)) == 1


@pytest.mark.parametrize("slow", ["body", "unknown length", "header"])
def test_a_server_that_sends_a_byte_at_a_time_is_left_after_a_while(tmp_path: Path, slow: str) -> None:
    """Each byte arrives in time, and so httpx's own timeout never ends it."""
    hasty = replace(QUICK, window=0.3)
    with trickle(slow) as server:
        refused(
            published(server),
            tmp_path,
            r"too slow \((\d+ bytes|no whole answer) in 0.3 s; .*(kept|received)",
            retry=hasty,
        )


def test_a_download_ends_when_it_takes_longer_than_it_may(tmp_path: Path) -> None:
    short = replace(QUICK, window=0.1, longest=0.25, slowest=0)
    with trickle("body") as server:
        refused(published(server), tmp_path, r"it takes longer than 0.25 s", retry=short)


SECRETS = ("maria", "hunter2", "t0ken", "fr4gment")


@pytest.mark.parametrize(
    "mirror",
    [
        "maria:hunter2@h/m",
        "//maria:hunter2@h/m",
        "https:\\\\maria:hunter2@h\\m",
        "https:/maria:hunter2@h/m",
        "https//maria:hunter2@h/m",
        " 'sftp+ssh_x://maria:hunter2@h/m'",
        "://hunter2",
        "h/m?key=hunter2",
        "h/m#hunter2",
        "hunter2:" + "x" * 300,
    ],
)
def test_a_mistyped_mirror_is_not_shown(
    tmp_path: Path, mirror: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    where = places(tmp_path, mirror)
    for file, error in ((RemoteFile("https://h/set.zip", 1, "", "set/set.zip"), DataError), (FORM, DataError)):
        with pytest.raises(error) as refusal, local_file(file, where, QUICK):
            pass
        assert str(refusal.value) == "DPREC_MIRROR: there is no such folder; correct DPREC_MIRROR or unset it"
    assert "hunter2" not in f"{where!r} {caplog.text} {capfd.readouterr()}"


@pytest.mark.parametrize("around", [" {}", "{} ", "'{}'", '"{}"', ' "{}"\n'])
def test_spaces_and_quotes_around_a_mirror_are_none_of_it(tmp_path: Path, around: str) -> None:
    folder = Places(around.format(tmp_path), tmp_path, tmp_path)
    assert (folder.mirror_folder, folder.mirror_address) == (tmp_path, None)
    address = Places(around.format("HTTPS://maria:hunter2@h/m"), tmp_path, tmp_path)
    assert (address.mirror_folder, address.mirror_address) == (None, "HTTPS://maria:hunter2@h/m")


def test_what_is_secret_in_a_mirrors_address_is_sent_and_never_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    file = published("http://127.0.0.1:9")
    messages = []
    with serve(CONTENT, 0, 404, *[503] * QUICK.attempts) as (server, handler):
        mirror = server.replace("//", "//maria:hunter2@") + "/base/?key=t0ken#fr4gment"
        for _ in range(2):
            with pytest.raises(DataError) as caught:
                get(file, tmp_path, mirror)
            messages.append(str(caught.value))
        assert get(file, tmp_path, mirror) == CONTENT
    assert set(handler.paths) == {"/base/set/set.zip?key=t0ken"}
    assert set(handler.authorizations) == {"Basic bWFyaWE6aHVudGVyMg=="}
    assert all(f"{server}/base/set/set.zip: " in message for message in messages)
    for wrong in (
        "http://maria:hunter2/@host/",
        "HTTPS://maria:hunter2@[::/x",
        "ftp://maria:hunter2@host/t0ken",
        mirror,
    ):
        with pytest.raises(DataError) as caught:
            get(file, tmp_path, wrong)
        messages.append(str(caught.value))
    said = "".join((*messages, *capfd.readouterr(), caplog.text))
    assert not [secret for secret in SECRETS if secret in said]


FORM = FormFile(
    name="form/log.csv", page="https://example.org/form", what="log.csv of the second round", mirror_path="form/log.csv"
)


def by_hand(root: Path, mirror: Path | None = None) -> list[str]:
    with pytest.raises(ByHandError) as caught, local_file(FORM, places(root, mirror)):
        pass
    return str(caught.value).splitlines()


def test_a_file_behind_a_form_is_asked_for_in_three_lines(tmp_path: Path) -> None:
    first, *steps = by_hand(tmp_path)
    assert first == "form/log.csv has to be fetched by hand"
    assert steps == [
        "get it at: https://example.org/form",
        "ask for: log.csv of the second round",
        f"put it at: {tmp_path}/placed/form/log.csv",
    ]
    (tmp_path / "mirror").mkdir()
    first, *steps = by_hand(tmp_path, tmp_path / "mirror")
    assert first.endswith("/mirror/form/log.csv)")
    assert len(steps) == 3


def test_a_placed_file_is_taken_if_it_is_the_published_one(tmp_path: Path) -> None:
    target = tmp_path / "placed" / FORM.name
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT[:100])
    with local_file(FORM, places(tmp_path)) as path:
        assert path == target
    known = replace(FORM, size=100, sha256=hashlib.sha256(CONTENT[:100]).hexdigest())
    with local_file(known, places(tmp_path)) as path:
        assert path == target
    for other, match in (
        (replace(known, size=101), "size is 100 bytes, expected 101 bytes; it is not the published file"),
        (replace(known, sha256="0" * 64), "sha256 is .*, expected 0000"),
    ):
        with pytest.raises(DataError, match=match), local_file(other, places(tmp_path)):
            pass
    assert target.is_file()
