"""What released vectors of users tell: friendships (link stealing), and gender and occupation.

Links: an attacker scores pairs of users by cosine, dot product, or a classifier that knows some friendships; the score
is the AUC. Every control counts with its best scorer, since one that a scorer cannot see may be seen by another: how
many friends a user has says nothing by cosine, and much by the dot product (He et al., USENIX Security 2021).
Attributes: precision (mean over classes) of a classifier, over the same on random vectors.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.facts import System
from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

SCORERS = ("cosine", "dot", "hadamard")
CONTROLS = ("attributes", "degree", "random")
"""Labels of the systems whose vectors are controls: users' attributes alone, how many friends they have, noise. An
attack has to beat these; to beat the most frequent class says nothing, as its precision is low."""


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS` of link stealing by network and of attribute inference by network and attribute."""
    rows = [row for network in results.suite.networks for row in _links(results, network.name)]
    for network in results.suite.networks:
        for attribute in network.sensitive:
            rows_of = results.attacks.filter(pl.col("attack") == f"{network.name}/{attribute}/precision")
            for row in rows_of.filter(pl.col("control") != "").iter_rows(named=True):
                about = {"target": f"{network.name}/{attribute}", "attacker": "classifier", "gain": row["difference"]}
                control = results.system(row["experiment"]).label in CONTROLS
                rows.append(row | about | {"k": 0, "runs": row["seeds"], "is_control": control})
    return significance.table(rows)


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`links`: AUC and true positive rate at 1 % false ones by network, system and scorer."""
    del judged
    links = [
        {"network": network.name, "label": system.label, "is_control": system.label in CONTROLS, "experiment": name}
        | {f"{s}_{score}": results.mean(name, _link(network.name, s, score)) for s in SCORERS for score in _SCORES}
        for network in results.suite.networks
        for system in results.suite.compared
        for name in (system.experiment,)
        if results.mean(name, _link(network.name, "cosine", "auc")) is not None
    ]
    return {"links": links}


_SCORES = ("auc", "tpr")


def _links(results: Results, network: str) -> list[dict[str, Any]]:
    """Each system's scorers over the best scorer of each control."""
    rows: list[dict[str, Any]] = []
    controls = [system for system in results.suite.compared if system.label in CONTROLS]
    best = [(control.label, _best(results, control, network)) for control in controls]
    for system in results.suite.compared:
        for scorer in SCORERS:
            values = results.values(system.experiment, _link(network, scorer, "auc"))
            about: dict[str, Any] = {"target": f"{network}/links", "experiment": system.experiment, "attacker": scorer}
            about["is_control"] = system.label in CONTROLS
            if values:
                about["value"] = sum(values.values()) / len(values)
                rows += [
                    about | {"control": label} | significance.paired(values, by_seed)
                    for label, by_seed in best
                    if by_seed
                ]
    return rows


def _best(results: Results, control: System, network: str) -> dict[int, float]:
    """AUC by seed of the scorer that tells friendships best from a control; empty where none was run."""
    tried = [results.values(control.experiment, _link(network, scorer, "auc")) for scorer in SCORERS]
    return max(filter(None, tried), key=lambda values: sum(values.values()) / len(values), default={})


def _link(network: str, scorer: str, score: str) -> str:
    return f"{network}/links/{scorer}/{score}"


KIND = Kind("vectors", "embeddings", gains, CONTROLS, shown)
