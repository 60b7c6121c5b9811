"""Small tables that keep every contract, for tests to break."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tasks.core.contracts import Feature, RatingScale, Schema
from tasks.core.raw import RawSchema
from tasks.datasets.encoding import encode
from tasks.privacy.mechanisms import multidimensional
from tasks.quality import metrics, perturbed, processed, raw, releases
from tasks.quality.rules import Table

N_USERS, N_ITEMS, K = 12, 40, 5
EPSILON = 7.5  # 4 features: 3 of them are sampled
SEEDS = (0, 1)
OCCUPATIONS = ("artist", "doctor", "other")
FEATURES = (
    Feature(name="count", kind="numeric", low=0, high=40),
    Feature(name="mean", kind="numeric", low=1, high=5),
    Feature(name="gender", kind="categorical", categories=("F", "M"), sensitive=True),
    Feature(name="occupation", kind="categorical", categories=OCCUPATIONS, sensitive=True),
)
SCALE = RatingScale(low=1, high=5, step=1)
SCHEMA = Schema(
    dataset="tiny", protocol="gerai", synthetic=True, n_users=N_USERS, n_items=N_ITEMS, features=FEATURES, scale=SCALE
)
SPLIT = ("train", "train", "train", "valid", "test", "test")
PEOPLE = (
    Feature(name="age", kind="numeric", low=1, high=120),
    Feature(name="fans", kind="numeric"),
    Feature(name="gender", kind="categorical", categories=("F", "M"), sensitive=True),
    Feature(name="occupation", kind="categorical", categories=OCCUPATIONS, unknown="other", sensitive=True),
)
RAW_SCHEMA = RawSchema(
    tables=("interactions", "items", "users"), features=PEOPLE, scale=SCALE, unique_pairs=True, time="seconds"
)
LOG_SCHEMA = RawSchema(tables=("interactions", "social"), scale=SCALE, unrated=0, time="order")
NETWORK_SCHEMA = RawSchema(tables=("labels", "posts", "social", "users", "vectors"), labels=("films", "music"))
PAIR_SCHEMA = RawSchema(tables=("anchors",), networks=("left", "right"))
ABOUT = {"dataset": "tiny", "protocol": "crosue", "synthetic": True, "features": ()}
N_WORDS = 4


@dataclass(frozen=True)
class Held:
    """Raw or processed tables in memory, with what suites ask of those in a folder."""

    schemas: dict[str, Any]
    """Name of a network ("" for the whole) -> schema."""
    frames: dict[str, pl.DataFrame]
    """`interactions`, or `left/social` for a table of a network."""
    prefix: str = ""

    @property
    def schema(self) -> Any:
        return self.schemas[self.prefix]

    def scan(self, table: str) -> pl.LazyFrame:
        return self.frames[f"{self.prefix}/{table}" if self.prefix else table].lazy()

    def network(self, name: str) -> "Held":
        return Held(self.schemas, self.frames, name)


def raw_tables() -> dict[str, pl.DataFrame]:
    """Interactions, users and items with original ids from 1; every user rates 6 items."""
    user = np.repeat(np.arange(1, N_USERS + 1), len(SPLIT))
    item = (user * 3 + np.tile(np.arange(len(SPLIT)), N_USERS)) % N_ITEMS + 1
    ids = np.arange(1, N_USERS + 1)
    return {
        "interactions": pl.DataFrame(
            {"user": user, "item": item, "rating": user % 5 + 1, "timestamp": 880_000_000 + user * 1000},
            schema_overrides={"rating": pl.Float32},
        ),
        "users": pl.DataFrame(
            {
                "user": ids,
                "age": 20 + ids,
                "fans": [None, *np.linspace(0, 9, N_USERS - 1)],
                "gender": [("F", "M")[i % 2] for i in ids],
                "occupation": [(*OCCUPATIONS, None)[i % 4] for i in ids],
            }
        ),
        "items": pl.DataFrame(
            {"item": np.arange(1, N_ITEMS + 1), "title": [f"Film {i} (1997)" for i in range(1, N_ITEMS + 1)]}
        ),
    }


def log_tables() -> dict[str, pl.DataFrame]:
    """A log whose order is all that says what came first, with text ids, repeats, zeros and columns of its own."""
    rows = np.arange(20)
    return {
        "interactions": pl.DataFrame(
            {
                "user": [f"u{row % 4}" for row in rows],
                "item": [f"i{row % 5}" for row in rows],
                "rating": (rows % 6).astype(np.float32),
                "timestamp": pl.Series([None] * 20, dtype=pl.Int64),
                "position": rows,
                "action": (rows % 4).astype(np.int8),
                "day": (1001 + rows).astype(np.int32),
                "slot": rows % 11 + 1,
                "category": rows,
                "seller": rows,
                "brand": [None, *range(1, 20)],
                "helpfulness": rows % 6,
            }
        ),
        "social": pl.DataFrame({"source": ["u0", "u0", "u1"], "target": ["u1", "u1", "u1"], "relation": ["trust"] * 3}),
    }


def _vectors(column: str) -> pl.DataFrame:
    vectors = pl.Series("vector", np.arange(6, dtype=np.float32).reshape(3, 2) - 2)
    return pl.DataFrame({column: pl.Series([0, 1, 2], dtype=pl.Int32 if column == "node" else pl.Int64)}).with_columns(
        vectors.cast(pl.Array(pl.Float32, 2))
    )


def network_tables(name: str) -> dict[str, pl.DataFrame]:
    """One raw network of 5 users."""
    tables = {
        "users": pl.DataFrame({"user": [0, 1, 2, 3, 4]}),
        "social": pl.DataFrame({"source": [0, 1, 1], "target": [1, 1, 4], "relation": ["follows"] * 3}),
        "posts": pl.DataFrame({"user": [0, 0, 3], "text": ["a film", "", "good"]}),
        "vectors": _vectors("user"),
        "labels": pl.DataFrame({"user": [1, 2], "films": [1, None], "music": [0, 1]}).with_columns(
            pl.col("films", "music").cast(pl.Int8)
        ),
    }
    return {f"{name}/{table}": frame for table, frame in tables.items()}


def raw_pair() -> dict[str, pl.DataFrame]:
    """Two raw networks and the anchors between them."""
    anchors = pl.DataFrame({"source": [0, 1], "target": [4, 1]})
    return network_tables("left") | network_tables("right") | {"anchors": anchors}


def processed_tables() -> dict[str, pl.DataFrame]:
    """Interactions, users and the two id maps."""
    tables = raw_tables()
    users = tables["users"]
    return {
        "interactions": tables["interactions"].select(
            pl.col("user", "item").cast(pl.Int32) - 1, "rating", "timestamp", split=pl.Series(SPLIT * N_USERS)
        ),
        "users": pl.DataFrame(
            {
                "user": np.arange(N_USERS, dtype=np.int32),
                "count": np.full(N_USERS, 3, np.float32),
                "mean": np.linspace(1, 5, N_USERS, dtype=np.float32),
                "gender": users["gender"],
                "occupation": users["occupation"].fill_null("other"),
            }
        ),
        "user_ids": id_map(N_USERS),
        "item_ids": id_map(N_ITEMS),
    }


def sequences() -> dict[str, pl.DataFrame]:
    """The same, but one event is repeated, and only items are tested that someone learns from."""
    tables = processed_tables()
    events = tables["interactions"]
    seen = events.filter(pl.col("split") != "test")["item"].unique()
    events = events.filter(pl.col("item").is_in(seen.implode()))
    return tables | {"interactions": pl.concat([events[:1], events])}


def folds() -> pl.DataFrame:
    """A fold in 0..4 for every processed interaction."""
    pairs = processed_tables()["interactions"].select("user", "item").with_row_index("n")
    return pairs.select(
        "user",
        "item",
        fold=(pl.col("n") % 5).cast(pl.Int32),
        sensitivity=pl.col("n").cast(pl.Float32) / 100,
        validates=pl.col("n") % 7 == 0,
    )


def processed_network(name: str, n_users: int) -> dict[str, pl.DataFrame]:
    """One processed network."""
    ints = {"user": pl.Int32, "source": pl.Int32, "target": pl.Int32}
    tables = {
        "social": pl.DataFrame({"source": [0, 1, 1], "target": [1, 0, 0], "relation": ["a", "a", "b"]}),
        "posts": pl.DataFrame(
            {"user": [0, 0, 2], "tokens": [[0, 3, 3], [1], [2, 0]]}, schema_overrides={"tokens": pl.List(pl.Int32)}
        ),
        "vocabulary": pl.DataFrame({"id": np.arange(N_WORDS, dtype=np.int32), "word": ["a", "film", "good", "not"]}),
        "labels": pl.DataFrame({"user": [0, 2], "films": [1, None]}).with_columns(pl.col("films").cast(pl.Int8)),
        "vectors": _vectors("node"),
        "user_ids": id_map(n_users),
    }
    return {
        f"{name}/{table}": frame.cast({column: kind for column, kind in ints.items() if column in frame.columns})
        for table, frame in tables.items()
    }


def processed_pair() -> dict[str, pl.DataFrame]:
    """Two processed networks, of 3 and of 4 users, and their anchors."""
    anchors = pl.DataFrame({"source": [0, 2], "target": [3, 1]}, schema={"source": pl.Int32, "target": pl.Int32})
    return processed_network("left", 3) | processed_network("right", 4) | {"anchors": anchors}


def pair_schemas() -> dict[str, Schema]:
    names = ("labels", "posts", "social", "user_ids", "vectors", "vocabulary")
    single = ABOUT | {"n_items": 0, "tables": names, "labels": ("films",), "n_words": N_WORDS, "vector_size": 2}
    pair = ABOUT | {"n_users": 0, "n_items": 0, "tables": ("anchors",), "networks": ("left", "right")}
    return {"": Schema(**pair), "left": Schema(n_users=3, **single), "right": Schema(n_users=4, **single)}


def id_map(n: int) -> pl.DataFrame:
    """Dense ids from 0, original ones from 1."""
    return pl.DataFrame({"id": np.arange(n, dtype=np.int32), "original": [str(i + 1) for i in range(n)]})


def perturbed_tables() -> dict[tuple[float, int], pl.DataFrame]:
    """A real release of the users' features, under two seeds."""
    matrix = encode(processed_tables()["users"], FEATURES)
    users = pl.DataFrame({"user": np.arange(N_USERS, dtype=np.int32)})
    tables = {}
    for seed in SEEDS:
        noisy = multidimensional.perturb(matrix, FEATURES, EPSILON, np.random.default_rng(seed))
        tables[EPSILON, seed] = users.hstack(pl.DataFrame(noisy, schema=SCHEMA.columns))
    return tables


