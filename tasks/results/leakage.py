"""Leakage: what attacks and audits of users' data show of the systems of a suite, kind by kind.

A kind of attack names its own in `tasks/config/tasks.py`; each has a template,
`tasks/pages/templates/attacks/NAME.html.j2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Any

import polars as pl

from tasks.results.attacked import LINK_CONTROLS as CONTROLS
from tasks.results.attacked import SCORERS
from tasks.results.facts import BASE, WAYS, Aligned
from tasks.results.load import Results
from tasks.results.significance import assess, decide, findings, paired, strongest, table

Row = dict[str, Any]
Shown = Callable[[Results, pl.DataFrame], dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """One section of evidence."""

    name: str = ""
    """Of its template; empty: as the kind of attack is called."""
    gains: Callable[[Results], Iterable[Row]] = lambda results: results.attacks.iter_rows(named=True)
    """Rows of `significance.GAINS`, none where a suite has none; by default attacks.parquet has them."""
    shown: Shown = lambda *_: {}
    """What else its section shows: numbers, ids and rows, of the results and the judged attacks."""
    deciding: tuple[str, ...] = ()
    """Controls that an attack has to beat; empty for all."""

    def __call__(self, results: Results) -> Row | None:
        """What a suite has of it, if anything.

        `gains` as a table, `judged` by `assess`, `findings` and `strongest` of these, what else is `shown`, and `top`:
        the largest gain or loss of any attack, for a common scale.
        """
        gains = table(self.gains(results))
        judged = assess(gains, self.deciding)
        shown = self.shown(results, judged)
        if not gains.height and not any(shown.values()):
            return None
        evidence: Row = {"findings": findings(judged), "strongest": strongest(judged, gains), "shown": shown}
        evidence |= {"gains": gains, "judged": judged, "top": judged["gain"].abs().max() or 0.0}
        return evidence | {"name": self.name or (results.suite.attack or {})["kind"]}


def collect(results: Results) -> list[Row]:
    """What a suite has of every kind, in the order of a page; kinds of which it has nothing are left out."""
    sections = (*(read(results) for read in results.kinds), USERS(results))
    return [evidence for evidence in sections if evidence is not None]


USUAL = Kind()


# Membership: whether a released model shows that a user, or an interaction, was in its training data. By a threshold on
# one signal, by the likelihood ratio of shadow runs (LiRA) and by RMIA; the score is the AUC, of which chance has 0.5.

BLIND = "nothing"
"""What controls see of a system: they show what the data alone tell."""
LIRA = ("lira-online", "lira-offline")


def _membership(results: Results) -> list[Row]:
    over = {name: pl.col(column) - 0.5 for name, column in (("gain", "auc"), ("low", "auc_low"), ("high", "auc_high"))}
    about: Row = {"experiment": "system", "attacker": "attack", "value": "auc", "control": pl.lit("chance")}
    return results.attacks.select("target", "seen", **about, **over, is_control=pl.col("seen") == BLIND).to_dicts()


def _membership_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`rows`: the attack with the largest AUC on each target and system; `curves`: the ROC of LiRA.

    Rows have the AUC of the strongest control as `auc_control`, and what that is as `control`. A curve has `target`,
    `seen`, `system`, and (n,) `fpr` and `tpr`.
    """
    key, blind = ("target", "system"), pl.col("seen") == BLIND
    best = results.attacks.sort("auc", descending=True, maintain_order=True)
    controls, rows = (
        best.filter(condition).unique(key, keep="first", maintain_order=True) for condition in (blind, ~blind)
    )
    controls = controls.select(*key, auc_control="auc", control="attack")
    curves = results.attacks.filter(pl.col("attack").is_in(LIRA), ~blind)
    return {
        "rows": rows.drop("fpr", "tpr").join(controls, on=key, how="left", maintain_order="left").to_dicts(),
        "curves": curves.select("target", "seen", "system", "fpr", "tpr").to_dicts(),
    }


MEMBERSHIP = Kind("membership", _membership, _membership_shown)


# Attributes: what a user's recommendations add to the ratings about gender, age or occupation. Controls: the most
# frequent class for everyone (majority), the same attacker that sees the ratings alone (ratings), the same attacker on
# labels shuffled among users (random). Only what beats the ratings is due to the recommendations.


