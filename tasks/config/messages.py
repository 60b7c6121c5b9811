"""Files of parameters as YAML that means the same to all readers."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tasks.config.problems import Problem as Problem
from tasks.config.problems import first_error as first_error
from tasks.core.errors import ConfigurationError

PARAMS_FILE = Path("params.yaml")
_Options = TypeVar("_Options", bound=BaseModel)
_PLAIN = {"int": "[-+]?(0|[1-9][0-9]*)", "bool": "true|false", "timestamp": ""}
"""Kinds of values -> how they must be written."""


def options(kind: type[_Options], values: dict[str, object], where: str, path: Path = PARAMS_FILE) -> _Options:
    """The options that params.yaml gives to a source, format or protocol.

    Raises:
        ConfigurationError: one line that names the first wrong key.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {where}.{first_error(error)}") from error


class _Loader(yaml.CSafeLoader):  # of libyaml, which is in PyYAML's builds and parses ten times as fast
    """Refuses a key that is given twice, of which YAML would silently take the last, and what DVC reads otherwise.

    DVC reads YAML 1.2, this reads 1.1: 010 is 8 or 10, `yes` is true or a text.
    """

    def construct_scalar(self, node: yaml.ScalarNode) -> object:
        kind = node.tag.rpartition(":")[2]
        if kind in _PLAIN and not node.style and not re.fullmatch(_PLAIN[kind], node.value):
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"{node.value!r} is not the same in all versions of YAML; quote it or write it plainly",
                node.start_mark,
            )
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key is a list or a table", key_node.start_mark)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


def read(path: Path) -> object:
    """What a file says.

    Raises:
        ConfigurationError: one line: it is not there, or not such YAML.
    """
    try:
        raw = path.read_bytes()
        return yaml.load(raw.decode(), Loader=_Loader)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path}: not found; run this in the root of a project with all files of its suites"
        ) from None
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        byte = f"0x{raw[error.start]:02x}"
        raise ConfigurationError(f"{path}:{number}: byte {byte} is not UTF-8; save it as UTF-8") from None
    except yaml.reader.ReaderError as error:
        raise ConfigurationError(f"{path}: not valid YAML (character {error.character:#x})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not readable as YAML ({error})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}{line}: not valid YAML ({getattr(error, 'problem', error)})") from error
