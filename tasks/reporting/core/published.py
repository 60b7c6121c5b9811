"""How tables and figures of a paper are described, and which of our metrics each printed number answers to.

The numbers themselves are rows of `data/reference/paper_tables.csv` (columns paper, artefact, dataset, method,
setting, metric, value, std). Here are the words in which a paper is described; `tasks/papers/<paper>/published.py`
describes it, and `PUBLISHED` of `tasks.papers` lists them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SAMPLED = "sampled-100"
FULL = "full"
NEXT = "next"
NEXT_NEW = "next-new"
ATTRIBUTE = "attribute inference"

CUTOFFS = (5, 10, 15, 20, 25, 30)
ATTACKERS = {
    "neural": "neural network",
    "decision_tree": "decision tree",
    "naive_bayes": "naive Bayes",
    "knn": "k nearest neighbours",
    "gaussian_process": "Gaussian process",
}
SCORES = {"precision": "precision", "precision-swapped": "precision, swapped", "micro-f1": "micro-F1"}
"""Scores of what is predicted from embeddings -> how they are headed."""
EVERYTHING, MAJORITY = "everything", "majority"
"""Guesses that need no embedding: every interest for everybody, and the most frequent class."""

Need = Literal["interests", "attributes"]


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
    digits: int = 3
    """Decimals that are shown."""
    data: str = ""
    """`dataset` in paper_tables.csv, where that is a part of the suite's data; empty for the suite's own."""
    controls: tuple[tuple[str, str], ...] = ()
    """What stands above the methods: name -> metric in METRICS of what needs no method, averaged over systems."""
    ratio_to: tuple[str, ...] = ()
    """Metrics in METRICS by whose sum `metric` is divided; empty for `metric` as it is."""


@dataclass(frozen=True)
class Part:
    """A block of a table that is shown as one table of its own."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Version:
    """A row of a table that sets versions of methods side by side: what is printed, and which run of ours answers."""

    method: str
    """`method` in paper_tables.csv."""
    setting: str
    """`setting` in paper_tables.csv."""
    kind: str
    """What the paper calls this version, in a word or two."""
    system: str
    """Label of our system (`Results.find`)."""
    ours: str
    """Values of its configuration that make it this version, as `Results.find_setting` reads them; `base` for any."""

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"{self.method}, {self.kind}" if self.kind else self.method


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A table or figure of a paper."""

    key: str
    """`artefact` in paper_tables.csv."""
    name: str
    """What the paper calls it: "Table 2"."""
    title: str
    note: str = ""
    """What to know of our version of it."""
    methods: tuple[str, ...] = ()
    """Methods that it is of, by the paper's names, in the paper's order."""
    needs: tuple[Need, ...] = ()
    """What must be known of the users of a network for it to have a part, beside their friendships."""
    words: str = ""
    """What of it replaces words, which only posts have; empty for nothing."""


@dataclass(frozen=True, kw_only=True)
class Table(Artefact):
    """A table of a paper. `comparable` is false for a counterpart of ours that the paper does not print."""

    parts: tuple[Part, ...]
    remark: str = ""
    """What to know when setting our numbers beside the printed ones."""
    comparable: bool = True
    protocol: str = FULL
    """What sets a counterpart that the paper does not print apart from the printed table."""
    everyone: bool = False
    """Whether every system of the suite has a row, be it in another table of the paper or not."""
    marked: bool = False
    """Whether the best of the systems that claim privacy, and the best of the others, are marked in each column."""
    versions: tuple[Version, ...] = ()
    """Its rows, where they are versions of `methods`; beside them only the popularity lists have rows."""
    data: tuple[str, ...] = ()
    """It stands only in suites whose data have one of these in their name; empty for all suites."""
    alone: bool = True
    """Whether systems of ours that the paper does not have stand below its methods."""

    @property
    def anchor(self) -> str:
        """Identifier of the table within the page."""
        return self.key if self.comparable else f"{self.key}-{self.protocol}"


@dataclass(frozen=True, kw_only=True)
class Figure(Artefact):
    """A figure of a paper that varies one key of a model's configuration; without `methods` it is of `method` alone."""

    method: str
    """Whom it is drawn for, as running text."""
    parameters: tuple[str, ...]
    """Sweep parameters in the paper's order, as its captions call them."""
    key_swept: str = ""
    """The key of the configuration that varies, where there is one alone."""
    values: tuple[float, ...] = ()
    """What the paper gives it."""
    default: float | None = None
    """The value that the paper's other results have."""
    by_length: bool = False
    """Whether it varies the length of the list, not a key of a configuration."""

    @property
    def drawn(self) -> tuple[str, ...]:
        """Methods whose lines it has, by the paper's names."""
        return self.methods or (self.method,)


