"""An audit from files, from the first row read to the verdict. Nothing is written here."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tasks.attacks.membership import Floats
from tasks.core.errors import ConfigurationError, DataError
from tasks.external import canaries as planted
from tasks.external import exposure, membership, reading
from tasks.external.findings import Answer, Audit, Exposure
from tasks.external.inputs import Inputs, assemble
from tasks.external.own_items import own_items
from tasks.external.reading import Given, Log, Names, Role
from tasks.external.reconstruction import held_back
from tasks.external.signals import cosines
from tasks.external.verdict import ALPHA, decide


class OtherRun(NamedTuple):
    """A shadow run: what it was trained on, its lists, and which canaries were drawn for it alone."""

    train: Path
    lists: Path
    canaries: Path | None = None


@dataclass(frozen=True)
class AuditRequest:
    """The files and options of an audit; None where none is given, and for lists that a command is to write.

    control: runs of the same system without its protection, with canaries.
    """

    train: Path
    recommendations: Path | None
    public: Path | None = None
    users: Path | None = None
    scores: Path | None = None
    canaries: Path | None = None
    shadows: Sequence[OtherRun] = ()
    attributes: tuple[str, ...] = ()
    claimed_epsilon: float | None = None
    delta: float = 1e-5
    seed: int = 0
    jobs: int = 2
    control: Sequence[OtherRun] = ()
    allow_undecided: bool = False
    names: Names = field(default_factory=Names)


def check(request: AuditRequest) -> None:
    """Refuse options that nothing could heed, before anything long begins; of files that there are not yet, no columns.

    Raises:
        ConfigurationError: a number out of range, attributes or a claim without what decides them, or a column that no
            file has (it would silently be another, of a usual name).
        DataError: a file whose columns are looked for cannot be read.
    """
    claimed = request.claimed_epsilon
    if not 0 <= request.delta < 1:
        raise ConfigurationError(f"--delta must be in [0, 1), not {request.delta}")
    if claimed is not None and not claimed >= 0:
        raise ConfigurationError(f"--claimed-epsilon must be 0 or more, not {claimed}")
    if claimed is not None and request.canaries is None:
        raise ConfigurationError("--claimed-epsilon needs --canaries; `dprec audit canaries` makes them")
    if request.control and request.canaries is None:
        raise ConfigurationError("a control needs --canaries, by which it shows the power of the audit")
    if request.attributes and request.users is None:
        raise ConfigurationError("--attributes needs --users")
    files = [request.train, request.recommendations, request.public, request.scores, request.users]
    later: tuple[Role, ...] = () if request.recommendations else ("rank", "score")
    request.names.require([path for path in files if path is not None], later)


def run(request: AuditRequest, say: Callable[[str], None]) -> tuple[Audit, pl.DataFrame]:
    """What the audit found, and the most exposed users and items, for their owner.

    say: takes lines of progress, and what was taken for what.

    Raises:
        DataError: a file is not what it should be (names file, row and column).
    """
    assert request.recommendations is not None
    check(request)
    read, names = Log(say), request.names
    train = read(reading.interactions(request.train, "train", names))
    lists = read(reading.lists(request.recommendations, "recommendations", names))
    _require_known(lists, "item", train.rows["item"], request.train)
    public = read(reading.interactions(request.public, "public", names)) if request.public else None
    scores = read(reading.scores(request.scores, names)) if request.scores else None
    people = read(reading.attributes(request.users, names, request.attributes)) if request.users else None
    if people is not None:
        _require_known(people, "user", train.rows["user"], request.train)
    coins = read(reading.canaries(request.canaries)) if request.canaries else None
    runs = [planted.check_run(coins, train, lists)] if coins is not None else []

    def shadows() -> Iterator[tuple[Given, Given]]:  # read in turn: all of them together would not fit
        for shadow in request.shadows:
            trained_on, listed, coins_of_run = _read_run(shadow, "shadow", names)
            runs.extend(filter(None, [coins_of_run]))
            yield read(trained_on), read(listed)

    users = [] if coins is None else [*coins.rows["canary"], *coins.rows["witness"]]
    inputs = assemble(train, lists, public, scores, users, shadows())
    answers, single = _answer(inputs, people, request, say)
    proved = None
    if coins is not None:
        released = planted.scored(coins.rows, scores.rows) if scores is not None and len(runs) == 1 else None
        control = _prove(request.control, request, released) if request.control else None
        proved = planted.audit(runs, request.delta, request.claimed_epsilon, control, released)
    answers, verdict = decide(answers, proved, request.allow_undecided)
    leaks = {answer.question: answer.decided_by for answer in answers if answer.state == "shown"}
    exposures, exposed = list[Exposure](), pl.DataFrame()  # where nothing is shown, who is most exposed is chance
    if {"interactions", "own items"} & leaks.keys():
        values = single.values[leaks["interactions"]].scores if "interactions" in leaks else np.empty(0)
        exposures, exposed = exposure.exposure(inputs, single.pairs, single.is_member, values, request.seed)
    audit = Audit(
        alpha=ALPHA, seed=request.seed, files=read.files, answers=answers, canaries=proved, exposure=exposures,
        verdict=verdict,
    )  # fmt: skip
    return audit, exposed


def _answer(
    inputs: Inputs, people: Given | None, request: AuditRequest, say: Callable[[str], None]
) -> tuple[list[Answer], membership.Interactions]:
    """The answers to all questions but that of canaries, and what attacks say of single interactions."""
    say("similarities of items")
    similarity = cosines(inputs.known[np.flatnonzero(~inputs.planted)])  # no other question is about planted users
    say("membership of interactions")
    single = membership.interactions(inputs, similarity, request.seed)
    answers = [own_items(inputs, single.difference, single.listed, request.seed)]
    say("membership of users")
    answers += [membership.users(inputs, request.seed), single.answer]
    if inputs.rated:
        say("held-back ratings")
        answers.append(held_back(inputs, similarity, request.seed))
    if people is not None:
        from tasks.external.attributes import attributes  # torch and scikit-learn: seconds to import

        answers = attributes(inputs, people.rows, request.seed, request.jobs, say) + answers
    return answers, single


def _read_run(run: OtherRun, kind: str, names: Names) -> tuple[Given, Given, planted.Run | None]:
    """What a run was trained on, its lists, and its canaries."""
    train = reading.interactions(run.train, f"{kind} train", names)
    lists = reading.lists(run.lists, f"{kind} lists", names)
    coins = None if run.canaries is None else planted.check_run(reading.canaries(run.canaries), train, lists)
    return train, lists, coins


def _prove(runs: Sequence[OtherRun], request: AuditRequest, released: Floats | None) -> float:
    """What the canaries of other runs prove of ε, corrected as the audited one, which may have released scores."""
    checked = [coins for run in runs if (coins := _read_run(run, "control", request.names)[-1])]
    unknown = None if released is None else np.zeros(sum(len(run.included) for run in checked))
    return planted.audit(checked, request.delta, scores=unknown).epsilon


def _require_known(table: Given, what: str, ids: pl.Series, path: Path) -> None:
    """Refuse a file all of whose users, or items, are strangers."""
    if not table.rows[what].is_in(ids.implode()).any():
        raise DataError(f"{table.taken.path}: holds no {what} of {path}; do the ids agree?")


def find_shadows(pattern: str) -> list[OtherRun]:
    """The runs of all files of the pattern: NAME.csv or .parquet next to NAME.train.csv or .parquet."""
    paths = [Path(path) for path in sorted(glob.glob(pattern)) if not Path(path).stem.endswith(".train")]
    if not paths:
        raise DataError(f"--shadows {pattern!r}: no such files")
    if len({path.stem for path in paths}) < len(paths):
        raise DataError(f"--shadows {pattern!r}: matches one run's lists in two formats; name one")
    runs = []
    for path in paths:
        candidates = [path.with_suffix(f".train{suffix}") for suffix in (".parquet", ".csv")]
        train = next((candidate for candidate in candidates if candidate.is_file()), None)
        if train is None:
            raise DataError(
                f"{path}: neither {candidates[0].name} nor {candidates[1].name} says what this run was trained on"
            )
        runs.append(OtherRun(train, path))
    return runs
