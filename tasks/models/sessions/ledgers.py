"""What private graph networks share: the key of noise; what ledgers say of lists, the session graph alone and labels.

A guarantee is of what is released. The systems release lists, for which no finite ε follows: that line comes first.
What the noise does cover, aggregates or matrices, has a line of its own that is named so (docs/methods.md §9).
"""

from __future__ import annotations

from tasks.core.errors import PrivacyError
from tasks.models.base import Model
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import BY_EPOCHS, EPOCH, FLOATS, GIVEN_EPOCH
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry, unbounded_entry
from tasks.privacy.insecurity import KEYED
from tasks.privacy.remarks import Explanation, KnownGap, because, gap
from tasks.privacy.terms import Condition, Mechanism, Unit

READ = gap("prefixes-exact")
LABELS = unbounded_entry("label", "interaction", "none", because("labels-read"))


class KeyedModel(Model):
    """A model whose noise is a function of a key and of what is asked (`tasks.privacy.keyed`)."""

    insecurity = KEYED
    key: int | None = None
    """The secret that noise is drawn by, with which it can be taken off: the trainer's, in no saved model."""

    @property
    def secret(self) -> int:
        """`key`.

        Raises:
            PrivacyError: the model was loaded, and was given none.
        """
        if self.key is None:
            raise PrivacyError(
                "a saved model has no key of its noise: set `key` to that of training, or to a fresh one"
            )
        return self.key


def lists_entry(
    mechanism: Mechanism,
    *reasons: Explanation,
    accounting: Accounting,
    claimed: tuple[float | None, float] = (None, 0.0),
    covered: tuple[KnownGap, ...] = (),
) -> LedgerEntry:
    """The lists that a system releases: no finite ε follows.

    Args:
        reasons: why none follows.
        claimed: (ε, δ) that the paper claims for the system; None where it claims none.
        covered: what noise does cover, and what it does not.
    """
    return unbounded_entry(
        "edge",
        "visit",
        mechanism,
        *reasons,
        neighbouring="add-or-remove",
        accounting=accounting,
        claimed=claimed,
        gaps=(READ, *covered, EPOCH),
    )


def graph_entry(
    mechanism: Mechanism,
    remark: Explanation,
    event: Event,
    claimed: tuple[float, float],
    *,
    gaps: tuple[KnownGap, ...],
    given: tuple[Condition, ...],
    accounting: Accounting = "rigorous",
    unit: Unit = "visit-of-known-items",
) -> LedgerEntry:
    """What the noise covers, without the lists.

    Args:
        remark: that it is of the aggregates or matrices alone.
        given: what the guarantee takes as fixed besides the configuration and the epoch.
    """
    return accounted_entry(
        (event,),
        claimed[1],
        (remark,),
        protects="session graph",
        unit=unit,
        neighbouring="add-or-remove",
        mechanism=mechanism,
        accounting=accounting,
        claimed_epsilon=claimed[0],
        given=(*GIVEN_EPOCH, *given),
        gaps=(*gaps, READ, *BY_EPOCHS, FLOATS),
    )
