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

from tasks.disk import text_digest
from tasks.errors import ConfigurationError
from tasks.syntax import Reader

PACKAGES = {
    "altair": "altair",
    "dgl": "dgl",
    "dp_accounting": "dp-accounting",
    "gensim": "gensim",
    "great_expectations": "great-expectations",
    "implicit": "implicit",
    "jinja2": "jinja2",
    "numba": "numba",
    "numpy": "numpy",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "vl_convert": "vl-convert-python",
}
"""Packages that decide numbers or bytes of outputs: name in imports -> name in requirements.lock."""
APART = frozenset(
    {
        "tasks.config.tasks",
        "tasks.device",
        "tasks.fingerprints",
        "tasks.stages.code",
        "tasks.stages.cost",
        "tasks.stages.dvc_files",
        "tasks.stages.memory",
        "tasks.stages.parent",
        "tasks.stages.provenance",
        "tasks.stages.stage",
        "tasks.stages.table",
        "tasks.stages.table_attacks",
    }
)
"""Modules that name, record or refuse: neither they nor what only they import decides an output."""
TYPES = frozenset(f"tasks.config.{name}" for name in ("attacks", "fields", "networks", "params"))
"""Modules of the parameters' types. In their classes a field whose default is none, or None, does not count, unless
something else than `Field` is called in its annotation or `float` stands there: it is strict, so it holds what the file
says, which DVC compares by itself."""
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
        reader = Reader(package, fields=name not in TYPES)
        reader.statements([node for node in tree.body if _assigned_name(node) not in registries], in_class=False)
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
            digest=text_digest("\n".join(reader.lines)),
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
                    f"{path.relative_to(self._root)} {self._hash(path)}" for path in _contents(file.parent / folder)
                ]
        used = {package for module in modules for package in module.packages if package in PACKAGES}
        lines += [f"{package}=={self._pin(PACKAGES[package])}" for package in sorted(used)]
        return text_digest("\n".join(lines))[:16]

    def _hash(self, file: Path) -> str:
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


def _contents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _assigned_name(node: ast.stmt) -> str | None:
    """The one name that a statement assigns to."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    return target.id if isinstance(target, ast.Name) else None


def _registries(tree: ast.Module, source: Source) -> Iterator[tuple[str, dict[str, str]]]:
    """Dicts at the top of a module whose values all name modules of the project; `**OTHER` stands for one above."""
    known: dict[str, dict[str, str]] = {}
    for node in tree.body:
        name, value = _assigned_name(node), getattr(node, "value", None)
        if name is None or not isinstance(value, ast.Dict):
            continue
        entries: dict[str, str] = {}
        for key, target in zip(value.keys, value.values, strict=True):
            if key is None and isinstance(target, ast.Name) and target.id in known:
                entries |= known[target.id]
            elif pair := _registry_entry(key, target, source):
                entries |= dict([pair])
            else:
                break
        else:
            if entries:
                known[name] = entries
                yield name, dict(entries)


def _registry_entry(key: ast.expr | None, target: ast.expr, source: Source) -> tuple[str, str] | None:
    """An entry of a registry, where these are a text and the name of a module of the project."""
    texts = [node.value for node in (key, target) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if len(texts) < 2 or not _TARGET.fullmatch(texts[1]) or not source.path(texts[1].partition(":")[0]):
        return None
    return texts[0], texts[1]
