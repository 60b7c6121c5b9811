"""Word2Vec in closed form and as gensim trains it: `python -m tests.benchmarks.bench_words [FOLDER...]`.

Of networks with texts, data/processed/DATA/NETWORK: what the mean of a user's words tells of interests and gender
(micro-F1, as the suites judge it), and the seconds of one core. Without an argument those of the replicas that have
been preprocessed here; they are generated, and no real texts are at hand.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks import contracts
from tasks.datasets.encoding import classes
from tasks.evaluation.classification import interests, logistic_regression, predict_classes
from tasks.models.user_networks.base import Posts
from tasks.models.user_networks.skipgram import SkipgramConfig, Word2VecConfig, mean_of_words, skipgram, word_vectors
from tasks.stages.network_files import Source
from tasks.stages.networks import read

Way = Callable[[Posts, np.random.Generator], NDArray[np.float32]]
SEEDS = (0, 1)
DIMENSION, WINDOW, NEGATIVES = 128, 5, 5


def closed(posts: Posts, rng: np.random.Generator) -> NDArray[np.float32]:
    """As the suites have it."""
    return word_vectors(posts, Word2VecConfig(dimension=DIMENSION, window=WINDOW, negatives=NEGATIVES), rng)


def trained(passes: int) -> Way:
    """By gensim, with the same window and negatives."""

    def vectors(posts: Posts, rng: np.random.Generator) -> NDArray[np.float32]:
        config = SkipgramConfig(dimension=DIMENSION, window=WINDOW, negatives=NEGATIVES, passes=passes)
        return skipgram(np.split(posts.tokens, posts.indptr[1:-1]), posts.n_words, config, rng)

    return vectors


WAYS: dict[str, Way] = {"closed form": closed, "1 pass": trained(1), "5 passes": trained(5), "20 passes": trained(20)}


def main(folders: list[Path]) -> None:
    for folder in folders:
        tables = contracts.read_processed(folder)
        data = read(Source(folder.parent.name, None), folder.name, "base", 0, frozenset({"text"}))
        assert data.posts is not None
        labels = contracts.read(folder / "labels.parquet", contracts.labels_schema(tables.schema.labels))
        users = contracts.read(folder / "users.parquet", contracts.users_schema(tables.schema.features))
        gender = classes(users, tables.schema.sensitive)["gender"]
        print(f"{folder}: {len(data.posts.users):,} posts, {len(data.posts.tokens):,} words")
        for name, way in WAYS.items():
            took, shown, guessed = [], [], []
            for seed in SEEDS:
                began = time.process_time()
                vectors = way(data.posts, np.random.default_rng(seed))
                took.append(time.process_time() - began)
                of_users = mean_of_words(data, vectors)
                known = {of["metric"]: of["value"] for of in interests("of", of_users, labels, seed=seed)}
                shown.append(known["of/interests/micro-f1"])
                scores = predict_classes(of_users, gender, logistic_regression, seed=seed).scores
                guessed.append(np.mean([of.micro_f1 for of in scores]))
            print(
                f"  {name:12} interests {np.mean(shown):.3f}, gender {np.mean(guessed):.3f}, {np.mean(took):.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    given = [Path(name) for name in sys.argv[1:]]
    main(given or sorted(path.parent for path in Path("data/processed").glob("dpcrosue-*-twin/*/posts.parquet")))
