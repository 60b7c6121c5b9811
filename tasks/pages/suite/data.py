"""What the numbers are of: counts by step, source, limits, networks, word vectors, checks, spreads over users."""

from __future__ import annotations

from typing import Any

from tasks.results.load import Results
from tasks.results.tables import COUNTS

SMALLEST_GROUP = 10
"""Groups of fewer users are not counted on pages."""


def data(results: Results) -> dict[str, Any]:
    """What fills `suite/data.html.j2`."""
    labels = {system.experiment: system.label for system in results.suite.systems}
    spreads: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in results.spreads.to_dicts():
        rows = spreads.setdefault((row["metric"], row["k"]), [])
        rows.append({"name": labels[row["experiment"]], **row})
    counted = [name for name in list(COUNTS)[3:] if results.counts[name].is_not_null().any()]
    return {
        "counts": results.counts.to_dicts(),
        "counted": counted,
        "words": [row for vectors in results.suite.words for row in _words(vectors)],
        "checks": results.checks.to_dicts(),
        "spreads": [{"metric": metric, "k": k, "rows": rows} for (metric, k), rows in spreads.items()],
        "networks": [network.model_dump() for network in results.suite.networks],
    }


def _words(vectors: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the vectors of the words of one data set are from; `users` is None for a group that is too small."""
    return [
        {
            "name": vectors["name"],
            "how": how,
            "words": counted["words"],
            "users": counted["users"] if counted["users"] >= SMALLEST_GROUP else None,
        }
        for how, counted in vectors["origins"].items()
    ]
