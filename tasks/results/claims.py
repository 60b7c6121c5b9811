"""What a paper claims, as comparisons of our numbers, and why methods may be ordered otherwise than printed.

A claim is supported if each of its comparisons is decided as claimed (`tasks.results.significance.decide`),
contradicted if one is decided the other way, and not decided otherwise. A claim of what holds "in most cases", "in
general" or "generally" needs more than half of its cases, and is contradicted by half of them. A sentence that can be
read in several ways is one claim; where these have different verdicts it depends on the reading, and where some were
not run it is not decided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import polars as pl
from pydantic import BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass

from tasks.results.significance import decide

if TYPE_CHECKING:
    from tasks.core import rows

STRICT = ConfigDict(extra="forbid")
Verdict = Literal["supported", "contradicted", "depends-on-the-reading", "not-decided", "not-run"]
Kind = Literal["protocol", "their-code", "their-noise", "part", "not-decided"]


@dataclass(frozen=True, config=STRICT)
class Claim:
    """A published claim that is not tested."""

    artefact: str
    """The table or figure it is about: its key in the paper."""
    claim: str
    note: str
    """Why, as its paper's file says."""


@dataclass(frozen=True, config=STRICT)
class Measure:
    """A quantity, averaged over cut-offs. `factor` scales the right side of a comparison.

    Where `against` is named, it does so in what contradicts the claim: a factor of ours that is stricter than the
    paper's words may leave a claim undecided, and contradicts none that holds without it.
    """

    name: str
    metric: str
    ks: tuple[int, ...] = (0,)
    """Cut-offs; 0 for a metric without one."""
    better: Literal["higher", "lower"] = "higher"
    factor: float = 1.0
    against: float | None = None
    digits: int = 3
    ratio_to: tuple[str, ...] = ()
    """Metrics by whose sum `metric` is divided; empty for `metric` as it is."""

    @property
    def sign(self) -> float:
        """+1 where higher is better."""
        return 1.0 if self.better == "higher" else -1.0


_ITEMS = BeforeValidator(lambda at: tuple(at.items()) if isinstance(at, Mapping) else at)
Values = Annotated[tuple[tuple[str, float], ...], _ITEMS]
"""Keys of a configuration and their values; a mapping in YAML."""


Setting = Mapping[str, Any]
"""Values of a configuration."""


@dataclass(frozen=True, config=STRICT)
class Side:
    """A method by the paper's name (or a model's own), at setting `base` or at a value of a swept key."""

    method: str
    key: str = ""
    value: int | float | None = 0
    setting: Setting = field(default_factory=dict, hash=False)
    """Values of its configuration, where they are not of a swept key alone."""
    at: Values = ()
    """Keys and values of a setting that varies several, or none where all are as at setting `base`."""

    @property
    def values(self) -> dict[str, object]:
        """All that is not as at setting `base`; a key that is to vary has None."""
        return dict(self.at) | dict(self.setting) | ({self.key: self.value} if self.key else {})


AnySide = Annotated[Side, BeforeValidator(lambda value: Side(value) if isinstance(value, str) else value)]
"""A name alone stands for that method at setting `base`."""


class Pair(NamedTuple):
    """Two sides of a comparison."""

    better: AnySide
    than: AnySide


@dataclass(frozen=True, config=STRICT)
class Statement:
    """A sentence of the paper, and where it is from."""

    artefact: str
    claim: str
    floor: str = field(default="", kw_only=True)
    """Label of a trivial baseline with which all is compared that the claim calls better; empty for none."""


@dataclass(frozen=True, config=STRICT)
class Order(Statement):
    """In each pair the first is better than the second, on every measure (`most`: on most of them)."""

    pairs: tuple[Pair, ...]
    measures: tuple[Measure, ...]
    most: bool = False
    apart: bool = False
    """Whether each pair is a case of its own, not each measure."""
    near: str = ""
    """A method to which the first is closer than the second, run by run; empty where it is better."""
    at_most: float | None = None
    """By which share of the second the first exceeds it at most; None for no limit."""

    @property
    def cases(self) -> int:
        """Measures, or pairs by each of them, run or not."""
        return len(self.measures) * (len(self.pairs) if self.apart else 1)


@dataclass(frozen=True, config=STRICT)
class Trend(Statement):
    """A measure rises (or falls) with a swept key, or with the cut-off where `key` is "K".

    Per run: the least-squares slope over the ranks of the values, of the mean over `methods`; where `below` is named,
    of how far they stay below that method, where `near` is, of how far they are from it on either side.
    """

    key: str
    methods: tuple[str, ...]
    measures: tuple[Measure, ...]
    rises: bool
    below: str = ""
    near: str = ""
    most: bool = False
    values: tuple[float, ...] = ()
    """Values of the key that count; empty for all that were run."""
    at: Values = ()
    """What other keys are held at, where not at setting `base`."""
    minus: Values = ()
    """What is subtracted: the same with other keys held at these; empty for nothing."""

    @property
    def cases(self) -> int:
        """Measures, run or not."""
        return len(self.measures)


Spec = Order | Trend
"""A claim before it is tested."""


