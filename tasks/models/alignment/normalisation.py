"""What is done to embeddings before they are aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError

Normalisation = Literal["centre", "unit"]
"""`centre`: take off the mean of the network's users; `unit`: scale each user's vector to length 1."""


def normalise(embeddings: NDArray[np.floating], steps: Sequence[Normalisation]) -> NDArray[np.float64]:
    """The steps applied to (n_users, d) embeddings, in their order; a vector of zeros stays one under `unit`.

    Raises:
        DataError: the embeddings are no matrix, have no users or no columns, or hold a value that is not finite.
    """
    result = np.array(embeddings, np.float64)
    if result.ndim != 2 or not result.size:
        raise DataError(f"embeddings: must be users × columns, both 1 or more (shape is {result.shape})")
    if not np.isfinite(result).all():
        users = np.flatnonzero(~np.isfinite(result).all(axis=1))
        raise DataError(
            f"embeddings: vectors of {len(users)} users are not finite (first: user {users[0]}); embed again"
        )
    for step in steps:
        if step == "centre":
            result -= result.mean(axis=0)
        else:
            lengths = np.linalg.norm(result, axis=1, keepdims=True)
            result /= np.where(lengths > 0, lengths, 1.0)
    return result