def words_table(dimension: int) -> pl.DataFrame:
    """Numbers from 0 to 1 for every user and feature."""
    columns = [f"{feature.name}.{number}" for feature in FEATURES for number in range(dimension)]
    numbers = np.linspace(0, 1, N_USERS * len(columns), dtype=np.float32).reshape(N_USERS, -1)
    return pl.DataFrame({"user": np.arange(N_USERS, dtype=np.int32)}).hstack(pl.DataFrame(numbers, schema=columns))


def recommended(k: int = K) -> pl.DataFrame:
    """`k` items per user, none of them among the user's own 6 (which are neighbours, from 3 times the id)."""
    user = np.repeat(np.arange(N_USERS, dtype=np.int32), k)
    rank = np.tile(np.arange(1, k + 1, dtype=np.int32), N_USERS)
    item = ((user + 1) * 3 + len(SPLIT) + rank) % N_ITEMS
    scores = (10 - rank / 4).astype(np.float32)
    return pl.DataFrame({"user": user, "rank": rank, "item": item.astype(np.int32), "score": scores})


def tested_sequences() -> pl.DataFrame:
    """The processed interactions with a third test event of user 0, only one of user 1, and user 2 not in training."""
    split, user = pl.col("split"), pl.col("user")
    table = processed_tables()["interactions"].with_columns(
        pl.when((user == 0) & (split == "valid")).then(pl.lit("test")).otherwise(split).alias("split")
    )
    one_of_two = (user == 1) & (split == "test") & user.cum_count().over("user", "split").gt(1)
    return table.filter(~one_of_two & ~((user == 2) & (split == "train")))


