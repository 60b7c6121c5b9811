"""Serving users from a history that is given, by a model that was trained on other data: the same rule for everyone.

What a model keeps of a user's own training record is not used; lists follow from what it learned of items and from the
history alone. So they are post-processing of what a private model releases, whoever was in its training data. A model
that solves or encodes its users' vectors from their rows does so with a history. Where a model only learns a vector for
each of its users, a history gets the one that fits it best (ridge regression on item vectors); so it does where a
`FactorModel` solves for them, as rigorous DPMF does with a penalty of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from tasks.evaluation.ranking import Seen
from tasks.graph.ops import Neighbourhoods
from tasks.models.base import Recommender
from tasks.models.ranking.bpr import BPR
from tasks.models.ranking.dpae import DPAE
from tasks.models.ranking.dpals import DPALS
from tasks.models.ranking.ease import EASE
from tasks.models.ranking.factors import FactorModel
from tasks.models.ranking.gerai.gcn import GCN, PIECE
from tasks.models.ranking.gram import GramSVD
from tasks.models.ranking.ials import IALS
from tasks.models.ranking.popularity import Popularity
from tasks.models.vae.userwise import UserModel

Scorer = Callable[[NDArray[np.int32]], NDArray[np.float32]]
"""Users -> (len(users), n_items) scores."""
RIDGE = 0.1
"""Weight of a fitted vector's squared norm, in mean squared lengths of the item vectors' coordinates, all added up."""


def fold_in(model: Recommender, served: Seen, n_items: int) -> Scorer:
    """Scores of users as if `served` were all that is known of them."""
    if isinstance(model, UserModel) and model.reads_ratings():
        raise ValueError(f"{type(model).__name__}: reads ratings, and a history is of items alone")
    if isinstance(model, Popularity):
        return lambda users: np.asarray(model.score(users))
    if isinstance(model, GramSVD):
        return lambda users: np.asarray(model.scores_of(_cells(served, users, n_items)))
    if isinstance(model, EASE):
        weights = model.weights
        return lambda users: np.asarray(_cells(served, users, n_items) @ weights)
    if isinstance(model, DPALS | IALS):
        by_item = model.items.T
        return lambda users: np.asarray(torch.from_numpy(model.vectors_of(_cells(served, users, n_items))) @ by_item)
    if isinstance(model, UserModel) and not model.network.local():
        return _by_network(model, served, n_items)
    if isinstance(model, DPAE):
        network = model.network
        items, biases = network.items.detach(), network.biases.detach()  # without the codes of all who were trained on
        return lambda users: np.asarray(network.encode(_rows(served, users, n_items))[1].detach() @ items.T + biases)
    if isinstance(model, BPR):
        network_items, item_biases = model.network.items.detach(), model.network.biases.detach()
        return _by_ridge(network_items, item_biases, served)
    if isinstance(model, FactorModel):
        return _by_ridge(model.items, torch.zeros(n_items), served)
    if isinstance(model, GCN):
        return _by_graph(model, served, n_items)
    raise ValueError(f"{type(model).__name__}: users cannot be folded in")


def _rows(served: Seen, users: NDArray[np.int32], n_items: int) -> Tensor:
    row, item = served.pairs(users)
    rows = torch.zeros(len(users), n_items)
    rows[torch.from_numpy(row).long(), torch.from_numpy(item).long()] = 1.0
    return rows


def _cells(served: Seen, users: NDArray[np.int32], n_items: int) -> csr_array:
    row, item = served.pairs(users)
    return csr_array((np.ones(len(item), np.float32), (row, item)), shape=(len(users), n_items))


def _by_ridge(items: Tensor, biases: Tensor, served: Seen) -> Scorer:
    """p = argmin ‖x - V p‖² + λ ‖p‖², x the history as 0 and 1; scores V p + b."""
    gram = items.T @ items
    gram += max(RIDGE * float(gram.trace()) / len(gram), 1e-9) * torch.eye(len(gram))

    def score(users: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors = torch.linalg.solve(gram, (_rows(served, users, len(items)) @ items).T).T
        return np.asarray(vectors @ items.T + biases)

    return score


def _by_network(model: UserModel, served: Seen, n_items: int) -> Scorer:
    """A history is encoded as a training row is."""
    network = model.network

    def score(users: NDArray[np.int32]) -> NDArray[np.float32]:
        with torch.no_grad():
            # the prior of user 0, which scores do not depend on
            codes, _ = network.codes(
                _rows(served, users, n_items).to(model.device),
                torch.zeros(len(users), dtype=torch.int64, device=model.device),
                None,
            )
            return np.asarray(network.items(codes).cpu())

    return score


def _by_graph(model: GCN, served: Seen, n_items: int) -> Scorer:
    """A user's messages come from the items of the history; items are as training left them."""
    network, released = model.network, model.released()
    owners, history_items = served.pairs(np.arange(served.n_users, dtype=np.int32))
    around = Neighbourhoods.bipartite(owners.astype(np.int32), history_items, served.n_users, n_items)

    def score(users: NDArray[np.int32]) -> NDArray[np.float32]:
        with torch.no_grad():
            centres = torch.from_numpy(users).long()
            rows = network.pair_user(network(around.block(centres), centres))
            parts = rows.split(max(1, PIECE // released["items"].numel()))
            scored = [model.predictive(part.unsqueeze(1) + released["items"]) @ released["project"] for part in parts]
            return np.asarray(torch.cat(scored))

    return score
