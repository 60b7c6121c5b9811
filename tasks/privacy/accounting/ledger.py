"""The privacy ledger: for each thing protected, what a paper claims and what follows from what was actually run.

An `Event` records what happened; `tasks.privacy.accounting.account` reads events and counts; an entry keeps both
results side by side. Source: docs/methods.md §9.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Protected = Literal["feature", "interaction", "edge", "session graph", "rating", "text", "label", "anchor"]
"""Kinds of private data; `anchor`: who of one network is whom in another; `session graph`: the edges between the visits
of a session as its noisy aggregates or matrices show them, which are not what is released."""
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
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    parameters: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    count: Annotated[int, Field(ge=1)] = 1
    """How many times, adaptively or not, on the same data."""


class LedgerEntry(BaseModel):
    """What one run spent on one protected thing. Serialises to JSON and back without change.

    Raises (as pydantic ValidationError): an unknown field, a negative or infinite epsilon, a delta outside [0, 1), or
    no finite accounted epsilon and no reason for it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protects: Protected
    neighbouring: Annotated[str, Field(min_length=1)]
    """What two neighbouring inputs differ in, e.g. `one user's features replaced`."""
    mechanism: Annotated[str, Field(min_length=1)]
    observer: str = ""
    """Who is held off, if not everybody who sees what is released. What the same noise is worth towards different
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
    given: str = ""
    """What was chosen on private data and the guarantee takes as fixed: nothing covers that choice. Empty for
    nothing."""
    reason: str = ""
    """Why there is no finite guarantee, or a remark on the accounting."""
    gaps: tuple[str, ...] = ()
    """Known gaps between the guarantee and what was run, each one plain sentence."""
    noise: Noise = Field(default="research", exclude_if=lambda mode: mode == "research")
    """Where the noise of the mechanism came from."""
    events: tuple[Event, ...] = ()
    """What happened, readable by `tasks.privacy.accounting.account.account`."""

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if self.accounted_epsilon is None and not self.reason.strip():
            raise ValueError("reason must say why no finite epsilon follows")
        return self


def unbounded_entry(
    protects: Protected,
    neighbouring: str,
    mechanism: str,
    reason: str,
    *,
    accounting: Accounting = "published",
    claimed: tuple[float | None, float] = (None, 0.0),
    gaps: tuple[str, ...] = (),
    events: tuple[Event, ...] = (Event(kind="non-private"),),
) -> LedgerEntry:
    """The entry of what no finite guarantee follows for.

    Args:
        reason: why none follows.
        claimed: ε, or None where nobody claims any, and δ.
    """
    epsilon, delta = claimed
    return LedgerEntry(
        protects=protects,
        neighbouring=neighbouring,
        mechanism=mechanism,
        accounting=accounting,
        claimed_epsilon=epsilon,
        claimed_delta=delta,
        accounted_epsilon=None,
        accounted_delta=delta,
        reason=reason,
        gaps=gaps,
        events=events,
    )


def unprotected_entry(protects: Protected, reason: str) -> LedgerEntry:
    """The entry of something that no mechanism protects."""
    return unbounded_entry(protects, "any change", "none", reason)


def left_out(protects: Protected, neighbouring: str, accounting: Accounting, reason: str) -> LedgerEntry:
    """The entry of what there is and nothing is released of: it costs nothing."""
    return LedgerEntry(
        protects=protects,
        neighbouring=neighbouring,
        mechanism="left out",
        accounting=accounting,
        claimed_epsilon=None,
        claimed_delta=0.0,
        accounted_epsilon=0.0,
        accounted_delta=0.0,
        reason=reason,
    )


def show_epsilon(epsilon: float | None) -> str:
    """An epsilon as text: four significant digits, or ∞ where there is no finite guarantee."""
    return "∞" if epsilon is None else f"{epsilon:.4g}"
