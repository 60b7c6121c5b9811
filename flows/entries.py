"""What `dprec init` adds to a project: entries of params.yaml and a suite's folder, whole or not at all.

Everything is staged and checked beside its place. Then params.yaml is replaced, the suite's folder renamed to its place
and the dvc.yaml files are written: at each moment, every other suite can be loaded. A record says meanwhile what is
being added, so that what a process that was killed has added is taken back when the same name is added again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tasks.config import params
from tasks.config.references import check
from tasks.disk import rename
from tasks.errors import ConfigurationError, DprecError
from tasks.stages import dvc_files
from tasks.stages.common import atomic_write, read_json, remove, write_json

RECORD = "record.json"
WRITTEN_LATER = ("dvc.yaml", "code.json")
"""Of a suite's folder, what every command writes by itself."""


def add(name: str, entries: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]) -> list[Path]:
    """Add entries to sections of params.yaml, and a suite. Whoever calls it holds the project.

    Args:
        name: of the suite.
        entries: section -> what it gets at its end.
        texts: file of the suite -> what it says.

    Returns:
        The files that were written.

    Raises:
        ConfigurationError: the parameters would not be accepted, or params.yaml has no such section, or was changed
            meanwhile. Nothing is written then.
    """
    root, folder = params.PARAMS_FILE, params.own_file(name).parent
    before = root.read_text(encoding="utf-8")
    text, blocks = before, dict[str, str]()
    for section, entry in entries.items():
        text, blocks[section] = _inserted(text, section, entry)
    _stage(name, text, blocks, texts)
    try:
        if root.read_text(encoding="utf-8") != before:
            raise ConfigurationError(f"{root}: was changed meanwhile; run it again")
        _replace(root, text)
        rename(_staged(name) / folder, folder)
        written = dvc_files.write(params.load())
    except BaseException:
        take_back(name)
        with suppress(DprecError, OSError):
            dvc_files.write(params.load())
        raise
    (_staged(name) / RECORD).unlink()
    remove(_staged(name))
    return [root, *(folder / file for file in texts), *written]


def take_back(name: str) -> None:
    """Take back what an `add` of that name has added that did not end; what was edited or run since stays."""
    staged, folder = _staged(name), params.own_file(name).parent
    if (staged / RECORD).is_file():
        record = read_json(staged / RECORD)
        text = params.PARAMS_FILE.read_text(encoding="utf-8")
        left = text
        for block in record["blocks"].values():
            left = left.replace(block, "", 1)
        if _names(left, record["blocks"], name) or not _is_as_written(folder, record["files"]):
            return
        if folder.is_dir():  # first, for its data are in params.yaml; and in one rename, for it needs all of its files
            remove(staged / folder)
            (staged / folder).parent.mkdir(parents=True, exist_ok=True)
            rename(folder, staged / folder)
        if left != text:
            _replace(params.PARAMS_FILE, left)
    remove(staged)


def _staged(name: str) -> Path:
    """The folder of what is to be added; git, DVC and images leave out what is called so."""
    return Path(f".{name}.init.partial")


def _stage(name: str, text: str, blocks: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """Write all that is to be added into a folder of its own, and check it there.

    Raises:
        ConfigurationError: it would not be accepted.
    """
    remove(_staged(name))
    with atomic_write(_staged(name)) as place:
        folder = place / params.own_file(name).parent
        folder.mkdir(parents=True)
        (place / params.PARAMS_FILE).write_text(text, encoding="utf-8")
        for file, content in texts.items():
            (folder / file).write_text(content, encoding="utf-8")
        write_json(place / RECORD, {"blocks": dict(blocks), "files": dict(texts)})
        try:
            path = place / params.PARAMS_FILE
            check(params.load(path), path)
        except ConfigurationError as error:
            raise ConfigurationError(f"nothing is written: {str(error).replace(f'{place}/', '')}") from error


def _names(text: str, sections: Mapping[str, Any], name: str) -> bool:
    """Whether a section of params.yaml has that name."""
    given = yaml.safe_load(text)
    return any(name in (given.get(section) or {}) for section in sections)


def _is_as_written(folder: Path, texts: Mapping[str, str]) -> bool:
    """Whether nothing but these files is in a suite's folder, and what every command writes there by itself."""
    if not folder.is_dir():
        return True
    there = {path.name: path for path in folder.iterdir() if path.suffix != ".partial"}
    own = {file: path.read_text(encoding="utf-8") for file, path in there.items() if file in texts}
    return own == dict(texts) and {*there} <= {*texts, *WRITTEN_LATER}


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as place:
        place.write_text(text, encoding="utf-8")


def _inserted(text: str, section: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    """The text of params.yaml with an entry more at the end of a section, all else as it was; and the entry's lines.

    Raises:
        ConfigurationError: the section is not written as a block.
    """
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if re.match(rf"{section}:\s*(#.*)?$", line)]
    if len(starts) != 1:
        raise ConfigurationError(f"{params.PARAMS_FILE}: has no section {section!r} as a block, below which to write")
    end = next((n for n in range(starts[0] + 1, len(lines)) if re.match(r"[^\s#]", lines[n])), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    written = yaml.safe_dump(dict(entry), default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    block = "".join(f"  {line}" for line in written.splitlines(keepends=True))
    return "".join([*lines[:end], *([] if lines[end - 1].endswith("\n") else ["\n"]), block, *lines[end:]]), block
