"""How a suite's lists serve its users: distributions of NDCG and of exposure, with at least ten users a bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks import contracts
from tasks.config.params import Params
from tasks.evaluation.ranking import Seen
from tasks.evaluation.users import bin_users, exposure, ndcg
from tasks.reporting.core.results import BASE
from tasks.stages.common import PROCESSED, RUNS
from tasks.stages.papers import describe

RELEASED = "released"
STEPS = {"ndcg": 20, "exposure": 50}
"""Bins of equal width between 0 and 1, before small ones are joined."""


def spreads(suite: str, params: Params) -> dict[str, Any]:
    """Of every experiment on the suite's data, at setting `base`: a user's value is the mean over seeds.

    Raises:
        DataError: a table is not what its contract says.
    """
    own = params.suites[suite]
    mine = {name: of for name, of in own.experiments.items() if of.data == own.data}
    mine = {name: of for name, of in mine.items() if (RUNS / suite / name / RELEASED).is_dir()}
    if not mine:
        return {}
    rows = contracts.read(PROCESSED / own.data / "interactions.parquet", contracts.INTERACTIONS)
    shape = int(rows["user"].max()) + 1, int(rows["item"].max()) + 1  # type: ignore[arg-type]  # ids, never null
    wanted = describe(own.paper, ()).headline_k
    k = min(own.evaluation.k, key=lambda cutoff: (abs(cutoff - wanted), cutoff))
    known, held = rows.filter(pl.col("split") != "test"), rows.filter(pl.col("split") == "test")
    popularity = np.bincount(known["item"].to_numpy(), minlength=shape[1]) / shape[0]
    test = Seen.from_pairs(held["user"].to_numpy(), held["item"].to_numpy(), shape[0])
    records = []
    for name, experiment in mine.items():
        lists = [_lists(suite, name, seed, shape[0])[:, :k] for seed in experiment.seeds]
        for metric, values in _values(lists, test, popularity).items():
            edges = np.round(np.linspace(0.0, 1.0, STEPS[metric] + 1), 2).tolist()
            bins = [list(each) for each in bin_users(values, edges)]
            records.append({"experiment": name, "metric": metric, "k": k, "bins": bins})
    return {"spreads": tuple(records)}


def _values(
    lists: list[NDArray[np.int32]], test: Seen, popularity: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Metric -> (n_users,) means over seeds; NDCG of users with held-out items alone."""
    tested = np.flatnonzero(test.counts)
    gains = [ndcg(test.contains(tested[:, None], of[tested]), test.counts[tested], of.shape[1]) for of in lists]
    return {"ndcg": np.mean(gains, axis=0), "exposure": np.mean([exposure(of, popularity) for of in lists], axis=0)}


def _lists(suite: str, name: str, seed: int, n_users: int) -> NDArray[np.int32]:
    """(n_users, K) recommendations at setting `base`, best first."""
    path = RUNS / suite / name / RELEASED / BASE / f"seed-{seed}.parquet"
    table = contracts.read(path, contracts.RECOMMENDATIONS).sort("user", "rank")
    return np.asarray(table["item"].to_numpy().reshape(n_users, -1), np.int32)
