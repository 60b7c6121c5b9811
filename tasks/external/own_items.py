"""Do the lists repeat what their users were trained on, more than what the same users held back?

A list may fit its user for any reason: a chart of the user's country does. So training items are compared with
held-back items of the same user, which differ from them in training alone, and the difference with that in the list of
another user. Lists that leave out training items show nothing here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.external.findings import Answer, Attack, mean, tested, undecided
from tasks.external.inputs import NOBODY, Inputs, sample

FEWEST = 20
SHUFFLES = 9_999
BLOCK = 100
MOST_USERS = 2_000
"""Users whose lists are looked at; a random sample where there are more."""


def own_items(inputs: Inputs, difference: str, seed: int) -> Answer:
    """Share of training items that are in their user's list, compared with that of held-back items.

    Two tests of permutation (Phipson and Smyth, "Permutation p-values should never be zero", 2010), of which the larger
    p-value counts: which of a user's listed items were trained on is drawn again, and lists are shuffled among users.

    Args:
        difference: how training pairs differ from held-back ones without any list (`membership.interactions`).
    """
    rng = np.random.default_rng([seed, *b"own items"])
    public = inputs.public.matrix(inputs.n_users, inputs.n_items)
    users = np.flatnonzero(inputs.is_member & inputs.has_list & (np.diff(public.indptr) > 0))
    if len(users) < FEWEST:
        why = "give --public with interactions of trained users that were held back from training"
        why += f" ({len(users)} users with some and a list now, at least {FEWEST} needed)"
        return undecided("own items", "training interactions", why)
    users = sample(users, MOST_USERS, rng)
    lists = inputs.lists[users]
    rows, places = np.nonzero(lists != NOBODY)
    listed = csr_array((np.ones(len(rows), np.float32), (rows, lists[rows, places])), (len(users), inputs.n_items))
    hits = [(matrix[users] @ listed.T).toarray().astype(np.float64) for matrix in (inputs.trained, public)]
    sizes = [np.diff(matrix[users].indptr) for matrix in (inputs.trained, public)]
    shares = [of / size[:, None] for of, size in zip(hits, sizes, strict=True)]  # history of row, list of column
    own = [np.diag(of) for of in shares]
    p = 1.0
    if own[0].sum() > own[1].sum():
        p = max(_p_drawn(hits, sizes, rng), _p_shuffled(shares[0] - shares[1], rng))
    if difference and p < 0.05:
        return undecided("own items", "training interactions", difference)
    others = (shares[0].sum(axis=1) - own[0]) / (len(users) - 1)
    attack = Attack(
        name="every listed item was trained on",
        measures=[mean("training items listed", own[0], seed)],
        controls=[
            mean("held-back items listed", own[1], seed),
            mean("training items listed for other users", others, seed),
        ],
        p=p,
    )
    notes = [f"lists, training data and held-back data of {len(users):,} users"]
    return tested("own items", "training interactions", notes, [attack])


def _p_drawn(hits: list[NDArray[np.float64]], sizes: list[NDArray[np.int_]], rng: np.random.Generator) -> float:
    """How often a random choice of each user's training items has as many of the listed ones."""
    of_lists = [np.diag(of).astype(np.int64) for of in hits]
    listed = of_lists[0] + of_lists[1]

    def excess(trained: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray((trained / sizes[0] - (listed - trained) / sizes[1]).sum(axis=-1), np.float64)

    seen = excess(of_lists[0]) - 1e-9
    draws = (
        rng.hypergeometric(sizes[0], sizes[1], listed, (min(BLOCK, SHUFFLES - start), len(listed)))
        for start in range(0, SHUFFLES, BLOCK)
    )
    return (1 + sum(int((excess(drawn) >= seen).sum()) for drawn in draws)) / (1 + SHUFFLES)


def _p_shuffled(excess: NDArray[np.float64], rng: np.random.Generator) -> float:
    """How often shuffled lists exceed as much as users' own; excess: (n, n), history of row and list of column."""
    users, own = np.arange(len(excess)), float(np.trace(excess)) - 1e-9
    as_much = sum(float(excess[users, rng.permutation(users)].sum()) >= own for _ in range(SHUFFLES))
    return (1 + as_much) / (1 + SHUFFLES)
