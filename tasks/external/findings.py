"""What an audit found, as it is written to audit.json. The schema is committed next to this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from tasks.core.errors import DataError
from tasks.evaluation.statistics import crossed_interval

State = Literal["shown", "not shown", "cannot be decided"]
Question = Literal[
    "attributes", "own items", "users", "interactions", "held-back ratings", "canaries", "links", "re-identification"
]


def shown(text: str) -> str:
    """A text on one line, as errors show it: without characters that a terminal obeys."""
    return str(DataError(text))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measure(_Part):
    """A number with its 95 % interval, where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def with_interval(name: str, value: float, low: float, high: float) -> Measure:
    """A number with its interval."""
    return Measure(name=name, value=value, low=low, high=high)


def mean(name: str, values: NDArray[np.float64], seed: int) -> Measure:
    """The mean over users, (n,), with its interval for other users."""
    return with_interval(name, float(values.mean()), *crossed_interval(values[None], seed=seed))


class Attack(_Part):
    """One attack, with the same measures of its controls and one test."""

    name: str
    measures: list[Measure]
    controls: list[Measure] = Field(default_factory=list)
    p: float = Field(description="One-sided, against all controls: the largest of the p-values.")
    p_corrected: float = Field(default=1.0, description="Holm's correction for all tests of this audit.")
    shown: bool = Field(default=False, description="p_corrected is at most the audit's alpha.")
    roc: list[tuple[float, float]] = Field(
        default_factory=list, description="(false positive rate, true positive rate), for logarithmic axes."
    )


class Answer(_Part):
    """The answer to one question about one subject."""

    question: Question
    subject: str = Field(description="What is inferred: an attribute, or the kind of thing.")
    state: State
    sentence: str
    notes: list[str] = Field(default_factory=list)
    attacks: list[Attack] = Field(default_factory=list)
    decided_by: str = Field(default="", description="The attack with the smallest p, whose numbers the sentence has.")


def tested(question: Question, subject: str, notes: list[str], attacks: list[Attack]) -> Answer:
    """The answer before all tests of the audit are corrected together (`tasks.external.verdict`)."""
    return Answer(question=question, subject=subject, state="not shown", sentence="", notes=notes, attacks=attacks)


def undecided(question: Question, subject: str, why: str) -> Answer:
    """The answer where there is too little to try anything on."""
    return Answer(question=question, subject=subject, state="cannot be decided", sentence=why)


class Canaries(_Part):
    """What planted users prove of epsilon."""

    epsilon: float = Field(description="Lower bound; 0 where nothing is proved.")
    provable: float = Field(description="The largest bound that so many canaries could have proved.")
    control: float | None = Field(
        description="What the same audit proves of the same system without its protection; null without a control."
    )
    delta: float
    confidence: float
    canaries: int
    rule: str = Field(description="The rule of guessing that gave the bound.")
    guesses: int
    correct: int
    claimed: float | None
    claim: Literal["refuted", "consistent", "inconclusive", "none"]
    unit: str = Field(description="Who is protected from whom: the neighbouring relation and the observer.")

    @property
    def state(self) -> State:
        """Shown where a claim is refuted, or anything is proved without one; not shown where a control shows power."""
        if self.claim == "refuted" or (self.claimed is None and self.epsilon > 0):
            return "shown"
        powerful = self.claim == "consistent" or (self.claimed is None and bool(self.control))
        return "not shown" if powerful else "cannot be decided"


class Exposure(_Part):
    """How what is most exposed is distributed; ids stand in exposed.csv alone."""

    of: Literal["users", "items"]
    count: int
    mean: float
    p90: float
    p99: float
    most: float


class File(_Part):
    """A file that was read."""

    role: str
    path: str
    rows: int
    columns: Mapping[str, str]
    notes: list[str]

    @property
    def line(self) -> str:
        """What was read, on one line."""
        columns = ", ".join(name if name == role else f"{name} = {role}" for role, name in self.columns.items())
        notes = "; ".join([f"{self.rows:,} rows", f"columns {columns}", *self.notes])
        return shown(f"{self.role}: {self.path} ({notes})")


class Verdict(_Part):
    """The sentences that the command ends with."""

    exit_code: Literal[0, 3, 4]
    questions: int
    answered: int = Field(description="Of the questions, those that could be decided.")
    shown: int = Field(description="Of the questions, those that show a leak or refute a claim.")
    sentences: list[str]


class Audit(_Part):
    """All of audit.json."""

    format: Literal["dprec-audit/2"] = "dprec-audit/2"
    alpha: float = Field(description="Probability of any false alarm among all tests together.")
    seed: int
    files: list[File]
    answers: list[Answer]
    canaries: Canaries | None
    exposure: list[Exposure]
    verdict: Verdict