def _attributes(results: Results) -> Iterator[Row]:
    """Every attack of attacks.parquet over its controls, with its F1 as value."""
    for row in results.attacks.iter_rows(named=True):
        metric = f"attribute/{row['attribute']}/{row['attacker']}/f1"
        value = results.mean(row["experiment"], metric, row["k"], row["setting"])
        yield row | {"target": row["attribute"], "value": value}


def _attributes_shown(results: Results, judged: pl.DataFrame) -> dict[str, object]:
    """`k`: the longest list that was attacked; `majority`: F1 of guessing; `by_length`: the largest gain; `blurring`.

    `by_length`: per attribute, attacker and length of the list, the largest gain over the ratings alone on any system.

    `blurring`: AUC, with its interval, of a detector of blurred profiles, per system that releases these.
    """
    best = judged.group_by("target", "attacker", "k", maintain_order=True).agg(
        pl.col("gain").max(), pl.col("significant").any()
    )
    blurring = [
        {"label": system.label}
        | {name: results.mean(system.experiment, f"blurring/detector/{name}") for name in ("auc", "low", "high")}
        for system in results.suite.compared
    ]
    majority = {
        name: results.means.filter(metric=f"attribute/{name}/majority/f1", setting=BASE)["mean"].mean()
        for name in judged["target"].unique(maintain_order=True)
    }
    return {
        "by_length": best.sort("k", maintain_order=True).to_dicts(),
        "k": judged["k"].max(),
        "majority": majority,
        "blurring": [row for row in blurring if row["auc"] is not None],
        "n_targets": results.suite.n_targets,
    }


ATTRIBUTES = Kind("attributes", _attributes, _attributes_shown, ("ratings",))


# Interactions: whether what is released shows that one of them is there. The score is the advantage, true minus false
# positive rate: 0 is chance, 1 certainty. The other world lacks an earlier interaction (`removed`) or the last one
# (`last`), or has two neighbouring ones exchanged (`swapped`).

NO_SYSTEM = ("popular-lists", "random-lists")
"""Lists of no system: controls of the attack itself."""


def _interactions(results: Results) -> list[Row]:
    """The advantage over chance by other world, what is seen and claimed ε.

    What is released without noise (no ε), and lists of no system, are controls: they show what the attack can do.
    """
    is_control = pl.col("epsilon").is_null() | pl.col("system").is_in(NO_SYSTEM)
    about = {"target": "world", "seen": "target", "experiment": "system", "value": "advantage", "gain": "advantage"}
    fixed = {"attacker": pl.lit("likelihood"), "control": pl.lit("chance"), "is_control": is_control}
    return _advantages(results).select("setting", "epsilon", "low", "high", **about, **fixed).to_dicts()


