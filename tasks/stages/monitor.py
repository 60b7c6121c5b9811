"""Watching a training run: checkpoint after every epoch, validation, the best epoch, and a line on the screen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tasks.errors import DataError
from tasks.models.training import EpochModel
from tasks.stages.common import read_json, whole, write_json

SECONDS_BETWEEN_LINES = 5.0
SECONDS = "seconds.json"
"""Of a finished unit, what its epochs took: for the provenance, never for an output."""


class Screen:
    """A progress bar on a terminal; elsewhere (a log) a plain line every few seconds."""

    def __init__(self, label: str, runs: int) -> None:
        self._label = label
        self._runs = runs
        self._run = 0
        self._last_line = 0.0
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(label)

    def __enter__(self) -> Screen:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar:
            self._bar.stop()

    def skip(self) -> None:
        """A run that needs no epochs: finished before, or a model without any."""
        self._run += 1

    def begin(self, run: str, epochs: int) -> None:
        """A new run (setting and seed) of `epochs` epochs starts."""
        self._run += 1
        self._name = f"{self._label} {run} ({self._run}/{self._runs})"
        self._epochs = epochs
        if self._bar:
            self._bar.reset(self._task, total=epochs, description=self._name)

    def epoch(self, done: int, loss: float, valid: str, seconds_left: float) -> None:
        """An epoch ended; `valid` is empty where nothing validates, `seconds_left` is for this run."""
        figures = f"loss {loss:.4f}  valid {valid}" if valid else f"loss {loss:.4f}"
        if self._bar:
            self._bar.update(self._task, completed=done, description=f"{self._name}  {figures}")
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES or done == self._epochs:
            self._last_line = time.monotonic()
            line = f"{self._name}  epoch {done}/{self._epochs}  {figures}  {seconds_left:.0f} s left"
            print(line, file=sys.stderr, flush=True)


class Monitor:
    """The `Progress` of one training run: resumable, and ending at the epoch that validation likes best.

    Where nothing validates, every epoch is run and the last one is the end.

    The checkpoint is one folder that is replaced whole after every epoch: the model's state, the best weights so
    far, and the history. A run that was cut off goes on from it and ends with the same numbers as an unbroken one.
    """

    def __init__(
        self, folder: Path, validate: Callable[[Any], float] | None, screen: Screen, patience: int, metric: str
    ) -> None:
        """validate: `metric` on validation data, higher is better; None where nothing validates. patience: epochs
        without a new best."""
        self._folder = folder
        self._validate = validate
        self._screen = screen
        self._patience = patience
        self._metric = metric
        self._best: dict[str, torch.Tensor] = {}
        self._best_epoch = 0
        self._started = time.monotonic()
        self.history: list[dict[str, Any]] = []
        """One record per epoch: epoch, loss, valid where anything validates, the model's own diagnostics."""
        self.seconds: list[float] = []
        """What each epoch took, in order; a clock, so never part of an output."""

    def restore(self, model: EpochModel) -> bool:
        """Go on from the checkpoint, if a readable one is there."""
        try:
            tensors = load_file(self._folder / "state.safetensors")
            best = load_file(self._folder / "best.safetensors")
            rest = read_json(self._folder / "state.json")
        except (OSError, SafetensorError, DataError):
            return True  # nothing there: a fresh start
        model.load_state(tensors, rest["model"])
        self._best, self._best_epoch = best, rest["best_epoch"]
        self.history, self.seconds = rest["history"], rest["seconds"]
        return self._going(model)

    def epoch(self, model: EpochModel, loss: float) -> bool:
        """Validate, remember the best weights, write the checkpoint, show progress."""
        valid = self._validate(model) if self._validate else None
        now = time.monotonic()
        seconds = round(now - self._started, 3)
        self._started = now
        self.seconds.append(seconds)
        measured = {} if valid is None else {"valid": valid}
        self.history.append({"epoch": model.epochs_done, "loss": loss} | measured | model.diagnostics())
        if valid is None or not self._best or valid > self.history[self._best_epoch - 1]["valid"]:
            self._best, self._best_epoch = model.weights(), model.epochs_done
        self._write(model)
        left = model.config.epochs - model.epochs_done
        told = "" if valid is None else f"{self._metric} {valid:.4f}"
        self._screen.epoch(model.epochs_done, loss, told, left * seconds)
        return self._going(model)

    def finish(self, model: EpochModel) -> None:
        """Load the weights of the best epoch."""
        model.load_weights(self._best)

    def _going(self, model: EpochModel) -> bool:
        return model.epochs_done - self._best_epoch < self._patience

    def _write(self, model: EpochModel) -> None:
        tensors, rest = model.state()
        with whole(self._folder) as place:
            place.mkdir()
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, place / "state.safetensors")
            save_file(self._best, place / "best.safetensors")
            past = {"best_epoch": self._best_epoch, "history": self.history, "seconds": self.seconds}
            write_json(place / "state.json", {"model": rest} | past)


def epoch_seconds(units: Iterable[Any]) -> dict[str, dict[str, list[float]]]:
    """Setting -> seed -> what every epoch took; nothing of a model without epochs.

    units: finished ones, each with its `setting`, `seed` and folder `done`; those of one setting and seed follow one
    another.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for unit in units:
        if seconds := read_json(unit.done / SECONDS):
            found.setdefault(unit.setting, {}).setdefault(str(unit.seed), []).extend(seconds)
    return found
