"""Which networks DP-CroSUE's claims are tested on, and beside which network without noise."""

from __future__ import annotations

from typing import Any

from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import Results


def numbers(results: Results) -> dict[str, Any]:
    """Names for the rows of claims.

    Returns:
        known: networks whose friendships, interests and attributes are known; titles: theirs, as running text; true:
            R-GCN on what DP-R-GCN reads, without texts where no text is perturbed.
    """
    known = [network for network in results.networks if network.friendships and network.labelled and network.sensitive]
    private, bare = results.find("dp-rgcn"), results.find("rgcn-text-free")
    texts = private is None or any(spent.entry.protects == "text" for spent in private.spent)
    return {
        "known": known,
        "titles": join_words([network.title for network in known]),
        "true": "R-GCN" if texts or bare is None else "R-GCN without texts",
    }