def next_items(k: int = K) -> pl.DataFrame:
    """`k` items of equal scores for every example of these: two of user 0, one each of users 3 and above."""
    user = np.repeat(np.array([0, 0, *range(3, N_USERS)], np.int32), k)
    position = np.where(np.arange(len(user)) // k == 1, 1, 0).astype(np.int32)
    rank = np.tile(np.arange(1, k + 1, dtype=np.int32), len(user) // k)
    item = (user + rank).astype(np.int32)
    scores = np.full(len(user), 0.5, np.float32)
    return pl.DataFrame({"user": user, "position": position, "rank": rank, "item": item, "score": scores})


def predicted(fold: int) -> pl.DataFrame:
    """A prediction for every rating of a fold."""
    tested = folds().filter(pl.col("fold") == fold).join(processed_tables()["interactions"], on=["user", "item"])
    return tested.select("user", "item", "rating", prediction=pl.lit(3.5, pl.Float32))


def expected_metrics() -> pl.DataFrame:
    """What one experiment with two settings and two seeds must measure."""
    names: list[tuple[str, int | None]] = [*metrics.ranking_metrics([5, 10], 100)]
    names.append(("attribute/gender/majority/f1", 0))
    names += [(f"attribute/gender/neural/{kind}", k) for kind in ("f1", "advantage") for k in (0, 5)]
    names.append(("reconstruction/published/mae", None))
    return metrics.measurements("tiny-bpr", ["base", "epsilon=0.1"], SEEDS, names)


def measured() -> pl.DataFrame:
    about = {"suite": "tiny", "dataset": "tiny", "model": "bpr"}
    return expected_metrics().with_columns(value=pl.lit(0.25), **{key: pl.lit(value) for key, value in about.items()})


RAW_PAIR = {"": PAIR_SCHEMA} | dict.fromkeys(("left", "right"), NETWORK_SCHEMA)
WITH_FOLDS = SCHEMA.model_copy(update={"tables": (*SCHEMA.tables, "folds")})
REPEATS = SCHEMA.model_copy(update={"repeats": True, "conditions": ("no-repeats",)})
CONTRACTS: dict[str, tuple[Callable[[], dict[Any, pl.DataFrame]], Callable[[dict[Any, pl.DataFrame]], list[Table]]]] = {
    "raw": (raw_tables, lambda tables: raw.raw_tables(Held({"": RAW_SCHEMA}, tables))),
    "raw log": (log_tables, lambda tables: raw.raw_tables(Held({"": LOG_SCHEMA}, tables))),
    "raw pair": (raw_pair, lambda tables: raw.raw_tables(Held(RAW_PAIR, tables))),
    "processed": (processed_tables, lambda tables: processed.processed_tables(Held({"": SCHEMA}, tables))),
    "processed sequences": (sequences, lambda tables: processed.processed_tables(Held({"": REPEATS}, tables))),
    "processed folds": (
        lambda: processed_tables() | {"folds": folds()},
        lambda tables: processed.processed_tables(Held({"": WITH_FOLDS}, tables)),
    ),
    "processed pair": (processed_pair, lambda tables: processed.processed_tables(Held(pair_schemas(), tables))),
    "perturbed": (perturbed_tables, lambda tables: perturbed.perturbed_tables(tables, SCHEMA)),
    "words": (lambda: {"features": words_table(2)}, lambda tables: releases.word_tables(tables["features"], SCHEMA)),
    "recommendations": (
        lambda: {("base", seed): recommended() for seed in SEEDS},
        lambda tables: releases.recommendations(tables, processed_tables()["interactions"], SCHEMA, K),
    ),
    "next items": (
        lambda: {("base", seed): next_items() for seed in SEEDS},
        lambda tables: releases.next_items(tables, tested_sequences(), SCHEMA, K),
    ),
    "predictions": (
        lambda: {("base", seed): predicted(seed) for seed in SEEDS},
        lambda tables: releases.predictions(tables, folds(), SCHEMA),
    ),
    "metrics": (
        lambda: {"metrics": measured()},
        lambda tables: metrics.metric_tables(tables["metrics"], expected_metrics()),
    ),
}
"""Name -> the tables that a contract is judged by, and these with their rules."""


def sources(name: str) -> dict[Any, pl.DataFrame]:
    """The tables that a contract is judged by, before rules are added."""
    return CONTRACTS[name][0]()


def contract(name: str, changed: dict[Any, pl.DataFrame] | None = None) -> list[Table]:
    """The tables of a contract with their rules; `changed` replaces some of the tables they are made from."""
    return CONTRACTS[name][1](sources(name) | (changed or {}))
