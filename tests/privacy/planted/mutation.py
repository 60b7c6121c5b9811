"""What a planted bug is, and how it is put into a copy of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[3]
Written = Literal["from formulas", "with tests read"]


@dataclass(frozen=True)
class Mutation:
    """A plausible mistake in code that keeps something private."""

    name: str
    wrong: str
    """What is wrong with it, in one sentence without a full stop."""
    section: str
    """The section of docs/methods.md whose formula or rule it breaks, e.g. `§1`."""
    file: str
    """Path from the repository's root."""
    old: str
    """A piece of that file that is there exactly once."""
    new: str
    """What stands there instead."""
    tests: tuple[str, ...] = ()
    """Node ids of tests, few and fast, at least one of which must fail."""
    audit: str = ""
    """The audit in `tasks.audits.AUDITS` whose model runs this code; empty if there is none."""
    refuted: bool = True
    """Whether the audit refutes the model's own ledger then: a mistake that it does not see is published as that."""
    written: Written = "from formulas"
    """Whether it was thought of from the formulas alone, or by somebody who had read the tests."""

    def mutated(self, root: Path = ROOT) -> str:
        """The file's text with the bug in it.

        Raises:
            ValueError: the piece is not in the file, or more than once.
        """
        text = (root / self.file).read_text(encoding="utf-8")
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the piece to replace is {times} times in {self.file}, not once")
        return text.replace(self.old, self.new)
