"""Which events can be accounted for at all."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.privacy.accounting.ledger import Event

PARAMETERS = {
    "pure-local": {"epsilon"},
    "laplace": {"noise_multiplier"},
    "discrete-laplace": {"noise_parameter", "sensitivity"},
    "gaussian": {"noise_multiplier"},
    "sampled-gaussian": {"noise_multiplier", "sampling_probability"},
}
"""Kinds of event that can be accounted for, and their parameters (documented at `Event`)."""
MOST = 2**53
"""Larger counts are refused, which double precision does not tell apart."""
LEAST_NOISE = 1e-100
"""Noise multipliers below are refused: their squares are out of double precision's range."""


class UnaccountableError(Exception):
    """No finite ε follows, and why."""


def require_accountable(events: Sequence[Event], delta: float) -> None:
    """Refuse events of which nothing is known, and those without a finite ε at this δ."""
    if not events:
        raise UnaccountableError("no release was recorded, so nothing can be accounted")
    for event in events:
        _require(event.kind, event.parameters, event.count)
    if not delta and any(event.kind.endswith("gaussian") for event in events):
        raise UnaccountableError("Gaussian noise gives no finite epsilon at delta = 0")


def _require(kind: str, parameters: dict[str, float], count: int) -> None:
    if kind == "non-private":
        raise UnaccountableError("something was released without protection")
    if kind not in PARAMETERS:
        raise UnaccountableError(f"no accounting is known for events of kind {kind!r}")
    if parameters.keys() != PARAMETERS[kind]:
        raise UnaccountableError(f"a {kind} event needs {sorted(PARAMETERS[kind])}, not {sorted(parameters)}")
    if count > MOST:
        raise UnaccountableError(f"a {kind} event is counted at most {MOST} times")
    for name, value in parameters.items():
        if value <= 0:
            raise UnaccountableError(f"a {kind} event has no finite epsilon with {name} = {value:g}")
    if kind.endswith("gaussian") and parameters["noise_multiplier"] < LEAST_NOISE:
        raise UnaccountableError(f"the noise of a {kind} event is too small for any finite epsilon")
    if (share := parameters.get("sampling_probability", 0)) > 1:
        raise UnaccountableError(f"a {kind} event has no sampling probability of {share:g}")
    if kind == "discrete-laplace" and not parameters["sensitivity"].is_integer():
        raise UnaccountableError("a discrete-laplace event needs an integer sensitivity")
