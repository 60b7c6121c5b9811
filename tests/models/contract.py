"""Every system with a small configuration, and small data for it: what contract tests and others are about."""

import json
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import torch

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models import model_class
from tasks.models.base import Model, NextItemRecommender, Progress, RatingPredictor, Recommender
from tasks.models.training import EpochModel
from tasks.models.user_networks.base import Embedder, PairData, PairEmbedder
from tests.models import social_data
from tests.models.naive_networks import network
from tests.systems import systems

EPOCHS = {"epochs": 25, "batch_size": 64, "learning_rate": 0.01, "dimension": 4, "regularization": 1e-3}
"""Small and regularised: a large model memorises the training items and takes held-out ones for negatives."""
GRAPH = EPOCHS | {"epochs": 60, "dimension": 8, "regularization": 1e-4}
AMPLE = 1e6
"""A budget of SGD, all steps together: so large that a step's own gains nothing from sampling, so that its noise is
calibrated in closed form."""
LARGE = {"epsilon": 1000.0, "delta": 1e-3}
FACTORS = {"dimension": 2, "epsilon": 1000.0, "ridge": 0.1}
LISTS = {
    "popularity": {},
    "dp-popularity": {"epsilon": 1.0, "contribution": 10},
    "bpr": EPOCHS,
    "blurm": EPOCHS | {"attribute": "gender", "share": 0.1, "added": "withheld"},
    "ease": {"regularization": 1.0},
    "ials": {"dimension": 2, "iterations": 10, "alpha": 10.0, "regularization": 0.1},
    "dpmf": FACTORS | {"accounting": "published"},
    "dpmf-rigorous": FACTORS | {"dimension": 20, "ridge": 1.0, "accounting": "rigorous"},
    "dpne": FACTORS | {"smoothing": 0.75, "shift": 1.0, "cap": 2.0},
    "gcn": GRAPH,
    "gcn-dot": GRAPH,
    "gerai": GRAPH | {"epsilon": 50.0},
    "dpae": {
        "epochs": 40,
        "batch_size": 64,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "dimension": 4,
        "epsilon": AMPLE,
        "delta": 1e-3,
        "clip_norm": 10.0,
    },
    "dpals": LARGE
    | {
        "dimension": 2,
        "iterations": 3,
        "user_ridge": 0.1,
        "item_ridge": 0.1,
        "clip": 1.0,
        "lengthen": True,
        "contribution": 20.0,
        "counts_share": 0.2,
    },
    **dict.fromkeys(("gram-svd", "gram-ease", "gram-ease-raw", "gaussian-popularity"), LARGE),
    "rap": EPOCHS | {"alpha": 0.1, "list_length": 5, "adversary_dimension": 4, "adversary_users": 16},
    "knn": {"k": 10, "values": "binary"},
    "lightfm": EPOCHS | {"learning_rate": 0.05, "metadata": False},
    "bprmf": EPOCHS,
    "lightgcn": GRAPH | {"layers": 2, "row_regularization": 1e-3},
    "dpmf-implicit": FACTORS | {"alternations": 2},
    "dpmf-explicit": FACTORS | {"alternations": 2, "rating_low": 1.0, "rating_high": 5.0},
}
TINY = {"knn": {"k": 2}}
"""What must be smaller where there are three users."""
USERS = {
    "epochs": 60, "batch_size": 8, "learning_rate": 0.01, "optimiser": "adam", "values": "binary", "dimension": 4,
    "privacy": "none",
}  # fmt: skip
ROWS = USERS | {"hidden": 8, "beta": 0.1, "prior": "standard"}
PRIVATE = {"epsilon_max": AMPLE, "delta": 1e-3, "clip_norm": 10.0, "privacy": "dpsgd"}
LISTS |= {
    "ae": USERS,
    "mf": USERS | {"unobserved": 0.1, "regularization": 1e-3},
    "svd": USERS | {"unobserved": 0.1, "regularization": 1e-3},
    "vae": ROWS,
    "dpvae": ROWS | PRIVATE | {"optimiser": "sgd", "learning_rate": 0.1, "privacy": "dpsgd-optimal-clip"},
    "dpvae-rigorous": ROWS | PRIVATE | {"accounting": "rigorous", "quantile": 0.5},
    "dpvae-compact": ROWS | PRIVATE | {"accounting": "rigorous", "popularity": 0.1, "frozen_encoder": True},
}
TINY |= {name: {"batch_size": 3} for name in ("ae", "mf", "svd", "vae", "dpvae", "dpvae-rigorous", "dpvae-compact")}
NEXT = {"epochs": 25, "batch_size": 16, "learning_rate": 0.01, "dimension": 16}
SESSION = NEXT | {"dropout": 0.0, "steps": 1}
ALL_USERS = {"epochs": 120, "batch_size": 1000, "learning_rate": 0.03, "clip_norm": 1.0}
"""In every step: noise for a sample of them takes the accountant minutes where there is so little of it."""
NOISY = SESSION | {"user_dimension": 4, "clip": 1.0, "epsilon": 1000.0, "delta": 1e-5, "accounting": "published"}
SEQUENCES = {
    "sasrec": NEXT | {"dropout": 0.1, "heads": 2},
    "dp-sasrec": NEXT | ALL_USERS | {"positions": 8, "epsilon": 1000.0, "delta": 1e-5},
    "hrnn": NEXT | {"dropout": 0.1, "session_length": 5},
    "srgnn": SESSION,
    "apgnn": SESSION | {"user_dimension": 4},
    "dipsgnn": NOISY,
    "dipsgnn-authors-code": NOISY | {"accounting": "released"},
    "dipsgnn-rigorous": NOISY | {"accounting": "rigorous"},
    "dipsgnn-cached": NOISY | {"accounting": "cached"},
    "dipsgnn-released": {"dimension": 16, "epsilon": 1e6, "delta": 1e-5, "label_share": 0.5, "ridge": 1e-3},
    "edgerand": NOISY,
    "nonp": NOISY | {"epsilon": None},
    "nonp-u": NOISY | {"epsilon": None},
    "priv-u": NOISY,
    "dpsgd": {key: value for key, value in NOISY.items() if key != "accounting"} | ALL_USERS,
}
MEANS = {"of": "bias", "damping": 1.0, "scale": (1, 5)}
RATINGS = social_data.CONFIGS | {"rating-means": MEANS, "dp-rating-means": MEANS | {"epsilon": 1.0, "variance": 1.0}}
STEPS = {"epochs": 3, "batch_size": 7, "learning_rate": 0.01, "dimension": 5}
WALK = {"dimension": 5, "walks": 4, "length": 6, "window": 2}
NETWORKS = {
    "rgcn": STEPS | {"hidden": 6, "free": 4},
    "sne": STEPS | {"ids": 4, "attributes": 3, "batch_size": 50},
    "udmf": STEPS | {"walk": WALK, "text": {"dimension": 5}},
    "word2vec": {"dimension": 5},
    "word2vec-closed": {"dimension": 5},
    "deepwalk": WALK,
    "netmf": WALK,
    "attributes": {},
    "degree": {},
    "random": {"dimension": 5},
    "crosue": STEPS,
    "crogcn-nh": STEPS | {"propagation": "iterative"},
    "crogcn-na": STEPS | {"anchor_weight": 0.0},
}
CONFIGS: dict[str, dict[str, Any]] = LISTS | SEQUENCES | RATINGS | NETWORKS
N_ITEMS = 12


