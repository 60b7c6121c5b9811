"""Fingerprints of code: one digest of exactly the modules that decide an output.

A module counts as its syntax tree, without what decides nothing: comments, formatting, docstrings, words of errors that
are raised or returned and of assertions, and annotations of functions and variables that nothing reads at run time.
Class bodies count whole, since pydantic and dataclasses read their annotations: `lr: int` is not `lr: float`. With it
counts all that it imports, directly or not, inside functions too; imports for type checkers alone are left out. An
import counts as the name that it binds, the symbol that this stands for, and the content of the module that it comes
from. The name of that module does not count: moving it changes nothing. The packages above a module count if they hold
more than docstrings and registries. A registry (a dict at the top of a module whose values name modules, such as
`{"bpr": "tasks.models.ranking.bpr:BPR"}`) counts as its named entries only. An entry may name YAML, which counts as its
text; functions that it names are plug-ins of the stage. With the code count the files that it renders, and pinned
versions of the packages that decide numbers.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

from tasks.core.disk import text_digest
from tasks.core.errors import ConfigurationError
from tasks.core.syntax import Reader

PACKAGES = {
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
}
"""Packages that decide numbers or bytes of outputs: name in imports -> name in requirements.lock."""
DECIDES_NOTHING = True
MARKS = frozenset({"DECIDES_NOTHING", "HOLDS_PARAMETERS"})
"""Constants at the top of a module that are True where it does not count whole, and do not count themselves.

