"""The task `fold-in`: lists of the test users, who come first, and of nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import polars as pl

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.contracts import Schema
from tasks.quality import suites
from tasks.quality.rules import Table
from tasks.stages.checks.lists import Lists


def _test_users(
    lists: dict[tuple[str, int], pl.DataFrame], interactions: pl.DataFrame, schema: Schema, k: int
) -> list[Table]:
    """The rules of `tasks.quality.suites.recommendations`, as if there were no other users."""
    n_test = interactions.filter(pl.col("split") == "test")["user"].n_unique()
    shown = interactions.filter(pl.col("user") < n_test)
    return suites.recommendations(lists, shown, schema.model_copy(update={"n_users": n_test}), k)


def _metrics(suite: Suite, _: Experiment) -> Sequence[tuple[str, int | None]]:
    recall = "recall" if suite.evaluation.recall == "relevant" else f"recall-{suite.evaluation.recall}"
    return list(product([f"full/{kind}" for kind in ("hit", "ndcg", recall, "mrr")], suite.evaluation.k))


FOLD_IN = Lists(contracts.RECOMMENDATIONS, _test_users, _metrics)
