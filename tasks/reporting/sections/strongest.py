"""Link stealing in sentences: the best score of each system's vectors beside the best one of each control.

A control that one score cannot see may be seen by another: how many friends somebody has says nothing by cosine, and
much by the dot product.
"""

from __future__ import annotations

from tasks.reporting.core import findings
from tasks.reporting.core.layout import number
from tasks.reporting.core.results import Network, Results, System
from tasks.reporting.sections import controls
from tasks.reporting.sections.links import CHANCE, CONTROLS, SCORERS, attacked_networks, metric

Best = tuple[float, str]
"""An AUC, and the scorer that has it."""


def sentences(results: Results) -> list[str]:
    """Network by network: how well friendships are told, and from which systems' vectors better than from controls."""
    parts = []
    for network in attacked_networks(results):
        known = _best(results, network, controls=False)
        if not known:
            continue
        label, (level, scorer) = max(known.items(), key=lambda item: item[1])
        above = controls.name_systems(_above_controls(results, network), len(known)) or "no system"
        parts.append(
            f"Friendships on {network.title} are told from strangers with an AUC of up to {number(level)} ({label}, "
            f"{SCORERS[scorer]}; {_best_control(results, network)}). By the best score of each, they are told better "
            f"than by every control from the vectors of {above}."
        )
    return parts


def lead(results: Results) -> str:
    """The best attack on friendships, on private vectors where there are any; empty where none was made."""
    best = [
        (_best(results, network, controls=False)[system.label][0], system, network)
        for network in attacked_networks(results)
        for system in _vectors(results, network)
    ]
    if not best:
        return ""
    private = [attack for attack in best if findings.claims_privacy(attack[1])]
    auc, system, network = max(private or best, key=lambda attack: attack[0])
    vectors = "Private vectors" if private else "Vectors"
    control = f"{system.label}; {_best_control(results, network)}"
    level = f"{vectors} tell friendships on {network.title}: best AUC {number(auc, 2)} ({control})"
    return f"{level}." if leaks(results) else f"{level}, no better than the control."


def leaks(results: Results) -> bool:
    """Whether friendships are told from a private system's vectors better than by every control.

    Where no private system was attacked, from any system's.
    """
    above = {label for network in attacked_networks(results) for label in _above_controls(results, network)}
    attacked = [system for network in attacked_networks(results) for system in _vectors(results, network)]
    private = [system.label for system in attacked if findings.claims_privacy(system)]
    return bool(above & set(private) if private else above)


def _vectors(results: Results, network: Network) -> list[System]:
    """Systems whose vectors were attacked, controls left out."""
    return [system for label in _best(results, network, controls=False) if (system := results.find(label)) is not None]


def _best(results: Results, network: Network, *, controls: bool) -> dict[str, Best]:
    """Label -> the best attack on the vectors of a system, or of a control."""
    every = {system.label: system for system in results.compared if (system.label in CONTROLS) == controls}
    return {label: best for label, system in every.items() if (best := _best_attack(results, system, network))}


def _best_attack(results: Results, system: System, network: Network) -> Best | None:
    levels = [
        (float(values.mean()), scorer)
        for scorer in SCORERS
        if len(values := results.values(system, metric(network, scorer), 0))
    ]
    return max(levels, default=None)


def _best_control(results: Results, network: Network) -> str:
    """The control from which friendships are told best, with its AUC; chance where none was run."""
    known = _best(results, network, controls=True)
    if not known:
        return f"chance: {CHANCE['auc']:g}"
    label, (level, _) = max(known.items(), key=lambda item: item[1])
    return f"{label} alone: {number(level, 2)}"


def _above_controls(results: Results, network: Network) -> list[str]:
    """Systems whose best attack is shown to be above the best one on every control; all are corrected together."""
    others, known = (_best(results, network, controls=of) for of in (True, False))
    pairs = {}
    for label, (_, scorer) in known.items():
        for other, (_, its) in others.items():
            system, control = results.find(label), results.find(other)
            if system is not None and control is not None:
                left, right = results.paired_values(
                    system, metric(network, scorer), 0, control, metric(network, its), 0
                )
                if len(left) > 1:
                    pairs[f"{label} {other}"] = left, right
    shown = {name for name, test in findings.paired_tests(results, pairs).items() if test.p_holm < findings.ONE_SIDED}
    return [label for label in known if others and {f"{label} {other}" for other in others} <= shown]
