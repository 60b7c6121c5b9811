"""Which lines of ledgers want an audit: `dprec check` asks it of lines to come, `collect` of those that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tasks.audits import AUDITED_SETTINGS, OF_CODE, meets
from tasks.audits.lines import AUDITED_LINES
from tasks.config.fields import BASE, AnyNetworks, Perturbed, PerturbedFeatures
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits.unaudited import is_private, reason

if TYPE_CHECKING:
    from tasks.core.contracts import Feature

DECIDES_NOTHING = True
INSTEAD = ("equal-budgets", "one-step-alone", "other-length")  # reasons that say what of a mechanism is audited
WRONG = "has neither an audit nor a reason why not; add one to tasks/audits or tasks/privacy/audits/unaudited.py"


def unexplained(lines: Iterable[LedgerEntry], config: Mapping[str, object], audits: Iterable[str]) -> Iterator[str]:
    """What is wrong with each private line that has neither an audit nor a reason why not.

    audits: names of those of what has these lines, with this configuration. No reason stands for a line if an audit is
    known of such lines, of any model, where settings are like these.
    """
    for line in filter(is_private, lines):
        about = line.mechanism, line.observer, line.accounting, line.unit
        names = {name for name, audited in AUDITED_LINES.items() if audited == about[: len(audited)]}.difference(
            OF_CODE
        )
        wanted = {name: AUDITED_SETTINGS.get(name, {}) for name in names}
        is_known = any(
            all(meets(config.get(key), at) for key, at in keys.items() if key != "model") for keys in wanted.values()
        )
        why = reason(line)
        is_void = why is None or (
            why in INSTEAD and all(audited[0] != line.mechanism for audited in AUDITED_LINES.values())
        )
        if names.isdisjoint(audits) and (is_known or is_void):
            yield f"{' '.join(about[:2]).rstrip()}: {WRONG}"


def released_lines(release: Perturbed) -> list[LedgerEntry]:
    """Lines that perturbed data have at setting `base` where there are attributes, friendships and texts."""
    from tasks.core.contracts import Feature

    return LINES[release.mechanism](release, [Feature(name="number", kind="numeric")])


def _of_features(release: PerturbedFeatures, features: list[Feature]) -> list[LedgerEntry]:
    from tasks.privacy.mechanisms import multidimensional

    return [multidimensional.ledger(features, release.epsilon[0], 1)]


def _of_networks(release: AnyNetworks, features: list[Feature]) -> list[LedgerEntry]:
    from tasks.privacy.mechanisms import as_released, edges, multidimensional, words

    accounting, (budget, links, text) = release.accounting, release.settings()[BASE]
    vectors: words.Vectors = "public" if accounting == "rigorous" else "fitted"
    texts = () if text is None else words.ledger(text, 1, 1.0, vectors, accounting, 1)
    if accounting != "released":
        return [multidimensional.ledger(features, budget, 1), edges.ledger(links, links, accounting, 1), *texts]
    some_words = [line.model_copy(update={"mechanism": "exponential-some-words"}) for line in texts]
    return [as_released.attributes_entry(features, budget, 1), as_released.follows_entry(links, links, 1), *some_words]


LINES: dict[str, Callable[..., list[LedgerEntry]]] = {"multidimensional": _of_features, "dpcrosue": _of_networks}
"""Mechanism of perturbed data -> its lines, by the functions that its releases have them from."""
