"""Planted bugs: plausible mistakes in private code, each with the tests that must fail and the audit that must refute.

`python -m tests.privacy.planted` (`make planted`) puts each into a copy of the source by itself, runs its tests and its
audit on the copy, and writes docs/planted.csv. The text files next to this one hold them; `mutation.read` says how.
"""

from pathlib import Path

from tests.privacy.planted.mutation import Mutation, read

FILES = "mechanisms training models graphs social accounting later releases secure crossed sums"
MUTATIONS: tuple[Mutation, ...] = tuple(
    mutation
    for name in FILES.split()
    for mutation in read(Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8"))
)
