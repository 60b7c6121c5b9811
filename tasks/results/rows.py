"""YAML whose rows are written once: `each` makes several rows of one, `when` leaves a row out, `{name}` is filled in.

    - each: {network: labelled, metric label: {hit: Hit, ndcg: NDCG}}
      when: network.users > 100
      metric: "{network.name}/{metric}"
      label: "{label}"

`each` maps names to what they stand for in turn, the last name fastest: a list, a mapping (as pairs) or an expression
in the names above it. Several names in one key take the parts of each item. `items` stands for the rows that it lists.
Expressions are Jinja's, texts are formatted as by `str.format`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, StrictUndefined

Names = Mapping[str, Any]
_ENVIRONMENT = Environment(undefined=StrictUndefined, autoescape=True)  # expressions alone: nothing is rendered
_compiled = cache(partial(_ENVIRONMENT.compile_expression, undefined_to_none=False))
_REPEATS = {"each", "when", "items"}


def evaluate(expression: object, names: Names) -> Any:
    """The value of an expression in names; of anything else than a text, what `expand` makes of it.

    Raises:
        jinja2.TemplateError: it is no expression, or a name is unknown.
    """
    return _compiled(expression)(**names) if isinstance(expression, str) else expand(expression, names)


def expand(node: object, names: Names) -> Any:
    """A tree of mappings, lists and texts with all rows written out and all texts filled in.

    Raises:
        KeyError: a text has an unknown name.
        jinja2.TemplateError: an expression is wrong, or has an unknown name.
    """
    if isinstance(node, str):
        return node.format_map(names) if "{" in node else node
    if isinstance(node, list):
        return [row for child in node for row in _written_out(child, names)]
    if isinstance(node, dict):
        return {key: expand(value, names) for key, value in node.items()}
    return node


def define(definitions: Names, known_names: Names) -> dict[str, object]:
    """The names that are known, and those that `given` defines by expressions or rows, one after another.

    A name that is known and not empty stays. Rows become objects, so that texts may say `{row.key}`.
    """
    names = dict(known_names)
    for name, meaning in definitions.items():
        names[name] = names.get(name) or _as_objects(evaluate(meaning, names))
    return names


def _as_objects(value: object) -> object:
    if not isinstance(value, list):
        return value
    return [SimpleNamespace(**row) if isinstance(row, dict) else row for row in value]


def _written_out(row: object, names: Names) -> Iterator[object]:
    if not isinstance(row, dict) or not _REPEATS & row.keys():
        yield expand(row, names)
        return
    fields = {key: value for key, value in row.items() if key not in _REPEATS}
    for bound in _bound([*row.get("each", {}).items()], names):
        if evaluate(str(row.get("when", True)), bound):
            yield from expand(row.get("items", [fields]), bound)


def _bound(each: list[tuple[str, object]], names: Names) -> Iterator[Names]:
    if not each:
        yield names
        return
    (variables, domain), *remaining = each
    items = evaluate(domain, names)
    for item in items.items() if isinstance(items, dict) else items:
        bound = dict(zip(variables.split(), item, strict=True)) if " " in variables else {variables: item}
        yield from _bound(remaining, {**names, **bound})