@dataclass(frozen=True)
class Quality:
    """A ranking metric that a suite is told by."""

    metric: str
    """`metric` in METRICS, such as "full/ndcg"."""
    label: str
    """Such as "NDCG"."""
    protocol: str
    """The protocol as a heading has it, such as "full"."""
    spoken: str
    """The protocol in running text, such as "full ranking"."""
    digits: int = 3
    """Decimals that are shown."""
    k: int | None = None
    """Its own cut-off; None for the headline's, 0 where lists have nothing to do with it."""
    lower: bool = False
    """Whether less is better, as of an error."""

    @property
    def sign(self) -> float:
        """+1 where higher is better."""
        return -1.0 if self.lower else 1.0

    def cutoff(self, k: int) -> int:
        """Where it is read when the headline is read at `k`."""
        return k if self.k is None else self.k

    def at(self, k: int) -> str:
        """With its cut-off, where it has one: "NDCG@10"."""
        cutoff = self.cutoff(k)
        return f"{self.label}@{cutoff}" if cutoff else self.label


@dataclass(frozen=True)
class Mode:
    """One way of counting, or of spending, the budget of the paper's method."""

    name: str
    system: str
    """Label of the system (`Results.find`)."""
    setting: str


@dataclass(frozen=True)
class BudgetSweep:
    """A system whose ranking is drawn against its budget."""

    system: str
    """Its label."""
    key: str
    """The key of its configuration that says the budget, in the settings that vary nothing else."""


@dataclass(frozen=True)
class Words:
    """How a report speaks of what its systems do; the default is that of lists."""

    quality: str = "Ranking"
    """Heading of how well systems do it."""
    participles: tuple[str, str] = ("ranking better", "ranking worse")
    yardstick: str = "a noisy list of best-sellers"
    """What the private yardstick is."""
    yardsticks: str = "the popularity lists"
    direction: str = "Up is better ranking"
    verdict: str = "A private system below a popularity line serves its users worse than a list of best-sellers."
    """What to conclude from a system on the wrong side of a yardstick's line."""
    worth: str = "where it ranks above a noisy list of best-sellers of the same accounted ε"
    """When a private system is worth its noise."""
    run: str = "seed"
    """What is repeated."""
    splits: str = "other random splits of these data"
    """What differs between the splits of a suite."""


