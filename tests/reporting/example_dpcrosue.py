"""Made-up results of suites of DP-CroSUE, as the report stage would hand them over. No number here is a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.results import BASE, Aligned, Network, Processed, Results, Spent, System, label
from tests.reporting import made, shown
from tests.reporting.example import entry

SEEDS = (0, 1, 2, 3, 4)
SENSITIVE = ("gender", "occupation")
SCORES = ("precision", "precision-swapped", "micro-f1")
INTERESTS = {
    "attributes": 0.40,
    "degree": 0.36,
    "random": 0.35,
    "word2vec": 0.44,
    "santext": 0.41,
    "deepwalk": 0.43,
    "sne": 0.46,
    "udmf": 0.48,
    "rgcn": 0.50,
    "rgcn-attribute-free": 0.47,
    "dp-rgcn": 0.45,
    "crosue": 0.55,
    "dp-crosue": 0.52,
    "crogcn-nh": 0.50,
    "crogcn-na": 0.50,
    "dp-rgcn-rigorous": 0.37,
    "dp-crosue-rigorous": 0.38,
}
"""Made-up precision on interests at setting `base`; of the rest it follows."""
LEAK = dict.fromkeys(INTERESTS, 0.0) | {
    "attributes": 0.30,
    "word2vec": 0.06,
    "santext": 0.03,
    "sne": 0.12,
    "udmf": 0.35,
    "rgcn": 0.20,
    "crosue": 0.15,
    "dp-rgcn": 0.05,
    "dp-crosue": 0.04,
    "crogcn-nh": 0.04,
    "crogcn-na": 0.04,
}
"""Made-up gain of the attack on gender over random vectors; that on occupation is half of it."""
LINKED = dict.fromkeys(INTERESTS, 0.30) | {"attributes": 0.03, "degree": 0.08, "random": 0.0, "word2vec": 0.02}
"""Made-up gain of link stealing over chance."""
CHANCE = {"gender": 0.5, "occupation": 0.1}
MAJORITY = {"gender": 0.3, "occupation": 0.05}
EVERYTHING = {"precision": 0.39, "precision-swapped": 1.0, "micro-f1": 0.56}
FREQUENT = {"precision": 0.48, "precision-swapped": 0.3, "micro-f1": 0.37}
CROSS = ("crosue", "dp-crosue", "crogcn-nh", "crogcn-na", "dp-crosue-rigorous")
PRIVATE = ("dp-rgcn", "dp-crosue", "crogcn-nh", "crogcn-na", "dp-rgcn-rigorous", "dp-crosue-rigorous")
SWEPT = ("dp-rgcn", "dp-crosue")
POINTS = {
    "features_epsilon": (1.0, 10.0, 15.0),
    "edges_epsilon": (1.0, 5.0, 15.0),
    "text_epsilon": (0.1, 2.5, 5.0),
}
BASES = {"features_epsilon": 5.0, "edges_epsilon": 10.0, "text_epsilon": 7.5}
WAYS = {
    "adversarial": (0.0002, 0.0002, 0.45, 0.0002, 0.0),
    "attributes": (0.62, 0.62, 0.62, 0.62, 0.62),
    "attribute-start": (0.66, 0.67, 0.65, 0.66, 0.68),
    "anchors-1%": (0.10, 0.12, 0.0, 0.11, 0.09),
    "anchors-5%": (0.31, 0.30, 0.32, 0.29, 0.30),
    "anchors-10%": (0.42, 0.40, 0.41, 0.43, 0.44),
    "anchors-80%": (0.58, 0.57, 0.59, 0.58, 0.60),
}
"""Made-up precision@1 of every seed."""
FOURSQUARE = Network("foursquare", 5392, 48_756, 76_972, True, SENSITIVE, "posts")
TWITTER = Network("twitter", 5223, 615_515, 164_920, True, SENSITIVE, "posts")
WEIBO = (
    Network("weibo1", 8117, 158_823, 12_000, True, SENSITIVE, "posts"),
    Network("weibo2", 8539, 153_741, 12_000, True, SENSITIVE, "posts"),
)
PUBLISHED = (
    Network("foursquare", 5392, 0, 76_972, True, SENSITIVE, "vectors"),
    Network("twitter", 5223, 0, 0, False, SENSITIVE, "none"),
)
"""What is published of Foursquare and Twitter."""
BARE = (
    Network("foursquare", 5313, 0, 76_972, False, (), "none", attributed=False),
    Network("twitter", 5120, 0, 164_919, False, (), "none", attributed=False),
)
"""IONE's."""


