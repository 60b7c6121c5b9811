"""What trains by epochs and resumes, as `Progress` of `tasks.models.base` sees it: a type alone."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from tasks.core.rows import Row


class Resumable(Protocol):
    """A `tasks.models.training.EpochModel`, or what has this of one."""

    @property
    def epochs_done(self) -> int:
        """Epochs trained so far."""

    @property
    def config(self) -> Any:
        """With `epochs`; where anything validates, also with `plans_epochs`."""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on: tensors, and what JSON can hold."""

    def load_state(self, tensors: dict[str, Tensor], extras: dict[str, Any]) -> None:
        """Take back what `state` gave."""

    def weights(self) -> dict[str, Tensor]:
        """A copy of what is trained."""

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take back what `weights` gave."""

    def diagnostics(self) -> Row:
        """What else is worth keeping of an epoch."""
