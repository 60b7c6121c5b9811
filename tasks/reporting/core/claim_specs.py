"""Kinds of published claims, and the comparisons of our numbers that test them; `claims` judges them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.reporting.core.layout import join_words, number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.sweeps import NAMES, base_value, find_setting, settings_along, swept

Verdict = Literal["supported", "contradicted", "depends on the reading", "not decided", "not run"]


@dataclass(frozen=True)
class Claim:
    """A published claim and what our numbers say to it."""

    artefact: str
    """The table or figure it is about: its key in `published`."""
    claim: str
    verdict: Verdict
    evidence: str

    @property
    def kind(self) -> str:
        """CSS class of the verdict."""
        return self.verdict.replace(" ", "-")


@dataclass(frozen=True)
class Measure:
    """A quantity, averaged over cut-offs. `factor` scales the right side of a comparison.

    Where `against` is named, it does so in what contradicts the claim: a factor of ours that is stricter than the
    paper's words may leave a claim undecided, and contradicts none that holds without it.
    """

    name: str
    metric: str
    ks: tuple[int, ...]
    better: Literal["higher", "lower"]
    factor: float = 1.0
    against: float | None = None
    digits: int = 3
    """Decimals that are told."""

    @property
    def sign(self) -> float:
        """+1 where higher is better."""
        return 1.0 if self.better == "higher" else -1.0


@dataclass(frozen=True)
class Side:
    """A method by the paper's name (or a model's own), at setting `base` or at a value of a swept key."""

    method: str
    key: str = ""
    value: float = 0.0
    setting: str = ""
    """Values of its configuration, as `Results.find_setting` reads them, where they are not of a swept key alone."""
    version: str | None = ""
    """What that setting is called; None where the method alone is told."""
    at: tuple[tuple[str, float], ...] = ()
    """Keys and values of a setting that varies several, or none where all are as at setting `base`."""

    @property
    def name(self) -> str:
        """As it is told."""
        if self.version is not None and (self.setting or self.at):
            return f"{self.method} ({self.version or self.setting})"
        return f"{self.method} ({NAMES.get(self.key, self.key)} = {self.value:g})" if self.key else self.method


@dataclass(frozen=True)
class Comparison:
    """Claimed is left > right; contradicted is it by left < against, or by left < right where that is None.

    left, right, against: (n_runs,) float64; `group` is the case it belongs to.
    """

    group: str
    text: str
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    against: NDArray[np.float64] | None = None

    @property
    def lowest(self) -> NDArray[np.float64]:
        """What left falls below where the claim is contradicted."""
        return self.right if self.against is None else self.against


class Spec(Protocol):
    """A claim before it is tested."""

    @property
    def artefact(self) -> str:
        """Table or figure of the paper that it is drawn from."""
        ...

    @property
    def claim(self) -> str:
        """What the paper says, in a sentence."""
        ...

    @property
    def most(self) -> bool:
        """Whether it is enough that most of its groups hold; otherwise all must."""
        ...

    @property
    def cases(self) -> int:
        """How many groups there are where everything was run, if most of them are enough."""
        ...

    def comparisons(self, results: Results) -> tuple[list[Comparison], list[str]]:
        """The comparisons that can be made, and what was not run."""
        ...

    def compared_with_floor(self, results: Results) -> str:
        """What no verdict says: how much of it is worse than a constant; empty where that is not asked."""


def pairs_of(method: str, others: Iterable[str]) -> tuple[tuple[Side, Side], ...]:
    """A method beside each of the others."""
    return tuple((Side(method), Side(other)) for other in others)


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, and where it is from."""

    artefact: str
    claim: str
    floor: str = field(default="", kw_only=True)
    """Label of a system beside which all that the claim calls better is set; empty for none."""

    def compared_with_floor(self, results: Results) -> str:
        """How many settings have a worse mean than the floor, and the furthest of them; empty where none was run."""
        below = []
        for side, measure in self._praised(results) if self.floor else ():
            ours = by_seed(results, side, measure)
            floor = by_seed(results, Side(self.floor, at=side.at), measure)
            if seeds := sorted(ours.keys() & floor.keys()):
                means = [float(np.mean([values[seed] for seed in seeds])) for values in (ours, floor)]
                below.append((measure.sign * (means[0] - means[1]), side, measure, means))
        if not below:
            return ""
        _, side, measure, means = min(below, key=lambda of: of[0])
        worse = sum(gap < 0 for gap, *_ in below)
        mine, theirs = (number(mean, measure.digits) for mean in means)
        furthest = f"; furthest, {measure.name} {mine} of {side.name} against {theirs}" if worse else ""
        return f" Means over all runs worse than that of {self.floor}: {worse} of {len(below)}{furthest}."

    @property
    def cases(self) -> int:
        """How many there are of which it speaks, run or not; 0 where all must hold."""
        return 0

    def _praised(self, results: Results) -> list[tuple[Side, Measure]]:
        """What it calls better, or compares with itself, and by what."""
        del results
        return []


