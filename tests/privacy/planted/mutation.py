"""What a planted bug is, and how it is put into a copy of the source."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


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
    tests_read: bool = False
    """Whether it was thought of by someone who had read the tests, not from the formulas alone."""

    def mutated(self, root: Path = ROOT) -> str:
        """The file's text with the bug in it.

        Raises:
            ValueError: the piece is not in the file, or more than once.
        """
        text = (root / self.file).read_text(encoding="utf-8")
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the piece to replace is {times} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def read(text: str) -> Iterator[Mutation]:
    """The bugs of a text file: blocks between empty lines, after a first one that says what they have in common.

    `NAME: WRONG`, then `in FILE: SECTION`, which may be followed by `, audit NAME` or `, no audit NAME` (it refutes, or
    does not) and `, with tests read`; then the lines of `old` after `- `, of `new` after `+ `, and tests after `* `.
    """
    for block in text.rstrip("\n").split("\n\n")[1:]:
        title, place, *lines = block.split("\n")
        name, _, wrong = title.partition(": ")
        matched = re.fullmatch(r"in (\S+): (§\d+)(?:, (no )?audit (\S+?))?(, with tests read)?", place)
        if matched is None:
            raise ValueError(f"{name}: no place of a bug: {place}")
        file, section, unseen, audit, tests_read = matched.groups()
        old, new, tests = ([line[2:] for line in lines if line[0] == mark] for mark in "-+*")
        pieces = "\n".join(old), "\n".join(new)
        yield Mutation(name, wrong, section, file, *pieces, tuple(tests), audit or "", not unseen, bool(tests_read))
