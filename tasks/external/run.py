"""An audit from files, from the first row read to the verdict. Nothing is written here."""

from __future__ import annotations

import glob
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from tasks.errors import DataError
from tasks.external import canaries as planted
from tasks.external import exposure, membership, reading
from tasks.external.findings import Audit, Exposure, File
from tasks.external.inputs import assemble
from tasks.external.own_items import own_items
from tasks.external.reading import Given, Names, Taken
from tasks.external.reconstruction import held_back
from tasks.external.signals import similarities
from tasks.external.verdict import ALPHA, decide


@dataclass(frozen=True)
class Asked:
    """The files and options of an audit; None where none is given."""

    train: Path
    recommendations: Path
    public: Path | None = None
    users: Path | None = None
    scores: Path | None = None
    canaries: Path | None = None
    shadows: str | None = None
    attributes: tuple[str, ...] = ()
    claimed_epsilon: float | None = None
    delta: float = 1e-5
    seed: int = 0
    jobs: int = 2
    names: Names = field(default_factory=Names)


def run(asked: Asked, say: Callable[[str], None]) -> tuple[Audit, pl.DataFrame]:
    """What the audit found, and the most exposed users and items, for their owner.

    Args:
        say: takes lines of progress, and what was taken for what.

    Raises:
        DataError: a file is not what it should be (names file, row and column).
    """
    planted.check(asked.delta, asked.claimed_epsilon, asked.canaries)
    read: list[Taken] = []

    def taken(given: Given) -> Given:
        read.append(given.taken)
        say(given.taken.line)
        return given

    train = taken(reading.interactions(asked.train, "train", asked.names))
    lists = taken(reading.lists(asked.recommendations, "recommendations", asked.names))
    public = taken(reading.interactions(asked.public, "public", asked.names)) if asked.public else None
    scores = taken(reading.scores(asked.scores, asked.names)) if asked.scores else None
    people = taken(reading.attributes(asked.users, asked.names, asked.attributes)) if asked.users else None
    coins = taken(reading.canaries(asked.canaries)) if asked.canaries else None
    shadows = _shadows(asked.shadows) if asked.shadows else []
    hidden = planted.verify(coins, train, lists.rows["user"].unique().to_list()) if coins is not None else []
    runs = (
        (
            taken(reading.interactions(trained_on, "shadow train", asked.names)),
            taken(reading.lists(path, "shadow lists", asked.names)),
        )
        for trained_on, path in shadows
    )  # read in turn: all of them together would not fit
    inputs = assemble(train, lists, public, scores, hidden, runs)
    say("similarities of items")
    similarity = similarities(inputs)
    answers = [own_items(inputs, asked.seed)]
    say("membership of users")
    answers.append(membership.users(inputs, similarity, asked.seed))
    say("membership of interactions")
    answer, pairs, is_member, values = membership.interactions(inputs, similarity, asked.seed)
    answers.append(answer)
    say("held-back ratings")
    answers.append(held_back(inputs, similarity, asked.seed))
    if people is not None:
        from tasks.external.attributes import attributes  # torch and scikit-learn: seconds to import

        answers = attributes(inputs, people.rows, asked.seed, asked.jobs, say) + answers
    proved = planted.audit(coins, inputs, asked.delta, asked.claimed_epsilon) if coins is not None else None
    answers, verdict = decide(answers, proved)
    leaks = {answer.question for answer in answers if answer.state == "shown"}
    shown: list[Exposure] = []  # where nothing is shown, who is most exposed is chance
    exposed = pl.DataFrame()
    if "interactions" in leaks:
        shown, exposed = exposure.exposure(inputs, pairs, is_member, values)
    elif "own items" in leaks:
        shown, exposed = exposure.exposure(inputs, pairs, is_member, np.empty(0))
    audit = Audit(
        alpha=ALPHA,
        seed=asked.seed,
        files=[_file(table) for table in read],
        answers=answers,
        canaries=proved,
        exposure=shown,
        verdict=verdict,
    )
    return audit, exposed


def _shadows(pattern: str) -> list[tuple[Path, Path]]:
    """(training data, lists) of every file of the pattern: NAME.csv or .parquet beside NAME.train.csv or .parquet."""
    paths = [Path(path) for path in sorted(glob.glob(pattern)) if not Path(path).stem.endswith(".train")]
    if not paths:
        raise DataError(f"--shadows {pattern!r}: no such files")
    runs = []
    for path in paths:
        candidates = [path.with_suffix(f".train{suffix}") for suffix in (".parquet", ".csv")]
        train = next((candidate for candidate in candidates if candidate.is_file()), None)
        if train is None:
            raise DataError(
                f"{path}: neither {candidates[0].name} nor {candidates[1].name} says what this run was trained on"
            )
        runs.append((train, path))
    return runs


def _file(taken: Taken) -> File:
    return File(
        role=taken.role, path=str(taken.path), rows=taken.rows, columns=dict(taken.columns), notes=list(taken.notes)
    )
