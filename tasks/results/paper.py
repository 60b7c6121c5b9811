"""A paper as data: `tasks/papers/PAPER/paper.yaml`, its schema and how it is read.

The file has the fields of `Paper`, and four keys of its own:

* `anchors`: what the file refers to by YAML's own aliases; nothing reads it.
* `names`: names for the rows (`tasks.results.rows`), by expressions; or by rows, where whoever asks for the paper has
  none of this name.
* `claims`: table or figure -> what the paper says of it, a row for each of `tasks.results.claims.Row`.
* `numbers`: the function of results that computes further names for these rows; empty for none.

Printed numbers themselves are rows of `data/reference/paper_tables.csv` (columns paper, artefact, dataset, method,
setting, metric, value, std). Functions are named as `module:function` in full, so that fingerprints know of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from jinja2 import TemplateError
from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from tasks.core.errors import ConfigurationError
from tasks.results.claims import STRICT, Reason, Row, Setting, Values, row
from tasks.results.rows import Names, define, expand

if TYPE_CHECKING:
    from tasks.core import rows

FULL = "full"


@dataclass(frozen=True, config=STRICT)
class Column:
    """One measured quantity: what the paper calls it and what METRICS calls it."""

    group: str
    """Heading above several columns, such as "Hit"."""
    label: str
    """Heading of this column, such as "K = 5"."""
    published: str
    """`metric` in paper_tables.csv, such as "hit@5"."""
    metric: str
    """`metric` in METRICS, such as "sampled-100/hit"."""
    k: int
    protocol: str
    """Id of the protocol under which it is measured; columns of different protocols never share a table."""
    better: Literal["higher", "lower"]
    setting: str = ""
    """`setting` in paper_tables.csv ("" where the paper varies nothing)."""
    digits: int = 3
    data: str = ""
    """`dataset` in paper_tables.csv, where that is a part of the suite's data; empty for the suite's own."""
    controls: dict[str, str] = field(default_factory=dict, hash=False)
    """What stands above the methods: name -> metric in METRICS of what needs no method, averaged over systems."""
    ratio_to: tuple[str, ...] = ()
    """Metrics in METRICS by whose sum `metric` is divided; empty for `metric` as it is."""


@dataclass(frozen=True, config=STRICT)
class Part:
    """A block of a table that is shown as one table of its own."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, config=STRICT)
class Version:
    """A row of a table that compares versions of methods: what is printed, and which run of ours answers."""

    method: str
    """`method` in paper_tables.csv."""
    setting: str
    """`setting` in paper_tables.csv."""
    kind: str
    """What the paper calls this version, in a word or two."""
    system: str
    """Label of our system (`Results.find`)."""
    ours: Setting
    """Values of its configuration that make it this version."""

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"{self.method}, {self.kind}" if self.kind else self.method


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Artefact:
    """A table or figure of a paper."""

    key: str
    """`artefact` in paper_tables.csv: "table2"."""
    title: str
    note: str = ""
    """What to know of our version of it."""
    methods: tuple[str, ...] = ()
    """Methods that it is of, by the paper's names, in the paper's order."""

    @property
    def name(self) -> str:
        """What the paper calls it: "Table 2"."""
        return artefact_name(self.key)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Table(Artefact):
    """A table of a paper. `comparable` is false for a counterpart of ours that the paper does not print."""

    parts: tuple[Part, ...]
    remark: str = ""
    """What to know when our numbers are compared with the printed ones."""
    comparable: bool = True
    protocol: str = FULL
    """What tells a counterpart that the paper does not print from the printed table."""
    everyone: bool = False
    """Whether every system of the suite has a row, be it in another table of the paper or not."""
    versions: tuple[Version, ...] = ()
    """Its rows, where they are versions of `methods`; with them only the popularity lists have rows."""
    data: tuple[str, ...] = ()
    """It stands only in suites whose data have one of these in their name; empty for all suites."""
    alone: bool = True
    """Whether systems of ours that the paper does not have stand below its methods."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Panel:
    """A metric of METRICS along a key (empty: the length of the list), with other keys held at `base`, or at `at`."""

    key: str
    name: str
    metric: str
    label: str
    k: int = 0
    base: float | None = None  # where no configuration says what the key is there
    at: Values = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Figure(Artefact):
    """A figure of a paper that varies one key of a model's configuration."""

    panels: tuple[Panel, ...] = ()
    """What is drawn of it; nothing of what other pages show."""


@dataclass(frozen=True, config=STRICT)
class Quality:
    """A metric by which a suite ranks its systems."""

    metric: str
    """`metric` in METRICS, such as "full/ndcg"."""
    label: str
    protocol: str = ""
    """The protocol as a heading has it, such as "full"."""
    spoken: str = ""
    """The protocol in running text, such as "full ranking"."""
    digits: int = 3
    k: int | None = None
    """Its own cut-off; None for the headline's, 0 where lists have nothing to do with it."""
    lower: bool = False

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


