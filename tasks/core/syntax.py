"""What of a module's syntax tree may decide a result, as lines: two modules with the same lines do the same."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

READ_BY_NOBODY = frozenset(
    {"property", "cached_property", "cache", "lru_cache", "classmethod", "staticmethod", "contextmanager", "override"}
)
"""Decorators that do not look at the annotations of what they decorate; others may (Prefect, typer, pydantic)."""


class Reader:
    """Walks a syntax tree once: lines that differ where, and only where, something is said that may decide a result."""

    def __init__(
        self, package: str, origin: Callable[[str, str], tuple[str | None, str]], *, fields: bool = True
    ) -> None:
        """package: where relative imports start; fields: whether those count that only hold what a file says.

        origin: (module, symbol, or "" for the module itself), as an import statement has them, absolute -> the module
        of this project that it comes from, and its name there, "" for the module; or None and its name.
        """
        self._origin, self._fields = origin, fields
        self.lines: list[str] = []
        self.sources: list[str] = []
        """Modules of this project that imports come from, one for each line "Import"."""
        self.packages: set[str] = set()
        """Top-level names of all other imports."""
        self._above = package.split(".")

    def statements(self, body: list[ast.stmt], in_class: bool) -> None:
        """Read a body."""
        self.lines.append("[")
        for imports, statements in groupby(_counted(body), lambda node: isinstance(node, ast.Import | ast.ImportFrom)):
            if imports:
                self._imports(statements)
            else:
                for statement in statements:
                    self._node(statement, in_class)
        self.lines.append("]")

    def _visit(self, value: object, in_class: bool = False) -> None:
        if isinstance(value, ast.AST):
            self._node(value, in_class)
        elif isinstance(value, list):
            self.lines.append("[")
            for item in value:
                self._visit(item, in_class)
            self.lines.append("]")
        else:
            self.lines.append(repr(value))

    def _node(self, node: ast.AST, in_class: bool) -> None:
        if isinstance(node, ast.AnnAssign) and not in_class:  # the same as without its annotation
            if node.value is not None:
                self.lines.append("Assign")
                self._visit([node.target])
                self._visit(node.value)
            return
        if isinstance(node, ast.ClassDef) and not self._fields:
            node.body = [part for part in node.body if not _is_held(part)]
            if not _has_content(node):
                return
        self.lines.append(type(node).__name__)
        if error := _error(node):
            self.lines.append(error)  # that something is refused counts; in which words does not
        elif isinstance(node, ast.Assert):
            self._visit(node.test)
        elif isinstance(node, ast.Name):
            self.lines.append(node.id)
        elif isinstance(node, ast.Constant):
            self.lines.append(repr(node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            read = any(_decorator(decorator) not in READ_BY_NOBODY for decorator in node.decorator_list)
            self.lines.append(node.name)
            self._visit(node.decorator_list)
            self._arguments(node.args, read)
            self._visit(node.returns if read else None)
            self.statements(node.body, in_class=False)
        elif isinstance(node, ast.ClassDef):
            self._visit([node.name, node.bases, node.keywords, node.decorator_list])
            self.statements(node.body, in_class=True)
        elif isinstance(node, ast.Lambda):
            self._arguments(node.args, read=False)
            self._node(node.body, in_class=False)
        else:
            for field in node._fields:
                value = getattr(node, field, None)
                if field in ("body", "orelse", "finalbody") and isinstance(value, list):
                    self.statements(value, in_class)
                elif field not in ("ctx", "type_comment"):
                    self._visit(value, in_class)

    def _arguments(self, args: ast.arguments, read: bool) -> None:
        for group in (args.posonlyargs, args.args, [args.vararg], args.kwonlyargs, [args.kwarg]):
            self.lines.append("(")
            for argument in filter(None, group):
                self.lines.append(argument.arg)
                if read:
                    self._visit(argument.annotation)
            self.lines.append(")")
        self._visit([args.defaults, args.kw_defaults])

    def _imports(self, nodes: Iterable[ast.stmt]) -> None:
        """Import statements in a row: by the names that they bind, since formatters sort them by modules."""
        bound: list[tuple[str, str, str]] = []
        for node in nodes:
            if isinstance(node, ast.Import):
                bound += [(alias.asname or alias.name, alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = self._above[: len(self._above) - node.level + 1] if node.level else []
                module = ".".join([*above, *filter(None, [node.module])])
                if module not in ("typing", "collections.abc"):  # more than annotations of these shows where it is used
                    bound += [(alias.asname or alias.name, module, alias.name) for alias in node.names]
        if "*" not in {name for name, *_ in bound}:  # which may bind any name, and of two the last one holds
            bound.sort(key=lambda entry: entry[0].partition(".")[0])
        for name, module, imported in bound:
            source, symbol = self._origin(module, imported)
            self.lines += ["External" if source is None else "Import", name, symbol]
            if source is None:
                self.packages.add(module.partition(".")[0])
            else:
                self.sources.append(source)


def _counted(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """A body without docstrings, wherever they stand, what is printed, and what is there for type checkers alone."""
    for node in body:
        if isinstance(node, ast.If) and _for_types(node):
            yield from _counted(node.orelse)
        elif not _is_text(node) and not _is_printed(node):
            yield node


def _is_held(node: ast.stmt) -> bool:
    """A field that holds what a file says: its default is none or None, and its annotation calls nothing but `Field`.

    One that says `float` does not: it turns 100 into 100.0.
    """
    if not isinstance(node, ast.AnnAssign):
        return False
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        return False
    if any(isinstance(part, ast.Name) and part.id == "float" for part in ast.walk(node.annotation)):
        return False
    called = [part for part in ast.walk(node.annotation) if isinstance(part, ast.Call | ast.Lambda)]
    return all(isinstance(call, ast.Call) and _decorator(call) == "Field" for call in called)


def _has_content(node: ast.ClassDef) -> bool:
    """Whether anything of a strict class is left when its fields are gone."""
    left = [part for part in node.body if not _is_text(part)]
    return bool(
        left or node.decorator_list or node.keywords or [ast.unparse(base) for base in node.bases] != ["Strict"]
    )


def _is_text(node: ast.stmt) -> bool:
    """A docstring, wherever it stands, or what keeps a body that is nothing else from being empty."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass)


def _error(node: ast.AST) -> str:
    """The type of the error that a statement raises or returns, where it makes one; "" otherwise."""
    error = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
    return name if isinstance(error, ast.Call) and (name := _decorator(error)).endswith("Error") else ""


def _is_printed(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _decorator(node.value) == "print"


def _decorator(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _for_types(node: ast.If) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    test = node.test
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"
