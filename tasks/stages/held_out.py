"""Which anchors judge the vectors of a system that may be trained on others."""

from __future__ import annotations

from collections.abc import Mapping

from tasks.config.networks import Alignment


def held_out(features: str, aligned: Mapping[str, Alignment]) -> tuple[float, int] | None:
    """Share and seed of the anchors that are held out from what reads `features` (`Anchors.split`).

    None: it learns from no true anchor.
    """
    layer, _, name = features.partition("/")
    if layer != "aligned" or aligned[name].anchors != "truth":
        return None
    return aligned[name].test_share, aligned[name].split_seed
