"""Planted bugs: plausible mistakes in private code, each with the tests that must fail and the audit that must refute.

`python -m tests.privacy.planted` (`make planted`) puts each into a copy of the source by itself, runs its tests and its
audit on the copy, and writes docs/planted.md.
"""

from __future__ import annotations

from importlib import import_module

from tests.privacy.planted.mutation import Mutation

MODULES = "mechanisms training models graphs social accounting later releases secure crossed sums"
MUTATIONS: tuple[Mutation, ...] = tuple(
    mutation for name in MODULES.split() for mutation in import_module(f"{__name__}.{name}").MUTATIONS
)
