"""What `dprec init` adds to a project: entries of params.yaml and a suite's folder, whole or not at all.

All of it is checked elsewhere. Then params.yaml is replaced, and the suite's folder renamed to its place: every other
suite can be loaded at each moment. Where a process is killed between the two, the same call adds the rest.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tasks.config import params
from tasks.config.references import check
from tasks.disk import rename
from tasks.errors import ConfigurationError
from tasks.stages import dvc_files
from tasks.stages.common import atomic_write, remove


def add(name: str, entries: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]) -> list[Path]:
    """Add entries to sections of params.yaml, and a suite. Anyone who calls it holds the project.

    Args:
        name: of the suite.
        entries: section -> what it gets at its end; what it has already stays.
        texts: file of the suite -> what it says.

    Returns:
        The files that were written.

    Raises:
        ConfigurationError: the parameters would not be accepted, params.yaml has such an entry that says otherwise, or
            no such section, or was changed meanwhile. Nothing is written then.
    """
    root, folder = params.PARAMS_FILE, params.own_file(name).parent
    before = text = root.read_text(encoding="utf-8")
    for section, entry in entries.items():
        text = _inserted(text, section, entry)
    staged = Path(f".{name}.init.partial")  # git, DVC and images leave out what is called so
    try:
        _stage(staged, name, text, texts)
        if root.read_text(encoding="utf-8") != before:
            raise ConfigurationError(f"{root}: was changed meanwhile; run it again")
        _replace(root, text)
        try:
            rename(staged / folder, folder)
        except BaseException:
            _replace(root, before)
            raise
    finally:
        remove(staged)
    return [root, *(folder / file for file in texts), *dvc_files.write(params.load())]


def _stage(staging: Path, name: str, text: str, texts: Mapping[str, str]) -> None:
    """Write all that is to be added into a folder of its own, and check it there.

    Raises:
        ConfigurationError: it would not be accepted.
    """
    remove(staging)
    folder = staging / params.own_file(name).parent
    suites = params.own_file(name).parent.parent  # whose trials may have chosen this one's configurations
    if suites.is_dir():
        shutil.copytree(suites, folder.parent, ignore=shutil.ignore_patterns("dvc.*", "code.json"))
    folder.mkdir(parents=True, exist_ok=True)
    (staging / params.PARAMS_FILE).write_text(text, encoding="utf-8")
    for file, content in texts.items():
        (folder / file).write_text(content, encoding="utf-8")
    try:
        path = staging / params.PARAMS_FILE
        check(params.load(path), path)
    except ConfigurationError as error:
        raise ConfigurationError(f"nothing is written: {str(error).replace(f'{staging}/', '')}") from error


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as staging:
        staging.write_text(text, encoding="utf-8")


def _inserted(text: str, section: str, entry: Mapping[str, Any]) -> str:
    """The text of params.yaml with an entry more at the end of a section, all else as it was.

    Raises:
        ConfigurationError: the section is not written as a block, or has another entry of that name.
    """
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if re.match(rf"{section}:\s*(#.*)?$", line)]
    if len(starts) != 1:
        raise ConfigurationError(f"{params.PARAMS_FILE}: has no section {section!r} as a block, below which to write")
    present = yaml.safe_load(text)[section] or {}
    for name in entry.keys() & present.keys():
        if present[name] != entry[name]:
            raise ConfigurationError(f"{params.PARAMS_FILE}: {section}: has {name!r} already; choose another name")
        return text
    end = next((n for n in range(starts[0] + 1, len(lines)) if re.match(r"[^\s#]", lines[n])), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    written = yaml.safe_dump(dict(entry), default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    block = "".join(f"  {line}" for line in written.splitlines(keepends=True))
    return "".join([*lines[:end], *([] if lines[end - 1].endswith("\n") else ["\n"]), block, *lines[end:]])