@dataclass(frozen=True, config=STRICT)
class Word:
    """What pages say for an id of evidence.csv, an interpretation or a measure; or for a setting of a method."""

    text: str
    id: str = ""
    setting: Setting = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Paper:
    """A paper: its reference, its methods, and every table and figure with results."""

    key: str
    """Its folder, and `paper` in paper_tables.csv."""
    name: str
    """What it is called, after its method."""
    reference: str
    methods: dict[str, str]
    """The paper's name of a method -> the label of our system: its experiment's name without the suite's."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    qualities: tuple[Quality, ...]
    """What systems are ranked by in tables and sentences, in the order of the headline's columns."""
    utility: Quality
    """The one with which privacy is traded off."""
    headline_k: int
    """The cut-off of everything for which the paper names none; the nearest measured one is taken."""
    open: tuple[str, ...]
    """Systems without protection whose ranking is what protection costs, by their labels."""
    validation: str
    """The metric that chooses epochs, such as "NDCG"."""
    unit: float = 1.0
    """What one of the printed numbers is worth in ours: 0.01 where the paper prints percent."""
    notes: dict[str, str] = field(default_factory=dict)
    """Printed data set -> what to know when its printed statistics are compared with ours."""
    data_table: str = "table1"
    """Key of the table that has these statistics."""
    settings_table: str = ""
    """Key of the table that has the settings of the paper's method; empty where none is shown."""
    run: str = "seed"
    """What is repeated: a seed, or a fold."""
    overlap: float | None = None
    """Where the runs of a system are folds of one cross-validation, tested over training ratings of a fold; None where
    they are seeds, which are independent."""
    caveats: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Data set, or "" for all -> what its reports say in addition to what the suite says of its data, as paragraphs."""
    measured: dict[str, tuple[Quality, ...]] = field(default_factory=dict)
    """Group -> what else is measured of all systems, by which nothing is ranked."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Table or figure -> why public data cannot give all of it."""
    bases: dict[str, float] = field(default_factory=dict)
    """Key that the data of a run say, not its model's configuration -> its value at setting `base`."""
    pairs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """`dataset` in paper_tables.csv of what is printed of two networks together -> these networks."""
    reasons: tuple[Reason, ...] = ()
    """Why pairs of methods are ordered otherwise than printed; the first that covers a pair counts."""
    elsewhere: bool = False
    """Whether claims are also tested on data of which the paper prints nothing."""
    counted_after: tuple[int, int] = (-1, -1)
    """Steps of the protocol, by number, after which the paper counts users, items and average lengths, and
    interactions."""
    counts: str = ""
    """The function that counts the same, and the settings of its method, for comparison.csv; empty: none."""
    numbers: str = ""
    """The function of results that computes further names for the rows of `claims`."""
    claims: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Table or figure -> what the paper says of it, as rows that are not filled in; see `claim_rows`."""
    words: tuple[Word, ...] = ()
    """Of ids that are no names; names are shown as they are."""

    @property
    def english(self) -> dict[str, str]:
        """Id of evidence.csv -> what pages say."""
        return {word.id: word.text for word in self.words if word.id}

    def better(self, metric: str) -> str:
        """`higher` or `lower`, as the tables, or else what is ranked or measured, have it; empty where none has it."""
        columns = (column for table in self.tables for part in table.parts for column in part.columns)
        better: dict[str, str] = {each.metric: each.better for each in columns}
        measured = (each for group in self.measured.values() for each in group)
        better |= {each.metric: "lower" for each in measured if each.lower}
        better |= {each.metric: "lower" if each.lower else "higher" for each in (self.utility, *self.qualities)}
        return better.get(metric, "")

    def joined(self, networks: tuple[str, ...]) -> str | None:
        """The data set in paper_tables.csv of two networks together; None where nothing is printed of both."""
        return next((data for data, pair in self.pairs.items() if pair == networks), None)

    def claim_rows(self, names: Names) -> list[Row]:
        """All claims, with their texts filled in by the names that are known.

        Raises:
            ConfigurationError: a row is wrong.
        """
        with _reading(f"{self.key}: claims"):
            rows = [
                {"artefact": key} | each for key, items in self.claims.items() for each in expand(_shared(items), names)
            ]
            return [row(each) for each in rows]


def artefact_name(key: str) -> str:
    """What a table or figure is called: "Table 1" of `table1`."""
    return " ".join(re.findall(r"[a-z]+|\d+", key)).capitalize()


@cache
def load(path: Path, networks: tuple[object, ...] = ()) -> Paper:
    """The paper of a folder.

    Args:
        path: its paper.yaml.
        networks: those of a suite's data, which rows know as `networks`; empty for those that the paper prints.

    Raises:
        ConfigurationError: the file is no YAML, or a row is not as the schema has it.
    """
    with _reading(str(path)):
        record = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        record.pop("anchors", None)
        claims, names = record.pop("claims", {}), define(record.pop("names", {}), {"networks": networks})
        return Paper(key=path.parent.name, claims=claims, **expand(record, names))


def _shared(claims: list[rows.Row]) -> list[rows.Row]:
    """Rows of claims whose interpretations each have what the claim has itself unless they say otherwise."""
    result = []
    for claim in claims:
        if "items" in claim:
            claim = claim | {"items": _shared(claim["items"])}
        elif "readings" in claim:
            outer = {key: value for key, value in claim.items() if key in ("claim", "each", "when")}
            inner = {key: value for key, value in claim.items() if key not in ("each", "when", "readings")}
            claim = outer | {"readings": [inner | variant for variant in claim["readings"]]}
        result.append(claim)
    return result


@contextmanager
def _reading(where: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        problem = error.errors()[0]
        location = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(f"{where}: {location}: {problem['msg']}") from error
    except (yaml.YAMLError, TemplateError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{where}: {error}") from error
