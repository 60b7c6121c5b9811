"""Planted bugs: plausible mistakes in private code, each with the tests that must fail and the audit that must refute.

`python -m tests.privacy.planted` (`make planted`) puts each into a copy of the source by itself, runs its tests and its
audit on the copy, and writes docs/planted.md.
"""

from __future__ import annotations

from tests.privacy.planted import (
    accounting,
    crossed,
    graphs,
    later,
    mechanisms,
    models,
    releases,
    secure,
    social,
    training,
)

MUTATIONS = (
    *mechanisms.MUTATIONS,
    *training.MUTATIONS,
    *models.MUTATIONS,
    *graphs.MUTATIONS,
    *social.MUTATIONS,
    *accounting.MUTATIONS,
    *later.MUTATIONS,
    *releases.MUTATIONS,
    *secure.MUTATIONS,
    *crossed.MUTATIONS,
)
