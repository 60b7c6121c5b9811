"""Pages of many tests share most of their figures and all of their templates: each is drawn and compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jinja2
import pytest
from markupsafe import Markup

from tasks.reporting import templating
from tasks.reporting.core import drawing


class Compiled(jinja2.BytecodeCache):
    """What templates were compiled to, by their text."""

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """For the folders of tests that render pages; tests of drawing itself call `drawing.svg` as it was imported."""
    svg, compiled, known = drawing.svg, Compiled(), dict[str, Markup]()

    def drawn(panel: Any) -> Markup:
        key = repr(panel)
        if key not in known:
            known[key] = svg(panel)
        return known[key]

    def environment(**options: Any) -> jinja2.Environment:
        return jinja2.Environment(**options, bytecode_cache=compiled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "svg", drawn)
        patch.setattr(templating, "Environment", environment)
        yield