def _interactions_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`points`: every attack, an infinite ε for no noise; `rows`: the largest ε of each system, by what is seen.

    Rows have `experiment`, `seen`, `epsilon`, and for each world W the columns of attacks.parquet under `W`.
    """
    attacks = _advantages(results).filter(setting=BASE)
    rows: dict[tuple[str, str], Row] = {}
    for attack in attacks.sort("epsilon", nulls_last=False, maintain_order=True).iter_rows(named=True):
        about = {"experiment": attack["system"], "seen": attack["target"], "is_control": attack["system"] in NO_SYSTEM}
        row = rows.setdefault((attack["system"], attack["target"]), about)
        row |= {attack["world"]: attack, "epsilon": attack["epsilon"]}
    points = attacks.with_columns(pl.col("epsilon").fill_null(math.inf)).sort("epsilon", maintain_order=True)
    return {"rows": list(rows.values()), "points": points.to_dicts()}


def _advantages(results: Results) -> pl.DataFrame:
    """attacks.parquet; a setting that varies nothing but the claimed ε is `base`, as ε has a column of its own."""
    systems = results.suite.systems
    points = {name for system in systems for name, keys in system.settings().items() if set(keys) <= {"epsilon"}}
    alike = pl.when(pl.col("setting").is_in(points)).then(pl.lit(BASE)).otherwise("setting")
    order = pl.Enum([*(system.experiment for system in systems), *NO_SYSTEM])
    return results.attacks.with_columns(setting=alike).sort(pl.col("system").cast(order), maintain_order=True)


INTERACTIONS = Kind("interactions", _interactions, _interactions_shown)


# Ratings: reconstruction of those that users keep to themselves. The score is the MAE on sensitive ratings of the
# training data: an attacker has to be below what published ratings alone predict, so the gain is the control's error
# minus the attacker's. What an attacker does to the method without its noise shows what it can do.


def _ratings(results: Results) -> list[Row]:
    """Every attacker; systems whose ledger claims nothing and bounds nothing are controls."""
    about: Row = {"target": pl.lit("sensitive rating"), "control": pl.lit("public"), "value": "mae", "runs": "seeds"}
    about |= {"gain": -pl.col("difference"), "low": -pl.col("high"), "high": -pl.col("low")}
    is_control = pl.col("experiment").is_in(unprotected(results))
    return results.attacks.select("experiment", "setting", "attacker", **about, is_control=is_control).to_dicts()


def unprotected(results: Results) -> set[str]:
    """Experiments of which the ledger neither claims nor accounts a finite ε, with the ratings in what they release."""
    budgets = [(line.experiment, line.entry.claimed_epsilon, line.entry.accounted_epsilon) for line in results.lines]
    return {name for name, *_ in budgets} - {name for name, *bounds in budgets if bounds != [None, None]}


def _ratings_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`rows`: at setting `base`, each system's errors by attacker with their gains; `attackers` in their order."""
    base = results.attacks.filter(setting=BASE)
    by_system: dict[str, Row] = {}
    for row in base.iter_rows(named=True):
        row["significant"] = decide(row["difference"], row["low"], row["high"], row["seeds"]).side < 0
        cells = by_system.setdefault(row["experiment"], {"experiment": row["experiment"], "control": row["control"]})
        cells[row["attacker"]] = row
    rows = [by_system[system.experiment] for system in results.suite.compared if system.experiment in by_system]
    return {"attackers": sorted(base["attacker"].unique()), "rows": rows, "open": unprotected(results)}


RATINGS = Kind("ratings", _ratings, _ratings_shown)


# Vectors: what released vectors of users tell. Links: an attacker scores pairs of users by cosine, dot product, or a
# classifier that knows some friendships; the score is the AUC. Every control counts with its best scorer, since one
# that a scorer cannot see may be seen by another: how many friends a user has says nothing by cosine, and much by the
# dot product (He et al., USENIX Security 2021). Attributes: precision (mean over classes) of a classifier, over the
# same on random vectors.


def _vectors(results: Results) -> Iterator[Row]:
    """Link stealing by network, and attribute inference by network and attribute."""
    for network in results.suite.networks:
        yield from _links(results, network.name)
    for name, attribute in (
        (network.name, attribute) for network in results.suite.networks for attribute in network.sensitive
    ):
        rows = results.attacks.filter(pl.col("control") != "", attack=f"{name}/{attribute}/precision")
        for row in rows.iter_rows(named=True):
            about = {"target": f"{name}/{attribute}", "attacker": "classifier", "gain": row["difference"], "k": 0}
            is_control = results.systems[row["experiment"]].label in CONTROLS
            yield row | about | {"runs": row["seeds"], "is_control": is_control}


def _links(results: Results, network: str) -> Iterator[Row]:
    """Each system's scorers over the best scorer of each control."""

    def auc(experiment: str, scorer: str) -> dict[int, float]:
        return results.values(experiment, f"{network}/links/{scorer}/auc")

    best = {}
    for system in results.suite.compared:
        tried = [scores for scorer in SCORERS if (scores := auc(system.experiment, scorer))]
        if system.label in CONTROLS and tried:
            best[system.label] = max(tried, key=lambda values: sum(values.values()) / len(values))
    for system in results.suite.compared:
        for scorer in SCORERS:
            about: Row = {"target": f"{network}/links", "experiment": system.experiment, "attacker": scorer}
            if values := auc(system.experiment, scorer):
                about |= {"is_control": system.label in CONTROLS, "value": sum(values.values()) / len(values)}
                yield from (about | {"control": name} | paired(values, scores) for name, scores in best.items())


