"""Fingerprints of code: one digest of exactly the modules that decide an output.

A module counts as its syntax tree, without what decides nothing: comments, formatting, docstrings, and annotations of
functions and variables that nothing reads at run time. Class bodies count whole, since pydantic and dataclasses read
their annotations: `lr: int` is not `lr: float`. A closure is a module with all that it imports, directly or not, inside
functions too; imports for type checkers alone are left out. A registry (a dict at the top of a module whose values name
modules, such as `{"bpr": "tasks.models.ranking.bpr:BPR"}`) counts as its named entries only. With the code count the
files that it renders, and the pinned versions of the packages that decide numbers.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tasks.errors import ConfigurationError

PACKAGES = {
    "dgl": "dgl",
    "dp_accounting": "dp-accounting",
    "great_expectations": "great-expectations",
    "jinja2": "jinja2",
    "numpy": "numpy",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
}
"""Packages that decide numbers or bytes of outputs: name in imports -> name in requirements.lock."""
APART = frozenset(
    {
        "tasks.config.tasks",
        "tasks.fingerprints",
        "tasks.stages.code",
        "tasks.stages.dvc_files",
        "tasks.stages.provenance",
        "tasks.stages.stage",
        "tasks.stages.table",
        "tasks.stages.table_attacks",
    }
)
"""Modules that name, record or refuse: neither they nor what only they import decides an output."""
TYPES = frozenset(f"tasks.config.{name}" for name in ("attacks", "fields", "networks", "params"))
"""Modules of the parameters' types. In their classes a field without a default does not count, unless something else
than `Field` is called in its annotation or `float` stands there: it is strict, so it holds what the file says, which
DVC compares by itself."""
READ_BY_NOBODY = frozenset(
    {"property", "cached_property", "cache", "lru_cache", "classmethod", "staticmethod", "contextmanager", "override"}
)
"""Decorators that do not look at the annotations of what they decorate; others may (Prefect, typer, pydantic)."""
_TARGET = re.compile(r"[a-z_]\w*(\.\w+)+(:\w+)?")
_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", re.MULTILINE)


@dataclass(frozen=True)
class Plugin:
    """An entry of a registry that a stage's parameters name, such as `bpr` of `MODELS` in `tasks.models`."""

    registry: str
    """Module of the registry."""
    table: str
    entry: str
    at: str | None = None
    """The "module" or "module:attribute" itself, where the entry names several."""


@dataclass(frozen=True)
class Module:
    """What of a module counts."""

    name: str
    digest: str
    imports: frozenset[str]
    """Modules of this project that are run when it is imported or used; its packages among them."""
    packages: frozenset[str]
    """Top-level names of all other imports."""
    registries: dict[str, dict[str, str]]
    """Table -> entry -> "module" or "module:attribute"."""
    files: tuple[str, ...]
    """Folders of its package that it names, such as `templates`: their files count with it."""


