"""Do the lists repeat what their users were trained on, more than what the same users held back?

A list may fit its user for any reason: a chart of the user's country does. So training items are compared with
held-back items of the same user, held-back pairs of an item with pairs of the same item that were trained on (what is
held back may be newer), and the difference with that in the list of another user. Lists that leave out training items
show nothing here.
"""

from __future__ import annotations

import numpy as np

from tasks.attacks.membership import Floats
from tasks.evaluation.detection import FEWEST
from tasks.external.findings import Answer, Attack, mean, tested, undecided
from tasks.external.inputs import Inputs, Ints, listed, sample

SHUFFLES = 9_999
BLOCK = 100
MOST_USERS = 2_000
"""Users whose lists are looked at; a random sample where there are more."""


def own_items(inputs: Inputs, difference: str, p_listed: float, seed: int) -> Answer:
    """Share of training items that are in their user's list, compared with that of held-back items.

    Three tests of permutation (Phipson and Smyth, "Permutation p-values should never be zero", 2010): which of the
    listed pairs were trained on is drawn again, within each user and within each item, and lists are shuffled among
    users. And that a pair is listed must tell more than what is known without lists. The largest p-value counts.

    difference, p_listed: what `membership.interactions` found.
    """
    rng = np.random.default_rng([seed, *b"own items"])
    users = inputs.compared
    if len(users) < FEWEST:
        why = "give --public with interactions of trained users that were held back from training"
        why += f" ({len(users)} users with some and a list now, at least {FEWEST} needed)"
        return undecided("own items", "training interactions", why)
    users = sample(users, MOST_USERS, rng)
    lists = listed(inputs.lists[users], inputs.n_items)
    histories = [matrix[users] for matrix in (inputs.trained, inputs.held_back)]
    sizes = [np.diff(matrix.indptr) for matrix in histories]
    # history of row, list of column
    shares = [(matrix @ lists.T).toarray() / size[:, None] for matrix, size in zip(histories, sizes, strict=True)]
    in_own = [np.diag(share) for share in shares]
    by_user = by_item = 1.0
    if in_own[0].sum() > in_own[1].sum():
        hits = [matrix.multiply(lists) for matrix in histories]
        of_users, of_items = ([matrix.sum(axis=axis).astype(np.int64) for matrix in hits] for axis in (1, 0))
        by_user = max(
            _p_resampled(of_users, sizes, 1 / sizes[0] + 1 / sizes[1], rng), _p_shuffled(shares[0] - shares[1], rng)
        )
        by_item = _p_resampled(of_items, [matrix.sum(axis=0).astype(np.int64) for matrix in histories], 1.0, rng)
    if difference and by_user < 0.05:
        return undecided("own items", "training interactions", difference)
    in_other = (shares[0].sum(axis=1) - in_own[0]) / (len(users) - 1)
    attack = Attack(
        name="every listed item was trained on",
        measures=[mean("training items listed", in_own[0], seed)],
        controls=[
            mean("held-back items listed", in_own[1], seed),
            mean("training items listed for other users", in_other, seed),
        ],
        p=max(by_user, by_item, p_listed),
    )
    notes = [f"lists, training data and held-back data of {len(users):,} users"]
    return tested("own items", "training interactions", notes, [attack])


def _p_resampled(hits: list[Ints], sizes: list[Ints], weights: Floats | float, rng: np.random.Generator) -> float:
    """How often as many listed pairs were trained on, if those of each user (or item) are drawn from all of its pairs.

    Args:
        hits, sizes: (n,) listed pairs, and all, that were trained on; the same held back.
        weights: (n,) of a listed pair that was trained on, or one for all.
    """
    n_listed = hits[0] + hits[1]
    used = n_listed > 0
    weights = np.broadcast_to(weights, len(used))[used]
    observed = (hits[0][used] * weights).sum() - 1e-9
    draws = (
        rng.hypergeometric(sizes[0][used], sizes[1][used], n_listed[used], (min(BLOCK, SHUFFLES - start), used.sum()))
        for start in range(0, SHUFFLES, BLOCK)
    )
    return (1 + sum(int((counts @ weights >= observed).sum()) for counts in draws)) / (1 + SHUFFLES)


def _p_shuffled(excess: Floats, rng: np.random.Generator) -> float:
    """How often shuffled lists exceed as much as users' own; excess: (n, n), history of row and list of column."""
    users, observed = np.arange(len(excess)), float(np.trace(excess)) - 1e-9
    as_much = sum(float(excess[users, rng.permutation(users)].sum()) >= observed for _ in range(SHUFFLES))
    return (1 + as_much) / (1 + SHUFFLES)
