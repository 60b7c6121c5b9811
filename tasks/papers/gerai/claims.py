"""What GERAI's claims compute of its printed numbers: section 5.4, Tables 2 and 4, and the noise of section 5.6."""

from __future__ import annotations

from statistics import fmean

from tasks.privacy.mechanisms import functional
from tasks.results.printed import Against

NOISE = {20: (0.00375, 5e-6), 40: (0.01375, 5e-6), 60: (0.03, 5e-3), 80: (0.05, 5e-3), 100: (0.08, 5e-3)}
"""Dimension -> the printed scale of the Laplace noise and half of its last digit (section 5.6)."""
CUTOFFS = (5, 10, 15, 20, 25, 30)
EPSILON, N_TRIPLES = 0.4, 80_000
"""The paper's budget of the loss, and 80 % of the ratings of ML-100K."""


def numbers(against: Against) -> dict[str, object]:
    """Names for the rows of claims, from the printed tables.

    Returns:
        halved: attribute -> by which share of GCN's F1 GERAI must be below it, half of the gain in Table 2 (mean over
            K); loss: the most of GCN's Hit@5 or NDCG@5 that a variant loses in Table 4, in percent, None where nothing
            is printed; kept: the share that a loss half larger leaves.
    """
    rows = against.results.published.filter(paper="gerai").select("artefact", "metric", "method", "value")
    printed = {tuple(key): value for *key, value in rows.iter_rows()}

    def f1(attribute: str, method: str) -> list[float]:
        names = (("table2", f"f1_{attribute}@{k}", method) for k in CUTOFFS)
        return [printed[name] for name in names if name in printed]

    halved = {
        attribute: (1 + fmean(private) / fmean(public)) / 2
        for attribute in ("age", "gender", "occupation")
        if (private := f1(attribute, "GERAI")) and (public := f1(attribute, "GCN"))
    }
    losses = [
        1 - value / printed["table4", metric, "GCN"]
        for (artefact, metric, _), value in printed.items()
        if artefact == "table4" and metric in ("hit@5", "ndcg@5")
    ]
    loss = max(losses, default=None)
    return {"halved": halved, "loss": loss and 100 * loss, "kept": loss and 1 - 1.5 * loss}


def noise_scales(_: Against) -> tuple[float, dict[str, float]]:
    """The noise that Figure 2 is said to have, by the paper's own formula: no run is needed.

    Returns:
        by how much the worst is within half of its last digit, and the scale (d + d²/4)/(ε|D|) at each dimension d.
    """
    scales = {dimension: functional.noise_scale(dimension, EPSILON, N_TRIPLES) for dimension in NOISE}
    margin = min(half - abs(scales[dimension] - printed) for dimension, (printed, half) in NOISE.items())
    return margin, {f"d = {dimension}": scale for dimension, scale in scales.items()}
