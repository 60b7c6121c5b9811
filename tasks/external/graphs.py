"""Do released embeddings of a network tell who is linked, or who somebody is in another network?

Links: pairs of users whose vectors are alike, by cosine, by dot product, or as known links teach. People: an attacker
who knows half of the anchors maps one release into the space of the other by an orthogonal map, and names the nearest
account for the other half. The attacks are those of `tasks.attacks.embeddings`. Attributes make friends and tell people
apart without any release: where they are given, an attack counts only beyond that. Nobody is named in what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import orthogonal_procrustes
from sklearn.preprocessing import normalize

from tasks.attacks.embeddings.anchors import nearest_accounts, reidentify
from tasks.attacks.embeddings.links import Pairs, draw, similarities
from tasks.errors import ConfigurationError, DataError
from tasks.evaluation.alignment import PairScorer, similarity_scorer
from tasks.evaluation.detection import p_more_often
from tasks.external import reading
from tasks.external.attacks import Attacked, measure
from tasks.external.findings import Answer, Attack, Audit, Measure, tested, undecided, with_interval
from tasks.external.reading import Given, Names
from tasks.external.verdict import ALPHA, decide

Vectors = NDArray[np.float64]
PAIRS = 4_000
"""Links that are attacked, and as many other pairs."""
KNOWN = 0.5
"""Of links and of anchors, what the attacker knows."""
FEWEST = 20
"""Links, and anchors, below which nothing is decided."""
ATTACKERS = {"cosine": "cosine", "dot": "dot product", "hadamard": "learnt from known links"}


@dataclass(frozen=True)
class GraphAuditRequest:
    """The files of an audit of embeddings; None where none is given."""

    embeddings: Path
    edges: Path | None = None
    other_embeddings: Path | None = None
    anchors: Path | None = None
    users: Path | None = None
    other_users: Path | None = None
    seed: int = 0
    allow_undecided: bool = False
    names: Names = field(default_factory=Names)


def run(asked: GraphAuditRequest, say: Callable[[str], None]) -> Audit:
    """What the embeddings were found to tell.

    Args:
        say: takes what was taken for what.

    Raises:
        ConfigurationError: nothing is asked, or half of what a question needs.
        DataError: a file is not what it should be (names file, row and column).
    """
    if (asked.anchors is None) != (asked.other_embeddings is None):
        raise ConfigurationError("--other-embeddings and --anchors go together: who is whom in the other network")
    if asked.edges is None and asked.anchors is None:
        raise ConfigurationError("audit graphs needs --edges, or --other-embeddings and --anchors")
    if asked.anchors is not None and (asked.users is None) != (asked.other_users is None):
        raise ConfigurationError("--users and --other-users go together: what is known of people in either network")
    if asked.other_users is not None and asked.anchors is None:
        raise ConfigurationError("--other-users needs --other-embeddings and --anchors")
    files = [asked.embeddings, asked.edges, asked.other_embeddings, asked.anchors, asked.users, asked.other_users]
    asked.names.require([path for path in files if path is not None])
    read = []

    def taken(given: Given) -> Given:
        read.append(given.taken)
        say(given.taken.line)
        return given

    own = taken(reading.vectors(asked.embeddings, "embeddings", asked.names))
    people = taken(reading.attributes(asked.users, asked.names, ())) if asked.users else None
    answers = []
    if asked.edges:
        answers.append(links(own, taken(reading.pairs(asked.edges, "edges", asked.names)), people, asked.seed))
    if asked.other_embeddings and asked.anchors:
        other = taken(reading.vectors(asked.other_embeddings, "other embeddings", asked.names))
        anchors = taken(reading.pairs(asked.anchors, "anchors", asked.names))
        others = taken(reading.attributes(asked.other_users, asked.names, ())) if asked.other_users else None
        known = (people, others) if people is not None and others is not None else None
        answers.append(reidentification(own, other, anchors, known, asked.seed))
    answers, verdict = decide(answers, None, asked.allow_undecided)
    return Audit(alpha=ALPHA, seed=asked.seed, files=read, answers=answers, canaries=None, exposure=[], verdict=verdict)


def links(embeddings: Given, edges: Given, people: Given | None, seed: int) -> Answer:
    """Link stealing, beside attributes and numbers of friends; intervals are for other pairs of the same network."""
    pairs, note = _places(edges, embeddings.rows["user"], embeddings.rows["user"])
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    n = len(embeddings.rows)
    testable = min(PAIRS, len(pairs), n * (n - 1) // 2 - len(pairs)) * (1 - KNOWN)
    if testable < FEWEST:
        why = f"{testable:.0f} links and as many other pairs could be tested; {FEWEST} are needed"
        return undecided("links", "links", why)
    drawn = draw(pairs, n, PAIRS, KNOWN, np.random.default_rng([seed, *b"pairs"]))
    is_link = np.arange(len(drawn.links) + len(drawn.others)) < len(drawn.links)
    values = _scores(_matrix(embeddings), drawn)
    # of a link the friends besides: otherwise a link alone would make two users popular
    friends = np.bincount(pairs.ravel(), minlength=n)[np.concatenate([drawn.links, drawn.others])] - is_link[:, None]
    controls = {"number of friends": np.log1p(friends).sum(axis=1)}
    if people is not None:
        of_attributes = _scores(_one_hot([(people, embeddings)])[0], drawn)
        controls |= {f"attributes, {attacker}": of for attacker, of in of_attributes.items()}
    notes = [f"{len(drawn.links):,} links and as many other pairs; the attacker knows as many of either", *note]
    attacks = measure({name: Attacked(of, {}) for name, of in values.items()}, controls, is_link, None, seed)
    return tested("links", "links", notes, attacks)


def _scores(vectors: Vectors, drawn: Pairs) -> dict[str, Vectors]:
    """Attacker -> scores of the tested links, then of the other pairs."""
    return {ATTACKERS[attacker]: np.concatenate(of) for attacker, of in similarities(vectors, drawn).items()}


def reidentification(
    embeddings: Given, other: Given, anchors: Given, people: tuple[Given, Given] | None, seed: int
) -> Answer:
    """Naming people in the other network, beside attributes and chance; intervals are for other people."""
    pairs, note = _places(anchors, embeddings.rows["user"], other.rows["user"])
    firsts = [np.unique(column, return_index=True, return_counts=True) for column in pairs.T]
    single = [np.isin(column, users[counts == 1]) for column, (users, _, counts) in zip(pairs.T, firsts, strict=True)]
    pairs = np.random.default_rng([seed, *b"anchors"]).permutation(pairs[single[0] & single[1]])
    known, judged = np.split(pairs, [round(KNOWN * len(pairs))])
    if len(judged) < FEWEST:
        why = f"{len(judged)} people could be tested; {FEWEST} are needed"
        return undecided("re-identification", "people", why)
    candidates = np.setdiff1d(np.arange(len(embeddings.rows)), known[:, 0])  # whom it knows it need not name
    judged[:, 0] = np.searchsorted(candidates, judged[:, 0])
    source, target = (normalize(_matrix(of)) for of in (embeddings, other))
    width = max(source.shape[1], target.shape[1])
    source, target = (np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (source, target))
    turn = orthogonal_procrustes(source[known[:, 0]], target[known[:, 1]])[0]
    scorers = {
        "nearest in the same space": similarity_scorer(source[candidates], target),
        "mapped by known people": similarity_scorer((source @ turn)[candidates], target),
    }
    controls = {}
    if people is not None:
        rows = _one_hot([(people[0], embeddings), (people[1], other)])
        controls["attributes"] = similarity_scorer(rows[0][candidates], rows[1])
    notes = [f"{len(judged):,} people among {len(target):,} accounts; {len(known):,} others are known", *note]
    attacks = [_named(name, of, controls, judged, len(candidates), len(target), seed) for name, of in scorers.items()]
    return tested("re-identification", "people", notes, attacks)


def _named(
    name: str,
    score: PairScorer,
    controls: Mapping[str, PairScorer],
    anchors: NDArray[np.int64],
    n_sources: int,
    n_targets: int,
    seed: int,
) -> Attack:
    def right(of: PairScorer) -> NDArray[np.bool_]:
        return nearest_accounts(of, anchors, n_sources, np.random.default_rng(seed)).right[anchors[:, 0]]

    result, own = reidentify(score, anchors, n_sources, seed=seed), right(score)
    measures = [with_interval(f"right among {k}", *at) for k, at in result.at.items()]
    shown = [Measure(name="right among 1, chance", value=result.chance[1])]
    p = float(stats.binom.sf(int(own.sum()) - 1, len(own), 1 / n_targets))
    for control, of in controls.items():
        at = reidentify(of, anchors, n_sources, seed=seed).at[1]
        shown.append(with_interval(f"right among 1, {control}", *at))
        p = max(p, p_more_often(own, right(of)))
    sure = with_interval("named with confidence, rightly", *result.confident.share)
    return Attack(name=name, measures=[*measures, sure], controls=shown, p=p)


def _places(given: Given, sources: pl.Series, targets: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """(n, 2) rows of the users of each pair; and how many pairs have a user without a vector."""
    rows = given.rows
    for column, users in (("source", sources), ("target", targets)):
        places = pl.DataFrame({column: users}).with_row_index(f"{column} place")
        rows = rows.join(places, on=column, how="inner", maintain_order="left")
    if rows.is_empty():
        raise DataError(f"{given.taken.path}: of no pair both users have a vector; do the ids agree?")
    left = len(given.rows) - len(rows)
    note = [f"{left:,} pairs of {given.taken.path} have a user without a vector; they are not used"] if left else []
    return rows.select("source place", "target place").to_numpy().astype(np.int64), note


def _matrix(embeddings: Given) -> Vectors:
    return embeddings.rows.drop("user").to_numpy().astype(np.float64)


def _one_hot(tables: list[tuple[Given, Given]]) -> list[Vectors]:
    """Of (attributes, embeddings) the attributes of each user with a vector, 0 where unknown; equal columns in all."""
    joined = [
        embeddings.rows.select("user").join(people.rows, on="user", how="left", maintain_order="left").drop("user")
        for people, embeddings in tables
    ]
    both = pl.concat(joined, how="diagonal")
    values = [(column, value) for column in both for value in column.drop_nulls().unique().sort()]
    columns = [(column == value).fill_null(False).to_numpy() for column, value in values]
    rows = np.array(columns, np.float64).reshape(-1, len(both)).T
    return np.split(rows, np.cumsum([len(table) for table in joined])[:-1])
