"""What neighbouring inputs differ in, whatever words an entry has for it, and which guarantee bounds which unit.

A guarantee for a unit bounds every smaller one: neighbours in one interaction of a user are two steps apart in whole
users, that user's data taken out and the others put in. So k steps count as group privacy has it (Dwork and Roth 2014,
theorem 2.2): the sensitivity is k times what it was.
"""

from __future__ import annotations

from tasks.privacy.accounting.ledger import Event, LedgerEntry

USER = "all training interactions of one user taken out, the place kept, or put in"
PROFILE = "all training interactions and metadata of one user taken out, the place kept, or put in"
FEATURES = "all features of one user replaced"
FEATURES_GIVEN = f"{FEATURES}, given the bounds of numeric features"
FEATURES_LISTED = f"{FEATURES}, given the categories"
FEATURES_GIVEN_BOTH = f"{FEATURES_GIVEN} and the categories"
INTERACTION = "one interaction of one user added or removed"
REPLACED = "one visit of one user replaced by a visit of another item"
VISIT = "one visit of a user's sequence, with its transitions, the items being known"
VISIT_GIVEN = f"{VISIT}, given, of every step, the item vectors and the map of users' features"
CELL = "one listed cell's value changed between 0 and 1"
VALUE = "one rating's value changed within the scale; who rated what is the same"
SENSITIVE = "the value of one sensitive rating replaced"
EDGE = "one undirected edge added or removed"
TEXTS = "all texts of one user replaced by others of as many words of the vocabulary each"
WORD = "one word replaced by any other of the vocabulary"
NEAR = "one word replaced by another at distance 1 of the word vectors"

RELATIONS = {
    "all interactions of one user added or removed": USER,
    "all training interactions of one user added or removed": USER,
    "all training interactions of one user taken out, the place kept": USER,
    "all training interactions of one user taken out, the place in the batches kept": USER,
    "one user's whole training sequence added or removed": USER,
    "one user's whole training sequence taken out, the place kept": USER,
    "all training interactions and metadata of one user added or removed": PROFILE,
    "all training interactions and metadata of one user taken out, the place in the batches kept": PROFILE,
    "one interaction added or removed": INTERACTION,
    "one interaction of one user with one item added or removed": INTERACTION,
    "one edge of the user-item graph, that is one interaction, added or removed": INTERACTION,
    "one user's rating of one item changed within the scale; who rated what is the same": VALUE,
    **{unit: unit for unit in (FEATURES, FEATURES_GIVEN, REPLACED, VISIT, VISIT_GIVEN, CELL, SENSITIVE, EDGE)},
    **{unit: unit for unit in (FEATURES_LISTED, FEATURES_GIVEN_BOTH, TEXTS, WORD, NEAR)},
}
"""Neighbouring relation of an entry -> its unit. A user without interactions counts for nothing in every system that
says "added or removed", so taken out with the place kept is the same there."""

NAMES = {
    USER: "a user",
    PROFILE: "a user with metadata",
    **dict.fromkeys((FEATURES, FEATURES_GIVEN, FEATURES_LISTED, FEATURES_GIVEN_BOTH), "a user's features"),
    INTERACTION: "one interaction",
    **dict.fromkeys((REPLACED, VISIT, VISIT_GIVEN), "one visit"),
    CELL: "one listed cell",
    VALUE: "one rating",
    SENSITIVE: "one sensitive rating",
    EDGE: "one friendship",
    TEXTS: "a user's texts",
    WORD: "one word",
    NEAR: "one word replaced by a near one",
}
"""Unit -> what it is called in running text."""

_OF_USERS = {USER: 2, PROFILE: 2}
STEPS: dict[str, dict[str, int]] = {
    USER: {USER: 1, PROFILE: 1},
    PROFILE: {PROFILE: 1, USER: 1, FEATURES: 1},
    FEATURES: {FEATURES: 1, PROFILE: 2},
    FEATURES_GIVEN: {FEATURES_GIVEN: 1, FEATURES: 1, PROFILE: 2},
    FEATURES_LISTED: {FEATURES_LISTED: 1, FEATURES: 1, PROFILE: 2},
    FEATURES_GIVEN_BOTH: {FEATURES_GIVEN_BOTH: 1, FEATURES_GIVEN: 1, FEATURES_LISTED: 1, FEATURES: 1, PROFILE: 2},
    INTERACTION: {INTERACTION: 1, **_OF_USERS},
    REPLACED: {REPLACED: 1, INTERACTION: 2, **_OF_USERS},
    VISIT: {VISIT: 1, INTERACTION: 2, **_OF_USERS},
    VISIT_GIVEN: {VISIT_GIVEN: 1, VISIT: 1, INTERACTION: 2, **_OF_USERS},
    CELL: {CELL: 1, INTERACTION: 1, **_OF_USERS},
    VALUE: {VALUE: 1, INTERACTION: 2, **_OF_USERS},
    SENSITIVE: {SENSITIVE: 1, VALUE: 1, INTERACTION: 2, **_OF_USERS},
    EDGE: {EDGE: 1},
    TEXTS: {TEXTS: 1},
    WORD: {WORD: 1, TEXTS: 1},
    NEAR: {NEAR: 1, WORD: 1, TEXTS: 1},
}
"""Unit -> units whose guarantees bound it, and in how many of their steps; those of the unit itself first."""
DERIVED = (FEATURES_GIVEN, FEATURES_GIVEN_BOTH)
"""Features of which some have fitted bounds: counts of ratings, reviews or friends. These are functions of interactions
and edges; a user's other features, such as gender and age, are functions of neither."""
_OF_ONE_USER = (USER, PROFILE, INTERACTION, REPLACED, VISIT, VISIT_GIVEN, CELL, VALUE, SENSITIVE)
COUNTED = {**dict.fromkeys(_OF_ONE_USER, 1), EDGE: 2}
"""Unit -> of how many users it changes such features: it replaces all features of each at most, in one step."""


def unit(entry: LedgerEntry) -> str:
    """What neighbouring inputs of an entry differ in: a key of `STEPS`, or its own words where they are not known."""
    relation = entry.neighbouring.removesuffix(f", towards {entry.observer}")
    return RELATIONS.get(relation, relation)


def name(entry: LedgerEntry) -> str:
    """What the unit of an entry is called in running text: "a user"; of one that is not known, its own words."""
    return NAMES.get(unit(entry), entry.neighbouring)


def steps(target: str, of: str) -> int:
    """In how many steps a guarantee for one unit bounds another; 0: in none.

    Units that are not known bound nothing, and nothing bounds them.
    """
    return STEPS.get(target, {}).get(of, 0)


def bounding(target: str) -> dict[str, int]:
    """Units whose releases spend on a unit and are bounded for it, in how many of their steps.

    These are `STEPS`, and features that are functions of it. A unit that is not known has itself alone.
    """
    return STEPS.get(target, {target: 1}) | (dict.fromkeys(DERIVED, COUNTED[target]) if target in COUNTED else {})


def group_event(event: Event, count: int) -> Event:
    """What an event is worth towards neighbours that are `count` steps apart.

    Sampling gains nothing beyond one step: by joint convexity the sampled mechanism loses at most what the one without
    sampling does, and no tighter curve is taken.

    Raises:
        ValueError: the kind of event is not known.
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
