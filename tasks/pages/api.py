"""A package's public names as documents: a module is a document, a name a section, all of it from the docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pdoc.doc import Class, Doc, Function, Module
from pdoc.docstrings import google

QUALIFIED = r"\b(tasks|numpy|typing)(\.\w+)*\."
"""What stands before the names of types."""


def documents(package: str) -> dict[str, str]:
    """Name, such as api-dprec-metrics -> Markdown, of a package and of the modules right below it.

    Raises:
        RuntimeError: the package cannot be imported.
    """
    top = Module.from_name(package)
    return {f"api-{module.fullname.replace('.', '-')}": _document(module) for module in (top, *top.submodules)}


def _document(module: Module) -> str:
    links = [f"- [{name.fullname}](api-{name.fullname.replace('.', '-')}.html)" for name in module.submodules]
    sections = [text for member in module.own_members if not isinstance(member, Module) for text in _section(member)]
    return "\n\n".join([f"# {module.fullname}", google(module.docstring), "\n".join(links), *sections]) + "\n"


def _section(member: Doc) -> list[str]:
    """How it is called and what its docstring says; of a class, the same of every method and field of its own."""
    text = [f"## {member.name}", *_words(member)]
    if isinstance(member, Class):
        typed = inspect.get_annotations(member.obj)
        members = [inner for inner in member.own_members if not inner.name.startswith("_")]
        text += ["\n".join(_field(inner, typed) for inner in members if inner.name in typed)]
        for method in members:
            if isinstance(method, Function):
                text += [f"### {member.name}.{method.name}", *_words(method)]
    return text


def _field(member: Doc, typed: dict[str, Any]) -> str:
    """typed: name -> type, as the source has it."""
    kind = typed[member.name]
    words = "" if member.docstring.startswith("Alias for field") else " ".join(member.docstring.split())
    return f"- `{member.name}: {getattr(kind, '__forward_arg__', kind)}` {words}"


def _words(member: Doc) -> list[str]:
    words = re.sub(r"^#+ (.*)$", r"**\1**", google(member.docstring), flags=re.MULTILINE)
    if not isinstance(member, Function):
        return [words]
    return [f"```python\n{member.name}{re.sub(QUALIFIED, '', str(member.signature))}\n```", words]
