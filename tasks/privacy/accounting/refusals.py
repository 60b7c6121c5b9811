"""Why no finite ε follows from events, in words for readers of `Spent`: nothing is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.privacy.accounting.ledger import Event

DECIDES_NOTHING = True


def why(events: Sequence[Event], delta: float, parameters_of: Mapping[str, set[str]], largest: int) -> str:
    """The first reason; parameters_of, largest: as `account` has them."""
    reasons = filter(None, (_reason(event, parameters_of, largest) for event in events))
    if not events:
        return "no release was recorded, so nothing can be accounted"
    if not delta and any(event.kind.endswith("gaussian") for event in events):
        return next(reasons, "Gaussian noise gives no finite epsilon at delta = 0")
    return next(reasons, "the noise is too small for any finite epsilon")


def _reason(event: Event, parameters_of: Mapping[str, set[str]], largest: int) -> str:
    kind, parameters = event.kind, event.parameters
    if kind == "non-private":
        return "something was released without protection"
    if kind not in parameters_of:
        return f"no accounting is known for events of kind {kind!r}"
    if parameters.keys() != parameters_of[kind]:
        return f"a {kind} event needs {sorted(parameters_of[kind])}, not {sorted(parameters)}"
    if event.count > largest:
        return f"a {kind} event is counted at most {largest} times"
    if name := next((name for name, value in parameters.items() if value <= 0), ""):
        return f"a {kind} event has no finite epsilon with {name} = {parameters[name]:g}"
    if parameters.get("sampling_probability", 0) > 1:
        return f"a {kind} event has no sampling probability of {parameters['sampling_probability']:g}"
    if kind == "discrete-laplace" and not parameters["sensitivity"].is_integer():
        return "a discrete-laplace event needs an integer sensitivity"
    return ""