@dataclass(frozen=True)
class Order(Statement):
    """In each pair the first is better than the second, on every measure (`most`: on most of them)."""

    pairs: tuple[tuple[Side, Side], ...]
    measures: tuple[Measure, ...]
    most: bool = False
    apart: bool = False
    """Whether each pair is a case of its own, not each measure."""
    near: str = ""
    """A method to which the first is closer than the second, run by run; empty where it is better."""
    at_most: float | None = None
    """By which share of the second the first exceeds it at most; None where by whatever."""

    @property
    def cases(self) -> int:
        """Measures, or pairs by each of them."""
        return len(self.measures) * (len(self.pairs) if self.apart else 1)

    def comparisons(self, results: Results) -> tuple[list[Comparison], list[str]]:
        """One per pair and measure."""
        made, absent = [], []
        for measure in self.measures:
            for first, second in self.pairs:
                sides = (first, second, Side(self.near)) if self.near else (first, second)
                values = [by_seed(results, side, measure) for side in sides]
                absent += [side.name for side, of in zip(sides, values, strict=True) if not of]
                if seeds := sorted(set.intersection(*(set(of) for of in values))):
                    arrays = [np.array([of[seed] for seed in seeds]) for of in values]
                    labels = [
                        f"{side.name} {number(of.mean(), measure.digits)}"
                        for side, of in zip(sides, arrays, strict=True)
                    ]
                    text = f"{measure.name}: {', '.join(labels)}"
                    group = text if self.apart else measure.name
                    made.append(Comparison(group, text, *self._sides(measure, arrays)))
                    if self.at_most is not None:
                        left, right, _ = self._sides(measure, arrays)
                        limit = f"{text}, at most {100 * self.at_most:g} % more"
                        made.append(Comparison(group, limit, (1 + self.at_most) * right, left))
        return made, unique(absent)

    def _sides(self, measure: Measure, values: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
        """The two sides of a comparison, larger being better, and what contradicts it."""
        if self.near:
            first, second = (-np.abs(of - values[2]) for of in values[:2])
            return first, second, second
        left, right = (measure.sign * of for of in values)
        against = measure.factor if measure.against is None else measure.against
        return left, measure.factor * right, against * right

    def _praised(self, results: Results) -> list[tuple[Side, Measure]]:
        del results
        return [(side, measure) for measure in self.measures for side in unique([first for first, _ in self.pairs])]


@dataclass(frozen=True)
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
    at: tuple[tuple[str, float], ...] = ()
    """What other keys are held at, where not at setting `base`."""
    minus: tuple[tuple[str, float], ...] = ()
    """What is taken off: the same with other keys held at these; empty for nothing."""

    @property
    def cases(self) -> int:
        """Measures."""
        return len(self.measures)

    def comparisons(self, results: Results) -> tuple[list[Comparison], list[str]]:
        """One per measure: the slopes against zero."""
        made, absent = [], []
        for measure in self.measures:
            xs = self._shared(results, measure)
            curves: list[dict[int, NDArray[np.float64]]] = []
            for method in self.methods:
                curve = self._curve(results, method, measure, xs)
                absent += [] if curve else [f"{method} at three values of {NAMES.get(self.key, self.key)}"]
                curves += [curve] if curve else []
            if (other := self.below or self.near) and curves:
                top = self._curve(results, other, measure, xs)
                absent += [] if top else [other]
                curves = [{seed: top[seed] - curve[seed] for seed in curve.keys() & top.keys()} for curve in curves]
                if self.near:
                    curves = [{seed: np.abs(curve[seed]) for seed in curve} for curve in curves]
            if self.minus and curves:
                subtrahend = replace(self, at=self.minus, minus=())
                less = [subtrahend._curve(results, method, measure, xs) for method in self.methods]
                if len(less) != len(curves) or not all(less):
                    absent.append(f"{join_words(self.methods)} at the same values")
                    continue
                curves = [
                    {seed: curve[seed] - off[seed] for seed in curve.keys() & off.keys()}
                    for curve, off in zip(curves, less, strict=True)
                ]
            seeds = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
            if not seeds:
                continue
            values = np.mean([[curve[seed] for seed in seeds] for curve in curves], axis=0)  # (n_seeds, n_x)
            slopes = np.polyfit(np.arange(values.shape[1]), values.T, 1)[0]
            ends = values.mean(axis=0)
            name = NAMES.get(self.key, self.key)
            what = f"{self.below} minus the other, {measure.name}" if self.below else measure.name
            what = f"distance from {self.near}, {measure.name}" if self.near else what
            what = f"difference of {what}" if self.minus else what
            first, last = (number(end, measure.digits) for end in (ends[0], ends[-1]))
            text = f"{what}: {first} at {name} = {xs[0]:g}, {last} at {xs[-1]:g}"
            made.append(Comparison(measure.name, text, slopes if self.rises else -slopes, np.zeros(len(slopes))))
        return made, unique(absent)

    def _praised(self, results: Results) -> list[tuple[Side, Measure]]:
        name = NAMES.get(self.key, self.key)
        return [
            (Side(method, at=(*self.at, (self.key, x)), version=f"{name} = {x:g}"), measure)
            for measure in self.measures
            for method in self.methods
            for x in self._settings(results, method)
        ]

    def _settings(self, results: Results, method: str) -> dict[float, str]:
        """Value of the swept key -> setting, of a method."""
        system = system_of(results, method)
        if system is None:
            return {}
        if self.at:
            settings = settings_along(results, system, self.key, dict(self.at))
        else:
            settings = swept(results, system).get(self.key, {})
        return {x: setting for x, setting in settings.items() if not self.values or x in self.values}

    def _shared(self, results: Results, measure: Measure) -> list[float]:
        """The x at which all methods were run that were run at three or more, and the one above them."""
        if self.key == "K":
            return [float(k) for k in measure.ks]
        runs = [self._settings(results, method) for method in (*self.methods, self.below or self.near) if method]
        enough = [set(settings) for settings in runs if len(settings) >= 3]
        return sorted(set.intersection(*enough)) if enough else []

    def _curve(
        self, results: Results, method: str, measure: Measure, xs: list[float]
    ) -> dict[int, NDArray[np.float64]]:
        """Seed -> (n_x,) values; empty where there are fewer than three, or one of them was not run."""
        if self.key == "K":
            columns = [
                by_seed(results, Side(method), Measure(measure.name, measure.metric, (k,), measure.better))
                for k in measure.ks
            ]
        else:
            settings = self._settings(results, method)
            columns = [
                by_seed(results, Side(method, setting=settings[x]), measure) if x in settings else {} for x in xs
            ]
        if len(xs) < 3 or not all(columns):
            return {}
        seeds = sorted(set.intersection(*(set(column) for column in columns)))
        return {seed: np.array([column[seed] for column in columns]) for seed in seeds}


@dataclass(frozen=True)
class Readings:
    """A sentence of the paper that can be read in several ways: one claim, judged by each of them."""

    artefact: str
    claim: str
    specs: Mapping[str, Spec]
    """Reading, as it is told -> what tests it."""


def system_of(results: Results, method: str) -> System | None:
    """The system that answers to a method's name in the paper."""
    return results.find(results.layout.methods.get(method, method))


def by_seed(results: Results, side: Side, measure: Measure) -> dict[int, float]:
    """Seed -> mean over the cut-offs; empty where the system, the setting or a cut-off was not run."""
    system = system_of(results, side.method)
    if system is None:
        return {}
    setting: str | None
    if side.at:
        setting = find_setting(results, system, dict(side.at))
    else:
        wanted = _swept_setting(results, system, side) if side.key else side.setting or BASE
        setting = None if wanted is None else results.find_setting(system, wanted)
    if setting is None:
        return {}
    columns = [results.by_seed(system, measure.metric, k, setting) for k in measure.ks]
    seeds = set.intersection(*(set(column) for column in columns))
    return {seed: float(np.mean([column[seed] for column in columns])) for seed in sorted(seeds)}


def _swept_setting(results: Results, system: System, side: Side) -> str | None:
    """The setting that has the value of a key: `base`, too, where nothing else varies that key."""
    setting = swept(results, system).get(side.key, {}).get(side.value)
    return BASE if setting is None and base_value(system, side.key) == side.value else setting
