"""Unpacking a zip of another origin: only the wanted members, and nothing that could do harm."""

from __future__ import annotations

import errno
import hashlib
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tasks.core.errors import DataError

MAX_BYTES = 1 << 30
"""Limit on the unpacked size of an archive in bytes, all members together."""
MAX_RATIO = 200
"""Limit on unpacked / packed size; text tables reach 3 to 10, a zip bomb about 1,000."""

_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, ValueError)
_CHUNK = 1 << 20


def unpack(archive: Path, folder: Path, wanted: Mapping[str, str | None], *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack the wanted members of a zip into `folder`, each under its base name.

    The whole archive is judged before anything is written: a zip that holds something dangerous is refused even
    where the dangerous member is not wanted.

    Args:
        archive: the zip.
        folder: where the files go; it must exist.
        wanted: member's path in the zip -> SHA-256 of its content, None where any content will do.
        max_bytes: limit on what the whole archive unpacks to.

    Raises:
        DataError: the zip is truncated or corrupt; a member is absolute, leads outside with `..`, is a link or
            device, encrypted or repeated; the limits are passed; a wanted member is missing or not the expected
            content; the disk has too little space.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            members = source.infolist()
            for member in members:
                _refuse_danger(archive, member)
            total = sum(member.file_size for member in members)
            if total > max_bytes:
                raise DataError(
                    f"{archive}: unpacks to {total:,} bytes, more than the limit of {max_bytes:,}; "
                    "get the archive again from its official address"
                )
            chosen = _choose(archive, members, wanted)
            need, free = sum(member.file_size for member in chosen), shutil.disk_usage(folder).free
            if need > free:
                raise DataError(
                    f"{archive}: unpacking needs {need:,} bytes, {free:,} are free here; free some and run it again"
                )
            for member in chosen:
                _extract(source, member, folder, wanted[member.filename], archive)
    except FileNotFoundError:
        raise DataError(f"{archive}: not found; get it again") from None
    except (*_UNREADABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # what a place before the file's start gives
            raise
        raise DataError(
            f"{archive}: truncated or corrupt zip ({str(error) or type(error).__name__}); delete it and get it again"
        ) from error


def _refuse_danger(archive: Path, member: zipfile.ZipInfo) -> None:
    name = member.orig_filename
    parts = PurePosixPath(name.replace("\\", "/")).parts
    kind = stat.S_IFMT(member.external_attr >> 16)
    if not parts or "\x00" in name or "\\" in name or parts[0].startswith("/") or ":" in parts[0]:
        wrong = "unsafe path"
    elif ".." in parts:
        wrong = "path outside"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        wrong = "link" if kind == stat.S_IFLNK else "no file"
    elif member.flag_bits & 0x1:
        wrong = "encrypted"
    elif member.file_size > MAX_RATIO * max(member.compress_size, 1):
        wrong = f"zip bomb, {member.file_size:,} from {member.compress_size:,}"
    else:
        return
    raise DataError(
        f"{archive}: member {name!r} is refused ({wrong}); nothing was unpacked, get the archive from its official "
        "address"
    )


def _choose(archive: Path, members: list[zipfile.ZipInfo], wanted: Mapping[str, str | None]) -> list[zipfile.ZipInfo]:
    names = [member.filename for member in members]
    for name in wanted:
        if (times := names.count(name)) != 1:
            raise DataError(
                f"{archive}: member {name!r} is there {times} times instead of once; is it the right archive?"
            )
    return [member for member in members if member.filename in wanted]


def _extract(source: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, sha256: str | None, archive: Path) -> None:
    state = hashlib.sha256()
    # zipfile reads no more than the declared size and compares the CRC at the end, so a lying header is caught.
    with source.open(member) as packed, (folder / PurePosixPath(member.filename).name).open("xb") as out:
        while chunk := packed.read(_CHUNK):
            state.update(chunk)
            out.write(chunk)
    if sha256 is not None and state.hexdigest() != sha256:
        raise DataError(
            f"{archive}: member {member.filename!r} has SHA-256 {state.hexdigest()}, expected {sha256}; "
            "it is not the published file, get the archive from its official address"
        )
