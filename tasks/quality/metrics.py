"""What metrics must hold, those of alignments with their pairs, and which metrics a suite must have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import polars as pl

from tasks.core.contracts import METRIC_KIND, Schema
from tasks.quality import rules as rule
from tasks.quality.rules import KEYS, Rule, Table

Names = list[tuple[str, int | None]]
"""Metrics that must have been measured, each with its cut-off (None: it has none)."""
RANGES = {
    **dict.fromkeys(
        ("hit", "ndcg", "recall", "recall-reachable", "mrr", "f1", "auc", "low", "high", "coverage"), (0, 1)
    ),
    "advantage": (-1, 1),
}
"""Range of a metric by its kind (docs/methods.md §8; advantage = F1 - majority, §7)."""
SHARES = ("precision", "precision-swapped", "precision-weighted", "micro-f1")
"""The same for what embeddings predict, from 0 to 1: judged where there is such a metric."""
RATES = ("chance", "precision", "share")
"""The same of alignments."""
AMOUNTS = ("mae", "sensitive", "public", "uncut", "messages", "bytes", "iterations")
"""The same for errors of ratings and for what training takes: from 0, without an upper end."""


def metric_tables(frame: pl.DataFrame, expected: pl.DataFrame, attacked: Sequence[str] = ()) -> list[Table]:
    """All metrics of a suite (METRICS): each in the range of its kind, none missing, none repeated.

    Args:
        frame: METRICS of all experiments.
        expected: experiment, setting, seed, metric, k of everything that had to be measured (see `measurements`).
        attacked: kinds from 0 to 1 that the suite's attack alone has.
    """
    # Kinds that only some suites have are no part of the rules of others.
    shares = (*(SHARES if frame.select(METRIC_KIND.is_in(SHARES).any()).item() else ()), *attacked)
    rates = [*(name for name, limits in RANGES.items() if limits == (0, 1)), *shares]
    amounts = frame.select(METRIC_KIND.is_in(AMOUNTS).any()).item()
    frame = frame.with_columns(
        kind=METRIC_KIND,
        rate=pl.when(METRIC_KIND.is_in(rates)).then("value"),
        advantage=pl.when(METRIC_KIND == "advantage").then("value"),
        **({"amount": pl.when(METRIC_KIND.is_in(AMOUNTS)).then("value")} if amounts else {}),
    )
    rules = (
        rule.in_set("kind", (*RANGES, *shares, *(AMOUNTS if amounts else ()))),
        rule.between("rate", 0, 1),
        rule.between("advantage", -1, 1),
        *([rule.between("amount", 0, None), rule.finite("amount")] if amounts else []),
    )
    return _measured(frame, expected, rules)


def _measured(frame: pl.DataFrame, expected: pl.DataFrame, rules: tuple[Rule, ...]) -> list[Table]:
    """Metrics that keep the rules of their kinds: none is missing, none repeated."""
    keys = expected.columns
    counted = rule.row_count(1), rule.between("rows", 1, None, "must be 1 or more: the metric was measured")
    return [
        Table(
            "metrics", frame, (rule.row_count(1), *rule.not_null("value"), *rules, rule.unique(*keys)), ids=tuple(keys)
        ),
        rule.count_table("metrics expected", expected, frame, keys, *counted),
    ]


def alignment_tables(
    anchors: Mapping[tuple[str, int], pl.DataFrame],
    frame: pl.DataFrame,
    sizes: tuple[int, int],
    expected: pl.DataFrame,
) -> list[Table]:
    """An alignment of two networks (docs/methods.md §6): pairs of users, each in one pair at most; and its metrics.

    There may be no pair. All settings and seeds are in one table.

    Args:
        anchors: (setting, seed) -> ANCHORS.
        frame: METRICS.
        sizes: users of the first and of the second network.
        expected: setting, seed, metric, k of everything that had to be measured (see `alignment_metrics`).
    """
    pair_rules = (
        *rule.ids(source=sizes[0], target=sizes[1]),
        *(rule.unique(*KEYS, side) for side in ("source", "target")),
    )
    frame = frame.with_columns(
        kind=METRIC_KIND,
        rate=pl.when(METRIC_KIND.is_in(RATES)).then("value"),
        pairs=pl.when(METRIC_KIND == "found").then("value"),
        criterion=pl.when(METRIC_KIND == "criterion").then("value"),
    )
    rules = (
        rule.finite("value"),
        rule.in_set("kind", (*RATES, "found", "criterion")),
        rule.between("rate", 0, 1),
        rule.between("pairs", 0, min(sizes)),
        rule.between("criterion", -1, 1),
    )
    return [
        Table("anchors", rule.stack(anchors), pair_rules, ids=(*KEYS, "source", "target")),
        *_measured(frame, expected, rules),
    ]


def alignment_metrics(
    settings: Iterable[str], seeds: Iterable[int], attackers: Sequence[str], ks: Sequence[int]
) -> pl.DataFrame:
    """setting, seed, metric and k of what every alignment measures."""
    names: Names = [("alignment/chance", k) for k in ks]
    for attacker in attackers:
        names += [(f"alignment/{attacker}/precision", k) for k in ks]
        names += [(f"alignment/{attacker}/{name}", None) for name in ("confident/share", "found", "criterion")]
    return measurements("", settings, seeds, names).drop("experiment")


def measurements(experiment: str, settings: Iterable[str], seeds: Iterable[int], names: Names) -> pl.DataFrame:
    """Every combination of settings, seeds and (metric, k) of one experiment, as `metric_tables` expects them."""
    rows = [(experiment, *which) for which in product(settings, seeds, names)]
    flat = [(experiment, setting, seed, *name) for experiment, setting, seed, name in rows]
    types = {"experiment": pl.String, "setting": pl.String, "seed": pl.Int64, "metric": pl.String, "k": pl.Int32}
    return pl.DataFrame(flat, schema=types, orient="row")


def embedding_metrics(networks: Mapping[str, Schema]) -> Names:
    """(metric, k) that training measures of every system that embeds users (docs/methods.md §6), none with a cut-off.

    networks: those whose users are embedded, by name; interests are predicted where there are labels.
    """
    return [
        (f"{network}/interests/{name}", None)
        for network, schema in networks.items()
        if schema.labels
        for name in _with_controls("majority", "everything")
    ]


def embedding_attack_metrics(networks: Mapping[str, Schema], ks: Sequence[int], joint: bool) -> Names:
    """(metric, k) that attacks on embeddings measure of every system (docs/methods.md §7).

    What the confident attacker's names are worth is not among them: it may give none.

    Args:
        networks: as for `embedding_metrics`; all have friendships.
        ks: lengths of the lists of accounts.
        joint: whether the system embeds the users of both networks in one space.
    """
    keys: Names = []
    for network, schema in networks.items():
        scores = _with_controls("majority", classes=True)
        names = [f"{feature.name}/{name}" for feature in schema.sensitive for name in scores]
        names += [f"links/{attacker}/{kind}" for attacker in ("cosine", "dot", "hadamard") for kind in ("auc", "tpr")]
        keys += [(f"{network}/{name}", None) for name in names]
    if joint and len(networks) == 2:
        keys += [*(("anchors/precision", k) for k in ks), ("anchors/confident/share", None)]
    return keys


def _with_controls(*controls: str, classes: bool = False) -> list[str]:
    """Scores of a prediction, and of guesses that need no embedding on the same splits.

    classes: whether there is one class for each user.
    """
    scores = ("precision", "precision-swapped", "micro-f1", *(["precision-weighted"] if classes else []))
    return [*scores, *(f"{control}/{score}" for control in controls for score in scores)]


def ranking_metrics(ks: Sequence[int], negatives: int, recall: str = "relevant", *, full_rows: bool = False) -> Names:
    """(metric, k) of everything that training measures of lists (docs/methods.md §8).

    recall: `relevant` or `reachable`, what hits are divided by (`tasks.evaluation.metrics.ranking_metrics`).
    """
    of_all = "recall" if recall == "relevant" else f"recall-{recall}"
    names = [f"sampled-{negatives}/{kind}" for kind in ("hit", "ndcg", "mrr")]
    protocols = ("full", "whole") if full_rows else ("full",)
    names += [f"{protocol}/{kind}" for protocol in protocols for kind in ("hit", "ndcg", of_all, "mrr")]
    return list(product([*names, "few-users/ndcg", "few-items/ndcg", "catalogue/coverage"], ks))