def _vectors_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`links`: AUC and true positive rate at 1 % false ones by network, system and scorer."""
    links = [
        {"network": network.name, "label": system.label, "is_control": system.label in CONTROLS}
        | {
            f"{scorer}_{score}": results.mean(system.experiment, f"{network.name}/links/{scorer}/{score}")
            for scorer in SCORERS
            for score in ("auc", "tpr")
        }
        for network in results.suite.networks
        for system in results.suite.compared
    ]
    return {"links": [row for row in links if row["cosine_auc"] is not None]}


VECTORS = Kind("vectors", _vectors, _vectors_shown, CONTROLS)


# Accounts: how often accounts of one person are matched across two networks (re-identification). Precision@k is the
# share of judged anchors whose true account is among the k nearest; chance guesses among all accounts. A way fails at a
# seed where so many first guesses would be right by chance with a probability above `AT_CHANCE`.

SUPERVISED = WAYS[4:]
"""Ways that are given a share of the true anchors: positive controls of what an attacker without any can do."""
AT_CHANCE = 0.001


def _accounts(results: Results) -> Iterator[Row]:
    """Precision at the first guess over chance, for each way of each alignment, over people."""
    for row in _ways(results):
        about = {"target": "accounts", "experiment": row["entry"], "attacker": row["way"], "k": 1, "control": "chance"}
        low, high = (bound - row["chance"] for bound in wilson(row["precision"], row["judged"]))
        about |= {"value": row["precision"], "gain": row["precision"] - row["chance"], "low": low, "high": high}
        yield about | {"is_control": row["way"] in SUPERVISED}


def _accounts_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`ways`: each alignment's precision, seeds at chance, and who is named with confidence; `released`: vectors."""
    released = [
        _confident(results, system.experiment, "anchors")
        | {"label": system.label, "precision": results.mean(system.experiment, "anchors/precision", 1)}
        for system in results.suite.compared
    ]
    return {"ways": _ways(results), "released": [row for row in released if row["share"]]}


def _confident(results: Results, name: str, prefix: str) -> Row:
    metrics = {"share": "share", "right": "precision"}
    return {key: results.mean(name, f"{prefix}/confident/{metric}") for key, metric in metrics.items()}


def _ways(results: Results) -> list[Row]:
    rows = []
    for entry in results.suite.aligned:
        chance = results.mean(entry.name, "alignment/chance", 1)
        for approach in WAYS:
            seeds = results.values(entry.name, f"alignment/{approach}/precision", 1)
            if seeds and chance is not None:
                row = {"entry": entry.name, "way": approach, "judged": entry.judged, "seeds": seeds, "chance": chance}
                row |= {"precision": fmean(seeds.values()), "failed": failed(entry, seeds, chance)}
                rows.append(row | _confident(results, entry.name, f"alignment/{approach}"))
    return rows


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of n people (Wilson 1927): for other people, at the seeds that were run."""
    z = 1.959964
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def failed(entry: Aligned, seeds: Mapping[int, float], chance: float) -> list[int]:
    """Seeds whose first guesses are no better than chance, by the binomial test."""
    from scipy.special import bdtrc  # a fifth of a second to import, for suites with alignments alone

    n = entry.judged
    right = {seed: round(value * n) for seed, value in sorted(seeds.items())}
    return [seed for seed, count in right.items() if not count or float(bdtrc(count - 1, n, chance)) > AT_CHANCE]


ACCOUNTS = Kind("accounts", _accounts, _accounts_shown)


# Users: which of them pay, by how ranking quality and the popularity of what is recommended spread over users, ten a
# bin or more. A user's exposure is the mean popularity of the items in the list: the share of users who have an item.


def _users_shown(results: Results, _: pl.DataFrame) -> dict[str, object]:
    """`rows`: per system and metric, upper edges of the bins of the users at a tenth and at half."""
    systems = {system.experiment: system.label for system in results.suite.compared}
    rows: dict[str, Row] = {}
    compared = results.spreads.filter(pl.col("experiment").is_in(list(systems)))
    for bins in compared.partition_by("experiment", "metric", maintain_order=True):
        experiment, metric = bins.row(0)[:2]
        total = int(bins["users"].sum())
        row = rows.setdefault(experiment, {"label": systems[experiment], "users": total})
        for name, share in (("tenth", 0.1), ("half", 0.5)):
            edges = zip(bins["high"], accumulate(bins["users"]), strict=True)
            row[f"{metric}_{name}"] = next(edge for edge, count in edges if count >= share * total)
    return {"rows": list(rows.values())}


USERS = Kind("users", lambda _: (), _users_shown)
