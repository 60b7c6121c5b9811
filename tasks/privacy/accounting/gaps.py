"""Gaps and conditions that several ledgers share (docs/methods.md §11)."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.remarks import KnownGap, gap
from tasks.privacy.terms import Condition, Unit

GIVEN_EPOCH: tuple[Condition, ...] = ("epoch",)
"""`LedgerEntry.given` of a model trained by epochs."""

EPOCH = gap("epoch")
LOSSES = gap("losses")
METRICS = gap("metrics")
RECORDED = gap("counts-and-hashes")
SEED = gap("seed")
SEED_OF_RELEASE = gap("seed-of-release")
FLOATS = gap("norms-float")
DRAWN = gap("noise-float")
ROUNDED = gap("rounded")
PLACE = gap("place-kept")
OWN_FILE = gap("own-file")
OWN_LIST = (gap("own-list"), OWN_FILE)
SECURE = gap("secure")
_SECURED: dict[str, KnownGap] = {
    "norms-float": gap("sums-float"),
    "noise-float": gap("sums-float"),
    "rounded": gap("snapped"),
    "seed": SECURE,
    "seed-of-release": SECURE,
}
"""A gap of research noise -> what remains of it."""

CATALOGUE, LISTED = gap("catalogue-public"), gap("lists-public")
"""What of users and items is public: those that occur, or those that a data set lists."""
UNUSED = (METRICS, CATALOGUE, RECORDED)
"""Of every model, also one to which nothing private goes."""
RECORDS: tuple[Unit, ...] = (
    "interaction", "training-triple", "listed-cell", "matrix-entry", "visit", "visit-of-known-items",
    "visit-given-states",
)  # fmt: skip
"""Units that are a record of a user, without which others of that user may be in other parts of a split: their sizes
are shares of how many there are."""
ONCE = (*UNUSED, SEED)
"""Of every private model."""
BY_EPOCHS = (EPOCH, LOSSES, *ONCE)
"""Of every private model trained by epochs."""


def secure_entry(entry: LedgerEntry) -> LedgerEntry:
    """The entry of the same release with secure noise; the same where nothing is drawn."""
    if not entry.events or all(event.kind == "non-private" for event in entry.events):
        return entry
    gaps = tuple(dict.fromkeys(_SECURED.get(known.id, known) for known in (*entry.gaps, SECURE)))
    return entry.model_copy(update={"gaps": gaps, "noise": "secure"})


def prepared_entry(entry: LedgerEntry, conditions: tuple[str, ...] = (), *, validated: bool = False) -> LedgerEntry:
    """The entry as a stage records it: metrics are published with the results.

    Args:
        conditions: of the prepared data. A user's features have none: no user's depend on another's but for their
            fitted bounds.
        validated: whether the configuration was chosen by validation on the same data.
    """
    if entry.accounted_epsilon is None:
        return entry
    of_a_step = entry.unit == "user-with-metadata"  # which all its lines share, that of features among them
    common = conditions if entry.protects != "feature" or of_a_step else ()
    if entry.unit in RECORDS:
        common = (*common, "parts")
    chosen: tuple[Condition, ...] = ("configuration",) if validated else ()
    listed = LISTED if "catalogue" not in conditions and "preparation" not in conditions else CATALOGUE
    known = (listed if each == CATALOGUE else each for each in entry.gaps)
    gaps = tuple(dict.fromkeys((*((gap("configuration"),) if validated else ()), *known, METRICS)))
    given = dict.fromkeys((*chosen, *entry.given, *common))
    if "no-repeats" not in {*entry.given} & {*conditions}:  # only a mechanism that needs it, on data that may break it
        given.pop("no-repeats", None)
    return entry.model_copy(update={"given": tuple(given), "gaps": gaps})


def large_delta(delta: float, n_users: int) -> tuple[KnownGap, ...]:
    """That δ means little, if it does: publishing everything about one random user would meet it, too."""
    return (gap("large-delta", delta=delta, n_users=n_users),) if delta > 1 / n_users else ()


def side_by_side(n_releases: int) -> tuple[KnownGap, ...]:
    """That so many releases of the same data lie side by side; a deployment has one."""
    return (gap("side-by-side", n_releases=n_releases),) if n_releases > 1 else ()
