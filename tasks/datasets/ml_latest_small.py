"""MovieLens Latest (small) (Harper & Konstan, 2015): where it comes from, in the format of MovieLens 20M.

It is a source of its own because what a source is called decides which printed numbers stand beside its results.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tasks.datasets import ml_20m
from tasks.datasets.fetch import NoOptions, Places

_RELEASE = ml_20m.ObtainOptions(archive="ml-latest-small")
ObtainOptions = NoOptions
SOURCE = replace(ml_20m.source(_RELEASE), entry="{source: ml_latest_small, obtain: {}, format: ml_20m, read: {}}")


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """See `ml_20m.obtain`."""
    ml_20m.obtain(folder, places, _RELEASE)