def results(
    suite: str,
    networks: tuple[Network, ...],
    labels: tuple[str, ...],
    *,
    origin: str,
    anchors: int,
    aligned: tuple[Aligned, ...],
    ways: tuple[str, ...] = tuple(WAYS),
    **changes: Any,
) -> Results:
    """A suite with these systems and alignments."""
    systems = tuple(_system(suite, name, networks) for name in labels)
    steps = ({"step": "anchors each once", "users": 2 * anchors, "items": 0, "interactions": 0, "links": anchors},)
    frames = [made.metrics(suite, system, _rows(system.label, networks)) for system in systems]
    frames += [_aligned(suite, pair, ways, networks) for pair in aligned]
    given = made.shell(suite, f"dpcrosue-{origin}", systems) | {
        "metrics": pl.concat(frames),
        "processed": Processed(origin, 0, steps),
        "networks": networks,
        "anchors": anchors,
        "aligned": aligned,
    }
    return shown.results(given | changes)


def replica() -> Results:
    """Everything, on generated Foursquare and Twitter."""
    aligned = (Aligned("ft-twin-rgcn", "vectors by rgcn and true attributes", 656),)
    suite, pair = "dpcrosue-foursquare-twitter-twin", (FOURSQUARE, TWITTER)
    return results(
        suite, pair, tuple(INTERESTS), origin="twin-foursquare-twitter", anchors=3282, aligned=aligned, synthetic=True
    )


def weibo() -> Results:
    """Everything, on generated Weibo."""
    aligned = (Aligned("weibo-twin-rgcn", "vectors by rgcn", 593),)
    return results(
        "dpcrosue-weibo-twin", WEIBO, tuple(INTERESTS), origin="twin-weibo", anchors=2969, aligned=aligned,
        synthetic=True,
    )  # fmt: skip


def full() -> Results:
    """What the paper had: everything on true Foursquare and Twitter. Nobody has such data; tests of claims need it."""
    return results(
        "dpcrosue", (FOURSQUARE, TWITTER), tuple(INTERESTS), origin="foursquare-twitter", anchors=3388, aligned=()
    )


def real() -> Results:
    """What is published: one network with friendships and text vectors, the other with attributes alone."""
    labels = tuple(name for name in INTERESTS if name not in (*CROSS, "santext"))
    aligned = (
        Aligned("foursquare-twitter-names", "true attributes", 656),
        Aligned("foursquare-twitter-noisy", "perturbed attributes", 656),
    )
    return results(
        "dpcrosue", PUBLISHED, labels, origin="foursquare-twitter", anchors=3282, aligned=aligned, ways=("attributes",)
    )


def ione() -> Results:
    """Structure alone."""
    aligned = (Aligned("ione-deepwalk", "vectors by deepwalk", 322), Aligned("ione-rgcn", "vectors by rgcn", 322))
    ways = ("adversarial", "anchors-1%", "anchors-5%", "anchors-10%", "anchors-80%")
    labels = ("degree", "random", "deepwalk")
    return results("dpcrosue-ione", BARE, labels, origin="ione", anchors=1609, aligned=aligned, ways=ways)


def settings(name: str, networks: tuple[Network, ...]) -> dict[str, dict[str, float]]:
    """Setting -> what it has other than the base."""
    points = POINTS if name in SWEPT else {"text_epsilon": POINTS["text_epsilon"]} if name == "santext" else {}
    if networks == PUBLISHED:
        points = {key: values for key, values in points.items() if key != "text_epsilon"}
    return {BASE: {}} | {f"{key}={value}": {key: value} for key, values in points.items() for value in values}


def level(name: str, keys: dict[str, float]) -> tuple[float, float]:
    """Made-up precision on interests, and gain of the attack on gender: both rise with every budget."""
    shift = sum(np.log(value / BASES[key]) for key, value in keys.items())
    return INTERESTS[name] + 0.02 * shift, max(LEAK[name] + 0.01 * shift, 0.0)


def _rows(name: str, networks: tuple[Network, ...]) -> Iterator[tuple[str, str, int | None, int, float]]:
    noise = np.random.default_rng(list(name.encode()))

    def jittered(value: float) -> float:
        return float(value + 0.002 * noise.normal())

    for setting, keys in settings(name, networks).items():
        precision, leak = level(name, keys)
        for seed in SEEDS:
            drift, values = 0.001 * seed, dict[str, float]()
            for network in networks:
                if not network.friendships:
                    continue
                where = network.name
                for score, scale in zip(SCORES, (1.0, 0.98, 0.99), strict=True):
                    if network.labelled:
                        values[f"{where}/interests/{score}"] = jittered(scale * precision + drift)
                        values[f"{where}/interests/majority/{score}"] = FREQUENT[score] + drift
                        values[f"{where}/interests/everything/{score}"] = EVERYTHING[score]
                    for attribute in network.sensitive:
                        share = 1.0 if attribute == "gender" else 0.5
                        gained = scale * CHANCE[attribute] + share * leak
                        values[f"{where}/{attribute}/{score}"] = jittered(gained)
                        values[f"{where}/{attribute}/majority/{score}"] = MAJORITY[attribute]
                for name_of in (f"{where}/{attribute}" for attribute in network.sensitive):
                    for control in ("", "majority/"):
                        values[f"{name_of}/{control}precision-weighted"] = 1.5 * values[f"{name_of}/{control}precision"]
                if setting == BASE:
                    for scorer, scale in zip(("cosine", "dot", "hadamard"), (1.0, 0.9, 1.2), strict=True):
                        values[f"{where}/links/{scorer}/auc"] = jittered(0.5 + scale * LINKED[name])
                        values[f"{where}/links/{scorer}/tpr"] = jittered(0.01 + 0.5 * LINKED[name])
            yield from ((setting, metric, None, seed, value) for metric, value in values.items())
            if name in CROSS and setting == BASE:
                first = 0.3 if name == "crosue" else 0.02
                yield from ((setting, "anchors/precision", k, seed, jittered(first * k**0.2)) for k in (1, 10))
                yield setting, "anchors/confident/share", None, seed, 0.15 if name == "crosue" else 0.0
                if name == "crosue":
                    yield setting, "anchors/confident/precision", None, seed, 0.92


