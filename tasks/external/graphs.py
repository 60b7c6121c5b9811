"""Do released embeddings of a network tell who is linked, or who someone is in another network?

Links: pairs of users whose vectors are alike, by cosine, by dot product, or as known links teach. People: an attacker
who knows half of the anchors maps one release into the space of the other by an orthogonal map, and names the nearest
account for the other half. The attacks are those of `tasks.attacks.embeddings`. Attributes make friends and tell people
apart without any release: where they are given, an attack counts only beyond that. No one is named in what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats
from scipy.linalg import orthogonal_procrustes
from sklearn.preprocessing import normalize

from tasks.attacks.embeddings.anchors import nearest_accounts, reidentify
from tasks.attacks.embeddings.links import Pairs, draw, similarities
from tasks.attacks.membership import Bools, Floats
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.alignment import PairScorer, similarity_scorer
from tasks.evaluation.detection import FEWEST, p_more_often
from tasks.external import reading
from tasks.external.attacks import Attacked, measure
from tasks.external.findings import Answer, Attack, Audit, Measure, tested, undecided, with_interval
from tasks.external.inputs import Ints, numbered
from tasks.external.reading import Given, Log, Names
from tasks.external.verdict import ALPHA, decide

PAIRS = 4_000
"""Links that are attacked, and as many other pairs."""
KNOWN = 0.5
"""Of links and of anchors, what the attacker knows."""
ATTACKERS = {"cosine": "cosine", "dot": "dot product", "hadamard": "trained on known links"}


def run(
    say: Callable[[str], None],
    embeddings: Path,
    edges: Path | None = None,
    other_embeddings: Path | None = None,
    anchors: Path | None = None,
    users: Path | None = None,
    other_users: Path | None = None,
    *,
    seed: int = 0,
    allow_undecided: bool = False,
    names: Names = Names(),  # noqa: B008,
) -> Audit:
    """What the embeddings were found to tell, of files of which None are not given.

    say: takes what was taken for what.

    Raises:
        ConfigurationError: nothing is asked, or half of what a question needs.
        DataError: a file is not what it should be (names file, row and column).
    """
    if (anchors is None) != (other_embeddings is None):
        raise ConfigurationError("--other-embeddings and --anchors go together: who is whom in the other network")
    if edges is None and anchors is None:
        raise ConfigurationError("audit graphs needs --edges, or --other-embeddings and --anchors")
    if anchors is not None and (users is None) != (other_users is None):
        raise ConfigurationError("--users and --other-users go together: what is known of people in either network")
    if other_users is not None and anchors is None:
        raise ConfigurationError("--other-users needs --other-embeddings and --anchors")
    files = [embeddings, edges, other_embeddings, anchors, users, other_users]
    names.require([path for path in files if path is not None])
    read, answers = Log(say), list[Answer]()
    own = read(reading.vectors(embeddings, "embeddings", names))
    people = read(reading.attributes(users, names, ())) if users else None
    if edges:
        answers.append(links(own, read(reading.pairs(edges, "edges", names)), people, seed))
    if other_embeddings and anchors:
        other = read(reading.vectors(other_embeddings, "other embeddings", names))
        pairs = read(reading.pairs(anchors, "anchors", names))
        other_people = read(reading.attributes(other_users, names, ())) if other_users else None
        attributes = (people, other_people) if people is not None and other_people is not None else None
        answers.append(reidentification(own, other, pairs, attributes, seed))
    answers, verdict = decide(answers, None, allow_undecided)
    return Audit(alpha=ALPHA, seed=seed, files=read.files, answers=answers, canaries=None, exposure=[], verdict=verdict)


def links(embeddings: Given, edges: Given, people: Given | None, seed: int) -> Answer:
    """Link stealing, next to attributes and numbers of friends; intervals are for other pairs of the same network."""
    numbers, note = _rows_of(edges, embeddings, embeddings)
    pairs = np.unique(np.sort(numbers.filter(pl.col("source") != pl.col("target")).to_numpy(), axis=1), axis=0)
    n = len(embeddings.rows)
    testable = min(PAIRS, len(pairs), n * (n - 1) // 2 - len(pairs)) * (1 - KNOWN)
    if testable < FEWEST:
        why = f"{testable:.0f} links and as many other pairs could be tested; {FEWEST} are needed"
        return undecided("links", "links", why)
    tested_pairs = draw(pairs, n, PAIRS, KNOWN, np.random.default_rng([seed, *b"pairs"]))
    both = np.concatenate([tested_pairs.links, tested_pairs.others])
    is_link = np.arange(len(both)) < len(tested_pairs.links)
    # of a link the friends besides: otherwise a link alone would make two users popular
    friends = np.bincount(pairs.ravel(), minlength=n)[both] - is_link[:, None]
    controls = {"number of friends": np.log1p(friends).sum(axis=1)}
    if people is not None:
        of_attributes = _scores(_one_hot([(people, embeddings)])[0], tested_pairs)
        controls |= {f"attributes, {attacker}": scores for attacker, scores in of_attributes.items()}
    values = {name: Attacked(scores, {}) for name, scores in _scores(_matrix(embeddings), tested_pairs).items()}
    notes = [f"{is_link.sum():,} links and as many other pairs; the attacker knows as many of either", *note]
    return tested("links", "links", notes, measure(values, controls, is_link, None, seed))


def _scores(vectors: Floats, pairs: Pairs) -> dict[str, Floats]:
    """Attacker -> scores of the tested links, then of the other pairs."""
    return {ATTACKERS[attacker]: np.concatenate(scores) for attacker, scores in similarities(vectors, pairs).items()}


def reidentification(
    embeddings: Given, other: Given, anchors: Given, people: tuple[Given, Given] | None, seed: int
) -> Answer:
    """Naming people in the other network, compared with attributes and chance; intervals are for other people."""
    pairs, note = _rows_of(anchors, embeddings, other)
    pairs = pairs.filter(pl.all_horizontal(pl.all().is_unique()))
    shuffled = np.random.default_rng([seed, *b"anchors"]).permutation(pairs.to_numpy())
    train, judged = np.split(shuffled, [round(KNOWN * len(shuffled))])
    if len(judged) < FEWEST:
        why = f"{len(judged)} people could be tested; {FEWEST} are needed"
        return undecided("re-identification", "people", why)
    candidates = np.setdiff1d(np.arange(len(embeddings.rows)), train[:, 0])  # whom it knows it need not name
    judged[:, 0] = np.searchsorted(candidates, judged[:, 0])
    source, target = (normalize(_matrix(table)) for table in (embeddings, other))
    width = max(source.shape[1], target.shape[1])
    source, target = (np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (source, target))
    turn = orthogonal_procrustes(source[train[:, 0]], target[train[:, 1]])[0]
    scorers = {
        "nearest in the same space": similarity_scorer(source[candidates], target),
        "mapped by known people": similarity_scorer((source @ turn)[candidates], target),
    }
    controls = {}
    if people is not None:
        rows = _one_hot([(people[0], embeddings), (people[1], other)])
        controls["attributes"] = similarity_scorer(rows[0][candidates], rows[1])
    notes = [f"{len(judged):,} people among {len(target):,} accounts; {len(train):,} others are known", *note]
    attacks = [
        _named(name, score, controls, judged, len(candidates), len(target), seed) for name, score in scorers.items()
    ]
    return tested("re-identification", "people", notes, attacks)


def _named(
    name: str,
    score: PairScorer,
    controls: Mapping[str, PairScorer],
    anchors: Ints,
    n_sources: int,
    n_targets: int,
    seed: int,
) -> Attack:
    def right(scorer: PairScorer) -> Bools:
        return nearest_accounts(scorer, anchors, n_sources, np.random.default_rng(seed)).right[anchors[:, 0]]

    result, named = reidentify(score, anchors, n_sources, seed=seed), right(score)
    measures = [with_interval(f"right among {k}", *share) for k, share in result.at.items()]
    measures.append(with_interval("named with confidence, rightly", *result.confident.share))
    baselines = [Measure(name="right among 1, chance", value=result.chance[1])]
    p = float(stats.binom.sf(int(named.sum()) - 1, len(named), 1 / n_targets))
    for control, scorer in controls.items():
        share = reidentify(scorer, anchors, n_sources, seed=seed).at[1]
        baselines.append(with_interval(f"right among 1, {control}", *share))
        p = max(p, p_more_often(named, right(scorer)))
    return Attack(name=name, measures=measures, controls=baselines, p=p)


def _rows_of(table: Given, sources: Given, targets: Given) -> tuple[pl.DataFrame, list[str]]:
    """Rows of the users of each pair: source, target; and how many pairs have a user without a vector."""
    rows = numbered(table.rows, {"source": pl.Enum(sources.rows["user"]), "target": pl.Enum(targets.rows["user"])})
    if rows.is_empty():
        raise DataError(f"{table.taken.path}: of no pair both users have a vector; do the ids agree?")
    missing = len(table.rows) - len(rows)
    note = f"{missing:,} pairs of {table.taken.path} have a user without a vector; they are not used"
    return rows, [note] if missing else []


def _matrix(embeddings: Given) -> Floats:
    return embeddings.rows.drop("user").to_numpy().astype(np.float64)


def _one_hot(tables: list[tuple[Given, Given]]) -> list[Floats]:
    """Of (attributes, embeddings) the attributes of each user with a vector, 0 where unknown; equal columns in all."""
    joined = [
        embeddings.rows.select("user").join(people.rows, on="user", how="left", maintain_order="left").drop("user")
        for people, embeddings in tables
    ]
    both = pl.concat(joined, how="diagonal")
    rows = both.to_dummies(separator="\0", drop_nulls=True).to_numpy().astype(np.float64)  # which no name holds
    return np.split(rows, np.cumsum([len(table) for table in joined])[:-1])
