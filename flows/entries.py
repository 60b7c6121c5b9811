"""What `dprec init` and prepared suites add to a project: entries of params.yaml and a suite's folder, or nothing.

All of it is checked elsewhere. Then params.yaml is replaced, and the suite's folder renamed to its place: every other
suite can be loaded at each moment. Where a process is killed between the two, the same call adds the rest.

Prepared suites have no committed results and are this project's once a user runs them: those in docs/SUITE/, or what a
suite of a replica, SUITE-twin, is on the data that the replica stands for. What commands refuse of a suite or a device
before anything is done is here, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

import yaml

from flows.execution import say
from tasks.config import params
from tasks.config.fields import NAME
from tasks.config.references import check
from tasks.core import device
from tasks.core.disk import rename
from tasks.core.errors import ConfigurationError
from tasks.pipeline import dvc_files
from tasks.pipeline.common import atomic_write, remove

PREPARED = Path("docs")


def add(name: str, entries: Mapping[str, Mapping[str, object]], texts: Mapping[str, str]) -> list[Path]:
    """Add entries to sections of params.yaml, and a suite. Anyone who calls it holds the project.

    Args:
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
    """Write all that is to be added into a folder of its own, and check it there."""
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
        with chdir(staging):  # where errors name the files' own places
            loaded = params.load()
        check(loaded)
    except ConfigurationError as error:
        raise ConfigurationError(f"nothing is written: {error}") from error


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as staging:
        staging.write_text(text, encoding="utf-8")


def _inserted(text: str, section: str, entry: Mapping[str, object]) -> str:
    """The text of params.yaml with these entries at the end of a section, but for those it has; all else as it was."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if re.match(rf"{section}:\s*(#.*)?$", line)]
    if len(starts) != 1:
        raise ConfigurationError(f"{params.PARAMS_FILE}: has no section {section!r} as a block, below which to write")
    present = yaml.safe_load(text)[section] or {}
    if taken := [name for name in entry if present.get(name, entry[name]) != entry[name]]:
        raise ConfigurationError(f"{params.PARAMS_FILE}: {section}: has {taken[0]!r} already; choose another name")
    if not (missing := {name: value for name, value in entry.items() if name not in present}):
        return text
    end = next((n for n in range(starts[0] + 1, len(lines)) if re.match(r"[^\s#]", lines[n])), len(lines))
    while re.match(r"\s*$|#", lines[end - 1]):  # what stands above the next section is of that one
        end -= 1
    written = yaml.safe_dump(missing, default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    block = "".join(f"  {line}" for line in written.splitlines(keepends=True))
    return "".join([*lines[:end], *([] if lines[end - 1].endswith("\n") else ["\n"]), block, *lines[end:]])


def require_known(suite: str, *, to_run: bool = False) -> None:
    """Refuse a suite that this project does not have, before anything is done; a prepared one will do `to_run`.

    Raises:
        ConfigurationError: the parameters are wrong, or there is no such suite.
    """
    suites = params.load().suites
    if suite not in suites and (folder := _prepared(suite)):
        if not to_run:
            raise ConfigurationError(f"{folder}: no suite yet; `dprec run {suite}` makes one of it in suites/")
        return
    params.entry("suites", suite, suites)


def require_device() -> None:
    """Refuse a device that is not there before a run has come to the stage that would use it.

    Raises:
        ConfigurationError: see `tasks.core.device.parse`.
    """
    if device.VARIABLE in os.environ:
        device.parse(os.environ[device.VARIABLE])


def take_prepared(suite: str) -> None:
    """Copy a prepared suite to suites/, whole or not at all, unless it is there. Anyone who calls it holds the project.

    Raises:
        ConfigurationError: the project's parameters are wrong, or lack what it needs; nothing was copied.
    """
    folder = _prepared(suite)
    if folder is None or params.own_file(suite).is_file():
        return
    params.load()  # what is wrong with other suites is no fault of this one
    texts = {file: _real((folder / file).read_text(encoding="utf-8"), suite) for file in params.OWN_FILES}
    try:
        add(suite, {}, texts)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; docs/data.md says what {suite} needs") from error
    say(f"suites/{suite}", f"made from {folder}")


def _prepared(suite: str) -> Path | None:
    if not re.fullmatch(NAME, suite):
        return None
    folders = PREPARED / suite, params.own_file(f"{suite}-twin").parent
    return next((folder for folder in folders if (folder / "params.yaml").is_file()), None)


def _real(text: str, suite: str) -> str:
    """A file of the replica's suite on the data that it stands for; what is said of the replica is left out."""
    if f"{suite}-twin" not in text:
        return text
    text = text.replace(f"{suite}-twin", suite)
    about = yaml.safe_load(text).get("about", {})
    title = json.dumps(about.get("real", suite), ensure_ascii=False)
    sections = {"title": f"title: {title}", "about": 'about: {part: "", limits: ""}\n\n'}
    for key, value in reversed(yaml.compose(text, yaml.SafeLoader).value):
        if key.value in sections:
            text = text[: key.start_mark.index] + sections[key.value] + text[value.end_mark.index :]
    return text
