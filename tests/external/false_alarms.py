"""False alarms of `dprec audit` over systems that leak nothing: `python -m tests.external.false_alarms`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import binom

from tasks.external.run import run
from tasks.external.verdict import ALPHA
from tests.external import worlds
from tests.external.worlds import World, quiet

SYSTEMS = 200


def alarms(seeds: Iterable[int], folder: Path, *, small: bool = False, labels: bool = True) -> list[int]:
    """Seeds of null systems that a leak is shown of.

    A null system recommends noisy popularity, popularity, random items, or by a gender dealt out at random.

    Args:
        small: fewer users and items.
        labels: whether attributes are attacked: a gender that tastes depend on, and a coin.
    """
    leaking = []
    for seed in seeds:
        made = worlds.world(seed, 100, 50, 80, 12) if small else worlds.world(seed)
        rng = np.random.default_rng([seed, 7])
        people = {"gender": made.gender, "coin": rng.integers(0, 2, len(made.gender))}
        asked = worlds.asked(folder, made, null_lists(seed, made, rng), people if labels else None)
        audit, _ = run(asked, quiet)
        if audit.verdict.exit_code:
            leaking.append(seed)
    return leaking


def null_lists(kind: int, made: World, rng: np.random.Generator) -> np.ndarray:
    """Lists that depend on nobody's data but for what is left out."""
    if kind % 4 == 0:
        return worlds.noisy_popularity(made, rng)
    if kind % 4 == 1:
        return worlds.noisy_popularity(made, rng, 1e6)
    if kind % 4 == 2:
        return worlds.random_lists(made, rng)
    return worlds.by_gender(made, rng.permutation(made.gender), rng)


def most(systems: int) -> int:
    """Alarms that are exceeded with a probability of 0.001 at the stated rate."""
    return int(binom.ppf(0.999, systems, ALPHA))


def main() -> None:
    """Run all systems; exit 1 where there are more alarms than the stated rate allows."""
    with tempfile.TemporaryDirectory() as folder:
        leaking = alarms(range(SYSTEMS), Path(folder))
    print(f"{len(leaking)} false alarms in {SYSTEMS} systems; at the stated rate of {ALPHA:.0%} up to {most(SYSTEMS)}")
    raise SystemExit(len(leaking) > most(SYSTEMS))


if __name__ == "__main__":
    main()
