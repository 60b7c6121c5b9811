"""The paper that a suite names, read when it is asked for: its key is all that params.yaml says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from tasks import papers
from tasks.core.fingerprints import Plugin

if TYPE_CHECKING:
    from tasks.results.facts import Network
    from tasks.results.paper import Paper

ROOT = Path(papers.__file__).parents[2]
FUNCTION = re.compile(r"\btasks(?:\.\w+)+:\w+")


def describe(paper: str | None, networks: tuple[Network, ...] = ()) -> Paper:
    """The paper whose tables a suite with these networks is shown in; None: a suite that reproduces none.

    Raises:
        KeyError: there is no such paper.
        ConfigurationError: its paper.yaml is not as the schema has it.
    """
    from tasks.results.paper import load  # which the table of stages, with every command, does without

    return load(_file(paper), networks)


class Numbers(NamedTuple):
    """What `collect` reads of a paper: no word of it."""

    headline_k: int
    """As of `tasks.results.paper.Paper`."""
    overlap: float | None


@cache
def numbers(paper: str | None) -> Numbers:
    """The numbers of a paper that decide what is collected; None: of that in whose layout a suite is shown."""
    record = yaml.load(_file(paper).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return Numbers(record["headline_k"], record.get("overlap"))


def named_functions(paper: str | None) -> tuple[str, ...]:
    """All functions that a paper's file names, as `module:function`, sorted."""
    return tuple(sorted({*FUNCTION.findall(_file(paper).read_text(encoding="utf-8"))}))


def plugins(paper: str | None) -> list[Plugin]:
    """The file of a paper, and the functions that it names, as plug-ins of a stage that shows it."""
    return [
        Plugin("tasks.papers", "PAPERS", paper or papers.DEFAULT, at=name) for name in (None, *named_functions(paper))
    ]


def _file(paper: str | None) -> Path:
    return ROOT.joinpath(*papers.PAPERS[paper or papers.DEFAULT].split(".")).with_suffix(".yaml")
