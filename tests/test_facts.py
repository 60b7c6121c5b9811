"""What reads results reads ids, numbers and events, not words: nothing looks into a text that the project wrote."""

import ast
import re
from pathlib import Path

from tests.parameters import ROOT

LOOKING = [
    "contains", "endswith", "ends_with", "extract", "extract_all", "fnmatchcase", "lstrip", "partition", "removeprefix",
    "removesuffix", "replace_all", "rpartition", "rsplit", "rstrip", "slice", "split", "startswith", "starts_with",
    "strip_chars", "translate",
]  # fmt: skip
"""Methods of texts, and of polars' columns of texts."""
ALLOWED = {
    "tasks/pages/documents.py: *": "documents, docstrings and signatures, as engineers wrote them",
    "tasks/pages/page.py: listed": "ids of settings and of printed numbers that differ in their end stand on one line",
    "tasks/pages/page.py: anchors": "a heading becomes an identifier, which nothing reads",
    "tasks/results/facts.py: layer_of": "params.yaml: LAYER/NAME",
    "tasks/results/paper.py: artefact_name": "paper.yaml: table2",
    "tasks/results/reproduction.py: _covers": "paper.yaml: patterns of its rows",
    "tasks/results/reproduction.py: _read": "paper.yaml: the part of an id that another interpretation replaces",
    "tasks/results/rows.py: _bound": "paper.yaml: several names for a row",
    "tasks/stages/agreement.py: tolerance": "code: patterns of metrics, of ids of METRICS",
    "tasks/stages/agreement.py: means": "metrics.csv of any revision: mean@10",
    "tasks/stages/collect.py: read_system": "params.yaml: an experiment's name without its suite's",
    "tasks/pipeline/papers.py: *": "paper.yaml: functions that it names; names of modules",
}
"""Function, or * for all of a module -> whose text it looks into."""
OTHERS = {"flows/dvc.py", "tasks/datasets/files.py"}
"""Where an error of another's is looked into: DVC's of a lock, Polars' of a line."""


def reads_results(path: Path, tree: ast.Module) -> bool:
    """Whether a module lies among, or imports from, what reads and shows results."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [".".join(path.parts), *(node.module or "" for node in imports)]
    return any(name.startswith(("tasks.results", "tasks.pages")) for name in names)


def looks(node: ast.AST) -> bool:
    """Whether a text is looked into, or for several words; `replace` with one argument maps values, or fields."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return True
        case ast.Call(func=ast.Attribute(attr="find" | "index" | "count"), args=[ast.Constant(value=str(text)), *_]):
            return len(text.split()) > 1
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]):
            return len(text.split()) > 1
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments):
            return name in LOOKING or (name == "replace" and len(arguments) == 2)
    return False


def test_no_code_looks_into_a_text_of_the_project() -> None:
    functions = set()
    for path in (
        path.relative_to(ROOT) for room in ("dprec", "flows", "tasks") for path in (ROOT / room).rglob("*.py")
    ):
        if reads_results(path, tree := ast.parse((ROOT / path).read_bytes())):
            names = {getattr(part, "name", "*") for part in tree.body if any(map(looks, ast.walk(part)))}
            functions |= {f"{path}: *"} if f"{path}: *" in ALLOWED and names else {f"{path}: {name}" for name in names}
    assert functions == ALLOWED.keys()


def test_no_template_looks_into_a_text() -> None:
    looking = re.compile(rf"\| *replace\(|\.({'|'.join(LOOKING)}|replace)\(")
    templates = [*(ROOT / "tasks").rglob("*.j2")]
    assert len(templates) > 30
    assert [path.name for path in templates if looking.search(path.read_text(encoding="utf-8"))] == []


def test_no_code_looks_into_an_error_of_the_project() -> None:
    """Errors have kinds. That their words are set on one line, by `split()`, is no looking."""
    functions = set()
    for path in (path for room in ("dprec", "flows", "tasks") for path in (ROOT / room).rglob("*.py")):
        for handler in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(handler, ast.ExceptHandler) and handler.name:
                calls = [call for call in ast.walk(handler) if isinstance(call, ast.Call) and call.args and looks(call)]
                names = {name.id for call in calls for name in ast.walk(call) if isinstance(name, ast.Name)}
                functions |= {str(path.relative_to(ROOT))} if handler.name in names else set()
    assert functions == OTHERS
