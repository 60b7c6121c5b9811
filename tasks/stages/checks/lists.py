"""The tasks whose systems release lists, or predictions of ratings.

`top-k`: of all users; `fold-in`: of the test users alone, who come first; `next-item`: after each prefix of a sequence;
`rating`: predictions of the ratings of a fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from tasks.config.params import Experiment, Suite
from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.pipeline.common import PROCESSED
from tasks.quality.metrics import Names, ranking_metrics
from tasks.quality.releases import Released, next_items, predictions, recommendations
from tasks.quality.rules import Table
from tasks.stages.checks.subject import Subject, released_tables


class Lists(NamedTuple):
    """What lists and their metrics must be; for ratings, predictions."""

    contract: pa.Schema
    """Of each list."""
    rules: Callable[[Released, pl.DataFrame, Schema, int], list[Table]]
    """(lists, interactions, schema, longest) -> the tables with their rules."""
    metrics: Callable[[Suite, Experiment, str], Names]
    """Those that training measures of an experiment at a setting."""
    against: str = "interactions"
    """The processed table that they are checked against."""

    def released(self, key: str, experiment: Experiment, suite: Suite) -> Subject:
        """Lists, with what their system was trained on."""
        files = {PROCESSED / data: released for data, released in released_tables(key, experiment, suite).items()}

        def tables() -> list[Table]:
            checked = []
            for data, released in files.items():
                lists = {which: contracts.read(file, self.contract) for which, file in released.items()}
                schema = contracts.read_schema(data / "schema.json")
                rows = contracts.read(data / f"{self.against}.parquet", contracts.table_schema(self.against, schema))
                for table in self.rules(lists, rows, schema, max(suite.evaluation.k, default=0)):
                    own_data = data.name == experiment.data
                    checked.append(table if own_data else replace(table, name=f"{table.name}, {data.name}"))
            return checked

        inputs = [data / file for data in files for file in (f"{self.against}.parquet", "schema.json")]
        return Subject([*(file for released in files.values() for file in released.values()), *inputs], tables)


def _ranking_metrics(suite: Suite, *_: object) -> Names:
    evaluation = suite.evaluation
    assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
    about = evaluation.k, evaluation.negatives, evaluation.recall
    return ranking_metrics(*about, full_rows=evaluation.full_rows)


def _next_item_metrics(suite: Suite, experiment: Experiment, _: str) -> Names:
    protocols = ["next", "next-new", *(["chosen-on-test/next"] if experiment.chosen_on_test else [])]
    kinds = [f"{protocol}/{kind}" for protocol in protocols for kind in ("recall", "mrr")]
    return list(product(kinds, suite.evaluation.k))


def _test_users(lists: Released, interactions: pl.DataFrame, schema: Schema, k: int) -> list[Table]:
    """The rules of `tasks.quality.releases.recommendations`, as if there were no other users."""
    n_test = interactions.filter(pl.col("split") == "test")["user"].n_unique()
    of_test = interactions.filter(pl.col("user") < n_test)
    return recommendations(lists, of_test, schema.model_copy(update={"n_users": n_test}), k)


def _fold_in_metrics(suite: Suite, *_: object) -> Names:
    recall = "recall" if suite.evaluation.recall == "relevant" else f"recall-{suite.evaluation.recall}"
    return list(product([f"full/{kind}" for kind in ("hit", "ndcg", recall, "mrr")], suite.evaluation.k))


def _rating_metrics(_: Suite, experiment: Experiment, setting: str) -> Names:
    share = experiment.settings()[setting]["sensitive_share"]
    names = ["mae", "mae/uncut", *["mae/sensitive"] * (share > 0), *["mae/public"] * (share < 1)]
    return [(name, None) for name in names]


TOP_K = Lists(contracts.RECOMMENDATIONS, recommendations, _ranking_metrics)
FOLD_IN = Lists(contracts.RECOMMENDATIONS, _test_users, _fold_in_metrics)
NEXT_ITEM = Lists(contracts.NEXT_ITEMS, next_items, _next_item_metrics)
RATING = Lists(
    contracts.PREDICTIONS,
    lambda predicted, folds, schema, _: predictions(predicted, folds, schema),
    _rating_metrics,
    against="folds",
)