class Source:
    """The source tree below a folder, read as far as it is asked for."""

    def __init__(self, root: Path, top: Iterable[str] = ("tasks",)) -> None:
        self._root = root
        self._top = frozenset(top)
        self._modules: dict[str, Module] = {}
        self._closures: dict[str, frozenset[str]] = {}
        self._files: dict[Path, str] = {}
        self._digests: dict[tuple[str, frozenset[Plugin]], str] = {}

    @cache  # noqa: B019
    def path(self, name: str) -> Path | None:
        """The file of a module or package; None if it is not of this project."""
        if name.partition(".")[0] not in self._top:
            return None
        base = self._root.joinpath(*name.split("."))
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file
        return None

    def module(self, name: str) -> Module:
        """Read a module.

        Raises:
            ConfigurationError: there is none of this name, or it is no Python.
        """
        if name not in self._modules:
            file = self.path(name)
            if file is None:
                raise ConfigurationError(f"{name}: no such module in this project")
            try:
                tree = ast.parse(file.read_bytes(), str(file.relative_to(self._root)))
            except SyntaxError as error:
                raise ConfigurationError(f"{error.filename}:{error.lineno}: {error.msg}") from error
            self._modules[name] = self._read(name, file, tree)
        return self._modules[name]

    def _read(self, name: str, file: Path, tree: ast.Module) -> Module:
        registries = dict(_registries(tree, self))
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        reader = _Reader(package, fields=name not in TYPES)
        reader.statements([node for node in tree.body if _assigned(node) not in registries], in_class=False)
        imports: set[str] = set()
        packages: set[str] = set()
        for imported in reader.imports:
            parts = imported.split(".")
            if parts[0] not in self._top:
                packages.add(parts[0])
                continue
            # `from a.b import c` may name a module c, or something in b; whichever it is, the packages above are run
            known = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
            imports.update(module for module in known if self.path(module))
        return Module(
            name=name,
            digest=_sha256("\n".join(reader.lines)),
            imports=frozenset() if name in APART else frozenset(imports - {name}),
            packages=frozenset(packages),
            registries=registries,
            files=tuple(folder for folder in self._folders(file.parent) if repr(folder) in reader.lines),
        )

    @cache  # noqa: B019  # a source is read once by a process and then gone
    def _folders(self, package: Path) -> list[str]:
        """Folders of a package whose files are not code."""
        return sorted(
            folder.name
            for folder in package.iterdir()
            if folder.is_dir() and folder.name != "__pycache__" and not (folder / "__init__.py").exists()
        )

    def closure(self, *names: str) -> frozenset[str]:
        """The modules and everything that they import, directly or not."""
        closure: set[str] = set()
        for name in names:
            if name not in self._closures:
                seen, todo = {name}, [name]
                while todo:
                    new = self.module(todo.pop()).imports - seen
                    seen |= new
                    todo += new
                self._closures[name] = frozenset(seen)
            closure |= self._closures[name]
        return frozenset(closure)

    def target(self, plugin: Plugin) -> str:
        """The "module" or "module:attribute" that a registry's entry names.

        Raises:
            ConfigurationError: there is no such entry.
        """
        if plugin.at is not None:
            return plugin.at
        table = self.module(plugin.registry).registries.get(plugin.table, {})
        if plugin.entry not in table:
            raise ConfigurationError(
                f"{plugin.registry}.{plugin.table}: unknown {plugin.entry!r}; known: {', '.join(sorted(table))}"
            )
        return table[plugin.entry]

    def modules(self, stage: str, plugins: Iterable[Plugin]) -> frozenset[str]:
        """All modules that a stage runs: its own closure, and those of the plug-ins that its parameters name."""
        return self.closure(stage, *(self.target(plugin).partition(":")[0] for plugin in plugins))

    def digest(self, stage: str, plugins: Iterable[Plugin] = ()) -> str:
        """Fingerprint of the code of a stage: 16 hexadecimal digits.

        Args:
            stage: the module that runs.
            plugins: entries of registries that its parameters name.

        Raises:
            ConfigurationError: a module or an entry is not there, or a package is not pinned.
        """
        which = stage, frozenset(plugins)
        if which not in self._digests:
            self._digests[which] = self._digest(*which)
        return self._digests[which]

    def _digest(self, stage: str, named: frozenset[Plugin]) -> str:
        plugins = sorted(named, key=lambda plugin: (plugin.registry, plugin.table, plugin.entry, plugin.at or ""))
        modules = [self.module(name) for name in sorted(self.modules(stage, plugins))]
        lines = [f"{module.name} {module.digest}" for module in modules if module.name not in APART]
        lines += [f"{plugin.registry}.{plugin.table}[{plugin.entry}] = {self.target(plugin)}" for plugin in plugins]
        for module in modules:
            file = self.path(module.name)
            assert file is not None
            for folder in module.files:
                lines += [
                    f"{path.relative_to(self._root)} {self._raw(path)}" for path in _contents(file.parent / folder)
                ]
        used = {package for module in modules for package in module.packages if package in PACKAGES}
        lines += [f"{package}=={self._pin(PACKAGES[package])}" for package in sorted(used)]
        return _sha256("\n".join(lines))[:16]

    def _raw(self, file: Path) -> str:
        if file not in self._files:
            self._files[file] = hashlib.sha256(file.read_bytes()).hexdigest()
        return self._files[file]

    @cached_property
    def _pins(self) -> dict[str, str]:
        pins = _PIN.findall((self._root / "requirements.lock").read_text(encoding="utf-8"))
        return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins}

    def _pin(self, package: str) -> str:
        if package not in self._pins:
            raise ConfigurationError(
                f"requirements.lock: {package} is not pinned, but decides numbers; run `make lock`"
            )
        return self._pins[package]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _contents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _assigned(node: ast.stmt) -> str | None:
    """The one name that a statement assigns to."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    return target.id if isinstance(target, ast.Name) else None


def _registries(tree: ast.Module, source: Source) -> Iterator[tuple[str, dict[str, str]]]:
    """Dicts at the top of a module whose values all name modules of the project."""
    for node in tree.body:
        name, value = _assigned(node), getattr(node, "value", None)
        if name is None or not isinstance(value, ast.Dict) or not value.keys:
            continue
        pairs = [
            (key.value, target.value)
            for key, target in zip(value.keys, value.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(target, ast.Constant)
            if isinstance(key.value, str) and isinstance(target.value, str)
        ]
        if len(pairs) == len(value.keys) and all(
            _TARGET.fullmatch(target) and source.path(target.partition(":")[0]) for _, target in pairs
        ):
            yield name, dict(pairs)


def _for_types(node: ast.If) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    test = node.test
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


class _Reader:
    """Walks a syntax tree once: lines that differ where, and only where, something is said that may decide a result."""

    def __init__(self, package: str, *, fields: bool = True) -> None:
        """fields: whether those count that only hold what a file says."""
        self._fields = fields
        self.lines: list[str] = []
        self.imports: set[str] = set()
        """Everything that is imported, as absolute dotted names."""
        self._above = package.split(".")

    def statements(self, body: list[ast.stmt], in_class: bool) -> None:
        """A body without docstrings, wherever they stand, and without what is there for type checkers alone."""
        self.lines.append("[")
        self.bare(body, in_class)
        self.lines.append("]")

    def bare(self, body: list[ast.stmt], in_class: bool) -> None:
        for statement in body:
            if _is_text(statement):
                continue
            if isinstance(statement, ast.If) and _for_types(statement):
                self.bare(statement.orelse, in_class)
            else:
                self.node(statement, in_class)

    def visit(self, value: object, in_class: bool = False) -> None:
        if isinstance(value, ast.AST):
            self.node(value, in_class)
        elif isinstance(value, list):
            self.lines.append("[")
            for item in value:
                self.visit(item, in_class)
            self.lines.append("]")
        else:
            self.lines.append(repr(value))

    def node(self, node: ast.AST, in_class: bool) -> None:
        if isinstance(node, ast.AnnAssign) and not in_class:  # the same as without its annotation
            if node.value is not None:
                self.lines.append("Assign")
                self.visit([node.target])
                self.visit(node.value)
            return
        if isinstance(node, ast.ClassDef) and not self._fields:
            node.body = [part for part in node.body if not _is_held(part)]
            if not _says(node):
                return
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections.abc") and not node.level:
            return  # what of it is more than annotations shows where it is used
        self.lines.append(type(node).__name__)
        if isinstance(node, ast.Name):
            self.lines.append(node.id)
        elif isinstance(node, ast.Constant):
            self.lines.append(repr(node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            read = any(_decorator(decorator) not in READ_BY_NOBODY for decorator in node.decorator_list)
            self.lines.append(node.name)
            self.visit(node.decorator_list)
            self.arguments(node.args, read)
            self.visit(node.returns if read else None)
            self.statements(node.body, in_class=False)
        elif isinstance(node, ast.ClassDef):
            self.visit([node.name, node.bases, node.keywords, node.decorator_list])
            self.statements(node.body, in_class=True)
        elif isinstance(node, ast.Lambda):
            self.arguments(node.args, read=False)
            self.node(node.body, in_class=False)
        else:
            self.imported(node)
            for field in node._fields:
                value = getattr(node, field, None)
                if field in ("body", "orelse", "finalbody") and isinstance(value, list):
                    self.statements(value, in_class)
                elif field not in ("ctx", "type_comment"):
                    self.visit(value, in_class)

    def arguments(self, args: ast.arguments, read: bool) -> None:
        for group in (args.posonlyargs, args.args, [args.vararg], args.kwonlyargs, [args.kwarg]):
            self.lines.append("(")
            for argument in filter(None, group):
                self.lines.append(argument.arg)
                if read:
                    self.visit(argument.annotation)
            self.lines.append(")")
        self.visit([args.defaults, args.kw_defaults])

    def imported(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = self._above[: len(self._above) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            self.imports.update(f"{base}.{alias.name}" for alias in node.names)


def _is_held(node: ast.stmt) -> bool:
    """A field that holds what a file says: it has no default, and its annotation calls nothing but `Field`.

    One that says `float` does not: it turns 100 into 100.0.
    """
    if not isinstance(node, ast.AnnAssign) or node.value is not None:
        return False
    if any(isinstance(part, ast.Name) and part.id == "float" for part in ast.walk(node.annotation)):
        return False
    called = [part for part in ast.walk(node.annotation) if isinstance(part, ast.Call | ast.Lambda)]
    return all(isinstance(call, ast.Call) and _decorator(call) == "Field" for call in called)


def _says(node: ast.ClassDef) -> bool:
    """Whether anything of a strict class is left when its fields are gone."""
    left = [part for part in node.body if not _is_text(part)]
    return bool(
        left or node.decorator_list or node.keywords or [ast.unparse(base) for base in node.bases] != ["Strict"]
    )


def _is_text(node: ast.stmt) -> bool:
    """A docstring, wherever it stands, or what keeps a body that is nothing else from being empty."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass)


def _decorator(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
