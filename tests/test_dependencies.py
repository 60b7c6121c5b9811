"""What pyproject.toml declares: every package that the code imports or starts, at the version of requirements.lock."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions

import pytest

from tests.parameters import ROOT

OWN = {"dprec", "flows", "tasks", "tests", "pip"}
"""Ours, and what every environment has."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(*extras: str) -> set[str]:
    """Distributions of `dependencies` and of extras."""
    wanted = [
        *PROJECT["dependencies"],
        *(entry for extra in extras for entry in PROJECT["optional-dependencies"][extra]),
    ]
    return {normal(re.split(r"[^A-Za-z0-9._-]", entry)[0]) for entry in wanted}


def used(folder: str) -> Iterator[tuple[str, str]]:
    """File and package of every import from elsewhere, and of every `python -m` of a package."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        imported = set(re.findall(r'executable, "-m", "(\w+)', text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module)
        for package in {name.partition(".")[0] for name in imported} - OWN - sys.stdlib_module_names:
            yield path.relative_to(ROOT).as_posix(), package


@cache
def installed() -> Mapping[str, list[str]]:
    """Package -> the distributions that have it."""
    return packages_distributions()


@pytest.mark.parametrize(
    ("folder", "extras"),
    [("dprec", []), ("flows", ["pipeline"]), ("tasks", ["pipeline"]), ("tests", ["pipeline", "dev"])],
)
def test_whatever_is_imported_or_started_is_declared(folder: str, extras: list[str]) -> None:
    known, distributions = declared(*extras), installed()
    undeclared = {
        (file, package)
        for file, package in used(folder)
        if not known & {normal(name) for name in distributions.get(package, [package])}
    }
    assert undeclared == set()


def test_declared_versions_are_those_of_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)}
    asked = [
        entry.partition("==") for extra in ("pipeline", "dev") for entry in PROJECT["optional-dependencies"][extra]
    ]
    assert len(asked) > 40
    assert {name: version for name, _, version in asked if version and pinned.get(normal(name)) != version} == {}
