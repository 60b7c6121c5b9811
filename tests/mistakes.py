"""Mistakes in params.yaml and the suites' files, each with how its message begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests import parameters

ORIGINAL = parameters.read()
NETWORKS = ("perturbed", "dpcrosue-weibo-twin")
DEMO = "suites", "demo"
Change = Callable[[dict[str, Any]], None]


def put(*keys: str, value: Any) -> Change:
    """Sets one key, however deep."""

    def change(params: dict[str, Any]) -> None:
        table = params
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value

    return change


def drop(*keys: str) -> Change:
    """Removes one key, however deep."""

    def change(params: dict[str, Any]) -> None:
        table = params
        for key in keys[:-1]:
            table = table[key]
        del table[keys[-1]]

    return change


def move(name: str) -> Change:
    """Gives an experiment of the demo to the other suite, too."""

    def change(params: dict[str, Any]) -> None:
        params["suites"]["gerai"]["experiments"][name] = params["suites"]["demo"]["experiments"][name]

    return change


MISTAKES: list[tuple[Change, str]] = [
    (put("surprise", value=1), "surprise: unknown key"),
    (put(*DEMO, "evaluation", "negative", value=100), "suites/demo/params.yaml: evaluation.negative: unknown key"),
    (drop(*DEMO, "evaluation", "seed"), "suites/demo/params.yaml: evaluation.seed: this key is missing"),
    (put("suites", "demo", "datasets", value={}), "suites/demo/params.yaml: datasets: unknown key"),
    (put("suites", "Demo", value={}), "suites/Demo: no name of a suite"),
    (
        put(*DEMO, "evaluation", "negatives", value="many"),
        "suites/demo/params.yaml: evaluation.negatives: .*integer.*'many'",
    ),
    (
        put(*DEMO, "evaluation", "negatives", value="100"),
        "suites/demo/params.yaml: evaluation.negatives: .*integer.*'100'",
    ),
    (
        put(*DEMO, "evaluation", "negatives", value=True),
        "suites/demo/params.yaml: evaluation.negatives: .*integer.*True",
    ),
    (
        put(*DEMO, "evaluation", "negatives", value=0),
        "suites/demo/params.yaml: evaluation.negatives: .*greater than or equal to 1.*0",
    ),
    (
        put(*DEMO, "evaluation", "k", value=[]),
        "suites/demo/params.yaml: evaluation.k: must not be empty in a suite whose task is top-k",
    ),
    (put(*DEMO, "evaluation", "k", value=[5, 5]), "suites/demo/params.yaml: evaluation.k: 5 is repeated"),
    (
        put("processed", "demo", "options", "test_share", value=1.5),
        "processed.demo.options.test_share: .*less",
    ),
    (
        put("datasets", "tmall-twin", "replica_of", value="ml-10b"),
        "datasets.tmall-twin.replica_of: unknown published data set 'ml-10b'",
    ),
    (
        put("datasets", "tmall-twin", "part_of", value="tmall"),
        "datasets.tmall-twin.part_of: must be left out where replica_of is given",
    ),
    (
        put("datasets", "ml-1m-part", value=ORIGINAL["datasets"]["ml-100k"] | {"replica_of": "ml-1m"}),
        "datasets.ml-1m-part.replica_of: 'ml_100k' generates nothing",
    ),
    (put("datasets", "demo", "part_of", value="ml-100k"), "datasets.demo.part_of: 'demo' is generated"),
    (put("processed", "demo", "dataset", value="ml-10b"), "processed.demo.dataset: unknown data set 'ml-10b'"),
    (
        put("datasets", "demo", "source", value="ftp"),
        "datasets.demo.source: unknown source 'ftp'; known: ciao, custom",
    ),
    (put("perturbed", "gerai-demo", "epsilon", value=[0.0]), "perturbed.gerai-demo.epsilon.0: .*greater than 0"),
    (put("perturbed", "gerai-demo", "epsilon", value=[-1.0]), "perturbed.gerai-demo.epsilon.0: .*greater than 0"),
    (put("perturbed", "gerai-demo", "epsilon", value=[float("nan")]), "perturbed.gerai-demo.epsilon.0: .*nan"),
    (put("perturbed", "gerai-demo", "epsilon", value=[float("inf")]), "perturbed.gerai-demo.epsilon.0: .*inf"),
    (put("perturbed", "gerai-demo", "mechanism", value="laplace"), "perturbed.gerai-demo: .*'multidimensional'"),
    (put("perturbed", "gerai-demo", "data", value="dpcrosue-weibo-twin"), "perturbed.gerai-demo.mechanism: 'multi"),
    (put(*NETWORKS, "data", value="demo"), "perturbed.dpcrosue-weibo-twin.mechanism: 'dpcrosue' is not for data"),
    (put(*NETWORKS, "epsilon", value=[1.0]), "perturbed.dpcrosue-weibo-twin.epsilon: unknown key"),
    (drop(*NETWORKS, "word_vectors"), "perturbed.dpcrosue-weibo-twin.word_vectors: this key is missing"),
    (put(*NETWORKS, "count_share", value=1.0), "perturbed.dpcrosue-weibo-twin.count_share: .*less than 1"),
    (
        put(*NETWORKS, "sweep", "edges_epsilon", value=[5.0, 10.0]),
        "perturbed.dpcrosue-weibo-twin: sweep.edges_epsilon: 10.0 is what the base has",
    ),
    (
        put(*NETWORKS, "text_epsilon", value=None),
        "perturbed.dpcrosue-weibo-twin: sweep.text_epsilon: must be left out where text_epsilon is null",
    ),
    (
        put(*DEMO, "experiments", "demo-gerai", "features", value="perturbed/dpcrosue-weibo-twin"),
        "suites/demo/params.yaml: experiments.demo-gerai.features: 'dpcrosue-weibo-twin' perturbs 'dpcrosue-weibo",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "seeds", value=[0, 1, 0]),
        "suites/demo/params.yaml: experiments.demo-bpr.seeds: 0 is repeated",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "seeds", value=[-1]),
        "suites/demo/params.yaml: experiments.demo-bpr.seeds.0: .*greater than or equal",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "model", value="brp"),
        "suites/demo/params.yaml: experiments.demo-bpr.model: unknown model 'brp'",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "system", value="GERAI"),
        "suites/demo/params.yaml: experiments.demo-bpr.system: .*pattern",
    ),
    (
        put(*DEMO, "experiments", "demo-gcn", "system", value="gerai"),
        "suites/demo/params.yaml: experiments.demo-gcn.system: 'gerai' is another model's name",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "suite", value="demo"),
        "suites/demo/params.yaml: experiments.demo-bpr.suite: unknown key",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "data", value="ml-10b"),
        "suites/demo/params.yaml: experiments.demo-bpr.data: unknown processed data",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "features", value="perturbed/none"),
        "suites/demo/params.yaml: experiments.demo-bpr.features: unknown perturbed data 'none'",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "code", value="tasks/models/ranking/popularity.py"),
        "suites/demo/params.yaml: experiments.demo-bpr.code: unknown key",
    ),
    (
        put(*DEMO, "experiments", "demo-gerai", "seeds", value=[0, 7]),
        "suites/demo/params.yaml: experiments.demo-gerai.seeds: 7 is not among the seeds of perturbed",
    ),
    (
        put(*DEMO, "experiments", "demo-gerai", "sweep", value=[{"features_epsilon": 0.123}]),
        "suites/demo/params.yaml: experiments.demo-gerai.sweep: features_epsilon 0.123 is not in perturbed",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "seeds", value=[ORIGINAL["suites"]["demo"]["tuning"]["seed"]]),
        "suites/demo/params.yaml: experiments.demo-bpr.seeds: .* is the tuning seed",
    ),
    (put(*DEMO, "tuning", "of", value="gerei"), "suites/demo/tuning.yaml: tuning.of: unknown suite 'gerei'"),
    (
        put(*DEMO, "tuning", "of", value="membership"),
        "suites/demo/tuning.yaml: tuning.of: membership has none of its own",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "config", "epoch", value=3),
        "suites/demo/params.yaml: experiments.demo-bpr.config.epoch: unknown key",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "sweep", value=[{"learning_rate": "fast"}]),
        "suites/demo/params.yaml: experiments.demo-bpr.config.learning_rate: .*'fast'",
    ),
    (
        put(*DEMO, "experiments", "demo-dp-popularity", "config", "epsilon", value=0),
        "suites/demo/params.yaml: experiments.demo-dp-popularity.config.epsilon: .*0",
    ),
    (put(*DEMO, "experiments", "Demo BPR", value={}), "suites/demo/params.yaml: experiments.Demo BPR"),
    (
        put(*DEMO, "attack", "attackers", value=["oracle"]),
        "suites/demo/attack.yaml: attack.attackers.0: unknown attacker 'oracle'",
    ),
    (drop(*DEMO, "attack"), "suites/demo/attack.yaml: attack: this key is missing"),
    (put(*DEMO, "task", value="ratings"), "suites/demo/params.yaml: task: "),
    (
        put(*DEMO, "paper", value="geraint"),
        "suites/demo/params.yaml: paper: unknown paper 'geraint'; known: dipsgnn, dpcrosue, ",
    ),
    (put(*DEMO, "data", value="ml-10b"), "suites/demo/params.yaml: data: unknown processed data set 'ml-10b'"),
    (
        put(*DEMO, "evaluation", "negatives", value=None),
        "suites/demo/params.yaml: evaluation.negatives: must not be null in a suite whose task is top-k",
    ),
    (
        put(*DEMO, "task", value="next-item"),
        "suites/demo/params.yaml: evaluation.negatives: must be null in a suite whose task is next-item",
    ),
    (
        put("suites", "dipsgnn", "evaluation", "recall", value="reachable"),
        "suites/dipsgnn/params.yaml: evaluation.recall: must be relevant in a suite whose task is next-item",
    ),
    (
        put("suites", "dpvae", "training_audit", "experiments", value={"x": {"settings": ["base"], "control": {}}}),
        "suites/dpvae/attack.yaml: training_audit.experiments: unknown experiment of this suite 'x'",
    ),
    (move("demo-bpr"), "suites/gerai/params.yaml: experiments.demo-bpr: the suite 'demo' has an experiment of"),
    (
        put(*DEMO, "experiments", "demo-dpae", "noise", value="secret"),
        "suites/demo/params.yaml: experiments.demo-dpae.noise: .*'secure'.*'secret'",
    ),
    (
        put(*DEMO, "experiments", "demo-dpne", "noise", value="secure"),
        "suites/demo/params.yaml: experiments.demo-dpne.noise: 'dpne' at base: its noise is a term of an objective",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "noise", value="secure"),
        "suites/demo/params.yaml: experiments.demo-bpr.noise: 'bpr' at base: it draws no noise, or none that",
    ),
    (
        put("suites", "dipsgnn", "experiments", "dipsgnn-dpsgd", "noise", value="secure"),
        "suites/dipsgnn/params.yaml: experiments.dipsgnn-dpsgd.noise: secure, but the features are not",
    ),
    (
        put(*DEMO, "experiments", "demo-bpr", "chosen_on_test", value=True),
        "suites/demo/params.yaml: experiments.demo-bpr.chosen_on_test: epochs are not tested in a suite whose task is",
    ),
    (
        put("suites", "dipsgnn", "experiments", "dipsgnn-popularity", "chosen_on_test", value=True),
        "suites/dipsgnn/params.yaml: experiments.dipsgnn-popularity.chosen_on_test: 'popularity' has no epochs",
    ),
    (
        put("suites", "dpcrosue", "experiments", "dpcrosue-degree", "noise", value="secure"),
        "suites/dpcrosue/params.yaml: experiments.dpcrosue-degree.noise: what embeds networks draws none",
    ),
    *(
        (put(*DEMO, "ceilings", value=ceilings), f"suites/demo/params.yaml: ceilings.{next(iter(ceilings))}: {message}")
        for ceilings, message in [
            ({"demo-gerai": "demo-nothing"}, "unknown experiment of this suite"),
            ({"demo-bpr": "demo-gcn"}, "demo-bpr must spend a finite budget, and demo-gcn none"),
            ({"demo-gerai": "demo-dpmf"}, "demo-gerai must spend a finite budget, and demo-dpmf none"),
        ]
    ),
    (
        put(
            "suites",
            "dpvae-ml-20m-twin",
            "ceilings",
            value={"dpvae-ml-20m-twin-dpvae": "dpvae-ml-20m-twin-vae-original"},
        ),
        "suites/dpvae-ml-20m-twin/params.yaml: ceilings.dpvae-ml-20m-twin-dpvae: .* is on dpvae-ml-20m-twin-original",
    ),
    (
        put("suites", "gerai", "experiments", "gerai-bpr", "config", "epochs", value="many"),
        "suites/gerai/params.yaml: experiments.gerai-bpr.config.epochs: .*'many'",
    ),
]
