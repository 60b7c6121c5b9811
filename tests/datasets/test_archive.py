import hashlib
import os
import shutil
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from tasks.core.errors import DataError
from tasks.datasets import archive
from tasks.datasets.archive import unpack

TEXT = b"1\t2\t3\n" * 1000


def packed(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members:
            target.writestr(name, content)
    return path


def refused(path: Path, folder: Path, match: str, **limits: int) -> None:
    with pytest.raises(DataError, match=match) as caught:
        unpack(path, folder, {"d/u.data": None}, **limits)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert list(folder.iterdir()) == []


def test_only_wanted_members_are_unpacked_under_their_base_names(tmp_path: Path, folder: Path) -> None:
    path = packed(tmp_path / "a.zip", ("d/u.data", TEXT), ("d/script.sh", b"rm"), ("d/", b""))
    unpack(path, folder, {"d/u.data": hashlib.sha256(TEXT).hexdigest()})
    assert [file.name for file in folder.iterdir()] == ["u.data"]
    assert (folder / "u.data").read_bytes() == TEXT


def test_zips_cut_anywhere_are_refused_as_truncated(tmp_path: Path, folder: Path) -> None:
    content = packed(tmp_path / "a.zip", ("d/u.data", os.urandom(5000))).read_bytes()
    for length in (0, 10, 2000, len(content) - 30, len(content) - 1):
        (tmp_path / "cut.zip").write_bytes(content[:length])
        refused(tmp_path / "cut.zip", folder, "truncated or corrupt")


def test_an_archive_that_is_not_there_is_named(tmp_path: Path, folder: Path) -> None:
    refused(tmp_path / "a.zip", folder, "a.zip: not found")


def test_a_directory_that_begins_before_the_file_is_refused_as_corrupt(tmp_path: Path, folder: Path) -> None:
    content = bytearray(packed(tmp_path / "a.zip", ("d/u.data", TEXT)).read_bytes())
    end = content.rindex(b"PK\5\6")
    content[end + 16 : end + 20] = struct.pack("<I", end * 2)  # where the directory begins
    (tmp_path / "a.zip").write_bytes(content)
    refused(tmp_path / "a.zip", folder, "truncated or corrupt")


def test_a_spoilt_member_matters_where_it_is_read(tmp_path: Path, folder: Path) -> None:
    noise = os.urandom(5000)
    path = packed(tmp_path / "a.zip", ("d/u.data", TEXT), ("d/other", noise))
    path.write_bytes(path.read_bytes().replace(noise[100:200], bytes(100)))
    unpack(path, folder, {"d/u.data": None})
    assert (folder / "u.data").read_bytes() == TEXT
    with pytest.raises(DataError, match="truncated or corrupt"):
        unpack(path, folder, {"d/other": None})


@pytest.mark.parametrize("name", ["../u.data", "d/../../u.data", "/etc/u.data", "C:/u.data", "d\\..\\u.data"])
def test_a_path_that_leads_elsewhere_is_refused_though_not_wanted(tmp_path: Path, folder: Path, name: str) -> None:
    evil = zipfile.ZipInfo("x")
    evil.filename = name
    refused(packed(tmp_path / "a.zip", ("d/u.data", TEXT), (evil, TEXT)), folder, "outside|unsafe path")
    assert not (tmp_path / "u.data").exists()


@pytest.mark.parametrize(("kind", "match"), [(stat.S_IFLNK, r"\(link\)"), (stat.S_IFIFO, r"\(no file\)")])
def test_links_and_devices_are_refused(tmp_path: Path, folder: Path, kind: int, match: str) -> None:
    link = zipfile.ZipInfo("d/u.data")
    link.external_attr = (kind | 0o777) << 16
    refused(packed(tmp_path / "a.zip", (link, b"/etc/passwd")), folder, match)


def test_a_bomb_is_refused_by_its_ratio_and_by_its_size(tmp_path: Path, folder: Path) -> None:
    refused(packed(tmp_path / "ratio.zip", ("d/u.data", bytes(10_000_000))), folder, "zip bomb")
    refused(packed(tmp_path / "size.zip", ("d/u.data", TEXT)), folder, "more than the limit of 100", max_bytes=100)


def test_an_encrypted_member_is_refused(tmp_path: Path, folder: Path) -> None:
    content = packed(tmp_path / "a.zip", ("d/u.data", TEXT)).read_bytes()
    directory = content.index(b"PK\x01\x02")
    flagged = bytearray(content)
    flagged[6] |= 1
    flagged[directory + 8] |= 1
    (tmp_path / "a.zip").write_bytes(flagged)
    refused(tmp_path / "a.zip", folder, r"\(encrypted\)")


def test_missing_and_repeated_members_are_refused(tmp_path: Path, folder: Path) -> None:
    refused(packed(tmp_path / "a.zip", ("d/u.user", TEXT)), folder, "'d/u.data' is there 0 times")
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = packed(tmp_path / "b.zip", ("d/u.data", TEXT), ("d/u.data", TEXT))
    refused(path, folder, "'d/u.data' is there 2 times")


def test_other_content_than_published_says_expected_and_found(tmp_path: Path, folder: Path) -> None:
    path = packed(tmp_path / "a.zip", ("d/u.data", TEXT))
    with pytest.raises(DataError, match=f"has SHA-256 {hashlib.sha256(TEXT).hexdigest()}, expected 00"):
        unpack(path, folder, {"d/u.data": "0" * 64})


def test_too_little_space_is_said_before_anything_is_written(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: full)
    refused(packed(tmp_path / "a.zip", ("d/u.data", TEXT)), folder, "unpacking needs 6,000 bytes, 10 are free")