@dataclass(frozen=True)
class Paper:
    """A paper: its reference, its methods, and every table and figure with results."""

    key: str
    name: str
    """What it is called, after its method."""
    reference: str
    methods: dict[str, str]
    """The paper's name of a method -> the label of our system: its experiment's name without the suite's."""
    protecting: tuple[str, ...]
    """Methods that are made to protect someone, in the paper's order; reduced versions of them left out."""
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    qualities: tuple[Quality, ...]
    """What systems are ranked by in tables and sentences, in the order of the headline's columns."""
    utility: Quality
    """The one that privacy is weighed against."""
    headline_k: int
    """The cut-off of everything for which the paper names none; the nearest measured one is taken."""
    open: tuple[str, ...]
    """Systems without protection whose ranking is what protection costs, by their labels."""
    emphasis: tuple[str, ...]
    """Systems with a colour of their own where there are more than colours, by their labels; the others are grey."""
    validation: str
    """The metric that chooses epochs, such as "NDCG"."""
    unit: float = 1.0
    """What one of the printed numbers is worth in ours: 0.01 where the paper prints percent."""
    apart: tuple[str, ...] = ()
    """Systems whose validation asks another question than that of the others, by their labels."""
    modes: tuple[Mode, ...] = ()
    """What is shown side by side as published and rigorous accounting; empty for a paper without such a section."""
    statistics: dict[str, str] = field(default_factory=dict)
    """Printed data set -> what to know when its printed statistics are set beside ours."""
    counted: str = ""
    """The same for data of which nothing is printed."""
    data_table: str = "table1"
    """Key of the table that has these statistics."""
    settings_table: str = ""
    """Key of the table that has the settings of the paper's method; empty where none is shown."""
    settings_note: str = ""
    """What to know of them."""
    budget_sweeps: tuple[BudgetSweep, ...] = ()
    """What is drawn against ε; empty for a paper without such a figure."""
    levels: tuple[str, ...] = ()
    """What is drawn across it as horizontal lines, by labels."""
    words: Words = field(default_factory=Words)
    """How its reports speak of what its systems do."""
    overlap: float | None = None
    """Where the runs of a system are folds of one cross-validation, tested over training ratings of a fold; None where
    they are seeds, which are independent."""
    private_yardstick: str = "dp-popularity"
    """Label of the yardstick whose budget is finite."""
    floor: tuple[str, ...] = ()
    """Yardsticks that are drawn as lines in every figure, by labels; empty for all that there are."""
    measured: tuple[tuple[str, tuple[Quality, ...]], ...] = ()
    """Group -> further columns of the table of all systems, by which nothing is ranked."""
    caveats: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Data set, or "" for all -> what its reports say beside what the suite says of its data, as paragraphs."""
    bases: dict[str, float] = field(default_factory=dict)
    """Key that the data of a run say, not its model's configuration -> its value at setting `base`."""
    pairs: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Two networks -> `dataset` in paper_tables.csv of what is printed of both together."""
    joint: tuple[str, ...] = ()
    """Methods that need both networks, by the paper's names."""
    attribute_free: str = ""
    """Label of the system that sees everything but attributes, a control of attacks on them; empty for none."""
    unprotected: str = ""
    """Label of the paper's method without its noise, which shows what an attack can do at all; empty for none."""


def table_title(key: str) -> str:
    """What a table is called, of its `artefact`: "Table 1" of `table1`."""
    return key.replace("table", "Table ")


RANKING = {"hit": "Hit", "ndcg": "NDCG", "recall": "Recall", "mrr": "MRR"}


def attack(attribute: str, k: int, attacker: str = "neural", setting: str = "", label: str = "") -> Column:
    """F1 of an attribute-inference attacker that sees the top-k recommendations (docs/methods.md §7)."""
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


def ranking(metric: str, k: int, protocol: str, label: str = "", digits: int = 3) -> Column:
    """A ranking metric at cut-off k under `sampled-100`, `full`, `next` or `next-new` (docs/methods.md §8)."""
    return Column(
        group=RANKING[metric],
        label=label or f"K = {k}",
        setting="",
        published=f"{metric}@{k}",
        metric=f"{protocol}/{metric}",
        k=k,
        protocol=protocol,
        better="higher",
        digits=digits,
    )


def interests(network: str, score: str = "precision") -> str:
    """The score of the prediction of interests, in METRICS."""
    return f"{network}/interests/{score}"


def inference(network: str, attribute: str, score: str = "precision") -> str:
    """The score of the attack on an attribute, in METRICS."""
    return f"{network}/{attribute}/{score}"
