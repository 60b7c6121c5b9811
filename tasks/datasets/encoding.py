"""A users table as the matrix that mechanisms perturb and models read (docs/methods.md §1)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.contracts import Feature
from tasks.core.errors import DamagedError, DataError

MOST_ROWS = 5  # rows named in an error
UNKNOWN = -1
"""Class of a user whose attribute is unknown."""


def encode(users: pl.DataFrame, features: tuple[Feature, ...]) -> NDArray[np.float32]:
    """Encode user features: numbers scaled to [-1, 1] by their bounds, categories as one-hot blocks.

    Bounds are compared in float32, the precision of the users table, so that a value equal to an irrational bound
    (log 5, say) is inside it. A feature whose two bounds are equal carries nothing and is encoded as 0.

    Args:
        users: users table with ids dense from 0, in any row order.
        features: the features to encode, in the order of the columns.

    Returns:
        (n_users, n_columns) float32; row i is user i, columns as in `Schema.columns`.

    Raises:
        DataError: a value is outside its bounds or not a number, a category is unknown, or user ids are not 0..n-1
            (names column, count and first rows of the table).
    """
    order = _order(users)
    blocks = [np.empty((len(users), 0), dtype=np.float32)]
    for feature in features:
        block = _scale if feature.kind == "numeric" else _one_hot
        blocks.append(block(users[feature.name], feature)[order])
    return np.hstack(blocks)


def classes(users: pl.DataFrame, features: tuple[Feature, ...]) -> dict[str, NDArray[np.int64]]:
    """The class of every user in each categorical feature: position in its categories, `UNKNOWN` where not known.

    Args:
        users: users table with ids dense from 0, in any row order.
        features: categorical features, such as `Schema.sensitive`.

    Returns:
        Name of the feature -> (n_users,) int64.

    Raises:
        DataError: a feature is numeric, or see `encode`.
    """
    order = _order(users)
    by_feature = {}
    for feature in features:
        if feature.kind != "categorical":
            raise DataError(f"schema: sensitive feature {feature.name!r} is numeric; group it into classes")
        codes = _codes(users[feature.name], feature).astype(np.int64)[order]
        if feature.unknown is not None:
            codes[codes == feature.categories.index(feature.unknown)] = UNKNOWN
        by_feature[feature.name] = codes
    return by_feature


def _order(users: pl.DataFrame) -> NDArray[np.intp]:
    """(n_users,) row of each user, in order of id."""
    ids = users["user"].to_numpy()
    order = np.argsort(ids, kind="stable")
    if missing := len(ids) - len(np.intersect1d(ids, np.arange(len(ids)))):
        raise DataError(f"users: column 'user': ids are not 0..{len(ids) - 1} ({missing} of these are missing)")
    return order


def _scale(column: pl.Series, feature: Feature) -> NDArray[np.float32]:
    """(n_users, 1) in [-1, 1]."""
    assert feature.low is not None, "check-processed asks for bounds"
    assert feature.high is not None, "check-processed asks for bounds"
    low, high = np.float32(feature.low), np.float32(feature.high)
    values = column.cast(pl.Float32).fill_null(np.nan).to_numpy()
    _refuse(~((values >= low) & (values <= high)), feature.name, f"[{feature.low:g}, {feature.high:g}]")
    if low == high:
        return np.zeros((len(values), 1), dtype=np.float32)
    # In float64: (high - low) of nearby float32 bounds would lose the digits that tell users apart.
    share = (values.astype(np.float64) - float(low)) / (float(high) - float(low))
    return (2 * share - 1).astype(np.float32)[:, None]


def _one_hot(column: pl.Series, feature: Feature) -> NDArray[np.float32]:
    """(n_users, n_categories) of zeros and one 1 per row."""
    codes = _codes(column, feature)
    block = np.zeros((len(codes), len(feature.categories)), dtype=np.float32)
    block[np.arange(len(codes)), codes] = 1
    return block


def _codes(column: pl.Series, feature: Feature) -> NDArray[np.int32]:
    """(n_users,) position of each value among the categories."""
    codes = column.replace_strict(
        list(feature.categories), list(range(len(feature.categories))), default=None, return_dtype=pl.Int32
    )
    _refuse(codes.is_null().to_numpy(), feature.name, f"the {len(feature.categories)} categories")
    return codes.to_numpy()


def _refuse(wrong: NDArray[np.bool_], name: str, allowed: str) -> None:
    if count := int(wrong.sum()):
        rows = ", ".join(map(str, np.flatnonzero(wrong)[:MOST_ROWS]))
        raise DamagedError(
            f"users: column {name!r}: {count} values are outside {allowed}, first at rows {rows}; run preprocess again"
        )