`DECIDES_NOTHING`: it names, records or refuses; neither it nor what only it imports decides an output.
`HOLDS_PARAMETERS`: its classes are types of parameters. In them a field whose default is none, or None, does not count,
unless something else than `Field` is called in its annotation or `float` stands there: it is strict, so it holds what
the file says, which DVC compares by itself."""
_EMPTY = text_digest("[\n]")
_TARGET = re.compile(r"[a-z_]\w*(\.\w+)+(:\w+)?")
_FUNCTION = re.compile(r"\btasks(\.\w+)+:(?=\w)")
"""The module of a function that YAML names: as of an import, its name does not count."""
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
    """What of a module counts; its own name does not."""

    digest: str
    """Of its syntax tree and of the files in folders of its package that it names, such as `templates`. Of imports the
    tree has bound names and symbols, not the modules that these come from. "" if it decides nothing."""
    sources: tuple[str, ...]
    """Modules of this project that its imports come from, one for each, in the order of the tree."""
    above: tuple[str, ...]
    """Packages that are run before it."""
    packages: frozenset[str]
    """What of PACKAGES it imports."""
    registries: dict[str, dict[str, str]]
    """Table -> entry -> "module" or "module:attribute"."""


class Source:
    """The source tree below a folder, read as far as it is asked for."""

    def __init__(self, root: Path, top: Iterable[str] = ("tasks",)) -> None:
        self._root = root
        self._top = frozenset(top)
        self._modules: dict[str, Module] = {}
        self._digests: dict[tuple[str, frozenset[Plugin]], str] = {}

    @cache  # noqa: B019
    def path(self, name: str) -> Path | None:
        """The file of a module or package, or YAML that a registry names; None if it is not of this project."""
        if name.partition(".")[0] not in self._top:
            return None
        base = self._root.joinpath(*name.split("."))
        for file in (base / "__init__.py", base.with_suffix(".py"), base.with_suffix(".yaml")):
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
            if file.suffix == ".yaml":
                text = _FUNCTION.sub(":", file.read_text(encoding="utf-8"))
                return self._modules.setdefault(name, Module(text_digest(text), (), (), frozenset(), {}))
            try:
                tree = ast.parse(file.read_bytes(), str(file.relative_to(self._root)))
            except SyntaxError as error:
                raise ConfigurationError(f"{error.filename}:{error.lineno}: {error.msg}") from error
            self._modules[name] = self._read(name, file, tree)
        return self._modules[name]

    def _read(self, name: str, file: Path, tree: ast.Module) -> Module:
        registries = dict(_registries(tree, self))
        true = (node for node in tree.body if getattr(getattr(node, "value", None), "value", None) is True)
        marks = MARKS & {_assigned_name(node) for node in true}
        package, parts = name if file.name == "__init__.py" else name.rpartition(".")[0], name.split(".")
        reader = Reader(package, self._origin, fields="HOLDS_PARAMETERS" not in marks)
        left_out = marks | registries.keys()
        reader.statements([node for node in tree.body if _assigned_name(node) not in left_out], in_class=False)
        above = (".".join(parts[:end]) for end in range(1, len(parts)))
        files = [_contents(folder) for folder in self._folders(file.parent) if repr(folder.name) in reader.lines]
        counts = "DECIDES_NOTHING" not in marks
        return Module(
            digest=text_digest("\n".join([*reader.lines, *chain.from_iterable(files)])) if counts else "",
            sources=tuple(reader.sources) if counts else (),
            above=tuple(filter(self.path, above)),
            packages=frozenset(reader.packages & PACKAGES.keys()),
            registries=registries,
        )

    def _origin(self, module: str, symbol: str) -> tuple[str | None, str]:
        """What an import statement names, as `Reader` asks for it: `from a.b import c` may name a module, or not."""
        name = f"{module}.{symbol}" if symbol else module
        if name.partition(".")[0] not in self._top:
            return None, name
        return (name, "") if self.path(name) else (module, symbol)

    @cache  # noqa: B019  # a source is read once by a process and then gone
    def _folders(self, package: Path) -> list[Path]:
        """Folders of a package whose files are not code."""
        return sorted(
            folder
            for folder in package.iterdir()
            if folder.is_dir() and folder.name != "__pycache__" and not (folder / "__init__.py").exists()
        )

    @cache  # noqa: B019
    def _reach(self, roots: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
        """All that modules import, directly or not: module -> numbers of what it imports, and the packages above them.

        Modules are numbered in the order in which imports reach them, under any name; two modules with the
        same content are still two.
        """
        numbers = {name: str(number) for number, name in enumerate(roots)}
        order = [*roots]
        for name in order:
            for source in self.module(name).sources:
                if source not in numbers:
                    numbers[source] = str(len(order))
                    order.append(source)
        reached = {name: " ".join(numbers[source] for source in self.module(name).sources) for name in order}
        return reached, frozenset().union(*(self.module(name).above for name in order))

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
        plugins = []
        for plugin in named:
            module, _, attribute = self.target(plugin).partition(":")
            plugins.append((f"{plugin.table}[{plugin.entry!r}] {attribute}", module))
        plugins.sort()
        roots = tuple(dict.fromkeys([stage, *(module for _, module in plugins)]))
        reached, above = self._reach(roots)
        while run := {name for name in above - reached.keys() if self.module(name).digest not in ("", _EMPTY)}:
            roots += tuple(sorted(run, key=lambda name: (self.module(name).digest, name)))
            reached, above = self._reach(roots)
        lines = [f"{self.module(name).digest} {imports}" for name, imports in reached.items()]
        lines += [f"{entry} {roots.index(module)}" for entry, module in plugins]
        used = frozenset().union(*(self.module(name).packages for name in reached))
        lines += [f"{package}=={self._pin(PACKAGES[package])}" for package in sorted(used)]
        return text_digest("\n".join(lines))[:16]

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


def _contents(folder: Path) -> list[str]:
    """A line for each file: its path from where the folder lies, and its SHA-256."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [f"{path.relative_to(folder.parent)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]


def _assigned_name(node: ast.stmt) -> str | None:
    """The one name that a statement assigns to."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    return target.id if isinstance(target, ast.Name) else None


def _registries(tree: ast.Module, source: Source) -> Iterator[tuple[str, dict[str, str]]]:
    """Dicts at the top of a module whose values all name modules of the project; `**OTHER` stands for one above."""
    tables: dict[str, dict[str, str]] = {}
    for node in tree.body:
        name, value = _assigned_name(node), getattr(node, "value", None)
        if name is None or not isinstance(value, ast.Dict):
            continue
        entries: dict[str, str] = {}
        for key, target in zip(value.keys, value.values, strict=True):
            if key is None and isinstance(target, ast.Name) and target.id in tables:
                entries |= tables[target.id]
            elif pair := _registry_entry(key, target, source):
                entries |= dict([pair])
            else:
                break
        else:
            if entries:
                tables[name] = entries
                yield name, dict(entries)


def _registry_entry(key: ast.expr | None, target: ast.expr, source: Source) -> tuple[str, str] | None:
    """An entry of a registry, where these are a text and the name of a module of the project."""
    texts = [node.value for node in (key, target) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if len(texts) < 2 or not _TARGET.fullmatch(texts[1]) or not source.path(texts[1].partition(":")[0]):
        return None
    return texts[0], texts[1]
