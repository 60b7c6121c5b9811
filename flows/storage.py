"""DVC's cache and outputs compared with their hashes.

DVC takes an object of its cache for what its name says while it is read-only, and a file for what it was while its
time, size and inode are those of then. A disk that lost a bit shows in neither.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tasks.stages.common import atomic_write, remove, text_digest

SECONDS_A_DAY = 86400
OBJECT = re.compile(r"[0-9a-f]{32}(\.dir)?")
"""Hash of a file, or of a list of files; what a killed process left has other names."""
KNOWN = "verified.json"
"""Below DVC's own folder: outputs that were compared today, by path."""


@contextmanager
def hashed_objects(repo: Any) -> Iterator[None]:
    """Whatever DVC looks up in its cache is compared with its hash; a damaged object is removed: it is missing then."""
    from dvc.utils.serialize import EncodingError
    from dvc_objects.errors import ObjectFormatError

    stores = [repo.cache.local, repo.cache.legacy]
    runs = repo.stage_cache

    def load(key: str, value: str) -> Any:
        with suppress(EncodingError):
            known = type(runs)._load_cache(runs, key, value)  # which removes what it sees to be damaged
            if known is None or "outs" in known:
                return known
        remove(Path(runs._get_cache_path(key, value)))
        return None

    def watched(store: Any) -> dict[str, Any]:
        def check(oid: str, *arguments: Any, **options: Any) -> Any:
            if not is_intact(store, oid):
                raise ObjectFormatError(f"{oid}: damaged")
            return type(store).check(store, oid, *arguments, **options)

        def get(oid: str) -> Any:
            if oid.endswith(".dir"):  # the list of a folder's files, which is read before it is checked
                with suppress(FileNotFoundError):
                    is_intact(store, oid)
            return type(store).get(store, oid)

        return {"check": check, "get": get}

    for store in stores:
        vars(store).update(watched(store))
    vars(runs)["_load_cache"] = load
    try:
        yield
    finally:
        del vars(runs)["_load_cache"]
        for store in stores:
            for name in ("check", "get"):
                del vars(store)[name]


def is_intact(store: Any, oid: str) -> bool:
    """Whether an object is there, or not: one that is not what its name says is removed.

    Raises:
        FileNotFoundError: there is no such object.
    """
    from dvc_data.hashfile.hash import file_md5

    path = Path(store.oid_to_path(oid))
    if file_md5(str(path), name=store.hash_name) == oid.partition(".")[0]:
        return True
    remove(path)
    return False


def damaged_objects(repo: Any) -> Iterator[str]:
    """Remove every object of the cache that is not what its name says, and yield its path."""
    for store in (repo.cache.local, repo.cache.legacy):
        for oid in sorted(filter(OBJECT.fullmatch, store.all())) if Path(store.path).is_dir() else ():
            if not is_intact(store, oid):
                yield str(Path(store.oid_to_path(oid)).relative_to(repo.root_dir))


def damage(database: Path) -> str:
    """What SQLite cannot read in a database; nothing where it is sound, or in use."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as connection:
            answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError:  # another process has it open
        return ""
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else answer


def repository() -> Any:
    """DVC's view of the current folder, whose memory of hashes is begun anew where it is damaged."""
    from dvc.repo import Repo

    class Repository(Repo):
        @property
        def site_cache_dir(self) -> str:
            folder = str(super().site_cache_dir)
            if self._databases_to_check:
                self._databases_to_check = False
                for database in Path(folder).rglob("*.db"):
                    if damage(database):
                        for file in database.parent.glob(f"{database.name}*"):
                            remove(file)
            return folder

        _databases_to_check = True

    return Repository()


def seen_to_differ(out: Any) -> bool:
    """Whether DVC sees by itself that an output is missing or another than dvc.lock says, or leaves it to git."""
    return not out.use_cache or not out.hash_info or bool(out.workspace_status())


def output_intact(repo: Any, out: Any) -> bool:
    """Whether an output is what dvc.lock says, its files read and hashed anew."""
    from dvc_data.hashfile.state import StateNoop

    stores = [repo.cache.local, repo.cache.legacy]
    remembered = [store.state for store in stores]
    try:
        for store in stores:
            store.state = StateNoop()
        return bool(out.get_hash() == out.hash_info)
    finally:
        for store, state in zip(stores, remembered, strict=True):
            store.state = state


class Verified:
    """The outputs that were intact when they were last compared, each known by its files' sizes, times and inodes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / KNOWN
        self._known: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError, TypeError, RecursionError):
            self._known = dict(json.loads(self._path.read_bytes()))

    def is_recent(self, out: Any) -> bool:
        """Whether this output, as it is, was compared today."""
        return self._known.get(out.fs_path) == _state(out)

    def add(self, outs: list[Any]) -> None:
        """Remember that these outputs are intact."""
        self._known |= {out.fs_path: _state(out) for out in outs}
        with atomic_write(self._path, durable=False) as place:
            place.write_text(json.dumps(self._known), encoding="utf-8")


def _state(out: Any) -> list[Any]:
    path = Path(out.fs_path)
    files = sorted(file for file in (path, *path.rglob("*")) if file.is_file())
    seen = [(stat.st_size, stat.st_mtime_ns, stat.st_ino) for stat in (file.stat() for file in files)]
    return [out.hash_info.value, text_digest(json.dumps(seen)), int(time.time() // SECONDS_A_DAY)]
