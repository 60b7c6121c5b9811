"""One embedder fitted, kept as it goes, and what it spent: common to the stages that embed networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tasks.models.base import SILENT
from tasks.models.training import EpochModel
from tasks.models.user_networks.base import Embedder
from tasks.stages.monitor import Monitor
from tasks.stages.screen import Screen


def fit(
    model: Embedder, data: Any, rng: np.random.Generator, progress: Path, screen: Screen, label: str
) -> tuple[list[dict[str, Any]], list[float]]:
    """Fit `model` to its data; one record per epoch and what each took in seconds, none of a model without any.

    Nothing validates: what is learnt from is the data alone, and labels are for judging. So every epoch is run.

    Args:
        progress: where the epochs are kept, so that an interrupted run goes on.
        label: what the screen calls this run.
    """
    if not isinstance(model, EpochModel):
        screen.skip()
        model.fit(data, rng=rng, progress=SILENT)
        return [], []
    screen.begin(label, model.config.epochs)
    monitor = Monitor(progress, None, screen, model.config.epochs, "")
    model.fit(data, rng=rng, progress=monitor)
    return monitor.history, monitor.seconds
