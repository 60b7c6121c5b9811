"""No two fits share noise: not of two seeds, settings, experiments or data sets, and none with the weights' start.

Two releases with the same noise would show their difference without any.
"""

from __future__ import annotations

from tasks.models.base import Model


class Recorder(Model):
    """Any model: its noise depends on its data, configuration, names and seed alone."""


Recorder.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
