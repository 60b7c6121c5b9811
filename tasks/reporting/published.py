"""Every table and figure of the papers, and which of our metrics each printed number answers to.

The numbers themselves are rows of `data/reference/paper_tables.csv` (columns paper, artefact, dataset, method,
setting, metric, value, std); this module says what they mean. A suite named after a paper is set beside it; a suite
without a paper (`demo`) is shown in the layout of `DEFAULT`, without printed numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SAMPLED = "sampled-100"
FULL = "full"
ATTRIBUTE = "attribute inference"

CUTOFFS = (5, 10, 15, 20, 25, 30)
ATTRIBUTES = ("gender", "age", "occupation")
ATTACKERS = {
    "neural": "neural network",
    "decision_tree": "decision tree",
    "naive_bayes": "naive Bayes",
    "knn": "k nearest neighbours",
    "gaussian_process": "Gaussian process",
}


@dataclass(frozen=True)
class Column:
    """One measured quantity: what the paper calls it and what METRICS calls it."""

    group: str
    """Heading above several columns, such as "Hit"."""
    label: str
    """Heading of this column, such as "K = 5"."""
    setting: str
    """`setting` in paper_tables.csv ("" where the paper varies nothing)."""
    published: str
    """`metric` in paper_tables.csv, such as "hit@5"."""
    metric: str
    """`metric` in METRICS, such as "sampled-100/hit"."""
    k: int
    """`k` in METRICS."""
    protocol: str
    """Under which protocol it is measured; columns of different protocols never share a table."""
    better: Literal["higher", "lower"]


@dataclass(frozen=True)
class Part:
    """A block of a table that is shown as one table of its own."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Table:
    """A table of a paper. `comparable` is false for a counterpart of ours that the paper does not print."""

    key: str
    """`artefact` in paper_tables.csv."""
    name: str
    """What the paper calls it: "Table 2"."""
    title: str
    note: str
    methods: tuple[str, ...]
    """Methods in the paper's order."""
    parts: tuple[Part, ...]
    remark: str = ""
    """What to know when setting our numbers beside the printed ones."""
    comparable: bool = True

    @property
    def anchor(self) -> str:
        """Identifier of the table within the page."""
        return self.key if self.comparable else f"{self.key}-full"


@dataclass(frozen=True)
class Figure:
    """A figure of a paper that varies one key of a model's configuration."""

    key: str
    name: str
    title: str
    method: str
    parameters: tuple[str, ...]
    """Sweep parameters in the paper's order, as its captions call them."""


@dataclass(frozen=True)
class Paper:
    """A paper: its reference, its methods, and every table and figure with results."""

    key: str
    reference: str
    methods: dict[str, str]
    """The paper's name of a method -> the name of its model in params.yaml."""
    protecting: tuple[str, ...]
    """Methods that are made to protect someone, in the paper's order; reduced versions of them left out."""
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


def attack(attribute: str, k: int, attacker: str = "neural", setting: str = "", label: str = "") -> Column:
    """F1 of an attribute-inference attacker that sees the top-k recommendations (METHODS §7)."""
    return Column(
        group=attribute,
        label=label or f"K = {k}",
        setting=setting,
        published=f"f1_{attribute}@{k}",
        metric=f"attribute/{attribute}/{attacker}/f1",
        k=k,
        protocol=ATTRIBUTE,
        better="lower",
    )


def ranking(metric: str, k: int, protocol: str, label: str = "") -> Column:
    """A ranking metric at cut-off k under `sampled-100` or `full` (METHODS §8)."""
    return Column(
        group=_RANKING[metric],
        label=label or f"K = {k}",
        setting="",
        published=f"{metric}@{k}",
        metric=f"{protocol}/{metric}",
        k=k,
        protocol=protocol,
        better="higher",
    )


