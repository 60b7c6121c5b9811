"""Link stealing: whether two vectors tell that their users are friends (He et al., USENIX Security 2021).

The attacker scores pairs of users by cosine or dot product of their vectors, or by a classifier of the product number
by number (hadamard) that knows some of the friendships. Chance has an AUC of 0.5, and a true positive rate of 0.01 at a
false positive rate of 1 %. Controls see no friendships, or only how many somebody has.
"""

from __future__ import annotations

from tasks.reporting.core import findings
from tasks.reporting.core.chart import WIDE, Chart, Level, Panel
from tasks.reporting.core.figures import marks_of
from tasks.reporting.core.layout import Cell, Heading, Row, Table, missing_cell, number
from tasks.reporting.core.results import Network, Results, System
from tasks.reporting.core.section import Section, optional, paragraph
from tasks.reporting.sections import controls
from tasks.reporting.sections.controls import RANDOM, compare_with_controls

SCORERS = {"cosine": "cosine", "dot": "dot product", "hadamard": "hadamard, learnt"}
CONTROLS = ("attributes", "degree", RANDOM)
"""Labels of the systems that are its controls."""
CHANCE = {"auc": 0.5, "tpr": 0.01}


def section(results: Results) -> Section:
    """Link stealing."""
    return Section(
        "links",
        "Link stealing",
        [optional(chart(results)), table(results)],
        about=paragraph(
            "An attacker tells friends from strangers by two users' vectors. Controls: the users' attributes, which "
            "show whether the like befriend the like; how many friends somebody has; random vectors. Chance has an AUC "
            "of 0.5."
        ),
    )


def metric(network: Network, scorer: str, score: str = "auc") -> str:
    """Its score, in METRICS."""
    return f"{network.name}/links/{scorer}/{score}"


def sentences(results: Results) -> list[str]:
    """Score by score; pages have `strongest.sentences`, and this goes with the next revision of the results."""
    parts = []
    for network in attacked_networks(results):
        known = [system for system in results.compared if system.label not in CONTROLS]
        best = {system.label: top for system in known if (top := _best_attack(results, system, network))}
        if not best:
            continue
        name, (level, scorer) = max(best.items(), key=lambda named: named[1][0])
        by_scorer = {
            scorer: compare_with_controls(results, metric(network, scorer), systems=CONTROLS) for scorer in SCORERS
        }
        beaten = [
            system.label
            for system in known
            if any(_beats_all(results, by_scorer[scorer], system) for scorer in SCORERS)
        ]
        parts.append(
            f"Friendships on {network.title} are told from strangers with an AUC of up to {number(level)} ({name}, "
            f"{scorer}). They are told better than by every control from the vectors of "
            f"{controls.name_systems(beaten, len(known)) or 'no system'}."
        )
    return parts


def strongest_attack(results: Results) -> str:
    """Without its controls; pages have `strongest.lead`, and this goes with the next revision of the results."""
    best = [
        (top[0], system)
        for network in attacked_networks(results)
        for system in results.compared
        if system.label not in CONTROLS and (top := _best_attack(results, system, network))
    ]
    if not best:
        return ""
    private = [attack for attack in best if findings.claims_privacy(attack[1])]
    auc, system = max(private or best, key=lambda attack: attack[0])
    of = " from private vectors" if private else ""
    return f"Friendships are inferred{of} with AUC up to {number(auc, 2)} ({system.label}; chance: 0.5)."


def table(results: Results) -> list[Table]:
    """Per network: AUC and true positive rate of every scorer on every system, beside chance and the controls."""
    shown = []
    for network in attacked_networks(results):
        by_scorer = {
            scorer: compare_with_controls(results, metric(network, scorer), systems=CONTROLS) for scorer in SCORERS
        }
        chance = [Cell(number(CHANCE[score], 2)) for score in CHANCE for _ in SCORERS]
        rows = [Row("chance", chance, "reference")]
        controlled = [candidate for candidate in results.compared if candidate.label in CONTROLS]
        for system in (*controlled, *(candidate for candidate in results.compared if candidate.label not in CONTROLS)):
            cells = [_cell(results, system, network, scorer, by_scorer[scorer]) for scorer in SCORERS]
            rates = [results.values(system, metric(network, scorer, "tpr"), 0) for scorer in SCORERS]
            cells += [
                Cell(number(float(rate.mean()))) if len(rate) else missing_cell(controls.NOT_RUN) for rate in rates
            ]
            kind = "reference" if system in controlled else ""
            name = f"{system.label} (control)" if system in controlled else system.label
            if any(cell.kind != "missing number" for cell in cells):
                rows.append(Row(name, cells, kind))
        headings = [*SCORERS.values()] * 2
        shown.append(
            Table(
                f"Link stealing on {network.title}: mean over seeds; below the AUC its gain over each control with its "
                "uncorrected 95 % interval; ✓ marks a gain, bold one over all controls",
                [Heading("System", ""), *map(Heading, headings)],
                rows,
                groups=[("AUC", len(SCORERS)), ("True positive rate at 1 % false ones", len(SCORERS))],
            )
        )
    return shown


def chart(results: Results) -> Chart:
    """AUC of every system by scorer, one panel per network."""
    panels = []
    for network in attacked_networks(results):
        ticks = list(SCORERS.values())
        places = [(title, metric(network, name), 0) for name, title in SCORERS.items()]
        series = marks_of(results, results.compared, places)
        level = [Level("chance", CHANCE["auc"], "dashed")]
        panels.append(Panel(f"Friendships of {network.title}", "score", "AUC", series, level, ticks, size=WIDE))
    return Chart(
        "chart-links",
        "Friendships inferred from vectors",
        "Higher: the attacker succeeds. Systems in the order of the table of all systems; point at a mark for its "
        "name. Bars: 95 % intervals over seeds.",
        panels,
    )


def attacked_networks(results: Results) -> list[Network]:
    """Networks whose friendships were attacked."""
    return [
        network
        for network in results.networks
        if any(len(results.values(system, metric(network, name), 0)) for system in results.compared for name in SCORERS)
    ]


def _best_attack(results: Results, system: System, network: Network) -> tuple[float, str] | None:
    levels = [
        (float(values.mean()), name)
        for name in SCORERS
        if len(values := results.values(system, metric(network, name), 0))
    ]
    return max(levels) if levels else None


def _beats_all(results: Results, differences: dict[tuple[str, str], controls.Against], system: System) -> bool:
    names = [name for name in CONTROLS if (control := results.find(name)) is not None and control.label == name]
    mine = [differences.get((system.experiment, name)) for name in names]
    return bool(mine) and all(difference is not None and difference.gains for difference in mine)


def _cell(
    results: Results,
    system: System,
    network: Network,
    scorer: str,
    differences: dict[tuple[str, str], controls.Against],
) -> Cell:
    values = results.values(system, metric(network, scorer), 0)
    if not len(values):
        return missing_cell(controls.NOT_RUN)
    mine = [difference for name in CONTROLS if (difference := differences.get((system.experiment, name)))]
    gains = tuple(f"{difference.text}{' ✓' * difference.gains}" for difference in mine)
    lines = () if system.label in CONTROLS else gains
    bold = system.label not in CONTROLS and _beats_all(results, differences, system)
    return Cell(number(float(values.mean())), lines, "number found" if bold else "number")
