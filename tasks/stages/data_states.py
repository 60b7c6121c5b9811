"""States of data sets as `dprec data list` shows them and its help explains them; nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

State = Literal[
    "present", "generated", "placed", "in the mirror", "in the mirror, perhaps", "downloadable", "needs a form", "yours"
]
STATES: dict[State, str] = {
    "present": "obtained",
    "generated": "synthetic, made when needed",
    "placed": "in data/placed",
    "in the mirror": "the folder DPREC_MIRROR",
    "in the mirror, perhaps": "DPREC_MIRROR is an address, which is not asked",
    "downloadable": "from its official address",
    "needs a form": "only its publisher gives it out",
    "yours": "files you name",
}
"""State -> what it means."""
