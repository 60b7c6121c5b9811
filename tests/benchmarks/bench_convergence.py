"""Does training on whole sequences reach the validation recall of training on single prefixes, and how much sooner?

`python -m tests.benchmarks.bench_convergence` trains SR-GNN and SASRec twice on MovieLens 100K as prepared for DIPSGNN:
as the models do, and on batches of 100 prefixes in random order, each a sequence of its own with one example, as
RecBole does. It prints Recall@20 on the users who validate, and the seconds of training, by epoch.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tasks import contracts
from tasks.evaluation import next_items, ranking
from tasks.graph.ops import Block
from tasks.graph.prefixes import PrefixGraphs
from tasks.models.sessions.gated import SRGNN
from tasks.models.sessions.sasrec import SASRec
from tasks.models.sessions.sequential import Dropout, SequenceModel
from tasks.models.training import EpochModel
from tasks.sequences import Sequences
from tasks.training_data import TrainingData

PROCESSED = Path("data/processed/dipsgnn-ml-100k")
PREFIXES = 100
"""Prefixes in a batch, as in the paper."""
K = 20


def examples(sequences: Sequences, ends: np.ndarray) -> Sequences:
    """The prefixes that end in some events, each with the item that follows: sequences of users 0, 1, ..."""
    starts = sequences.indptr[sequences.owners[ends]]
    lengths = ends - starts + 2
    indptr = np.append(0, np.cumsum(lengths))
    events = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    return Sequences(np.arange(len(ends), dtype=np.int32), indptr, sequences.items[events])


class OnPrefixes(SequenceModel):
    """Training on one prefix at a time, mixed into any model of sequences."""

    def train_epoch(self) -> float:
        """One pass over all prefixes in random order."""
        ends = self._rng.permutation(np.flatnonzero(self._examples.has_next))
        dropout, total = Dropout(self.config.dropout, self._rng), 0.0
        for part in np.split(ends, range(PREFIXES, len(ends), PREFIXES)):
            total += self.step(self.loss(examples(self._examples, part), dropout)) * len(part)
        return total / len(ends)

    def loss(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        """Of the last event of each sequence alone."""
        prefixes = sequences.without_last()
        last = torch.from_numpy(prefixes.indptr[1:] - 1)
        targets = torch.from_numpy(sequences.items[sequences.indptr[1:] - 1]).long()
        return cross_entropy(self.last_logits(prefixes, last, dropout), targets)

    def last_logits(self, prefixes: Sequences, last: Tensor, dropout: Dropout) -> Tensor:
        """Scores after the events `last`."""
        raise NotImplementedError


class SRGNNOnPrefixes(OnPrefixes, SRGNN):
    """SR-GNN on prefixes; only whole ones are read out."""

    def last_logits(self, prefixes: Sequences, last: Tensor, dropout: Dropout) -> Tensor:
        """Scores after the events `last`."""
        self._wanted: Tensor | None = last
        scores = self.logits(prefixes, dropout)
        self._wanted = None
        return scores

    def read(self, graphs: PrefixGraphs, states: Tensor, users: Tensor | None) -> Tensor:
        """Of the wanted prefixes, while training."""
        wanted = getattr(self, "_wanted", None)
        if wanted is None:
            return super().read(graphs, states, users)
        starts, lengths = graphs.members.indptr[wanted], graphs.members.indptr.diff()[wanted]
        indptr = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        edges = torch.arange(int(indptr[-1])) + torch.repeat_interleave(starts - indptr[:-1], lengths)
        members = Block(indptr, graphs.members.sources[edges], graphs.members.n_sources)
        nodes = graphs.node_items, graphs.node_owners, graphs.steps
        sparse = PrefixGraphs(*nodes, graphs.last[wanted], members, graphs.visits[edges], wanted)
        return super().read(sparse, states, users)


class SASRecOnPrefixes(OnPrefixes, SASRec):
    """SASRec on prefixes; only their last events are scored."""

    def last_logits(self, prefixes: Sequences, last: Tensor, dropout: Dropout) -> Tensor:
        """Scores after the events `last`."""
        return self.network(prefixes, dropout)[last] @ self.network.items.T


class Curve:
    """Prints the validation recall of every epoch."""

    def __init__(self, name: str, valid: Sequences, n_items: int) -> None:
        self._name, self._valid, self._order = name, valid, ranking.tie_order(n_items, 2021)
        self._started = time.process_time()

    def restore(self, model: EpochModel) -> bool:
        """Nothing is kept."""
        del model
        return True

    def epoch(self, model: EpochModel, loss: float) -> bool:
        """Print a line."""
        spent = time.process_time() - self._started
        ranked = next_items.next_items(model.score_next, self._valid, K, self._order)  # type: ignore[attr-defined]
        recall = next_items.next_metrics(ranked, [K])["recall"][K]
        print(f"{self._name:24} epoch {model.epochs_done:2}  loss {loss:.3f}  recall {recall:.4f}  {spent:6.1f} s")
        sys.stdout.flush()
        self._started = time.process_time()
        return True

    def finish(self, model: EpochModel) -> None:
        """Nothing to do."""


def main() -> None:
    """Train all four."""
    if not PROCESSED.is_dir():
        print(f"{PROCESSED}: not there; `dvc repro data/dvc.yaml:preprocess@dipsgnn-ml-100k` makes it")
        return
    torch.set_num_threads(1)
    schema = contracts.read_schema(PROCESSED / "schema.json")
    rows = contracts.read(PROCESSED / "interactions.parquet", contracts.INTERACTIONS)
    train, valid = (
        Sequences.from_events(part["user"].to_numpy(), part["item"].to_numpy())
        for part in (rows.filter(pl.col("split") == split) for split in ("train", "valid"))
    )
    data = TrainingData(schema.n_users, schema.n_items, train.users[train.owners], train.items, sequences=train)
    shared = {"epochs": int(sys.argv[1]) if len(sys.argv) > 1 else 10, "dimension": 100}
    graph = shared | {"learning_rate": 0.003, "dropout": 0.3, "steps": 1}
    attention = shared | {"learning_rate": 0.003, "dropout": 0.5, "layers": 2, "heads": 1}
    for name, cls, config in (
        ("srgnn, sequences", SRGNN, graph | {"batch_size": 16}),
        ("srgnn, prefixes", SRGNNOnPrefixes, graph | {"batch_size": PREFIXES, "learning_rate": 0.001}),
        ("sasrec, sequences", SASRec, attention | {"batch_size": 32}),
        ("sasrec, prefixes", SASRecOnPrefixes, attention | {"batch_size": PREFIXES, "learning_rate": 0.001}),
    ):
        model = cls(cls.Config.model_validate(config))
        model.fit(data, rng=np.random.default_rng(0), progress=Curve(name, valid, schema.n_items))


if __name__ == "__main__":
    main()
