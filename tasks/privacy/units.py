"""Which guarantee bounds which unit, and in how many steps.

A guarantee for a unit bounds every smaller one: neighbours in one interaction of a user are two steps apart in whole
users, that user's data taken out and the others put in. So k steps count as group privacy has it (Dwork and Roth 2014,
theorem 2.2): the sensitivity is k times what it was.
"""

from __future__ import annotations

from tasks.privacy.accounting.ledger import Event
from tasks.privacy.terms import Level, Unit

_OF_USERS: dict[Unit, int] = {"user": 2, "user-with-metadata": 2}
_OF_FEATURES: dict[Unit, int] = {"features": 1, "user-with-metadata": 2}
STEPS: dict[Unit, dict[Unit, int]] = {
    "user": {"user": 1, "user-with-metadata": 1},
    "user-with-metadata": {"user-with-metadata": 1, "user": 1, "features": 1},
    "features": _OF_FEATURES,
    "features-within-bounds": {"features-within-bounds": 1, **_OF_FEATURES},
    "features-within-categories": {"features-within-categories": 1, **_OF_FEATURES},
    "features-within-both": {
        "features-within-both": 1, "features-within-bounds": 1, "features-within-categories": 1, **_OF_FEATURES
    },
    "interaction": {"interaction": 1, **_OF_USERS},
    "visit": {"visit": 1, "interaction": 2, **_OF_USERS},
    "visit-of-known-items": {"visit-of-known-items": 1, "interaction": 2, **_OF_USERS},
    "visit-given-states": {"visit-given-states": 1, "visit-of-known-items": 1, "interaction": 2, **_OF_USERS},
    "listed-cell": {"listed-cell": 1, "interaction": 1, **_OF_USERS},
    "rating-value": {"rating-value": 1, "interaction": 2, **_OF_USERS},
    "sensitive-rating": {"sensitive-rating": 1, "rating-value": 1, "interaction": 2, **_OF_USERS},
    "edge": {"edge": 1},
    "texts": {"texts": 1},
    "word": {"word": 1, "texts": 1},
    "near-word": {"near-word": 1, "word": 1, "texts": 1},
}  # fmt: skip
"""Unit -> units whose guarantees bound it, and in how many of their steps; those of the unit itself first. A user
without interactions counts for nothing in every system that adds or removes users, so taken out with the place kept is
the same there. Other units bound nothing, and nothing bounds them."""
DERIVED: tuple[Unit, ...] = ("features-within-bounds", "features-within-both")
"""Features of which some have fitted bounds: counts of ratings, reviews or friends. These are functions of interactions
and edges; a user's other features, such as gender and age, are functions of neither."""
_OF_ONE_USER: tuple[Unit, ...] = (
    "user", "user-with-metadata", "interaction", "visit", "visit-of-known-items", "visit-given-states", "listed-cell",
    "rating-value", "sensitive-rating",
)  # fmt: skip
LEVELS: dict[Unit, Level] = {
    **dict.fromkeys(("user", "user-with-metadata"), "user"),
    **dict.fromkeys((*_OF_ONE_USER[2:], "training-triple", "matrix-entry"), "interaction"),
    **dict.fromkeys(
        ("features", "features-within-bounds", "features-within-categories", "features-within-both",
         "private-attribute", "number", "category"), "feature"
    ),
    "edge": "edge", **dict.fromkeys(("texts", "word", "near-word"), "text"),
}  # fmt: skip
"""Unit -> the kind of units that may share an axis or a column; `any` has none."""
COUNTED: dict[Unit, int] = {**dict.fromkeys(_OF_ONE_USER, 1), "edge": 2}
"""Unit -> of how many users it changes such features: it replaces all features of each at most, in one step."""


def steps(target: Unit, other: Unit) -> int:
    """In how many steps a guarantee for one unit bounds another; 0: in none."""
    return STEPS.get(target, {}).get(other, 0)


def bounding(target: Unit) -> dict[Unit, int]:
    """Units whose releases spend on a unit and are bounded for it, in how many of their steps.

    These are `STEPS`, and features that are functions of it. A unit that bounds nothing has itself alone.
    """
    return STEPS.get(target, {target: 1}) | (dict.fromkeys(DERIVED, COUNTED[target]) if target in COUNTED else {})


def group_event(event: Event, count: int) -> Event:
    """What an event is worth towards neighbours that are `count` steps apart.

    Sampling gains nothing beyond one step: by joint convexity the sampled mechanism loses at most what the one without
    sampling does, and no tighter curve is taken.
    """
    if count == 1 or event.kind == "non-private":
        return event
    values = event.parameters
    if event.kind in ("laplace", "gaussian", "sampled-gaussian"):
        kind = "laplace" if event.kind == "laplace" else "gaussian"
        parameters = {"noise_multiplier": values["noise_multiplier"] / count}
        return Event(kind=kind, parameters=parameters, count=event.count)
    if event.kind == "discrete-laplace":
        return event.model_copy(update={"parameters": {**values, "sensitivity": values["sensitivity"] * count}})
    if event.kind == "pure-local":
        return event.model_copy(update={"parameters": {"epsilon": values["epsilon"] * count}})
    raise ValueError(f"no group privacy is known for events of kind {event.kind!r}")