_RANKING = {"hit": "Hit", "ndcg": "NDCG"}
_GERAI_METHODS = {
    "BPR": "bpr",
    "GCN": "gcn",
    "Blurm": "blurm",
    "DPAE": "dpae",
    "DPNE": "dpne",
    "DPMF": "dpmf",
    "RAP": "rap",
    "GERAI": "gerai",
    "GERAI-NL": "gerai-nl",
    "GERAI-NF": "gerai-nf",
}
_GERAI_COMPARED = ("BPR", "GCN", "Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI")
_GERAI_PRINTED_ATTRIBUTES = ("age", "gender", "occupation")


def _ranking_table(protocol: str, *, comparable: bool) -> Table:
    return Table(
        key="table3",
        name="Table 3",
        title="Recommendation effectiveness",
        note=(
            "Each held-out item is ranked against 100 items that the user never rated (protocol sampled-100)."
            if comparable
            else "Every item except the user's training items is ranked (protocol full)."
        ),
        remark=(
            "The paper does not name its protocol; sampled-100 is our reading. Our models are tuned on validation, and "
            "popularity needs no tuning: compare its row with the printed ones."
            if comparable
            else "The paper prints no counterpart: these numbers must not be set beside its Table 3."
        ),
        methods=_GERAI_COMPARED,
        parts=tuple(
            Part(f"{_RANKING[metric]}@K", tuple(ranking(metric, k, protocol) for k in CUTOFFS))
            for metric in ("hit", "ndcg")
        ),
        comparable=comparable,
    )


GERAI = Paper(
    key="gerai",
    reference=(
        "S. Zhang, H. Yin, T. Chen, Z. Huang, L. Cui, X. Zhang: "
        "Graph Embedding for Recommendation against Attribute Inference Attacks. The Web Conference 2021."
    ),
    methods=_GERAI_METHODS,
    protecting=("Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI"),
    tables=(
        Table(
            key="table2",
            name="Table 2",
            title="Attribute inference by the neural attacker",
            note="F1 of a two-layer network that sees a user's ratings and top-K recommendations. Lower is safer.",
            methods=_GERAI_COMPARED,
            parts=tuple(
                Part(f"Attribute: {attribute}", tuple(attack(attribute, k) for k in CUTOFFS))
                for attribute in _GERAI_PRINTED_ATTRIBUTES
            ),
        ),
        _ranking_table(SAMPLED, comparable=True),
        _ranking_table(FULL, comparable=False),
        Table(
            key="table4",
            name="Table 4",
            title="Ablation",
            note=(
                "GERAI-NL sees raw features and a noisy loss, GERAI-NF noisy features and a plain loss, GCN neither "
                "noise. Hit and NDCG under sampled-100."
            ),
            methods=("GCN", "GERAI-NL", "GERAI-NF", "GERAI"),
            parts=(
                Part(
                    "Recommendation and attribute inference at K = 5",
                    (
                        ranking("hit", 5, SAMPLED, "Hit@5"),
                        ranking("ndcg", 5, SAMPLED, "NDCG@5"),
                        *(attack(attribute, 5, label=f"F1 {attribute}") for attribute in _GERAI_PRINTED_ATTRIBUTES),
                    ),
                ),
            ),
        ),
        Table(
            key="table5",
            name="Table 5",
            title="Attribute inference by other attackers",
            note="F1 of four other attackers that see a user's ratings and top-5 recommendations. Lower is safer.",
            methods=_GERAI_COMPARED,
            parts=tuple(
                Part(
                    f"Attribute: {attribute}",
                    tuple(
                        attack(attribute, 5, attacker, f"attacker={attacker}", ATTACKERS[attacker])
                        for attacker in ("decision_tree", "naive_bayes", "knn", "gaussian_process")
                    ),
                )
                for attribute in _GERAI_PRINTED_ATTRIBUTES
            ),
        ),
    ),
    figures=(
        Figure(
            key="figure2",
            name="Figure 2",
            title="Budget of the loss, budget of the features, and embedding size",
            method="GERAI",
            parameters=("ε of the loss", "ε of the features", "d"),
        ),
    ),
)

PAPERS = {paper.key: paper for paper in (GERAI,)}
DEFAULT = GERAI
"""Its table layouts serve suites that reproduce no paper."""
