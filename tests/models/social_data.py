"""Small ratings with links, with everything that can be missing: for tests of the parties of PrivSR."""

from dataclasses import replace

import numpy as np

from tasks.core.training_data import TrainingData
from tests.systems import system_class

N_USERS, N_ITEMS = 12, 9
BASE = {
    "epochs": 4, "learning_rate": 0.01, "regularization": 0.05, "iterations_per_epoch": 3, "dimension": 4,
    "initial_spread": 0.1, "scale": (1, 5),
}  # fmt: skip
CONFIGS = {
    "mf-ratings": BASE,
    "soreg": BASE | {"alpha": 0.3},
    "dpmf-ratings": BASE | {"epsilon": 5.0},
    "privsr": BASE | {"alpha": 0.3, "epsilon": 5.0, "beta": 0.5, "accounting": "published"},
    "privsr-rigorous": BASE
    | {"alpha": 0.3, "epsilon": 50.0, "accounting": "rigorous", "delta": 1e-3, "towards": "sums"},
}


def ratings(share: float = 0.3, seed: int = 0, n_users: int = N_USERS, n_items: int = N_ITEMS) -> TrainingData:
    """Random ratings, `share` of them sensitive.

    User 0 has no friends, user 1 no rating, user 2 no published one (if any is sensitive) and user 3 a link to
    oneself; item 0 has no rating and item 1 a single one, of user 4. Rows are in any order.
    """
    rng = np.random.default_rng(seed)
    rated = rng.random((n_users, n_items)) < 0.5
    rated[1] = False
    rated[:, :2] = False
    rated[2, 2] = rated[4, 1] = True
    users, items = (ids.astype(np.int32) for ids in np.nonzero(rated))
    sensitive = rng.random(len(users)) < share
    if 0 < share < 1:
        sensitive |= (users == 2) | ((users == 4) & (items == 1))
    links = np.argwhere(rng.random((n_users, n_users)) < 0.4).astype(np.int32)
    links = links[(links[:, 0] != links[:, 1]) & (links[:, 0] != 0)]
    links = np.vstack([links, [[3, 3]]]).astype(np.int32)
    order = rng.permutation(len(users))
    values = rng.integers(1, 6, len(users)).astype(np.float32)
    return TrainingData(
        n_users, n_items, users[order], items[order], ratings=values, sensitive=sensitive[order], links=links
    )


def poisoned(data: TrainingData) -> TrainingData:
    """The same with every sensitive rating's value changed, as far as it goes."""
    turned = np.where(data.ratings > 3, 1, 5).astype(np.float32)
    return replace(data, ratings=np.where(data.sensitive, turned, data.ratings))


def make(name: str, **override):
    cls = system_class(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override))


def started(name: str, data: TrainingData, seed: int = 0, **override):
    """A model before its first iteration, to be iterated by hand."""
    model = make(name, **override)
    model.network = model.build(data, np.random.default_rng(seed))
    return model


def vectors(model) -> tuple[np.ndarray, np.ndarray]:
    """Copies of U and V, float64."""
    return model.network.users.numpy().astype(np.float64), model.network.items.numpy().astype(np.float64)
