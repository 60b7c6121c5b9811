"""Settings that mean nothing, or keep nothing private, and data without what they need are refused by one line."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tasks.config.messages import first_error
from tasks.core.errors import ConfigurationError, DataError
from tasks.models.user_networks.base import NetworkData
from tests.models.contract import NOISY, PRIVATE, checkerboard, fitted, make, pair
from tests.models.naive_networks import network
from tests.models.social_data import ratings

DPALS = {"counts_share": 0.0, "lengthen": False, "gramian_share": 0.1}
RIGOROUS = PRIVATE | {"accounting": "rigorous"}
CHOSEN = PRIVATE | {"privacy": "dpsgd-optimal-clip"}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("dpals", DPALS | {"delta": 1.0}, "less than 1"),
    ("dpals", DPALS | {"delta": 0.0}, "greater than 0"),
    *(("dpals", DPALS | {"epsilon": wrong}, "greater than 0") for wrong in (0.0, math.nan)),
    *(("dpals", DPALS | {key: math.inf}, f"{key} must be finite") for key in ("clip", "contribution")),
    ("dpals", DPALS | {"head": 5}, "head needs a counts_share"),
    ("dpals", DPALS | {"counts_share": 0.9}, "must leave something"),
    ("dpals", DPALS | {"gramian_share": 0.0}, "gramian_share must be above 0"),
    *(("dpals", DPALS | {key: 0.1}, "local_share must be above 0") for key in ("unobserved_weight", "local_share")),
    ("dpals", {"epsilon": math.inf, "clip": math.inf}, "lengthen needs a finite clip"),
    *(("ae", PRIVATE | {key: None}, f"needs {key}") for key in ("epsilon_max", "clip_norm")),
    ("ae", CHOSEN | {"accounting": "rigorous"}, "reads gradients without noise"),
    ("ae", CHOSEN | {"examples": 2}, "one example"),
    ("ae", PRIVATE | {"quantile": 0.5}, "rigorous"),
    ("ae", PRIVATE | {"popularity": 0.5}, "rigorous"),
    ("ae", RIGOROUS | {"popularity": 0.5, "budgets": "uniform"}, "equal budgets"),
    ("vae", CHOSEN | {"tied": True}, "L1 norms of gradients"),
    ("vae", {"tied": True, "frozen_encoder": True}, "stay random, too"),
    *((name, {"clip_norm": math.inf}, "clip_norm must be finite") for name in ("dpae", "dpsgd")),
    ("dpmf-explicit", {"rating_low": 5.0}, "rating_low must be below rating_high"),
    ("sasrec", {"heads": 3}, "dimension 16 must be a multiple of heads 3"),
    ("privsr", {"delta": 1e-6}, "delta: not for accounting: published"),
    ("privsr", {"beta": None}, "published needs beta"),
    ("privsr", {"projection": False}, "unit ball"),
    ("privsr", {"scale": (5, 1)}, "below the highest"),
    ("privsr-rigorous", {"towards": None}, "rigorous needs towards"),
    ("privsr-rigorous", {"towards": "recommender", "colluders": 1}, "colluders: only for towards: sums"),
    *((name, NOISY | {key: wrong} | more, key) for name in ("dipsgnn", "priv-u") for key, wrong, more in (
        ("clip", math.inf, {}),
        ("delta", 1, {}),
        ("epsilon", math.inf, {}),
        ("steps", 2, {"accounting": "rigorous"}),
        ("steps", 3, {"accounting": "cached"}),
        ("accounting", "none", {}),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "override", "message"), REFUSED)
def test_a_setting_that_means_nothing_is_refused_in_one_line(name: str, override: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        make(name, **override)
    assert len(error.value.errors()) == 1
    line = str(first_error(error.value))
    assert re.search(message, line)
    assert "\n" not in line


BOARD = checkerboard()[0]
N_USERS, TOO_HIGH = BOARD.n_users, (BOARD.ratings > 4).sum()
RATED, BARE = ratings(), NetworkData(3, np.array([[0, 1]], np.int32))
UNRATED, HOLES = replace(BOARD, ratings=None), replace(BOARD, ratings=np.append(np.nan, BOARD.ratings[1:]))
WITHOUT: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
    ("dpmf", BOARD, {"dimension": 30}, ConfigurationError, "30 singular vectors need more than 30 users and items"),
    *(("knn", BOARD, {"k": k}, ConfigurationError, f"k: {k} neighbours need more than {k} users") for k in (40, 41)),
    ("knn", UNRATED, {"values": "ratings"}, ConfigurationError, "the data has no ratings"),
    ("vae", UNRATED, {"values": "ratings"}, ConfigurationError, "values: these data have no ratings"),
    *(("dpmf-explicit", data, {}, DataError, r"no rating.*dpmf-implicit") for data in (UNRATED, HOLES)),
    ("dpmf-explicit", BOARD, {"rating_high": 4.0}, DataError, f"{TOO_HIGH} ratings are outside 1 to 4"),
    *(("ae", BOARD, more | {"batch_size": 41}, ConfigurationError, "41 users in a step, but there are 40")
      for more in ({}, RIGOROUS)),
    ("ae", BOARD, PRIVATE | {"budgets": [1.0] * 39}, ConfigurationError, "39 budgets for 40 users"),
    ("privsr", replace(RATED, links=None), {}, DataError, "no links"),
    ("privsr", replace(RATED, ratings=RATED.ratings + 1), {}, DataError, "outside 1 to 5"),
    *((name, BARE, {}, DataError, "no texts") for name in ("word2vec", "word2vec-closed")),
    ("rgcn", replace(network(), word_vectors=None), {}, DataError, "vectors of their words"),
    ("udmf", replace(BARE, links=BARE.links[:0]), {}, DataError, "nothing to fuse"),
    ("attributes", BARE, {}, DataError, "users have no attributes"),
    ("crosue", replace(pair(), embeddings=None), {}, DataError, "no embeddings"),
    *(("rap", replace(BOARD, attributes=attributes), {}, DataError, "none has two classes")
      for attributes in ({}, {"gender": np.zeros(N_USERS, int)}, {"gender": np.full(N_USERS, -1)})),
    *(("blurm", replace(BOARD, attributes=attributes), {}, DataError, message) for attributes, message in (
        ({}, r"no attribute 'gender' \(there are: none\)"),
        ({"age": np.arange(N_USERS) % 2}, r"no attribute 'gender' \(there are: age\)"),
        ({"gender": np.arange(N_USERS) % 3}, "users have 3 classes of 'gender', not two"),
        ({"gender": np.zeros(N_USERS, int)}, "users have 1 classes of 'gender', not two"),
    )),
    *(("vae", replace(BOARD, features=rows), {"prior": "user"}, ConfigurationError, message) for rows, message in (
        (None, "have none"),
        (np.zeros((N_USERS, 0), np.float32), "have none"),
        (np.zeros((N_USERS, 6), np.float32), "no whole number of vectors of 4"),
        (np.full((N_USERS, 8), 1.5, np.float32), r"must lie in \[0, 1\]"),
        (np.full((N_USERS, 8), np.nan, np.float32), r"must lie in \[0, 1\]"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "override", "error", "message"), WITHOUT)
def test_data_without_what_a_model_needs_are_refused(name, data, override, error, message) -> None:
    with pytest.raises(error, match=message):
        fitted(name, data, **override)
