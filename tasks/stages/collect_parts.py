"""What `collect` keeps beyond metrics: of attacks, of how lists serve users, of networks and their alignments.

Of users it keeps differences of the systems that are compared, never what one user has.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config.params import Params
from tasks.config.planned import planned_pairs
from tasks.core import contracts
from tasks.core.errors import DamagedError, DataError
from tasks.evaluation.gains import GAINS
from tasks.evaluation.pairs import BY_USER, PAIRS, compare
from tasks.evaluation.users import bin_users, exposure
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.pipeline.papers import numbers
from tasks.results import tables
from tasks.results.facts import BASE, Aligned, Network, layer_of


def collect_networks(suite: str, params: Params) -> dict[str, object]:
    """Fields of the suite's results, and the tables of metrics of alignments.

    Raises:
        DataError: the suite's data are no pair of networks, or a file is not there or not what its contract says.
    """
    options = params.suites[suite]
    data, folder = PROCESSED / options.data, RUNS / suite / "alignments"
    names = read_json(data / "schema.json")["networks"]
    if not names:
        raise DataError(f"{data}/schema.json: it has no networks; a suite of embeddings needs a pair")
    anchors = int(read_json(data / "counts.json")[-1]["links"])
    return {
        "networks": tuple(_network(data / name) for name in names),
        "anchors": anchors,  # people who are known to be in both
        "aligned": tuple(alignment(name, params, anchors) for name in options.aligned),
        "metrics": [contracts.read(folder / name / "metrics.parquet", contracts.METRICS) for name in options.aligned],
    }


def _network(folder: Path) -> Network:
    schema, left = read_json(folder / "schema.json"), read_json(folder / "counts.json")[-1]
    return Network(
        name=folder.name,
        users=left["users"],
        posts=left["posts"],
        friendships=left["links"],
        labelled=bool(schema["labels"]),
        sensitive=tuple(feature["name"] for feature in schema["features"] if feature["sensitive"]),
        texts=next((kind for kind in ("posts", "vectors") if kind in schema["tables"]), "none"),
        attributed=bool(schema["features"]),
    )


def alignment(name: str, params: Params, anchors: int) -> Aligned:
    """The facts of an entry of `aligned`; anchors: people who are known to be in both networks."""
    entry = params.aligned[name]
    return Aligned.model_validate(
        {
            "name": name,
            "embeddings": params.embeddings[entry.embeddings].model if entry.embeddings else "",
            "attributes": layer_of(params.networks_of(entry))[0] if entry.reads_attributes else "",
            "matches_columns": entry.matches_columns,
            "judged": round(entry.test_share * anchors),
        }
    )


def attacks(suite: str, params: Params) -> pl.DataFrame:
    """What attacks found where it is more than metrics: the table of the suite's, or of each experiment's, sorted.

    Raises:
        DataError: a table cannot be read, or is not what its contract says.
    """
    described = params.suites[suite]
    assert described.attack_kind is not None
    if (folder := described.attack_kind.writes) is None:
        tables = []
        for name, experiment in described.experiments.items():
            gains = contracts.read(RUNS / suite / name / "attack/gains.parquet", GAINS)
            about = pl.lit(name).alias("experiment"), pl.lit(experiment.system).alias("model")
            tables.append(gains.select(*about, pl.all()))
        table = pl.concat(tables)
    else:
        path = RUNS / suite / folder / f"{folder}.parquet"
        try:
            table = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DamagedError(f"{path}: not readable ({error}); run attack-{folder} again") from error
    return table.sort([name for name, kind in table.schema.items() if not kind.is_nested()])


RELEASED = "released"
STEPS = {"ndcg": 20, "exposure": 50}
"""Bins of equal width between 0 and 1, before small ones are joined."""


def collect_distributions(suite: str, params: Params) -> dict[str, object]:
    """Of every experiment on the suite's data, at setting `base`: a user's value is the mean over seeds."""
    options = params.suites[suite]
    chosen = {name: candidate for name, candidate in options.experiments.items() if candidate.data == options.data}
    chosen = {name: candidate for name, candidate in chosen.items() if (RUNS / suite / name / RELEASED).is_dir()}
    if not chosen:
        return {}
    rows = contracts.read(PROCESSED / options.data / "interactions.parquet", contracts.INTERACTIONS)
    shape = int(rows["user"].max()) + 1, int(rows["item"].max()) + 1  # type: ignore[arg-type]  # ids, never null
    wanted = numbers(options.paper).headline_k
    k = min(options.evaluation.k, key=lambda cutoff: (abs(cutoff - wanted), cutoff))
    popularity = np.bincount(rows.filter(pl.col("split") != "test")["item"].to_numpy(), minlength=shape[1]) / shape[0]
    records = []
    for name, experiment in chosen.items():
        by_seed = {
            "ndcg": [_ndcg(suite, name, seed, k) for seed in experiment.seeds],
            "exposure": [exposure(_lists(suite, name, seed, shape[0])[:, :k], popularity) for seed in experiment.seeds],
        }
        for metric, of_seeds in by_seed.items():
            values = np.mean(of_seeds, axis=0)
            edges = np.round(np.linspace(0.0, 1.0, STEPS[metric] + 1), 2).tolist()
            about = {"experiment": name, "metric": metric, "k": k}
            records += [about | {"low": low, "high": high, "users": n} for low, high, n in bin_users(values, edges)]
    return {"spreads": pl.DataFrame(records, tables.OVER_USERS)}


def _ndcg(suite: str, name: str, seed: int, k: int) -> NDArray[np.float64]:
    """(n_users,) NDCG at setting `base` of users with held-out items."""
    table = contracts.read(RUNS / suite / name / f"train/users/seed-{seed}.parquet", BY_USER)
    return table.filter(metric="full/ndcg", k=k)["total"].to_numpy()


def _lists(suite: str, name: str, seed: int, n_users: int) -> NDArray[np.int32]:
    """(n_users, K) recommendations at setting `base`, best first."""
    path = RUNS / suite / name / RELEASED / BASE / f"seed-{seed}.parquet"
    table = contracts.read(path, contracts.RECOMMENDATIONS).sort("user", "rank")
    return np.asarray(table["item"].to_numpy().reshape(n_users, -1), np.int32)


def compare_pairs(suite: str, params: Params) -> pl.DataFrame:
    """PAIRS of a suite: every planned pair at setting `base`, in the order of the plan."""
    planned = planned_pairs(params.suites[suite])
    users = {
        name: _read_users(suite, name, params) for name in dict.fromkeys(name for pair in planned for name in pair)
    }
    differences = [
        compare(users[a], users[b]).select(pl.lit(a).alias("a"), pl.lit(b).alias("b"), pl.all()) for a, b in planned
    ]
    return pl.concat([pl.DataFrame(schema=pl.Schema(PAIRS)), *differences])


def _read_users(suite: str, name: str, params: Params) -> pl.DataFrame:
    """BY_USER of all runs of an experiment, with the column `run`; users by published ids if it has several splits.

    Protocols may number the users of each split otherwise.
    """
    options = params.suites[suite]
    data_of_run = options.runs(options.experiments[name], BASE)
    tables = []
    for run, data in data_of_run.items():
        path = RUNS / suite / name / "train" / "users" / f"seed-{run}.parquet"
        table = contracts.read(path, BY_USER).with_columns(run=pl.lit(run, pl.Int64))
        if len(set(data_of_run.values())) > 1:
            ids = contracts.read(PROCESSED / data / "user_ids.parquet", contracts.ID_MAP)
            table = table.with_columns(pl.col("user").replace_strict(ids["id"], ids["original"]))
        tables.append(table)
    return pl.concat(tables)