def system(name: str) -> type[Model]:
    """The class of a system; ablations of networks differ from their model in their configuration alone."""
    return model_class("crosue" if name.startswith("crogcn") else systems()[name])


BY_EPOCHS = [name for name in CONFIGS if issubclass(system(name), EpochModel)]
KINDS = {Recommender: LISTS, NextItemRecommender: SEQUENCES, RatingPredictor: RATINGS, Embedder: NETWORKS}


def of_matrix(matrix: np.ndarray, features: np.ndarray | None = None, **more: Any) -> TrainingData:
    """Interactions where a matrix of users and items is not 0, by user and item."""
    users, items = (ids.astype(np.int32) for ids in np.nonzero(matrix))
    return TrainingData(*matrix.shape, users, items, features, **more)


def checkerboard(n_users: int = 40, n_items: int = 30, seed: int = 0) -> tuple[TrainingData, np.ndarray]:
    """Even users like even items, odd users odd ones; of these a random quarter is held out. Also the truth matrix."""
    rng = np.random.default_rng(seed)
    likes = np.add.outer(np.arange(n_users), np.arange(n_items)) % 2 == 0
    train = likes & (rng.random(likes.shape) > 0.25)
    features = rng.uniform(-1, 1, (n_users, 4)).astype(np.float32)
    ratings = 4 + rng.integers(0, 2, train.sum()).astype(np.float32)
    return of_matrix(train, features, attributes=attributes(n_users), ratings=ratings), likes & ~train


