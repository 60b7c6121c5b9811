"""Do the lists repeat what their users were trained on, more than other users' lists do?

No held-back data are needed: the control is everybody's history beside the list of somebody else. Lists that do not
depend on their user's own data (the same popular items for all, say) show nothing, however many hits they have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.evaluation.statistics import crossed_interval
from tasks.external.findings import Answer, Attack, Measure, undecided
from tasks.external.inputs import NOBODY, Inputs, sample

FEWEST = 20
SHUFFLES = 9_999
MOST_USERS = 2_000
"""Users whose lists are shuffled; a random sample where there are more."""


def own_items(inputs: Inputs, seed: int) -> Answer:
    """Share of listed items that their user was trained on, beside that of other users' lists.

    The test is one of permutation: lists are shuffled among users (Phipson and Smyth, "Permutation p-values should
    never be zero", 2010). Where hits are few their number is far from normal.
    """
    rng = np.random.default_rng([seed, *b"own items"])
    users = np.flatnonzero(inputs.is_member & inputs.has_list)
    if len(users) < FEWEST:
        why = f"{len(users)} users who were trained on have a list; at least {FEWEST} are needed"
        return undecided("own items", "training interactions", why)
    users = sample(users, MOST_USERS, rng)
    lists = inputs.lists[users]
    rows, places = np.nonzero(lists != NOBODY)
    weights = 1.0 / (lists != NOBODY).sum(axis=1)
    shown = csr_array((weights[rows], (rows, lists[rows, places])), (len(users), inputs.n_items))
    shares = (inputs.trained[users] @ shown.T).toarray().astype(np.float64)  # history of row, list of column
    own, n = np.diag(shares), len(users)
    others = (shares.sum(axis=1) - own) / max(n - 1, 1)
    excess = float(own.sum() - shares.sum() / n)
    p = _p(shares, rng) if excess > 1e-6 * n else 1.0
    return Answer(
        question="own items",
        subject="training interactions",
        state="not shown",
        sentence="",
        notes=[f"lists and training data of {n:,} users"],
        attacks=[
            Attack(
                name="every listed item was trained on",
                measures=[_share("right", own, seed)],
                controls=[_share("right, lists of other users", others, seed)],
                p=p,
            )
        ],
    )


def _p(shares: NDArray[np.float64], rng: np.random.Generator) -> float:
    """How often shuffled lists hit as much as everybody's own; shares: (n, n), history of row and list of column."""
    users, own = np.arange(len(shares)), float(np.trace(shares)) - 1e-9
    as_many = sum(float(shares[users, rng.permutation(users)].sum()) >= own for _ in range(SHUFFLES))
    return (1 + as_many) / (1 + SHUFFLES)


def _share(name: str, values: NDArray[np.float64], seed: int) -> Measure:
    low, high = crossed_interval(values[None], seed=seed)
    return Measure(name=name, value=float(values.mean()), low=low, high=high)
