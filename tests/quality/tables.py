"""Small tables that keep every contract, for tests to break."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tasks.contracts import Feature, Schema
from tasks.datasets.encoding import encode
from tasks.privacy import multidimensional
from tasks.quality import suites
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
SCHEMA = Schema(dataset="tiny", protocol="gerai", synthetic=True, n_users=N_USERS, n_items=N_ITEMS, features=FEATURES)
SPLIT = ("train", "train", "train", "valid", "test", "test")


def raw_tables() -> dict[str, pl.DataFrame]:
    """Ratings, users and items with original ids from 1; every user rates 6 items."""
    user = np.repeat(np.arange(1, N_USERS + 1), len(SPLIT))
    item = (user * 3 + np.tile(np.arange(len(SPLIT)), N_USERS)) % N_ITEMS + 1
    ids = np.arange(1, N_USERS + 1)
    return {
        "ratings": pl.DataFrame(
            {"user": user, "item": item, "rating": user % 5 + 1, "timestamp": 880_000_000 + user * 1000},
            schema_overrides={"user": pl.Int32, "item": pl.Int32, "rating": pl.Int32},
        ),
        "users": pl.DataFrame(
            {
                "user": ids,
                "age": 20 + ids,
                "gender": [("F", "M")[i % 2] for i in ids],
                "occupation": [OCCUPATIONS[i % 3] for i in ids],
            }
        ),
        "items": pl.DataFrame(
            {"item": np.arange(1, N_ITEMS + 1), "title": [f"Film {i} (1997)" for i in range(1, N_ITEMS + 1)]}
        ),
    }


def processed_tables() -> dict[str, pl.DataFrame]:
    """Interactions, users and the two id maps."""
    tables = raw_tables()
    users = tables["users"]
    return {
        "interactions": tables["ratings"].select(
            pl.col("user") - 1,
            pl.col("item") - 1,
            pl.col("rating").cast(pl.Float32),
            "timestamp",
            split=pl.Series(SPLIT * N_USERS),
        ),
        "users": pl.DataFrame(
            {
                "user": np.arange(N_USERS, dtype=np.int32),
                "count": np.full(N_USERS, 3, np.float32),
                "mean": np.linspace(1, 5, N_USERS, dtype=np.float32),
                "gender": users["gender"],
                "occupation": users["occupation"],
            }
        ),
        "user_ids": id_map(N_USERS),
        "item_ids": id_map(N_ITEMS),
    }


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


def recommended(k: int = K) -> pl.DataFrame:
    """`k` items per user, none of them among the user's own 6 (which are neighbours, from 3 times the id)."""
    user = np.repeat(np.arange(N_USERS, dtype=np.int32), k)
    rank = np.tile(np.arange(1, k + 1, dtype=np.int32), N_USERS)
    item = ((user + 1) * 3 + len(SPLIT) + rank) % N_ITEMS
    scores = (10 - rank / 4).astype(np.float32)
    return pl.DataFrame({"user": user, "rank": rank, "item": item.astype(np.int32), "score": scores})


def expected_metrics() -> pl.DataFrame:
    """What one experiment with two settings and two seeds must measure."""
    names = suites.ranking_metrics([5, 10], 100) + suites.attack_metrics([5], ["gender"], ["neural"])
    return suites.measurements("tiny-bpr", ["base", "epsilon=0.1"], SEEDS, names)


def measured() -> pl.DataFrame:
    """A value for each of them."""
    about = {"suite": "tiny", "dataset": "tiny", "model": "bpr"}
    return expected_metrics().with_columns(value=pl.lit(0.25), **{key: pl.lit(value) for key, value in about.items()})


def contract(name: str, changed: dict[Any, pl.DataFrame] | None = None) -> list[Table]:
    """The tables of a contract with their rules; `changed` replaces some of the tables they are made from."""
    changed = changed or {}
    match name:
        case "raw":
            return suites.raw(**raw_tables() | changed, occupations=OCCUPATIONS)
        case "processed":
            tables = processed_tables() | changed
            maps = {key: tables[key] for key in ("user_ids", "item_ids")}
            return suites.processed(tables["interactions"], tables["users"], maps, SCHEMA)
        case "perturbed":
            return suites.perturbed(perturbed_tables() | changed, SCHEMA)
        case "recommendations":
            lists = {("base", seed): recommended() for seed in SEEDS} | changed
            return suites.recommendations(lists, processed_tables()["interactions"], SCHEMA, K)
        case "metrics":
            return suites.metrics(changed.get("metrics", measured()), expected_metrics())
    raise KeyError(name)


def put(frame: pl.DataFrame, row: int, column: str, value: Any) -> pl.DataFrame:
    """The table with one value replaced."""
    values = frame[column].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(column, values, dtype=frame[column].dtype))


def drop(frame: pl.DataFrame, row: int) -> pl.DataFrame:
    """The table without one row."""
    return pl.concat([frame[:row], frame[row + 1 :]])


def repeat(frame: pl.DataFrame, row: int) -> pl.DataFrame:
    """The table with one row again at its end."""
    return pl.concat([frame, frame[row : row + 1]])