def attributes(n_users: int) -> dict[str, np.ndarray]:
    """One attribute that likes reveal, with an unknown user, and one that nothing reveals."""
    gender = np.arange(n_users) % 2
    gender[0] = -1
    return {"gender": gender, "age": np.arange(n_users) // 2 % 3}


def ragged(parts: list[list[int]], users: list[int] | None = None) -> Sequences:
    owners = np.arange(len(parts)) if users is None else np.array(users)
    items = np.array([item for part in parts for item in part], np.int32)
    return Sequences.from_events(np.repeat(owners, [len(part) for part in parts]).astype(np.int32), items)


def learning(sequences: Sequences, n_users: int, n_items: int) -> TrainingData:
    """Training data of `sequences`, with all that any model may read."""
    pairs = np.unique(np.stack([sequences.users[sequences.owners], sequences.items]), axis=1)
    features = np.random.default_rng(0).uniform(-1, 1, (n_users, 4)).astype(np.float32)
    ratings = np.full(pairs.shape[1], 5, np.float32)
    return TrainingData(n_users, n_items, pairs[0], pairs[1], features, ratings=ratings, sequences=sequences)


def cycles(n_sequences: int, n_items: int, seed: int) -> Sequences:
    """Item i is followed by i + 1, and the last by the first; starts and lengths (1 to 12) are random."""
    rng = np.random.default_rng(seed)
    starts, lengths = rng.integers(0, n_items, n_sequences), rng.integers(1, 13, n_sequences)
    return ragged([list((start + np.arange(n)) % n_items) for start, n in zip(starts, lengths, strict=True)])


def grammar(n_users: int = 60, n_items: int = N_ITEMS, seed: int = 0) -> TrainingData:
    return learning(cycles(n_users, n_items, seed), n_users, n_items)


def pair(seed=0, n_anchors=4) -> PairData:
    """Networks of very different size."""
    rng = np.random.default_rng(seed)
    networks = network(seed=seed), network(n_users=40, n_links=90, seed=seed + 1)
    embeddings = tuple(rng.normal(size=(data.n_users, 6)).astype(np.float32) for data in networks)
    anchors = np.stack([rng.permutation(9)[:n_anchors], rng.permutation(40)[:n_anchors]], axis=1).astype(np.int32)
    return PairData(networks, anchors, embeddings)


def small(name: str, seed: int = 0) -> Any:
    """Data of the kind that a system learns from; with another seed other data, also of another size."""
    if name in LISTS:
        return checkerboard(seed=seed)[0] if not seed else checkerboard(n_users=30, n_items=20, seed=seed)[0]
    if name in SEQUENCES:
        return grammar() if not seed else grammar(n_users=30, n_items=9, seed=seed)
    if name in RATINGS:
        return social_data.ratings() if not seed else social_data.ratings(seed=seed, n_users=8, n_items=7)
    return pair(seed) if issubclass(system(name), PairEmbedder) else network(seed=seed)


def make(name: str, **override: Any) -> Any:
    cls = system(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override))


def fitted(name: str, data: Any, seed: int = 0, **override: Any) -> Any:
    return make(name, **override).fit(data, rng=np.random.default_rng(seed))


def short(name: str) -> dict[str, int]:
    """What does not depend on how much is learned need not learn much."""
    return {"epochs": 2} if name in BY_EPOCHS and name not in RATINGS else {}


def quickly(name: str, data: Any = None, seed: int = 0) -> Any:
    """A model that has learned something."""
    return fitted(name, small(name) if data is None else data, seed, **short(name))


@cache
def _trained(name: str) -> Model:
    return quickly(name)


def trained(name: str) -> Any:
    """A copy, of the caller's own, of a model fitted quickly on its small data that has scored nothing yet."""
    return deepcopy(_trained(name))


class Stretch(Progress):
    """A `Progress`: resumes from a state, if there is one, and ends after so many epochs more; states are kept."""

    def __init__(self, epochs: int = 99, state: Any = None) -> None:
        self.epochs, self.state, self.states = epochs, state, list[Any]()

    def restore(self, model: Any) -> bool:
        if self.state is not None:
            model.load_state(*self.state)
        return self.epochs > 0

    def epoch(self, model: Any, loss: float) -> bool:
        assert np.isfinite(loss)
        tensors, extras = model.state()
        self.state = {name: tensor.clone() for name, tensor in tensors.items()}, json.loads(json.dumps(extras))
        self.states.append(self.state)
        self.epochs -= 1
        return self.epochs > 0


class First(Progress):
    """A `Progress` that ends with the weights of the first epoch, as validation may."""

    def epoch(self, model: Any, loss: float) -> bool:
        if model.epochs_done == 1:
            self.weights = model.weights()
        return super().epoch(model, loss)

    def finish(self, model: Any) -> None:
        model.load_weights(self.weights)


def all_scores(model: Any, data: TrainingData) -> torch.Tensor:
    return model.score(np.arange(data.n_users, dtype=np.int32))


def outputs(model: Any, data: Any) -> list[torch.Tensor]:
    """All that a model says of its data: scores, predictions or embeddings."""
    if isinstance(model, Recommender):
        return [all_scores(model, data)]
    if isinstance(model, NextItemRecommender):
        return [model.score_next(data.sequences)]
    if isinstance(model, RatingPredictor):
        users, items = (ids.ravel().astype(np.int32) for ids in np.indices((data.n_users, data.n_items)))
        return [model.predict(users, items).reshape(data.n_users, data.n_items)]
    rows = model.embed()
    return [torch.from_numpy(part) for part in (rows if isinstance(rows, tuple) else (rows,))]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(first, second, strict=True))
