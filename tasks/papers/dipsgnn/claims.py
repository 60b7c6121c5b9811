"""What DIPSGNN's claims compute of its printed Table 2."""

from __future__ import annotations

from tasks.reporting.core import comparison
from tasks.reporting.core.results import Results


def numbers(results: Results) -> dict[str, float | None]:
    """Names for the rows of claims.

    Returns:
        gain: by how many percent DIPSGNN's printed Recall@20 is above EdgeRand's, None on data without printed numbers;
            halved: the factor of half of that.
    """
    printed = comparison.printed_values(results, results.layout)
    private, baseline = (printed.get(("table2", name, "", "recall@20")) for name in ("DIPSGNN", "EdgeRand"))
    if private is None or baseline is None:
        return {"gain": None, "halved": None}
    return {"gain": 100 * (private / baseline - 1), "halved": (1 + private / baseline) / 2}
