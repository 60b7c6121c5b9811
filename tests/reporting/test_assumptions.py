"""What every finite guarantee takes as fixed is said with it, and each such sentence is needed.

Whoever mends a cause (draws of a split that are each user's own, say) finds here which sentence may go.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from tasks.evaluation import splits
from tasks.papers.dpcrosue import protocol
from tasks.privacy.accounting.gaps import METRICS
from tasks.privacy.mechanisms import posts
from tasks.privacy.mechanisms.posts import Vocabulary
from tasks.raw import RawSchema, read_raw, write_raw_schema
from tasks.reporting.core import assumptions, ledger
from tests.models.test_dipsgnn import PER_VISIT, noise_on, trained
from tests.models.test_next_item_contract import learning, ragged
from tests.reporting.committed import ROOT, read

SUITES = sorted(path.parent.name for path in (ROOT / "data/results").glob("*/results.json"))


@pytest.mark.parametrize("suite", SUITES)
def test_finite_lines_say_what_they_take_as_fixed_and_others_are_as_they_were(suite: str) -> None:
    lines = [line.entry for line in ledger.lines(read(suite)[0])]
    finite = [entry for entry in lines if entry.accounted_epsilon is not None]
    assert all({assumptions.PREPARED, METRICS} <= {*entry.gaps} for entry in finite)
    assert not [entry for entry in lines if entry.accounted_epsilon is None and assumptions.PREPARED in entry.gaps]
    graphs = [entry for entry in finite if entry.protects == "session graph"]
    for entry in graphs:
        by_visit = entry.accounting == "rigorous"
        assert entry.given.endswith(assumptions.OFTEN if by_visit else assumptions.ONCE)
        assert (assumptions.MASKS in entry.gaps) == ("of every step" in entry.given)
    assert all(entry.given == assumptions.WORDS for entry in finite if entry.protects == "text")


def test_what_is_stated_twice_is_said_once() -> None:
    entry = next(line.entry for line in ledger.lines(read("demo")[0]) if line.entry.accounted_epsilon is not None)
    assert assumptions.state(entry) == entry


def test_one_interaction_less_moves_the_split_of_other_users() -> None:
    users, items = np.divmod(np.arange(400), 20)
    drawn = [
        splits.per_user(users[first:], items[first:], test_share=0.2, valid_share=0.1, rng=np.random.default_rng(0))
        for first in (0, 1)
    ]
    assert len({*users[20:][drawn[0][20:] != drawn[1][19:]]}) > 10


def test_one_users_word_decides_which_of_others_are_released(tmp_path: Path) -> None:
    """Four users wrote jazz; without a fifth use nobody's is kept."""
    public = Vocabulary.from_vectors(["jazz", "rock", "tea"], np.random.default_rng(0).normal(size=(3, 50)))
    sizes = []
    for word in ("jazz", "rock"):
        folder = tmp_path / word
        folder.mkdir()
        text = ["jazz tea"] * 4 + [word] + ["rock tea"] * 5
        pl.DataFrame({"user": np.arange(10), "text": text}).write_parquet(folder / "posts.parquet")
        write_raw_schema(RawSchema(tables=("posts",)), folder)
        options = protocol.Options(tokenizer="words", min_count=5, max_vocabulary=None)
        tables = protocol.prepare(read_raw(folder), options).tables
        known = posts.known_words(tables["posts"], tables["vocabulary"].sort("id")["word"], public)
        released, _ = posts.perturb(known, public, 7.5, np.random.default_rng(0), 1, 20)
        sizes.append(released.filter(pl.col("user") < 4)["tokens"].list.len().to_list())
    assert sizes == [[2] * 4, [1] * 4]


@pytest.mark.parametrize("accounting", PER_VISIT)
def test_noise_by_visit_tells_how_often_an_item_was_visited(accounting: str) -> None:
    n_users, variances = 400, []
    model = trained(accounting, of=learning(ragged([[0, 1, 2, 3]] * n_users), n_users, 4))
    for part in ([0, 1, 2, 1, 3], [0, 1, 2, 3]):
        sequences = ragged([part] * n_users)
        members = model.graphs(sequences).members
        visited = torch.as_tensor(members.sources[members.indptr[sequences.indptr[1:] - 1] + 1])  # item 1, at the end
        variances.append(float(noise_on(model, sequences)[1][visited].var()) / model.sigma**2)
    assert variances == pytest.approx([2, 1], rel=0.1)
