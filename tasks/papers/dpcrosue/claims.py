"""What DP-CroSUE's paper says in sections 5.2 to 5.7 that our numbers can test, network by network.

Source: Ren et al., CIKM 2022. Interests are measured by what its released code calls precision (guess and truth
exchanged; the TMR by true precision, too) and by micro-F1, attacks by precision (on gender the mean over classes, on
occupation the one that weights classes by their users) and for Table 4 by micro-F1. What the paper says without a
number is read so: "has no ability to infer gender" as at most 5 % above random vectors. Where it says "on most data
sets", each score on each network is a case. Our runs differ in their splits, its in their trees alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tasks.papers.dpcrosue.published import BUDGETS, OPEN, SINGLE, VALUES, WEIGHTED
from tasks.reporting.core import comparison
from tasks.reporting.core.claim_specs import (
    Claim,
    Comparison,
    Measure,
    Order,
    Readings,
    Side,
    Spec,
    Statement,
    Trend,
    pairs_of,
)
from tasks.reporting.core.layout import join_words, number
from tasks.reporting.core.published import inference, interests
from tasks.reporting.core.results import Network, Results

SINGLE_VIEW, MULTI_VIEW = ("DeepWalk", "SANTEXT", "Word2Vec"), ("SNE", "UDMF", "R-GCN")
NO_ABILITY = 1.05
"""Margin of what the paper says without a number."""


def claims(results: Results, _: int) -> tuple[list[Spec | Readings], list[Claim]]:
    """All claims about networks whose interests and attributes are known; none is judged without a test."""
    networks = [
        candidate
        for candidate in results.networks
        if candidate.friendships and candidate.labelled and candidate.sensitive
    ]
    specs: list[Spec | Readings] = []
    for network in networks:
        guesses, true = _guesses(network), _true(results)
        specs += [_ratios(network), *_interests(network, true), *_attacks(network, true)]
        specs += _budgets(network, guesses)
        specs += _ablation(network)
    return specs + (_majority_claims(networks) if networks else []), []


@dataclass(frozen=True)
class Ratios(Statement):
    """The TMR of one type of data is above that of another, on one network."""

    network: str
    score: str
    """Interests by which a type of data is judged: "precision", or "precision-swapped" as the released code has it."""
    pairs: tuple[tuple[str, str], ...]
    most: bool = False

    def comparisons(self, results: Results) -> tuple[list[Comparison], list[str]]:
        """One per pair, of the TMR by that score."""
        layout = results.layout
        column = next(
            column
            for table in layout.tables
            if table.key == self.artefact
            for part in table.parts
            for column in part.columns
            if column.data == self.network and column.metric == interests(self.network, self.score)
        )
        compared, absent = [], []
        for pair in self.pairs:
            sides = [comparison.Method(name, results.find(layout.methods[name])) for name in pair]
            left, right = (comparison.measured_values(results, side, column) for side in sides)
            absent += [side.name for side, values in zip(sides, (left, right), strict=True) if not len(values)]
            if len(left) and len(left) == len(right):
                text = f"TMR: {pair[0]} {number(left.mean())}, {pair[1]} {number(right.mean())}"
                compared.append(Comparison(text, text, left, right))
        return compared, absent


def _scores(network: Network) -> tuple[Measure, ...]:
    return (
        Measure("precision", interests(network.name, "precision-swapped"), (0,), "higher"),
        Measure("micro-F1", interests(network.name, "micro-f1"), (0,), "higher"),
    )


def _guesses(network: Network) -> tuple[Measure, ...]:
    """The attacks on gender and occupation, by precision."""
    return tuple(measure for name in _attacked(network) for measure in _scores_on(network, name)[:1])


def _table4(network: Network) -> tuple[Measure, ...]:
    """All scores of the attacks that the table prints."""
    return tuple(measure for name in _attacked(network) for measure in _scores_on(network, name))


def _attacked(network: Network) -> list[str]:
    return [name for name in ("gender", "occupation") if name in network.sensitive]


def _scores_on(network: Network, name: str) -> tuple[Measure, ...]:
    """Precision and micro-F1 of the attack on an attribute."""
    label, precision = ("weighted precision", WEIGHTED) if name == "occupation" else ("precision", "precision")
    return tuple(
        Measure(f"{kind} on {name}", inference(network.name, name, score), (0,), "lower")
        for kind, score in ((label, precision), ("micro-F1", "micro-f1"))
    )


def _side(key: str, value: float) -> Side:
    return Side("DP-CroSUE", key, value)


def _ratios(network: Network) -> Readings:
    said = (
        f"{network.title}: friendships have a higher TMR than posts, and posts than attributes (so that they get more "
        "of the budget)"
    )
    pairs = (("friendship", "posts"), ("posts", "attribute"))
    scores = {"by the released code's precision, of guess and truth exchanged": "precision-swapped",
              "by precision": "precision"}  # fmt: skip
    return Readings("table2", said, {
        reading: Ratios("table2", said, network.name, score, pairs) for reading, score in scores.items()
    })  # fmt: skip


def _true(results: Results) -> str:
    """R-GCN on what DP-R-GCN reads: without texts where no text is perturbed."""
    private, known = results.find("dp-rgcn"), results.find("rgcn-text-free")
    texts = private is None or any(spent.entry.protects == "text" for spent in private.spent)
    return "R-GCN" if texts or known is None else "R-GCN without texts"


def _interests(network: Network, true: str) -> list[Spec]:
    where, scores = network.title, _scores(network)
    return [
        Order("table3", f"{where}: DP-CroSUE outperforms every method that sees one network",
              pairs_of("DP-CroSUE", SINGLE), scores),
        Order("table3", f"{where}: CroSUE, which sees true networks, outperforms DP-CroSUE",
              pairs_of("CroSUE", ("DP-CroSUE",)), scores),
        Order("table3", f"{where}: single-view methods are generally the worst",
              tuple((Side(multi), Side(single)) for multi in MULTI_VIEW for single in SINGLE_VIEW), scores,
              most=True, apart=True),
        Order("table3", f"{where}: {true} on the true network outperforms DP-R-GCN", pairs_of(true, ("DP-R-GCN",)),
              scores),
        Order("table3", f"{where}: R-GCN is the best method that sees one network",
              pairs_of("R-GCN", tuple(name for name in SINGLE if name != "R-GCN")), scores),
    ]  # fmt: skip


def _attacks(network: Network, true: str) -> list[Spec]:
    where, every = network.title, _table4(network)
    gender = [measure for measure in every if measure.metric == inference(network.name, "gender")]
    return [
        Order("table4", f"{where}: methods that see true attributes or posts give away gender and occupation (read as: "
              "more than DeepWalk)", tuple((Side("DeepWalk"), Side(other)) for other in OPEN), every),
        Order("table4", f"{where}: DeepWalk has no ability to infer gender (read as: its precision is at most 5 % "
              "above that of random vectors)", pairs_of("DeepWalk", ("random",)),
              tuple(replace(measure, factor=NO_ABILITY) for measure in gender)),
        Order("table4", f"{where}: DP-CroSUE is less attackable than every method on true attributes or posts",
              pairs_of("DP-CroSUE", (*OPEN, "CroSUE")), every),
        Order("table4", f"{where}: DP-R-GCN is less attackable than {true}", pairs_of("DP-R-GCN", (true,)), every),
    ]  # fmt: skip


def _budgets(network: Network, both: tuple[Measure, ...]) -> list[Spec]:
    where, scores = network.title, _scores(network)[:1]
    features, texts = VALUES["features_epsilon"], VALUES["text_epsilon"]
    rising: list[Spec] = [
        Trend("figure3", f"{where}: a larger {name} gives better interests", key, ("DP-CroSUE",), scores, rises=True,
              values=VALUES[key])
        for key, name in BUDGETS.items()
    ]  # fmt: skip
    return [
        *rising,
        *(
            Trend("figure3", f"{where}: a larger {BUDGETS[key]} gives worse protection of attributes", key,
                  ("DP-CroSUE",), both, rises=True, values=VALUES[key])
            for key in ("features_epsilon", "edges_epsilon")
        ),
        Order("figure3", f"{where}: at every ε_a DP-CroSUE outperforms R-GCN",
              tuple((_side("features_epsilon", value), Side("R-GCN")) for value in features), scores),
        Order("figure3", f"{where}: even at ε_a = 15 it is less attackable than R-GCN",
              ((_side("features_epsilon", features[-1]), Side("R-GCN")),), both),
        Order("figure3", f"{where}: at ε_g = 1 its interests are worse than R-GCN's",
              ((Side("R-GCN"), _side("edges_epsilon", VALUES["edges_epsilon"][0])),), scores),
        Order("figure3", f"{where}: at every ε_t it is less attackable than R-GCN",
              tuple((_side("text_epsilon", value), Side("R-GCN")) for value in texts), both),
    ]  # fmt: skip


def _ablation(network: Network) -> list[Spec]:
    where, scores = network.title, _scores(network)[:1]
    return [
        Order("table5", f"{where}: hierarchical layers help (CroGCN above CroGCN-NH)",
              pairs_of("CroGCN", ("CroGCN-NH",)), scores),
        Order("table5", f"{where}: the regularisation of anchors helps (CroGCN above CroGCN-NA)",
              pairs_of("CroGCN", ("CroGCN-NA",)), scores),
    ]  # fmt: skip


def _majority_claims(networks: list[Network]) -> list[Spec]:
    """What the paper says of most data sets."""
    scores = tuple(
        replace(measure, name=f"{measure.name} on {network.title}")
        for network in networks
        for measure in _scores(network)
    )
    attacks = tuple(
        replace(measure, name=f"{measure.name}, {network.title}")
        for network in networks
        for measure in _table4(network)
    )
    prefix = f"On most data sets (here {join_words([network.title for network in networks])})"
    return [
        Order("table3", f"{prefix} UDMF and R-GCN perform better than SNE",
              tuple((Side(name), Side("SNE")) for name in ("UDMF", "R-GCN")), scores, most=True),
        Order("table4", f"{prefix} DP-CroSUE is less attackable than DP-R-GCN",
              pairs_of("DP-CroSUE", ("DP-R-GCN",)), attacks, most=True),
    ]  # fmt: skip