@dataclass(frozen=True, config=STRICT)
class Readings:
    """A sentence of the paper that can be interpreted in several ways: one claim, judged by each of them."""

    artefact: str
    claim: str
    specs: dict[str, Spec]
    """Id of an interpretation -> what tests it."""


@dataclass(frozen=True, config=STRICT)
class Computed:
    """A claim of arithmetic, decided by a function of the paper's own."""

    artefact: str
    claim: str
    computed_by: str
    """`module:function`, of `Against`, that returns by how much the claim holds (below zero: it does not) and what that
    was computed from: name -> number."""


Row = Order | Trend | Readings | Computed | Claim
_CLASSES: dict[str, type[Order | Trend | Computed | Claim]] = {
    "pairs": Order,
    "key": Trend,
    "computed_by": Computed,
    "note": Claim,
}
"""A key that rows of one class alone have -> that class."""


def verdict(rows: Sequence[rows.Row]) -> Verdict:
    """The verdict on one interpretation of a claim.

    rows: its rows of evidence.csv, of which those with a case are comparisons; `only` says which that cannot support
    the claim, or cannot contradict it.
    """
    cases: dict[int, list[tuple[str, int]]] = {}
    for each in rows:
        if each["case"] is not None:
            side = decide(*(each[name] for name in ("difference", "low", "high", "runs"))).side
            cases.setdefault(each["case"], []).append((each["only"], side))
    if not cases:
        return "not-run"
    supported = sum(all(side > 0 for only, side in case if only != "contradicts") for case in cases.values())
    broken = sum(any(side < 0 for only, side in case if only != "supports") for case in cases.values())
    most_of = max(len(cases), rows[0]["most_of"]) if rows[0]["most_of"] else 0
    if 2 * broken >= most_of if most_of else broken:  # what was not run may go either way
        return "contradicted"
    if 2 * supported > most_of if most_of else supported == len(cases) and rows[0]["absent"] == "[]":
        return "supported"
    return "not-decided"


def verdicts(evidence: pl.DataFrame) -> dict[int, dict[str, Verdict]]:
    """Number of a claim -> interpretation -> verdict, of evidence.csv; claims that are not tested have none."""
    result: dict[int, dict[str, Verdict]] = {}
    for (number, variant), rows in evidence.partition_by("number", "reading", as_dict=True).items():
        result.setdefault(number, {})[variant or ""] = verdict(rows.to_dicts())
    return result


def merged(readings: Collection[Verdict]) -> Verdict:
    """The verdict of all interpretations of a sentence."""
    run = {verdict for verdict in readings if verdict != "not-run"}
    if len(run) > 1:
        return "depends-on-the-reading"
    if run and "not-run" in readings:
        return "not-decided"  # what was not run may go either way
    return next(iter(run), "not-run")


def row(record: rows.Row) -> Row:
    """A claim of its row, with all texts filled in.

    `better` and `than` stand for all pairs of one of each. A row of `readings` is a claim's row named by `reading`.

    Raises:
        pydantic.ValidationError: a key is unknown, missing or of another type.
    """
    if "readings" in record:
        specs = {each["reading"]: _test({"artefact": record["artefact"]} | each) for each in record["readings"]}
        return Readings(record["artefact"], record["claim"], specs)  # type: ignore[arg-type]  # validated there
    return _test(record)


def _test(record: rows.Row) -> Order | Trend | Computed | Claim:
    fields = {key: value for key, value in record.items() if key != "reading"}
    if "better" in fields:
        sides = (fields.pop(key) for key in ("better", "than"))
        first, second = (side if isinstance(side, list) else [side] for side in sides)
        fields["pairs"] = [Pair(better, than) for better in first for than in second]
    return next((kind for key, kind in _CLASSES.items() if key in fields), Order)(**fields)


@dataclass(frozen=True, config=STRICT)
class Reading:
    """Another interpretation of what a paper leaves open, or what its authors' code does, as far as it was measured."""

    metric: tuple[str, str] = ("", "")
    """A part of the name of a metric in METRICS, and what stands there instead; empty for the same metric."""
    metric_rows: tuple[str, ...] = ()
    """Rows of which that metric is read; empty for all."""
    settings: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    """Row of the table -> the setting of its system that stands in its place."""
    systems: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Row of the table -> the label of the system that stands in its place."""


@dataclass(frozen=True, config=STRICT)
class Reason:
    """Why pairs of methods are ordered otherwise than printed; of several that cover a pair the first counts."""

    name: str
    kind: Kind
    evidence: str
    """What shows it, in one or two sentences."""
    sources: tuple[str, ...]
    """Where that stands: docs/PAGE.md#section, or a test as path::name."""
    tables: tuple[str, ...] = ()
    """Keys of the tables whose pairs it may cover; empty for all."""
    better: tuple[str, ...] = ()
    """Rows, as patterns, of which one must be the better of the pair in print; empty for any."""
    not_worse: tuple[str, ...] = ()
    """Rows, as patterns, of which none may be the worse of the pair in print."""
    rows: tuple[str, ...] = ()
    """Rows of which one must be in the pair; empty for any."""
    metrics: tuple[str, ...] = ()
    """Printed names of its metrics, as patterns; empty for all."""
    reading: Reading | None = None
    """What must order a pair as printed; None where the evidence is of another sort."""
