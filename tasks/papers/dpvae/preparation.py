"""DP-VAE's Tables 2 and 3: the data before and after its protocol, and the settings of its network."""

from __future__ import annotations

from tasks.results.facts import System
from tasks.results.printed import Against, Count
from tasks.results.settings import as_number

ORIGINAL = ("published", "sampled")
"""Steps of the protocol after which the paper counts the original data; of Netflix, the sample that it drew."""
SETTINGS = {"batch_size": "batch_size", "epochs": "epochs", "beta": "beta", "latent_dim": "dimension"}
"""`metric` in paper_tables.csv -> the key of the configuration."""
SYSTEM = "dpvae"
"""Label of the system that answers to the printed settings."""


def counts(against: Against) -> list[Count]:
    """Tables 2 and 3 as numbers: of the data before and after, and of the network of `SYSTEM`."""
    counted = [
        Count("table2", name, value, setting=stage)
        for stage, of_stage in our_counts(against).items()
        for name, value in of_stage.items()
    ]
    system = against.find(SYSTEM)
    if system is None or system.label != SYSTEM:
        return counted
    values = {name: as_number(system.config.get(key)) for name, key in SETTINGS.items()}
    values["parameters"] = as_number(parameters(against, system))
    return counted + [Count("table3", name, value, method="DP-VAE") for name, value in values.items()]


def preserved(against: Against) -> tuple[float, dict[str, float]]:
    """Whether the bound leaves all of the original data: no run is needed.

    Returns:
        by how much the largest loss is below one half, and users, items and ratings before and after. Omitting items
        too, as section 4.1.1 says, would remove those with one or two ratings.
    """
    first, last = our_counts(against).values()
    values = {
        f"{name}-{stage}": counted[name]
        for name in ("users", "items", "ratings")
        for stage, counted in (("before", first), ("after", last))
    }
    return min(0.5 - abs(first[name] - last[name]) for name in ("users", "items", "ratings")), values


def our_counts(against: Against) -> dict[str, dict[str, float]]:
    """`original`, `preprocessed` -> users, items, ratings and sparsity, 1 - R / (U I) in percent (Eq. 21)."""
    rows = against.counts
    first = [count for count in rows if count["step"] in ORIGINAL] or rows[:1]
    return {
        stage: {
            "users": count["users"],
            "items": count["items"],
            "ratings": count["interactions"],
            "sparsity": 100 * (1 - count["interactions"] / (count["users"] * count["items"])),
        }
        for stage, count in (("original", first[-1]), ("preprocessed", rows[-1]))
        if count["users"] and count["items"]
    }


def parameters(against: Against, system: System) -> int | None:
    """Weights and biases of I → h → (μ, log σ²) and K → h → I, by a configuration; None where it has no sizes."""
    hidden, latent = system.config.get("hidden"), system.config.get("dimension")
    if hidden is None or latent is None:
        return None
    n_items, h, k = int(against.counts[-1]["items"]), int(hidden), int(latent)
    return (n_items * h + h + h * 2 * k + 2 * k) + (k * h + h + h * n_items + n_items)