def _aligned(suite: str, pair: Aligned, ways: tuple[str, ...], networks: tuple[Network, ...]) -> pl.DataFrame:
    """Metrics of an entry of `aligned`, as its stage writes them, under the suite's name."""
    weaker = 0.05 if "perturbed" in pair.sees else 1.0
    rows: list[tuple[str, int | None, int, float]] = []
    for seed in SEEDS:
        rows += [("alignment/chance", k, seed, k / networks[1].users) for k in (1, 10)]
        for way in ways:
            first = weaker * WAYS[way][seed]
            rows += [(f"alignment/{way}/precision", k, seed, min(1.0, first * k**0.15)) for k in (1, 10)]
            share = 0.5 if first > 0.3 else 0.0
            rows.append((f"alignment/{way}/confident/share", None, seed, share))
            rows += [(f"alignment/{way}/confident/precision", None, seed, 0.93)] if share else []
            rows.append((f"alignment/{way}/found", None, seed, 1000.0 + seed))
            rows.append((f"alignment/{way}/found/precision", None, seed, 0.8 * first))
    about = {"suite": suite, "experiment": pair.name, "dataset": "made-up", "model": "made-up", "setting": BASE}
    return pl.DataFrame(
        [about | {"seed": seed, "metric": metric, "k": k, "value": value} for metric, k, seed, value in rows],
        schema_overrides={"k": pl.Int64},
    )


def spent(name: str, network: Network, keys: dict[str, float]) -> list[LedgerEntry]:
    """Made-up entries: attributes have a guarantee, friendships in rigorous mode alone, words none."""
    if name not in (*PRIVATE, "santext"):
        return [entry("feature"), entry("edge")]
    accounting, known = ("rigorous" if name.endswith("rigorous") else "published"), BASES | keys
    texts = [
        entry(
            "text",
            neighbouring=relation,
            mechanism="exponential mechanism on distances",
            accounting=accounting,
            claimed_epsilon=claimed,
            reason="Made up: the vectors are fitted to the same texts.",
        )
        for relation, claimed in (
            ("one word replaced by another at distance 1", known["text_epsilon"]),
            ("all texts of one user replaced", None),
        )
    ]
    texts = texts if network.texts == "posts" else []
    if name == "santext":
        return texts
    held = accounting == "rigorous"
    return [
        entry(
            "feature",
            neighbouring="all features of one user replaced",
            mechanism="piecewise mechanism",
            accounting=accounting,
            claimed_epsilon=known["features_epsilon"],
            accounted_epsilon=known["features_epsilon"],
            reason="",
            gaps=("Made up: whoever is in both networks pays in both.",),
        ),
        entry(
            "edge",
            neighbouring="one undirected edge added or removed",
            mechanism="top-m filter",
            accounting=accounting,
            claimed_epsilon=known["edges_epsilon"],
            accounted_epsilon=known["edges_epsilon"] + 1 if held else None,
            reason="" if held else "Made up: filling up ties false edges to true ones.",
        ),
        *texts,
    ]


def _system(suite: str, name: str, networks: tuple[Network, ...]) -> System:
    experiment = f"{suite}-{name}"
    learns = name not in ("attributes", "degree", "random")
    epochs = [{"epoch": n, "loss": 1 / n, "valid": None} for n in range(1, 6)]
    return System(
        experiment=experiment,
        name={"rgcn-attribute-free": "rgcn"}.get(name, name.removesuffix("-rigorous")),
        label=label(experiment, suite),
        **made.about({}, SEEDS),
        history={BASE: {str(seed): epochs for seed in SEEDS}} if learns else {},
        spent=tuple(
            Spent(setting, seed, entry, network.name)
            for setting, keys in settings(name, networks).items()
            for seed in SEEDS
            for network in networks
            if network.friendships
            for entry in spent(name, network, keys)
        ),
    )


def shifted(results: Results, label: str, metric: str, by: float) -> Results:
    """The same results, but for one metric of one system at setting `base`."""
    known = results.find(label)
    assert known is not None
    mine = (pl.col("experiment") == known.experiment) & (pl.col("setting") == "base") & (pl.col("metric") == metric)
    moved = results.metrics.with_columns(value=pl.col("value") + pl.when(mine).then(by).otherwise(0.0))
    return replace(results, metrics=moved)
