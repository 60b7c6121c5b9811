"""No circle among modules, none over 400 lines, names that say what they hold, loading by name in registries only."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter

import grimp

from tests.parameters import ROOT

MODULES = [path for folder in ("flows", "tasks", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
LONG = {
    "flows/audit.py: audit"  # the command line's options
}
"""Functions that are longer."""
EMPTY = {"beside", "dealt", "found", "judge", "ladder", "spread", "told", "whole"}
"""Words that readers stumbled over in names: a term of the field says more. Names of tests are sentences."""
RARE = re.findall(
    r"\w+",
    """told tells beside somebody nobody everybody whoever anybody whatever anew yardstick yardsticks twin twins learnt
    afresh hence whereof thereby""",
)
"""Idioms, for which the field has terms, in texts; `IDIOMS`: in names."""
IDIOMS = re.findall(
    r"\w+",
    """of mine own every said told found place held known given shown seen drawn others alone asked made here way ways
    rest most least theirs ours beside spent learnt standing standings yardstick yardsticks floor reading turned weighed
    spoken whole being""",
)
KEYS = {"initial_spread", "spreads"}
"""Of suites' files and of committed results."""


def test_no_import_leads_back_to_where_it_started() -> None:
    """Imports that only type-checkers follow count, too."""
    graph = grimp.build_graph("tasks", "flows", cache_dir=None)
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(needs) > 300
    TopologicalSorter(needs).prepare()  # raises a CycleError that names the circle


def test_the_picture_shows_the_layers_that_are_checked() -> None:
    """From top to bottom, each line of the contract below the one before."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    picture = page.partition("\n## Layers\n")[2].split("```")[1]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    words, at = re.findall(r"[a-z_]+", picture.replace("tasks/", "")), 0
    for layer in settings["tool"]["importlinter"]["contracts"][0]["layers"]:
        names = re.findall(r"\w+", layer.replace("tasks.", ""))
        assert set(names) <= set(words[at:]), layer
        at = max(words.index(name, at) for name in names) + 1


def test_modules_are_short() -> None:
    assert len(MODULES) > 600
    lines = {path.relative_to(ROOT): path.read_bytes().count(b"\n") for path in MODULES}
    assert [path for path, length in lines.items() if length > MOST_LINES] == []


def test_functions_are_short() -> None:
    lines = {
        f"{path.relative_to(ROOT)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        if not path.is_relative_to(ROOT / "tests")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name for name, length in lines.items() if length > MOST_LINES_OF_A_FUNCTION} == LONG


def test_names_say_what_they_hold() -> None:
    names = [
        (path.relative_to(ROOT), name) for path in MODULES for name in (path.stem, *bound(ast.parse(path.read_bytes())))
    ]
    assert [f"{path}: {name}" for path, name in names if stumbles(name)] == []


@cache
def stumbles(name: str) -> bool:
    """Whether a name is, or has in it, a word that readers stumbled over."""
    parts = {
        word for part in name.lower().split("_") for word in (part, part.removesuffix("s"), part.removesuffix("ing"))
    }
    kept = name in KEYS or name.startswith("test_")
    return not kept and bool(parts & EMPTY or parts - {""} == {"one"})


def bound(tree: ast.Module) -> Iterator[str]:
    """Everything that a module gives a name to."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name


def test_idioms_are_rare() -> None:
    names, words = [], []
    for path in (path for folder in ("dprec", "flows", "tasks") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    names.append(name in IDIOMS)
                case ast.Constant(value=str(text)) if " " in text:
                    words += [word in RARE for word in re.findall(r"[a-z']+", text.lower())]
    assert sum(names) <= 0.005 * len(names)
    assert sum(words) <= 0.0005 * len(words)


def test_modules_are_loaded_by_name_only_through_registries() -> None:
    """Wherever else a module was loaded by its name, no fingerprint would know."""
    dynamic = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tasks").rglob("*.py")
        if re.search(r"import_module\(|__import__\(|\bexec\(|(?<!\.)\bresolve\(", path.read_text(encoding="utf-8"))
    }
    assert dynamic == {
        "tasks/attacks/attribute.py",  # ATTACKERS
        "tasks/audits/__init__.py",  # AUDITS
        "tasks/models/__init__.py",  # MODELS
        "tasks/stages/convert.py",  # FORMATS
        "tasks/stages/data.py",  # no stage
        "tasks/stages/download.py",  # SOURCES
        "tasks/stages/evaluators/base.py",  # TASKS
        "tasks/stages/check.py",  # TASKS, ATTACKS
        "tasks/stages/collect.py",  # TASKS, ATTACKS
        "tasks/stages/units.py",  # units of stages that have a fingerprint each
        "tasks/pipeline/table.py",  # ATTACKS: it decides no output
        "tasks/config/tasks.py",  # which all these resolve
        "tasks/stages/perturb.py",  # FEATURES, NETWORKS
        "tasks/stages/preprocess.py",  # PROTOCOLS
        "tasks/stages/report.py",  # ATTACKS, what a paper.yaml names
        "tasks/config/network_references.py",  # the same
        "tasks/config/references.py",  # checks of parameters, which no stage but `code` runs
    }
