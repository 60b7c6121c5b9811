"""Watching a training run: its state kept after every epoch, validation, the best epoch, and a line on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

from tasks.core.errors import DataError
from tasks.evaluation.metrics import Record
from tasks.models import base
from tasks.pipeline.common import read_json, write_json
from tasks.pipeline.runs import Progress
from tasks.pipeline.screen import Screen

if TYPE_CHECKING:
    from tasks.core.rows import Row


class Monitor(base.Progress):
    """The `Progress` of one training run: resumable, and ending at the epoch that validation likes best.

    What is trained is an `EpochModel`, or has what this asks of one. Where nothing validates, every epoch is run and
    the last one is the end. Where noise is made for a planned number of epochs, all of them are run, too, since all are
    paid for; the best one is kept.

    What is kept after every epoch is the model's state, the best weights so far, and the history. A run that was cut
    off goes on from there and ends with the same numbers as an unbroken one.
    """

    def __init__(
        self,
        folder: Path,
        screen: Screen,
        label: str,
        validate: Callable[[Any], float] | None = None,
        patience: int = 0,
        metric: str = "",
        test: Callable[[Any], list[Record]] | None = None,
    ) -> None:
        """Start before the first epoch.

        label: what the screen calls this run. validate: `metric` on validation data, higher is better; None where
        nothing validates: `metric` is then one of the model's own diagnostics to show. patience: epochs without a new
        best. test: metrics on the test, higher is better, where `best_tested` is wanted; every epoch is then run, so
        that the test has no say in how many there are.
        """
        self._progress, self._screen, self._label = Progress(folder), screen, label
        self._validate, self._patience, self._metric = validate, patience, metric
        self._test, self._tested = test, list[list[Record]]()
        self._best: dict[str, torch.Tensor] = {}
        self._best_epoch = 0
        self._started = time.monotonic()
        self.history: list[Row] = []
        """One record per epoch: epoch, loss, valid where anything validates, the model's own diagnostics."""
        self.seconds: list[float] = []
        """What each epoch took, in order; a clock, so never part of an output."""

    def restore(self, model: Any) -> bool:
        """Go on from the last state that can be used, if there is one."""
        self._screen.begin(self._label, model.config.epochs)

        def read(state: Path) -> None:
            tensors, best = load_file(state / "state.safetensors"), load_file(state / "best.safetensors")
            values, fresh = read_json(state / "state.json"), deepcopy(model.state())
            if _shapes(best) != _shapes(model.weights()):
                raise DataError("its best weights are another model's")
            history, seconds, best_epoch = list(values["history"]), list(values["seconds"]), values["best_epoch"]
            epochs = [record["epoch"] for record in history]
            if epochs != list(range(1, values["model"]["epochs_done"] + 1)) or best_epoch not in epochs:
                raise DataError("its history is of other epochs")
            if len(seconds) != len(epochs):
                raise DataError("it says of other epochs how long they took")
            try:
                model.load_state(tensors, values["model"])
            except Exception:
                model.load_state(*fresh)
                raise
            self._best, self._best_epoch, self.history, self.seconds = best, best_epoch, history, seconds
            self._tested = values.get("tested", [])

        self._progress.restore(read)
        return self._going(model)

    def epoch(self, model: Any, loss: float) -> bool:
        """Validate, remember the best weights, write the checkpoint, show progress."""
        valid = self._validate(model) if self._validate else None
        now = time.monotonic()
        seconds = round(now - self._started, 3)
        self._started = now
        self.seconds.append(seconds)
        if self._test is not None:
            self._tested.append(self._test(model))
        measured = {} if valid is None else {"valid": valid}
        self.history.append({"epoch": model.epochs_done, "loss": loss} | measured | model.diagnostics())
        if valid is None or not self._best or valid > self.history[self._best_epoch - 1]["valid"]:
            self._best, self._best_epoch = model.weights(), model.epochs_done
        self._write(model)
        left = model.config.epochs - model.epochs_done
        figures = f"loss {loss:.4f}"
        if valid is not None:
            figures += f"  valid {self._metric} {valid:.4f}"
        elif (value := self.history[-1].get(self._metric)) is not None:
            figures += f"  {self._metric} {value:.4f}"
        self._screen.step(model.epochs_done, figures, left * seconds)
        return self._going(model)

    def finish(self, model: Any) -> None:
        """Load the weights of the best epoch."""
        model.load_weights(self._best)

    def cut_off(self, model: Any) -> bool:
        """Whether the cap on epochs ended training before validation did; never where their number is planned."""
        chosen = self._validate is not None and self._test is None and not model.config.plans_epochs
        return chosen and self._going(model)

    def best_tested(self) -> list[Record]:
        """Of each metric on the test its best value over all epochs; nothing where these were not tested."""
        by_metric = zip(*self._tested, strict=True)
        return [max(values, key=lambda tested: float(tested["value"])) for values in by_metric]

    def _going(self, model: Any) -> bool:
        all_epochs = self._validate is None or self._test is not None or model.config.plans_epochs
        return all_epochs or model.epochs_done - self._best_epoch < self._patience

    def _write(self, model: Any) -> None:
        tensors, values = model.state()
        with self._progress.write() as target:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, target / "state.safetensors")
            save_file(self._best, target / "best.safetensors")
            past = {"best_epoch": self._best_epoch, "history": self.history, "seconds": self.seconds}
            tested = {} if self._test is None else {"tested": self._tested}
            write_json(target / "state.json", {"model": values} | past | tested)


def _shapes(weights: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in weights.items()}
