"""From a table of interactions to everything that leaves the building, as data: release, model, ledger."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from tasks.core.errors import ConfigurationError, PrivacyError
from tasks.core.hashing import digest
from tasks.privacy import noise
from tasks.privacy.accounting.gaps import large_delta
from tasks.release import audit, making, models, rule, utility
from tasks.release.making import Budget, Release
from tasks.release.models import Kind, Model
from tasks.release.sums import Rows

SMALLEST, LARGEST = 0.01, 100.0
"""ε: below, noise is too large for its grid; above, nothing is protected."""


@dataclass(frozen=True)
class Wanted:
    """What a release is asked for."""

    epsilon: float
    delta: float
    users: int | None
    model: Kind
    evaluate: bool
    audited: bool
    seed: int | None
    """Of research noise; None: secure noise."""

    def __post_init__(self) -> None:
        if not SMALLEST <= self.epsilon <= LARGEST:
            raise ConfigurationError(f"--epsilon must be from {SMALLEST:g} to {LARGEST:g} (is {self.epsilon:g})")
        if not 0 < self.delta < 1:
            raise ConfigurationError(f"--delta must be between 0 and 1 (is {self.delta:g})")


@dataclass(frozen=True)
class Built:
    """A release, the model that was asked for, and what was done, in ids and numbers."""

    release: Release
    model: Model
    ledger: dict[str, Any]

    @property
    def marks(self) -> dict[str, str]:
        """What every file of it says."""
        return {
            "noise": self.ledger["noise"],
            "epsilon": repr(self.ledger["epsilon"]),
            "delta": repr(self.ledger["delta"]),
            "conditions": ", ".join(self.ledger["conditions"]),
            "gaps": ", ".join(gap["id"] for gap in self.ledger["gaps"]),
        }


def build(rows: Rows, wanted: Wanted, conditions: list[str]) -> Built:
    """Spend the budget on one release of the rows, fit a model, and estimate what it is good for if that is asked.

    Raises:
        PrivacyError: the audit shows a larger ε than was asked for.
    """
    # Of one seed, noise of other rows, shares or models whose utility is estimated is other noise: two releases that
    # shared it would give it away.
    shares = wanted.delta, wanted.users, wanted.evaluate and wanted.model
    budget = _budget(wanted, "release", f"{digest(rows.indptr.tobytes(), rows.indices.tobytes()):x}", repr(shares))
    kept, used, held = 0.0, rows, None
    if wanted.evaluate:
        kept = utility.SHARE
        coins = np.random.default_rng(secrets.randbits(128) if wanted.seed is None else [wanted.seed, 1])
        used, held = utility.split(rows, coins)
    make = partial(making.make, users=wanted.users, kept=kept)
    release = make(used, budget)
    model = models.fit(release, wanted.model)
    estimated = None
    if held is not None:
        compared = [model] if model.kind == "popularity" else [model, models.fit(release, "popularity")]
        estimated = utility.estimate(used, held, compared, budget)
    ledger = _ledger(wanted, budget, release, estimated, conditions)
    return Built(release, model, ledger | {"audit": _audit(wanted, release, make) if wanted.audited else None})


def _budget(wanted: Wanted, *use: str) -> Budget:
    rng = noise.generator(wanted.seed or 0, wanted.epsilon, "dprec release", *use, secure=wanted.seed is None)
    return Budget(wanted.epsilon, wanted.delta, rng)


def _audit(wanted: Wanted, release: Release, make: audit.Make) -> dict[str, object]:
    uses = count()
    seed = secrets.randbits(63) if wanted.seed is None else wanted.seed
    bounds = audit.audit(release, make, lambda: _budget(wanted, f"audit {next(uses)}"), seed)
    if refuted := audit.exceeds(bounds):
        shown = ", ".join(f"{kind} {bounds[kind]}" for kind in refuted)
        raise PrivacyError(f"the audit refutes the ledger of ε = {wanted.epsilon:g}, and nothing was written: {shown}")
    return {"confidence": audit.CONFIDENCE, "canaries": bounds}


def _ledger(
    wanted: Wanted, budget: Budget, release: Release, estimated: utility.Utility | None, conditions: list[str]
) -> dict[str, object]:
    """ids and numbers alone: what was released, of what unit, and what follows for it."""
    return {
        "unit": "user",
        "neighbouring": "add-or-remove",
        "guarantee": "joint",
        "epsilon": max(wanted.epsilon, budget.spent()),
        "delta": wanted.delta,
        "accounted_epsilon": budget.spent(),
        "composition": "gaussian",
        "noise": "secure" if wanted.seed is None else "research",
        "seed": wanted.seed,
        "conditions": conditions + (["users-public"] if wanted.users is not None else []),
        "gaps": [gap.model_dump() for gap in large_delta(wanted.delta, round(release.n_users))],
        "blocks": [asdict(block) | {"event": block.event.model_dump()} for block in budget.blocks],
        "rule": {
            "users": release.n_users,
            "sigma": budget.sigma,
            "catalogue": len(release.counts),
            "head": len(release.head),
            "paired": rule.PAIRED,
            "counted": rule.COUNTED,
            "rank": min(rule.RANK, len(release.head)),
        },
        "utility": None if estimated is None else {"ndcg": estimated.means, "deviation": estimated.deviation},
    }
