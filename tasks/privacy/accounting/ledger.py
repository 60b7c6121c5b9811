"""The privacy ledger: for each thing protected, what a paper claims and what follows from what was actually run.

An `Event` records what happened; `tasks.privacy.accounting.account` reads events and counts; an entry keeps both
results side by side. Source: docs/methods.md §9.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.privacy.remarks import Explanation, KnownGap
from tasks.privacy.terms import Condition, Mechanism, Neighbouring, Observer, Protected, Unit

Accounting = Literal["published", "released", "rigorous"]
Noise = Literal["research", "secure"]
"""Drawn from a public seed, so that results can be repeated, or from the operating system: docs/guarantees.md."""
Epsilon = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1)]


class Event(BaseModel):
    """One kind of release and how often it happened.

    Kinds the accountant knows, with their parameters:

    `pure-local`: any mechanism with a proof of pure DP, {"epsilon"}.
    `laplace`: {"noise_multiplier"}: scale of the noise / L1 sensitivity.
    `discrete-laplace`: {"noise_parameter", "sensitivity"}: P[noise = k] proportional to exp(-noise_parameter |k|).
    `gaussian`: {"noise_multiplier"}: standard deviation of the noise / L2 sensitivity.
    `sampled-gaussian`: {"noise_multiplier", "sampling_probability"}: `gaussian` on a sample into which every record
        comes independently with that probability (Poisson sampling); neighbours are records added or removed.
    `non-private`: {}: something released without any protection.

    Sensitivities are those under the entry's own neighbouring relation. Other kinds may be recorded; the accountant
    refuses them.

    dp_accounting's `DpEvent` has no event for a proved budget, and its accountants no finite ε for Laplace noise at
    δ = 0: elsewhere they give the same ε for committed lines, to 4e-7.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    parameters: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    count: Annotated[int, Field(ge=1)] = 1
    """How many times, adaptively or not, on the same data."""


class LedgerEntry(BaseModel):
    """What one run spent on one protected thing, in ids, numbers and events. The same after JSON and back.

    Raises (as pydantic ValidationError): an unknown field or id, a negative or infinite epsilon, a delta outside
    [0, 1), or no finite accounted epsilon and no reason for it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protects: Protected
    unit: Unit
    """What two neighbouring inputs differ in."""
    neighbouring: Neighbouring
    """How they differ in it."""
    mechanism: Mechanism
    observer: Observer = ""
    """Who is held off, if not anyone who sees what is released. What the same noise is worth towards different
    observers is an entry for each, and these do not add up."""
    accounting: Accounting
    """`published`: the noise the paper prescribes; `released`: that of its authors' code, where it is another;
    `rigorous`: noise calibrated to the accounted total."""
    claimed_epsilon: Epsilon | None
    """The budget by the paper's own formula; None where the paper claims none."""
    claimed_delta: Delta
    accounted_epsilon: Epsilon | None
    """Upper bound under composition over everything the run did; None means that no finite guarantee follows."""
    accounted_delta: Delta
    given: tuple[Condition, ...] = ()
    """What was chosen on private data and the guarantee takes as fixed: nothing covers that choice."""
    reasons: tuple[Explanation, ...] = ()
    """Why there is no finite guarantee, or remarks on the accounting."""
    gaps: tuple[KnownGap, ...] = ()
    """Known gaps between the guarantee and what was run."""
    noise: Noise = Field(default="research", exclude_if=lambda mode: mode == "research")
    """Where the noise of the mechanism came from."""
    events: tuple[Event, ...] = ()
    """What happened, readable by `tasks.privacy.accounting.account.account`."""

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if self.accounted_epsilon is None and not self.reasons:
            raise ValueError("reasons must say why no finite epsilon follows")
        return self


def unbounded_entry(
    protects: Protected,
    unit: Unit,
    mechanism: Mechanism,
    *reasons: Explanation,
    claimed: tuple[float | None, float] = (None, 0.0),
    **about: object,
) -> LedgerEntry:
    """The entry of what no finite guarantee follows for.

    Args:
        reasons: why none follows.
        claimed: ε, or None where no one claims any, and δ.
        about: the other fields, of which some are usual.
    """
    epsilon, delta = claimed
    budgets = {"claimed_epsilon": epsilon, "claimed_delta": delta, "accounted_epsilon": None, "accounted_delta": delta}
    usual = {"neighbouring": "replace", "accounting": "published", "events": (Event(kind="non-private"),)}
    fields = {"protects": protects, "unit": unit, "mechanism": mechanism, "reasons": reasons}
    return LedgerEntry.model_validate(usual | about | fields | budgets)


def unprotected_entry(protects: Protected, reason: Explanation) -> LedgerEntry:
    """The entry of something that no mechanism protects."""
    return unbounded_entry(protects, "any", "none", reason)


def untouched_entry(
    protects: Protected, unit: Unit, mechanism: Mechanism, *reasons: Explanation, **about: Any
) -> LedgerEntry:
    """The entry of what is there and nothing that is released depends on: it costs nothing."""
    entry = unbounded_entry(protects, unit, mechanism, *reasons, **{"accounting": "rigorous", "events": ()} | about)
    return entry.model_copy(update={"accounted_epsilon": 0.0})


def left_out(protects: Protected, unit: Unit, accounting: Accounting, reasons: tuple[Explanation, ...]) -> LedgerEntry:
    """The entry of what there is and nothing is released of."""
    return untouched_entry(protects, unit, "left-out", *reasons, accounting=accounting)
