"""The task `rating`: predictions of the ratings of a fold."""

from __future__ import annotations

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.quality.metrics import rating_metrics
from tasks.quality.releases import predictions
from tasks.quality.rules import Table
from tasks.stages.checks.subject import Names, Subject, released_tables
from tasks.stages.common import PROCESSED


def released(key: str, experiment: Experiment, suite: Suite) -> Subject:
    """Predictions, with the folds that they are of."""
    data = PROCESSED / experiment.data
    files = released_tables(key, experiment, suite)[experiment.data]

    def tables() -> list[Table]:
        predicted = {which: contracts.read(file, contracts.PREDICTIONS) for which, file in files.items()}
        folds = contracts.read(data / "folds.parquet", contracts.FOLDS)
        return predictions(predicted, folds, contracts.read_schema(data / "schema.json"))

    return Subject([*files.values(), data / "folds.parquet", data / "schema.json"], tables)


def metrics(_: Suite, experiment: Experiment, setting: str) -> Names:
    """Those that training measures."""
    return rating_metrics(experiment.settings()[setting]["sensitive_share"])
