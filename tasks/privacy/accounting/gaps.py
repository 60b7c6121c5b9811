"""Gaps between guarantee and run that several ledgers share, each one plain sentence; docs/methods.md §11."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import LedgerEntry

GIVEN = "the configuration"
"""`LedgerEntry.given` of a model that is fitted once."""
GIVEN_EPOCH = "the configuration and the epoch"
"""`LedgerEntry.given` of a model trained by epochs."""

CONFIGURATION = (
    "The configuration, with its bounds of norms and contributions, was chosen by validation without noise: ε is one "
    "given the configuration, and nothing covers the choice."
)
EPOCH = (
    "Validation chooses the epoch without noise: neither validation interactions nor the users' own training records, "
    "from which validated predictions are computed, are covered there."
)
LOSSES = (
    "Losses and shares of clipped gradients are written down after every epoch without noise and published with the "
    "results: the budget does not cover them."
)
METRICS = "All measured metrics are published with the results without noise: the budget does not cover them."
RECORDED = (
    "Results have exact counts of the data after each step of their preparation, and DVC's locks the hash and size of "
    "each file: they tell two versions of the data apart, and the budget does not cover them."
)
PREPARED = (
    f"Which items there are, and how many users, was read off all interactions and is taken as public. {RECORDED}"
)
PLACE = (
    "A user who is taken out keeps an empty place: the number of users is public, and with it the sampling probability "
    "and what sums are divided by."
)
OWN_FILE = (
    "What follows from a user's own record, such as the user's vector, is for that user's eyes, too: a saved model has "
    "it in a file apart, *.own.safetensors, which is not to be released."
)
OWN_LIST = (
    "A user's own list is computed from that user's own row and leaves out what the user has rated, so the guarantee "
    "is towards everyone else (joint differential privacy), not towards somebody who sees that list. " + OWN_FILE
)
FLOATS = "Norms and noise are computed in floating point."
DRAWN = "Noise is drawn in floating point."
SUMS = (
    "Norms and sums are computed in floating point before noise is added: by rounding, two neighbours may differ in "
    "them by more than the sensitivity."
)
ROUNDED = (
    "The proof is for real numbers; outputs are rounded to float32, which hides the low digits of float64 noise but is "
    "no proof."
)
SNAPPED = (
    "Numbers are rounded to a grid of a millionth of their range; before that they are computed in floating point, "
    "which moves the ε of one number by at most e^ε 2⁻²⁷."
)

SEED = (
    "Everything is drawn from a seed that the parameters name, so that a run can be repeated: whoever knows it can "
    "take the noise away. A deployment must draw its own and keep it."
)

SEED_OF_RELEASE = (
    "The seed is written in params.yaml so that runs can be repeated; whoever knows it can take the noise off. A "
    "deployment draws it in secret."
)
SECURE = (
    "Noise is secure: drawn from a generator that the operating system keys, never from a seed, and added as multiples "
    "of one step. Coins are numbers of 53 bits, so that their probabilities are off by at most 2⁻⁵³. How long drawing "
    "takes is not hidden."
)
_SECURED = {FLOATS: SUMS, DRAWN: SUMS, ROUNDED: SNAPPED, SEED: SECURE, SEED_OF_RELEASE: SECURE}
"""A gap of research noise -> what remains of it."""

ONCE = (CONFIGURATION, METRICS, PREPARED, SEED)
"""Of every private model."""
BY_EPOCHS = (EPOCH, LOSSES, *ONCE)
"""Of every private model trained by epochs."""


def secure_entry(entry: LedgerEntry) -> LedgerEntry:
    """The entry of the same release with secure noise; the same where nothing is drawn."""
    if not entry.events or all(event.kind == "non-private" for event in entry.events):
        return entry
    gaps = tuple(dict.fromkeys(_SECURED.get(gap, gap) for gap in (*entry.gaps, SECURE)))
    return entry.model_copy(update={"gaps": gaps, "noise": "secure"})


def large_delta(delta: float, n_users: int) -> tuple[str, ...]:
    """That δ means little, if it does."""
    if delta <= 1 / n_users:
        return ()
    return (
        f"δ = {delta:g} is more than one in {n_users} users: publishing everything about one random "
        "user would meet it, too.",
    )
