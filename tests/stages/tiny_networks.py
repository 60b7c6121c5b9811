"""A workspace of two tiny networks for stage tests: parameters, processed tables that passed their check, some GloVe.

`left` has all that a network can have; `right` has users without a profile, and vectors of whole texts in the place of
posts.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.core import contracts
from tasks.core.contracts import Feature, Schema
from tasks.datasets import glove
from tasks.pipeline.common import PLACED, PROCESSED, write_json
from tests.stages import tiny

N_USERS, N_LINKS, N_POSTS = 200, 1000, 400
WORDS = ("cat", "dog", "tea", "rain", "sun", "qwx", "zzk")
"""The posts' vocabulary; the last two have no public vector."""
PUBLIC = ("the", "of", "sun", "cat", "dog", "tea", "rain", "red", "blue", "one", "two")
FEATURES = (
    Feature(name="hash", kind="numeric", low=0, high=1),
    Feature(name="tweets", kind="numeric", low=0, high=900, bounds="fitted"),
    Feature(name="gender", kind="categorical", categories=("0", "1", "unknown"), sensitive=True, unknown="unknown"),
    Feature(name="occupation", kind="categorical", categories=("0", "1", "2"), sensitive=True),
)
ABOUT = {"dataset": "tiny", "protocol": "dpcrosue", "synthetic": True, "n_items": 0}
LEFT = Schema(
    **ABOUT,
    n_users=N_USERS,
    features=FEATURES,
    tables=("users", "user_ids", "social", "posts", "vocabulary", "labels"),
    labels=("music",),
    n_words=len(WORDS),
)
RIGHT = Schema(**ABOUT, n_users=30, features=(), tables=("users", "user_ids", "social", "vectors"), vector_size=2)
PAIR = Schema(**ABOUT, n_users=0, features=(), tables=("anchors",), networks=("left", "right"))
SHARED = {
    "data": "tiny",
    "mechanism": "dpcrosue",
    "features_epsilon": 5.0,
    "edges_epsilon": 10.0,
    "count_share": 0.1,
    "text_epsilon": 7.5,
    "sweep": {"edges_epsilon": [5.0], "features_epsilon": [20.0]},
    "seeds": [0, 1],
}
PUBLISHED = SHARED | {
    "accounting": "published",
    "word_vectors": {"dimension": 3, "window": 2, "negatives": 1.0, "seed": 0},
}
RELEASED = SHARED | {
    "accounting": "released",
    "word_vectors": PUBLISHED["word_vectors"],
    "sensitive_share": 0.5,
    "replaced_share": 0.2,
}
PROCESSED_PAIR = {
    "dataset": "tiny",
    "protocol": "dpcrosue",
    "options": {"tokenizer": "words", "min_count": 1, "max_vocabulary": None},
}
SUITE: dict[str, Any] = {
    "processed": {"tiny": PROCESSED_PAIR},
    "words": {},
    "suites": tiny.suites("embedding"),
    "evaluation": {"k": [1, 10], "negatives": None, "seed": 1, "recall": "relevant"},
    "training": {"patience": 1, "validation_k": None},
    "tuning": {"seed": 1000, "grid": {}},
    "attack": None,
    "training_audit": None,
}
"""Of a suite that embeds users: parameters in place of those of `tests.stages.tiny`."""
RIGOROUS = SHARED | {"accounting": "rigorous", "public_words": 10, "words_per_user": 3}


def tables() -> dict[str, pl.DataFrame]:
    """The processed tables by their place below the data set's folder."""
    rng = np.random.default_rng(0)
    users = pl.DataFrame(
        {
            "user": np.arange(N_USERS, dtype=np.int32),
            "hash": rng.integers(0, 2, N_USERS).astype(np.float32),
            "tweets": rng.integers(0, 901, N_USERS).astype(np.float32),
            "gender": rng.choice(["0", "1", "unknown"], N_USERS),
            "occupation": rng.choice(["0", "1", "2"], N_USERS),
        }
    )
    ends = rng.integers(0, N_USERS, (N_LINKS, 2)).astype(np.int32)
    ends = ends[ends[:, 0] != ends[:, 1]]
    ends = np.unique(np.concatenate([ends, ends[:50, ::-1]]), axis=0)  # some follow one another
    social = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1], "relation": ["follow"] * len(ends)})
    writers = np.sort(rng.integers(0, N_USERS, N_POSTS)).astype(np.int32)
    tokens = [rng.integers(0, len(WORDS), n).tolist() for n in rng.integers(1, 6, N_POSTS)]
    posts = pl.DataFrame({"user": writers, "tokens": tokens}, schema_overrides={"tokens": pl.List(pl.Int32)})
    few = np.arange(RIGHT.n_users, dtype=np.int32)
    return {
        "anchors": pl.DataFrame({"source": few[:9], "target": few[9:18]}),
        "left/users": users,
        "left/user_ids": ids(N_USERS, "original", [f"account {n}" for n in range(N_USERS)]),
        "left/social": social,
        "left/posts": posts,
        "left/vocabulary": ids(len(WORDS), "word", list(WORDS)),
        "left/labels": pl.DataFrame({"user": few[:5], "music": [0, 1, 1, 0, None]}).cast({"music": pl.Int8}),
        "right/users": pl.DataFrame({"user": few}),
        "right/user_ids": ids(RIGHT.n_users, "original", [f"other {n}" for n in few]),
        "right/social": pl.DataFrame({"source": few[:-1], "target": few[1:], "relation": ["follow"] * (len(few) - 1)}),
        "right/vectors": pl.DataFrame({"node": few, "vector": rng.normal(size=(len(few), 2)).astype(np.float32)}),
    }


def ids(n: int, column: str, values: list[str]) -> pl.DataFrame:
    """Ids from 0, each with its value."""
    return pl.DataFrame({"id": np.arange(n, dtype=np.int32), column: values})


def build(root: Path, **perturbed: Any) -> None:
    """Write the workspace below `root`, with these entries of `perturbed`."""
    base = tiny.parameters()
    of_suites = {"demo": base["processed"]["tiny"]}  # suites need some data of their own
    changes = {
        "processed": of_suites | {"tiny": PROCESSED_PAIR},
        "perturbed": perturbed,
        "words": {},
        "suites": {name: entry | {"data": "demo"} for name, entry in base["suites"].items()},
        "experiments": {},
    }
    tiny.write_parameters(tiny.parameters(**changes), root)
    folder = root / PROCESSED / "tiny"
    schemas = {"": PAIR, "left": LEFT, "right": RIGHT}
    for name, schema in schemas.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_json(folder / name / "schema.json", schema.model_dump(mode="json"))
    for place, table in tables().items():
        network, _, name = place.rpartition("/")
        contracts.write(table, folder / f"{place}.parquet", contracts.table_schema(name, schemas[network]))
    tiny.passed("processed", "tiny", root)
    vectors = np.random.default_rng(1).normal(size=(len(PUBLIC), glove.WIDTH)).round(4)
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(PUBLIC, vectors.tolist(), strict=True)]
    (root / PLACED).mkdir(parents=True)
    (root / PLACED / glove.FILE.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
