"""What is renamed into its place is on the disk before, and its name after; and nothing is renamed in another way."""

import ast
import os
from pathlib import Path

import pytest

from tasks.pipeline.common import atomic_write

ROOT = Path(__file__).resolve().parents[2]


def test_content_is_on_the_disk_before_the_rename_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor: int) -> None:
        events.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        sync(descriptor)

    def recorded_replace(source: Path, target: Path) -> None:
        events.append(("rename", target.name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    with atomic_write(tmp_path / "below" / "output") as place:
        (place / "folder").mkdir(parents=True)
        (place / "folder" / "a").write_text("a")
        (place / "b").write_text("b")
    before, after = events[: events.index(("rename", "output"))], events[events.index(("rename", "output")) + 1 :]
    assert {name for event, name in before if event == "sync"} == {"folder", "a", "b", place.name}
    assert after == [("sync", "below")]


def renames(tree: ast.AST) -> list[int]:
    """Lines of calls that rename files: `os.replace`, `shutil.move`, `path.rename(...)` and the like.

    Tables are renamed by a dict or a literal, texts replaced by two arguments, dates by keywords.
    """
    lines = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name, module = call.func.attr, ast.unparse(call.func.value)
            of_files = (module, name) in {("os", "rename"), ("os", "replace"), ("os", "renames"), ("shutil", "move")}
            if name in ("rename", "replace") and len(call.args) == 1 and not call.keywords:
                (to,) = call.args
                tables = any(isinstance(part, ast.Dict | ast.DictComp) for part in ast.walk(to))
                literal = isinstance(to, ast.Constant) or tables
                of_files |= not literal
            if of_files:
                lines.append(call.lineno)
    return lines


def test_nothing_else_renames_files() -> None:
    assert renames(ast.parse("path.replace(other); os.rename(a, b); path.rename(other)")) == [1, 1, 1]
    assert not renames(ast.parse("t.rename({}); t.rename('a'); t.rename(x if a else {})"))
    assert not renames(ast.parse("text.replace('a', 'b'); day.replace(hour=1)"))
    modules = [path for folder in ("tasks", "flows") for path in (ROOT / folder).rglob("*.py")]
    places = {
        f"{path.relative_to(ROOT)}:{line}" for path in modules for line in renames(ast.parse(path.read_text("utf-8")))
    }
    assert {place.partition(":")[0] for place in places} == {"tasks/core/disk.py"}, places
