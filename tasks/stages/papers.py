"""The paper that a suite names, read when it is asked for: its key is all that params.yaml says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tasks import papers
from tasks.fingerprints import Plugin

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


def named_functions(paper: str | None) -> tuple[str, ...]:
    """All functions that a paper's file names, as `module:function`, sorted."""
    return tuple(sorted({*FUNCTION.findall(_file(paper).read_text(encoding="utf-8"))}))


def plugins(paper: str | None, *, with_functions: bool = False) -> list[Plugin]:
    """The file of a paper as a plug-in of a stage that reads it; with the functions that it names if these run, too."""
    key, names = paper or papers.DEFAULT, named_functions(paper) if with_functions else ()
    return [Plugin("tasks.papers", "PAPERS", key, at=name) for name in (None, *names)]


def _file(paper: str | None) -> Path:
    return ROOT.joinpath(*papers.PAPERS[paper or papers.DEFAULT].split(".")).with_suffix(".yaml")
