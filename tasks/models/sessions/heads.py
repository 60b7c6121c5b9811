"""What names the noise of a sequence: whose it is, which draw, and whether it was learnt from or is asked about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.privacy.keyed import mix
from tasks.sequences import Sequences


def heads(sequences: Sequences, draws: NDArray[np.int64], *, tested: bool) -> NDArray[np.uint64]:
    """(n_sequences,) ids to name prefixes by, see `tasks.privacy.keyed.prefix_ids`.

    A user's training sequence and the one asked about hold different visits. Where both begin with the same items, they
    would otherwise have one noise, and two releases with one noise show their difference without any.

    Args:
        draws: (n_sequences,) which of a user's independent draws.
        tested: whether the sequences are asked about; those of training are not.
    """
    parts = (sequences.users, draws)
    return mix(*parts, np.ones(1, np.int64)) if tested else mix(*parts)
